//! pcapng, in which others read what was decoded: without TLS, and without passwords.
//!
//! Each connection is one of TCP over raw IP, made up: every message a segment, with the time it had.

use crate::limits::CONNECTIONS_MAX;
use crate::operation::{Note, Operation, Part};
use crate::secrets::hide;
use crate::view::View;
use keyway_codec::Message;
use keyway_codec::extended::START_TLS;
use keyway_codec::message::ResultCode;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const LINKTYPE_RAW: u16 = 101;
/// The port of LDAP without TLS, so that other programs do not take it for TLS.
const LDAP_PORT: u16 = 389;
/// The bytes that fit into a datagram, with room for headers.
const SEGMENT_BYTES: usize = 1 << 15;

const SYN: u8 = 0x02;
const PUSH_ACK: u8 = 0x18;
const SYN_ACK: u8 = 0x12;

/// A capture of what was decoded, as pcapng.
#[derive(Debug, Default)]
pub struct Packets {
    is_begun: bool,
    streams: HashMap<u64, Stream>,
}

/// A connection as it is written: the ends, and the next sequence number of each.
#[derive(Debug)]
struct Stream {
    ends: [SocketAddr; 2],
    next: [u32; 2],
}

impl View for Packets {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        // Messages are in the clear here, so there is no TLS to start.
        if operation.oid() == Some(START_TLS) && operation.code() == Some(ResultCode::Success) {
            return;
        }
        let number = operation.connection.number;
        if !self.streams.contains_key(&number) {
            self.open(operation, out);
        }
        if let (Part::Whole(message), Some(time_ns)) = (&operation.request, operation.start_ns) {
            self.message(number, 0, time_ns, message, out);
        }
        for (time_ns, octets) in operation.answers.iter() {
            let mut scratch = Vec::new();
            let Ok(message) = Message::decode(octets) else { continue };
            let message = hide(message, operation.secrets, &mut scratch);
            self.message(number, 1, time_ns, &message, out);
        }
        if let (Part::Whole(message), Some(time_ns)) = (&operation.response, operation.end_ns) {
            self.message(number, 1, time_ns, message, out);
        }
    }

    fn note(&mut self, note: &Note<'_>, _: &mut Vec<u8>) {
        if let (crate::operation::Event::Closed { .. }, Some(closed)) =
            (&note.what, note.connection)
        {
            self.streams.remove(&closed.number);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
    }
}

impl Packets {
    /// The beginning of a file.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.is_begun {
            return;
        }
        self.is_begun = true;
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        block(0x0a0d_0d0a, &section, out);
        let mut interface = LINKTYPE_RAW.to_le_bytes().to_vec();
        interface.extend([0; 6]);
        // Times are nanoseconds.
        interface.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        block(1, &interface, out);
    }

    fn open(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        if self.streams.len() >= CONNECTIONS_MAX {
            self.streams.clear();
        }
        let connection = operation.connection;
        let mut server = connection.server;
        if connection.tls {
            server.set_port(LDAP_PORT);
        }
        let stream = Stream { ends: [connection.client, server], next: [0; 2] };
        self.streams.insert(connection.number, stream);
        for (side, flags) in [(0, SYN), (1, SYN_ACK)] {
            self.segment(connection.number, side, operation.time_ns(), flags, &[], out);
        }
    }

    fn message(
        &mut self,
        number: u64,
        side: usize,
        time_ns: u64,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut octets = Vec::new();
        message.encode(&mut octets);
        for part in octets.chunks(SEGMENT_BYTES) {
            self.segment(number, side, time_ns, PUSH_ACK, part, out);
        }
    }

    fn segment(
        &mut self,
        number: u64,
        side: usize,
        time_ns: u64,
        flags: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let Stream { ends: [client, server], next: [of_client, of_server] } = stream;
        let (from, to, own, other) = match side {
            0 => (*client, *server, of_client, *of_server),
            _ => (*server, *client, of_server, *of_client),
        };
        let mut tcp = Vec::with_capacity(payload.len() + 20);
        tcp.extend(from.port().to_be_bytes());
        tcp.extend(to.port().to_be_bytes());
        tcp.extend(own.to_be_bytes());
        tcp.extend(if flags == SYN { 0 } else { other }.to_be_bytes());
        tcp.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend_from_slice(payload);
        let length = u32::try_from(payload.len()).unwrap_or_default() + u32::from(flags & SYN != 0);
        *own = own.wrapping_add(length);
        packet(time_ns, &datagram(from.ip(), to.ip(), &tcp), out);
    }
}

fn datagram(from: IpAddr, to: IpAddr, tcp: &[u8]) -> Vec<u8> {
    let length = u16::try_from(tcp.len()).unwrap_or(u16::MAX);
    let mut out = Vec::with_capacity(tcp.len() + 40);
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend([0x45, 0]);
            out.extend((length + 20).to_be_bytes());
            out.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            out.extend(from.octets());
            out.extend(to.octets());
        }
        (from, to) => {
            let v6 = |address| match address {
                IpAddr::V4(address) => Ipv6Addr::octets(&address.to_ipv6_mapped()),
                IpAddr::V6(address) => address.octets(),
            };
            out.extend([0x60, 0, 0, 0]);
            out.extend(length.to_be_bytes());
            out.extend([6, 64]);
            out.extend(v6(from));
            out.extend(v6(to));
        }
    }
    out.extend_from_slice(tcp);
    out
}

fn packet(time_ns: u64, data: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(data.len()).unwrap_or_default();
    let mut contents = Vec::with_capacity(data.len() + 20);
    let (high, low) = ((time_ns >> 32) as u32, time_ns as u32);
    [0, high, low, length, length].iter().for_each(|word| contents.extend(word.to_le_bytes()));
    contents.extend_from_slice(data);
    block(6, &contents, out);
}

fn block(kind: u32, contents: &[u8], out: &mut Vec<u8>) {
    let padded = contents.len().next_multiple_of(4);
    let length = u32::try_from(padded + 12).unwrap_or_default().to_le_bytes();
    out.extend(kind.to_le_bytes());
    out.extend(length);
    out.extend_from_slice(contents);
    out.resize(out.len() + padded - contents.len(), 0);
    out.extend(length);
}
