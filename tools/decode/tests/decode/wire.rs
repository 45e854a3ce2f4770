//! Captures as other programs write them: frames, files, conversations. The messages that were sent are
//! the truth that a decoder is held against.

use keyway_codec::message::{
    AddRequest, Attribute, Authentication, BindRequest, BindResponse, Deref, LdapResult, Scope,
    SearchRequest, SearchResultEntry,
};
use keyway_codec::{Filter, Message, Op};
use keyway_decode::view::{Line, View};
use keyway_decode::{Capture, Counts, Decoder, Error, Event, Note, Operation, Options, Sink};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// Where a frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Ethernet,
    /// With so many VLAN tags.
    Vlan(usize),
    Cooked,
    Cooked2,
    Raw,
    Null,
    Loop,
}

pub const LINKS: [Link; 8] = [
    Link::Ethernet,
    Link::Vlan(1),
    Link::Vlan(2),
    Link::Cooked,
    Link::Cooked2,
    Link::Raw,
    Link::Null,
    Link::Loop,
];

impl Link {
    pub fn number(self) -> u32 {
        match self {
            Link::Ethernet | Link::Vlan(_) => 1,
            Link::Cooked => 113,
            Link::Cooked2 => 276,
            Link::Raw => 101,
            Link::Null => 0,
            Link::Loop => 108,
        }
    }

    pub fn frame(self, datagram: &[u8]) -> Vec<u8> {
        let v6 = datagram[0] >> 4 == 6;
        let protocol: [u8; 2] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let mut frame = match self {
            Link::Ethernet => [&[2; 12][..], &protocol].concat(),
            Link::Vlan(tags) => {
                let mut frame = vec![2; 12];
                (0..tags).for_each(|tag| frame.extend([0x81, 0x00, 0x00, tag as u8]));
                [frame, protocol.to_vec()].concat()
            }
            Link::Cooked => [&[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0][..], &protocol].concat(),
            Link::Cooked2 => [&protocol[..], &[0; 18]].concat(),
            Link::Raw => Vec::new(),
            Link::Null => vec![if v6 { 30 } else { 2 }, 0, 0, 0],
            Link::Loop => vec![0, 0, 0, if v6 { 30 } else { 2 }],
        };
        frame.extend_from_slice(datagram);
        // Ethernet pads short frames.
        if matches!(self, Link::Ethernet) && frame.len() < 60 {
            frame.resize(60, 0);
        }
        frame
    }
}

/// A TCP segment to be.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub sequence: u32,
    pub acknowledgement: Option<u32>,
    pub flags: u8,
    pub payload: Vec<u8>,
}

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;

impl Segment {
    fn tcp(&self) -> Vec<u8> {
        let acknowledges = u8::from(self.acknowledgement.is_some()) << 4;
        let mut tcp = Vec::new();
        tcp.extend(self.from.port().to_be_bytes());
        tcp.extend(self.to.port().to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.unwrap_or_default().to_be_bytes());
        // With an option, as most have.
        tcp.extend([8 << 4, self.flags | acknowledges, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]);
        tcp.extend(&self.payload);
        tcp
    }

    pub fn datagram(&self) -> Vec<u8> {
        internet(self.from.ip(), self.to.ip(), &self.tcp(), None)
    }

    /// In fragments of so many octets, a multiple of eight.
    pub fn fragments(&self, octets: usize, identification: u16) -> Vec<Vec<u8>> {
        let tcp = self.tcp();
        let last = tcp.len().div_ceil(octets) - 1;
        let part = |(index, part): (usize, &[u8])| {
            let place = (identification, index * octets, index < last);
            internet(self.from.ip(), self.to.ip(), part, Some(place))
        };
        tcp.chunks(octets).enumerate().map(part).collect()
    }
}

fn internet(from: IpAddr, to: IpAddr, rest: &[u8], part: Option<(u16, usize, bool)>) -> Vec<u8> {
    let mut datagram = Vec::new();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (identification, offset, more) = part.unwrap_or((7, 0, false));
            let place = (offset / 8) as u16 | u16::from(more) << 13;
            datagram.extend([0x45, 0]);
            datagram.extend(((rest.len() + 20) as u16).to_be_bytes());
            datagram.extend(identification.to_be_bytes());
            datagram.extend(place.to_be_bytes());
            datagram.extend([64, 6, 0, 0]);
            datagram.extend(from.octets());
            datagram.extend(to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            // With a header of options for each router, as multicast listeners have it.
            let length = rest.len() + 8 + if part.is_some() { 8 } else { 0 };
            datagram.extend([0x60, 0, 0, 0]);
            datagram.extend((length as u16).to_be_bytes());
            datagram.extend([0, 64]);
            datagram.extend(from.octets());
            datagram.extend(to.octets());
            let next = if part.is_some() { 44 } else { 6 };
            datagram.extend([next, 0, 1, 4, 0, 0, 0, 0]);
            if let Some((identification, offset, more)) = part {
                datagram.extend([6, 0]);
                datagram.extend((offset as u16 | u16::from(more)).to_be_bytes());
                datagram.extend(u32::from(identification).to_be_bytes());
            }
        }
        _ => panic!("both ends have the same version"),
    }
    datagram.extend_from_slice(rest);
    datagram
}

/// A packet in a file.
#[derive(Clone, Debug)]
pub struct Packet {
    pub time_ns: u64,
    pub data: Vec<u8>,
    pub original: usize,
}

/// Formats of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Microseconds {
        big: bool,
    },
    Nanoseconds {
        big: bool,
    },
    /// With times in units of ten or two to the minus that.
    NextGeneration {
        big: bool,
        resolution: u8,
    },
    Snoop,
}

pub const FORMATS: [Format; 9] = [
    Format::Microseconds { big: false },
    Format::Microseconds { big: true },
    Format::Nanoseconds { big: false },
    Format::Nanoseconds { big: true },
    Format::NextGeneration { big: false, resolution: 6 },
    Format::NextGeneration { big: true, resolution: 9 },
    Format::NextGeneration { big: false, resolution: 10 },
    Format::NextGeneration { big: false, resolution: 0x80 | 30 },
    Format::Snoop,
];

pub fn file(format: Format, link: u32, packets: &[Packet]) -> Vec<u8> {
    let mut out = Vec::new();
    let big = match format {
        Format::Microseconds { big }
        | Format::Nanoseconds { big }
        | Format::NextGeneration { big, .. } => big,
        Format::Snoop => true,
    };
    let n32 = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let n16 = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    if let Format::NextGeneration { resolution, .. } = format {
        let mut block = |kind: u32, contents: &[u8]| {
            let length = n32((contents.len() as u32).next_multiple_of(4) + 12);
            out.extend(n32(kind));
            out.extend(length);
            out.extend(contents);
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend(length);
        };
        let section = [&n32(0x1a2b_3c4d)[..], &n16(1), &n16(0), &[0xff; 8]].concat();
        block(0x0a0d_0d0a, &section);
        let options = [&n16(9)[..], &n16(1), &[resolution, 0, 0, 0], &[0; 4]].concat();
        block(1, &[&n16(link as u16)[..], &n16(0), &n32(0), &options].concat());
        block(0x0bad, b"of no known kind");
        for packet in packets {
            let units = match resolution {
                6 => packet.time_ns / 1000,
                9 => packet.time_ns,
                10 => packet.time_ns * 10,
                _ => ((u128::from(packet.time_ns) << 30) / 1_000_000_000) as u64 + 1,
            };
            let numbers = [
                0,
                (units >> 32) as u32,
                units as u32,
                packet.data.len() as u32,
                packet.original as u32,
            ];
            let header: Vec<u8> = numbers.into_iter().flat_map(n32).collect();
            block(6, &[&header[..], &packet.data].concat());
        }
        return out;
    }
    if format == Format::Snoop {
        out.extend(b"snoop\0\0\0\0\0\0\x02");
        // Its own number of Ethernet.
        out.extend(n32(if link == 1 { 4 } else { link }));
        for packet in packets {
            let captured = packet.data.len() as u32;
            let padded = captured.next_multiple_of(4);
            let (seconds, rest) = (packet.time_ns / 1_000_000_000, packet.time_ns % 1_000_000_000);
            let numbers = [
                packet.original as u32,
                captured,
                24 + padded,
                0,
                seconds as u32,
                rest as u32 / 1000,
            ];
            numbers.into_iter().for_each(|number| out.extend(n32(number)));
            out.extend(&packet.data);
            out.resize(out.len() + (padded - captured) as usize, 0);
        }
        return out;
    }
    let nanoseconds = matches!(format, Format::Nanoseconds { .. });
    out.extend(n32(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    out.extend(n16(2));
    out.extend(n16(4));
    [0, 0, 262_144, link].into_iter().for_each(|number| out.extend(n32(number)));
    for packet in packets {
        let fraction = packet.time_ns % 1_000_000_000;
        let fraction = if nanoseconds { fraction } else { fraction / 1000 };
        let numbers = [
            (packet.time_ns / 1_000_000_000) as u32,
            fraction as u32,
            packet.data.len() as u32,
            packet.original as u32,
        ];
        numbers.into_iter().for_each(|number| out.extend(n32(number)));
        out.extend(&packet.data);
    }
    out
}

/// The end that speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

/// The messages of two ends, a piece after the other.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub says: Vec<(End, Vec<u8>)>,
    /// With SYN and FIN.
    pub whole: bool,
}

pub const NOON_NS: u64 = 1_796_040_000_000_000_000;

impl Conversation {
    pub fn new(v6: bool, says: Vec<(End, Vec<u8>)>) -> Self {
        let (client, server) = match v6 {
            false => ("192.0.2.1:40000", "192.0.2.2:389"),
            true => ("[2001:db8::1]:40000", "[2001:db8::2]:389"),
        };
        let parse = |end: &str| end.parse().unwrap();
        Conversation { client: parse(client), server: parse(server), says, whole: true }
    }

    /// As segments of at most so many octets. Sequence numbers run over while it lasts.
    pub fn segments(&self, octets: usize) -> Vec<Segment> {
        let mut next = [u32::MAX - 40, u32::MAX - 90];
        let mut all = Vec::new();
        let ends = [End::Client, End::Server];
        let mut push = |end: End, flags: u8, payload: &[u8], next: &mut [u32; 2]| {
            let own = usize::from(end == End::Server);
            let (from, to) =
                if own == 0 { (self.client, self.server) } else { (self.server, self.client) };
            let first = flags & SYN != 0 && own == 0;
            let acknowledgement = (!first).then_some(next[1 - own]);
            let sequence = next[own];
            let payload = payload.to_vec();
            next[own] = sequence
                .wrapping_add(payload.len() as u32)
                .wrapping_add(u32::from(flags & (SYN | FIN) != 0));
            all.push(Segment { from, to, sequence, acknowledgement, flags, payload });
        };
        if self.whole {
            ends.iter().for_each(|end| push(*end, SYN, &[], &mut next));
        }
        for (end, said) in &self.says {
            said.chunks(octets).for_each(|part| push(*end, 0, part, &mut next));
        }
        if self.whole {
            ends.iter().for_each(|end| push(*end, FIN, &[], &mut next));
            push(End::Client, 0, &[], &mut next);
        }
        all
    }
}

pub fn packets(link: Link, segments: &[Segment]) -> Vec<Packet> {
    let datagrams = segments.iter().map(Segment::datagram);
    frames(link, datagrams)
}

pub fn frames(link: Link, datagrams: impl IntoIterator<Item = Vec<u8>>) -> Vec<Packet> {
    let packet = |(index, datagram): (usize, Vec<u8>)| {
        let data = link.frame(&datagram);
        let original = data.len();
        Packet { time_ns: NOON_NS + index as u64 * 1_000_000, data, original }
    };
    datagrams.into_iter().enumerate().map(packet).collect()
}

/// A pcap file of segments on Ethernet.
pub fn capture(segments: &[Segment]) -> Vec<u8> {
    file(Format::Microseconds { big: false }, 1, &packets(Link::Ethernet, segments))
}

pub fn encode(id: u32, op: Op<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Message::new(id, op).encode(&mut out);
    out
}

pub fn bind(id: u32, name: &str, password: &[u8]) -> Vec<u8> {
    let authentication = Authentication::Simple(password);
    encode(id, Op::BindRequest(BindRequest { version: 3, name, authentication }))
}

pub fn bound(id: u32) -> Vec<u8> {
    let result = LdapResult::success();
    encode(id, Op::BindResponse(BindResponse { result, server_sasl_credentials: None }))
}

pub fn search(id: u32, filter: &str) -> Vec<u8> {
    let filter = Filter::parse(filter).unwrap();
    encode(
        id,
        Op::SearchRequest(SearchRequest {
            base: "dc=example,dc=com",
            scope: Scope::Subtree,
            deref: Deref::Never,
            size_limit: 0,
            time_limit_s: 0,
            types_only: false,
            filter,
            attributes: vec!["cn", "mail"],
        }),
    )
}

pub fn attribute<'a>(description: &'a str, value: &'a [u8]) -> Attribute<'a> {
    Attribute { description: description.into(), values: vec![Cow::Borrowed(value)] }
}

pub fn entry(id: u32, dn: &str, value: &[u8]) -> Vec<u8> {
    let attributes = vec![attribute("cn", value), attribute("userPassword", b"hunter2-of-entry")];
    encode(id, Op::SearchResultEntry(SearchResultEntry { dn: dn.into(), attributes }))
}

pub fn done(id: u32) -> Vec<u8> {
    encode(id, Op::SearchResultDone(LdapResult::success()))
}

pub fn add(id: u32, dn: &str, attributes: Vec<Attribute<'_>>) -> Vec<u8> {
    encode(id, Op::AddRequest(AddRequest { dn, attributes }))
}

pub fn added(id: u32) -> Vec<u8> {
    encode(id, Op::AddResponse(LdapResult::success()))
}

/// A conversation of a bind, so many searches that find one entry each, and an unbind; each message
/// a piece of its own.
pub fn searches(v6: bool, count: u32) -> Conversation {
    let mut says = vec![
        (End::Client, bind(1, "cn=admin,dc=example,dc=com", b"hunter2-of-bind")),
        (End::Server, bound(1)),
    ];
    for id in 2..count + 2 {
        says.push((End::Client, search(id, &format!("(uid=user.{id})"))));
        let dn = format!("uid=user.{id},dc=example,dc=com");
        says.push((End::Server, entry(id, &dn, b"\xc3\x84nne \xff")));
        says.push((End::Server, done(id)));
    }
    says.push((End::Client, encode(count + 2, Op::UnbindRequest)));
    Conversation::new(v6, says)
}

/// The reports of a decoder.
#[derive(Default, Debug)]
pub struct Told {
    /// A line for each operation, without times.
    pub operations: Vec<String>,
    pub notes: Vec<String>,
    pub gap_bytes: u64,
    pub whole: usize,
}

impl Sink for Told {
    fn operation(&mut self, operation: &Operation<'_>) -> Result<(), Error> {
        let mut out = Vec::new();
        Line.operation(operation, &mut out);
        let line = String::from_utf8(out).unwrap();
        let words: Vec<_> = line.split_whitespace().skip(1).collect();
        let timeless = words.iter().filter(|word| {
            !(word.ends_with("ms") && word.starts_with(|c: char| c.is_ascii_digit()))
        });
        self.operations.push(timeless.copied().collect::<Vec<_>>().join(" "));
        self.whole +=
            usize::from(operation.request.message().is_some() && operation.code().is_some());
        Ok(())
    }

    fn note(&mut self, note: &Note<'_>) -> Result<(), Error> {
        if let Event::Gap { bytes, .. } = note.what {
            self.gap_bytes += bytes;
        }
        let mut out = Vec::new();
        Line.note(note, &mut out);
        self.notes.push(String::from_utf8(out).unwrap().trim_end().to_owned());
        Ok(())
    }
}

impl Told {
    /// Each operation without connection numbers and in the order of ids.
    pub fn sorted(&self) -> Vec<String> {
        let mut all = self.operations.clone();
        all.sort();
        all
    }
}

pub fn decode(file: &[u8]) -> Told {
    decode_with(file, Options::default()).0
}

pub fn decode_with(file: &[u8], options: Options) -> (Told, Counts) {
    let mut told = Told::default();
    let counts = into(file, options, &mut told);
    (told, counts)
}

pub fn into(file: &[u8], options: Options, sink: &mut impl Sink) -> Counts {
    let mut decoder = Decoder::new(&[], options);
    if let Ok(mut capture) = Capture::open(file) {
        let _ = decoder.run(&mut capture, sink, &|| true);
    }
    decoder.finish(sink).unwrap()
}
