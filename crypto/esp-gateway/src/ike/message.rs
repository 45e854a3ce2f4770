//! The messages between charon and the gateway, byte by byte, as `packaging/strongswan/protocol.h` describes them.

use crate::ike::traffic::Traffic;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// The version of the messages.
pub const VERSION: u16 = 1;
/// Longest message, in bytes: a UDP payload and its header.
pub const MESSAGE_BYTES_MAX: usize = 65_600;
/// Selectors of a security association, as they are written.
const TRAFFIC_MAX: usize = 64;
/// Room for a key, in bytes: that of the cipher with its salt, and that of the MAC.
const CIPHER_KEY_BYTES: usize = 40;
const MAC_KEY_BYTES: usize = 32;
/// Room for the device's name, in bytes.
const DEVICE_BYTES: usize = 16;

/// The kinds of messages.
mod kind {
    pub const HELLO: u8 = 1;
    pub const GET_SPI: u8 = 2;
    pub const ADD_SA: u8 = 3;
    pub const UPDATE_SA: u8 = 4;
    pub const QUERY_SA: u8 = 5;
    pub const DELETE_SA: u8 = 6;
    pub const FLUSH_SAS: u8 = 7;
    pub const ADD_POLICY: u8 = 8;
    pub const DELETE_POLICY: u8 = 9;
    pub const FLUSH_POLICIES: u8 = 10;
    pub const ANSWER: u8 = 64;
    pub const PACKET: u8 = 65;
    pub const EXPIRE: u8 = 66;
    pub const ACQUIRE: u8 = 67;
}

/// How a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// charon asks, the gateway answers.
    Requests,
    /// Packets of IKE both ways, and what the gateway reports.
    Events,
}

/// What charon knows a security association by. Two peers may have chosen one SPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The outer address that packets go to.
    pub destination: SocketAddr,
    /// The SPI.
    pub spi: u32,
}

/// Limits as charon writes them: 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Past which a new one is negotiated, and past which no packet goes through.
    pub seconds: [u64; 2],
    /// Of packets inside.
    pub bytes: [u64; 2],
    /// Packets.
    pub packets: [u64; 2],
}

/// A security association that was negotiated.
pub struct AddSa {
    /// What it is known by.
    pub name: Name,
    /// The outer address that packets come from.
    pub source: SocketAddr,
    /// charon's number of what belongs together.
    pub reqid: u32,
    /// Its limits.
    pub limits: Limits,
    /// The width of the window against replays, in packets.
    pub window: u32,
    /// IANA's number of the encryption algorithm, and of the integrity algorithm (0: none).
    pub algorithms: (u16, u16),
    /// Whether it is in transport mode.
    pub is_transport: bool,
    /// Whether packets come in.
    pub is_inbound: bool,
    /// Whether sequence numbers have 64 bits.
    pub esn: bool,
    /// Whether ESP is in UDP.
    pub is_encapsulated: bool,
    /// The cipher's key, with an AEAD's salt at its end.
    pub cipher_key: Zeroizing<Vec<u8>>,
    /// The MAC's key.
    pub mac_key: Zeroizing<Vec<u8>>,
    /// The packets that belong to it.
    pub traffic: Vec<Traffic>,
}

impl fmt::Debug for AddSa {
    /// Without the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AddSa");
        shown.field("name", &self.name).field("source", &self.source).field("reqid", &self.reqid);
        shown
            .field("algorithms", &self.algorithms)
            .field("traffic", &self.traffic)
            .finish_non_exhaustive()
    }
}

/// What is done with packets of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// They go through a security association.
    Protect,
    /// They are not for the gateway.
    Pass,
    /// They are dropped.
    Drop,
}

/// An outbound policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What is done.
    pub action: Action,
    /// The lower, the more it counts.
    pub priority: u8,
    /// charon's number of what belongs together.
    pub reqid: u32,
    /// The security association; its SPI is 0 where there is none yet.
    pub name: Name,
    /// The outer address that packets come from.
    pub source: SocketAddr,
    /// The packets.
    pub traffic: Traffic,
}

/// What charon asks.
#[derive(Debug)]
pub enum Request {
    /// Who it is, once on each connection.
    Hello {
        /// The version of its messages.
        version: u16,
        /// What the connection is for.
        channel: Channel,
        /// Tells this charon from others.
        instance: u64,
    },
    /// For an SPI that nothing has.
    GetSpi,
    /// To add a security association.
    AddSa(Box<AddSa>),
    /// To change the outer addresses of one.
    UpdateSa {
        /// The one.
        name: Name,
        /// Its addresses from now on.
        source: SocketAddr,
        /// Likewise.
        destination: SocketAddr,
        /// Whether ESP is in UDP from now on.
        is_encapsulated: bool,
    },
    /// How much one was used.
    QuerySa(Name),
    /// To delete one, or an SPI that was to be one's.
    DeleteSa(Name),
    /// To delete all.
    FlushSas,
    /// To add a policy.
    AddPolicy(Policy),
    /// To delete one.
    DeletePolicy(Policy),
    /// To delete all.
    FlushPolicies,
}

/// A packet of IKE that charon sends.
#[derive(Debug, PartialEq, Eq)]
pub struct Packet<'m> {
    /// Where it is to come from: the port says which socket.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// The UDP payload.
    pub payload: &'m [u8],
}

/// A message that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its kind.
    pub status: Status,
    /// For charon's log.
    pub why: String,
}

/// The kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It cannot be done now.
    Failed = 1,
    /// It can never be done.
    NotSupported = 2,
    /// There is no such thing.
    NotFound = 3,
}

impl Refusal {
    /// One with this text.
    pub fn new(status: Status, why: impl fmt::Display) -> Refusal {
        Refusal { status, why: why.to_string() }
    }
}

/// The gateway as its welcome describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// It has nothing of this charon yet.
    pub is_new: bool,
    /// ESP goes in UDP only.
    pub is_udp_only: bool,
    /// The families of addresses that its sockets have: IPv4 and IPv6.
    pub families: (bool, bool),
    /// The port that IKE comes to without a marker, if there is one; and the one that it shares with ESP.
    pub ports: (Option<u16>, u16),
    /// The device's name.
    pub device: String,
}

/// How much a security association was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UseOf {
    /// Bytes inside.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Seconds since the last; `None` if there was none.
    pub idle: Option<u64>,
}

/// Reads a request, and its number.
///
/// # Errors
/// If it is none.
pub fn request(message: &[u8]) -> Result<(u32, Request), Malformed> {
    let mut fields = Fields(message);
    let [kind, _, _, _] = fields.array()?;
    let number = fields.u32()?;
    let request = match kind {
        kind::HELLO => hello(&mut fields)?,
        kind::GET_SPI => {
            fields.name_and_source()?;
            Request::GetSpi
        }
        kind::ADD_SA => Request::AddSa(Box::new(fields.add_sa()?)),
        kind::UPDATE_SA => {
            let (name, _) = fields.name_and_source()?;
            let (source, destination) = (fields.address()?, fields.address()?);
            let [encapsulated, _, _, _] = fields.array()?;
            Request::UpdateSa { name, source, destination, is_encapsulated: encapsulated != 0 }
        }
        kind::QUERY_SA => Request::QuerySa(fields.name_and_source()?.0),
        kind::DELETE_SA => Request::DeleteSa(fields.name_and_source()?.0),
        kind::FLUSH_SAS => Request::FlushSas,
        kind::ADD_POLICY => Request::AddPolicy(fields.policy()?),
        kind::DELETE_POLICY => Request::DeletePolicy(fields.policy()?),
        kind::FLUSH_POLICIES => Request::FlushPolicies,
        _ => return Err(Malformed),
    };
    if fields.0.is_empty() { Ok((number, request)) } else { Err(Malformed) }
}

fn hello(fields: &mut Fields<'_>) -> Result<Request, Malformed> {
    let version = fields.u16()?;
    let channel = match fields.u16()? {
        0 => Channel::Requests,
        1 => Channel::Events,
        _ => return Err(Malformed),
    };
    fields.u32()?;
    Ok(Request::Hello { version, channel, instance: fields.u64()? })
}

/// Reads a packet that charon sends.
///
/// # Errors
/// If it is none.
pub fn packet(message: &[u8]) -> Result<Packet<'_>, Malformed> {
    let mut fields = Fields(message);
    let [kind, _, _, _] = fields.array()?;
    fields.u32()?;
    if kind != kind::PACKET {
        return Err(Malformed);
    }
    Ok(Packet { source: fields.address()?, destination: fields.address()?, payload: fields.0 })
}

/// What is left of a message.
struct Fields<'m>(&'m [u8]);

impl<'m> Fields<'m> {
    fn bytes(&mut self, count: usize) -> Result<&'m [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (front, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*front)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    fn ip(&mut self, family: u8) -> Result<IpAddr, Malformed> {
        let bytes: [u8; 16] = self.array()?;
        match (family, bytes) {
            (4, [a, b, c, d, ..]) => Ok(IpAddr::from([a, b, c, d])),
            (6, _) => Ok(IpAddr::from(bytes)),
            _ => Err(Malformed),
        }
    }

    fn address(&mut self) -> Result<SocketAddr, Malformed> {
        let [family, _] = self.array()?;
        let port = self.u16()?;
        Ok(SocketAddr::new(self.ip(family)?, port))
    }

    fn name_and_source(&mut self) -> Result<(Name, SocketAddr), Malformed> {
        let spi = self.u32()?;
        let source = self.address()?;
        Ok((Name { destination: self.address()?, spi }, source))
    }

    fn traffic(&mut self) -> Result<Traffic, Malformed> {
        let [family, protocol, _, _] = self.array()?;
        let source_ports = self.u16()?..=self.u16()?;
        let destination_ports = self.u16()?..=self.u16()?;
        Ok(Traffic {
            protocol: Some(protocol).filter(|protocol| *protocol != 0),
            sources: (self.ip(family)?, self.ip(family)?),
            destinations: (self.ip(family)?, self.ip(family)?),
            source_ports,
            destination_ports,
        })
    }

    fn limit(&mut self) -> Result<[u64; 2], Malformed> {
        Ok([self.u64()?, self.u64()?])
    }

    /// A key in room for the longest.
    fn key(&mut self, room: usize, bytes: u8) -> Result<Zeroizing<Vec<u8>>, Malformed> {
        let key = self.bytes(room)?.get(..usize::from(bytes)).ok_or(Malformed)?;
        Ok(Zeroizing::new(key.to_vec()))
    }

    fn add_sa(&mut self) -> Result<AddSa, Malformed> {
        let (name, source) = self.name_and_source()?;
        let reqid = self.u32()?;
        let (seconds, bytes, packets) = (self.limit()?, self.limit()?, self.limit()?);
        let window = self.u32()?;
        let algorithms = (self.u16()?, self.u16()?);
        let [mode, inbound, esn, encapsulated, _, cipher, mac, count] = self.array()?;
        let is_transport = match mode {
            1 => true,
            2 => false,
            _ => return Err(Malformed),
        };
        let (cipher_key, mac_key) =
            (self.key(CIPHER_KEY_BYTES, cipher)?, self.key(MAC_KEY_BYTES, mac)?);
        if usize::from(count) > TRAFFIC_MAX {
            return Err(Malformed);
        }
        let traffic = (0..count).map(|_| self.traffic()).collect::<Result<_, _>>()?;
        Ok(AddSa {
            name,
            source,
            reqid,
            limits: Limits { seconds, bytes, packets },
            window,
            algorithms,
            is_transport,
            is_inbound: inbound != 0,
            esn: esn != 0,
            is_encapsulated: encapsulated != 0,
            cipher_key,
            mac_key,
            traffic,
        })
    }

    fn policy(&mut self) -> Result<Policy, Malformed> {
        let [action, priority, _, _] = self.array()?;
        let action = match action {
            1 => Action::Protect,
            2 => Action::Pass,
            3 => Action::Drop,
            _ => return Err(Malformed),
        };
        let reqid = self.u32()?;
        let (name, source) = self.name_and_source()?;
        Ok(Policy { action, priority, reqid, name, source, traffic: self.traffic()? })
    }
}

/// A message that is written.
struct Writing(Vec<u8>);

impl Writing {
    fn new(kind: u8, status: u16, number: u32) -> Writing {
        let [high, low] = status.to_be_bytes();
        let mut bytes = vec![kind, 0, high, low];
        bytes.extend(number.to_be_bytes());
        Writing(bytes)
    }

    fn put(mut self, bytes: &[u8]) -> Writing {
        self.0.extend_from_slice(bytes);
        self
    }

    fn ip(self, address: IpAddr) -> Writing {
        match address {
            IpAddr::V4(it) => self.put(&it.octets()).put(&[0; 12]),
            IpAddr::V6(it) => self.put(&it.octets()),
        }
    }

    fn address(self, address: SocketAddr) -> Writing {
        let family = if address.is_ipv4() { 4 } else { 6 };
        self.put(&[family, 0]).put(&address.port().to_be_bytes()).ip(address.ip())
    }
}

/// The answer to a request with nothing to say.
pub fn done(number: u32) -> Vec<u8> {
    Writing::new(kind::ANSWER, 0, number).0
}

/// The answer to one that was not done.
pub fn refused(number: u32, refusal: &Refusal) -> Vec<u8> {
    Writing::new(kind::ANSWER, refusal.status as u16, number).put(refusal.why.as_bytes()).0
}

/// The answer to a hello.
pub fn welcome(number: u32, welcome: &Welcome) -> Vec<u8> {
    let flag = |is_set: bool, bit: u32| if is_set { 1 << bit } else { 0 };
    let flags: u32 = flag(welcome.is_new, 0)
        | flag(welcome.is_udp_only, 1)
        | flag(welcome.families.0, 2)
        | flag(welcome.families.1, 3);
    let mut device = [0; DEVICE_BYTES];
    // The last byte stays 0.
    for (room, byte) in device.iter_mut().take(DEVICE_BYTES - 1).zip(welcome.device.bytes()) {
        *room = byte;
    }
    Writing::new(kind::ANSWER, 0, number)
        .put(&flags.to_be_bytes())
        .put(&welcome.ports.0.unwrap_or(0).to_be_bytes())
        .put(&welcome.ports.1.to_be_bytes())
        .put(&device)
        .0
}

/// The answer with an SPI.
pub fn spi(number: u32, spi: u32) -> Vec<u8> {
    Writing::new(kind::ANSWER, 0, number).put(&spi.to_be_bytes()).0
}

/// The answer with a use.
pub fn used(number: u32, used: UseOf) -> Vec<u8> {
    Writing::new(kind::ANSWER, 0, number)
        .put(&used.bytes.to_be_bytes())
        .put(&used.packets.to_be_bytes())
        .put(&used.idle.unwrap_or(u64::MAX).to_be_bytes())
        .0
}

/// A packet of IKE that came in.
pub fn arrived(source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Vec<u8> {
    Writing::new(kind::PACKET, 0, 0).address(source).address(destination).put(payload).0
}

/// A security association has reached its soft limits, or its hard ones.
pub fn expired(name: Name, is_hard: bool) -> Vec<u8> {
    Writing::new(kind::EXPIRE, 0, 0)
        .put(&name.spi.to_be_bytes())
        .address(name.destination)
        .put(&[u8::from(is_hard), 0, 0, 0])
        .0
}

/// A packet has no security association yet: its protocol, addresses and ports.
pub fn acquire(
    reqid: u32,
    protocol: u8,
    (source, destination): (IpAddr, IpAddr),
    ports: Option<(u16, u16)>,
) -> Vec<u8> {
    let family = if source.is_ipv4() { 4 } else { 6 };
    let port = |port: Option<u16>| port.map_or([0, u16::MAX], |port| [port, port]);
    let ports = [port(ports.map(|it| it.0)), port(ports.map(|it| it.1))].concat();
    let ports: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
    Writing::new(kind::ACQUIRE, 0, 0)
        .put(&reqid.to_be_bytes())
        .put(&[family, protocol, 0, 0])
        .put(&ports)
        .ip(source)
        .ip(source)
        .ip(destination)
        .ip(destination)
        .0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_address(text: &str) -> Vec<u8> {
        let address: SocketAddr = text.parse().unwrap();
        Writing(Vec::new()).address(address).0
    }

    /// As the plug-in writes one.
    fn add_sa(selectors: u8) -> Vec<u8> {
        let mut sa = Writing::new(kind::ADD_SA, 0, 7).put(&0x2001_u32.to_be_bytes());
        sa = sa.put(&written_address("192.0.2.2:4500")).put(&written_address("192.0.2.1:4500"));
        sa = sa.put(&9_u32.to_be_bytes());
        for limit in 1..=6_u64 {
            sa = sa.put(&limit.to_be_bytes());
        }
        sa = sa.put(&32_u32.to_be_bytes()).put(&[0, 20, 0, 0]);
        sa = sa.put(&[2, 1, 0, 1, 0, 20, 0, selectors]).put(&[5; 40]).put(&[6; 32]);
        for _ in 0..selectors {
            sa = sa.put(&traffic());
        }
        sa.0
    }

    fn traffic() -> Vec<u8> {
        let ip = |text: &str| Writing(Vec::new()).ip(text.parse().unwrap()).0;
        let mut bytes = vec![4, 17, 0, 0, 0, 53, 0, 53, 0, 0, 0xff, 0xff];
        for address in ["10.2.0.0", "10.2.0.255", "10.1.0.0", "10.1.0.255"] {
            bytes.extend(ip(address));
        }
        bytes
    }

    #[test]
    fn an_association_is_read() {
        let (number, asked) = request(&add_sa(2)).unwrap();
        let Request::AddSa(sa) = asked else { panic!("{asked:?}") };
        assert_eq!(number, 7);
        assert_eq!(sa.name, Name { destination: "192.0.2.1:4500".parse().unwrap(), spi: 0x2001 });
        assert_eq!(sa.source, "192.0.2.2:4500".parse().unwrap());
        assert_eq!((sa.reqid, sa.window, sa.algorithms), (9, 32, (20, 0)));
        assert_eq!(sa.limits, Limits { seconds: [1, 2], bytes: [3, 4], packets: [5, 6] });
        assert!(sa.is_inbound && sa.is_encapsulated && !sa.esn && !sa.is_transport);
        assert_eq!((sa.cipher_key.as_slice(), sa.mac_key.as_slice()), (&[5; 20][..], &[][..]));
        assert_eq!(sa.traffic.len(), 2);
        let one = &sa.traffic[0];
        assert_eq!((one.protocol, &one.source_ports), (Some(17), &(53..=53)));
        assert_eq!(one.destinations, ("10.1.0.0".parse().unwrap(), "10.1.0.255".parse().unwrap()));
        assert!(!format!("{sa:?}").contains("5, 5"), "it shows a key");
    }

    #[test]
    fn a_message_that_is_cut_or_too_long_is_none() {
        let whole = add_sa(1);
        for length in 0..whole.len() {
            assert_eq!(request(&whole[..length]).err(), Some(Malformed), "{length}");
        }
        let mut long = whole.clone();
        long.push(0);
        assert_eq!(request(&long).err(), Some(Malformed));
        for (at, bad) in [(0, 0), (0, 64), (12, 5), (112, 3), (117, 41), (118, 33), (119, 65)] {
            let mut changed = whole.clone();
            changed[at] = bad;
            assert_eq!(request(&changed).err(), Some(Malformed), "{at}");
        }
    }

    #[test]
    fn policies_packets_and_the_rest_are_read() {
        let names = [
            &0x2001_u32.to_be_bytes()[..],
            &written_address("192.0.2.2:4500"),
            &written_address("[2001:db8::1]:500"),
        ]
        .concat();
        let name = Name { destination: "[2001:db8::1]:500".parse().unwrap(), spi: 0x2001 };
        let of = |kind, body: &[u8]| request(&Writing::new(kind, 0, 1).put(body).0).unwrap().1;
        assert!(matches!(of(kind::QUERY_SA, &names), Request::QuerySa(it) if it == name));
        assert!(matches!(of(kind::DELETE_SA, &names), Request::DeleteSa(it) if it == name));
        assert!(matches!(of(kind::GET_SPI, &names), Request::GetSpi));
        assert!(matches!(of(kind::FLUSH_SAS, &[]), Request::FlushSas));
        assert!(matches!(of(kind::FLUSH_POLICIES, &[]), Request::FlushPolicies));
        let policy = [&[1, 2, 0, 0, 0, 0, 0, 9][..], &names, &traffic()].concat();
        let asked = of(kind::ADD_POLICY, &policy);
        let Request::AddPolicy(policy) = asked else { panic!("{asked:?}") };
        assert_eq!((policy.action, policy.priority, policy.reqid), (Action::Protect, 2, 9));
        assert_eq!(policy.name, name);
        let hello = of(kind::HELLO, &[0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        let Request::Hello { version, channel, instance } = hello else { panic!("{hello:?}") };
        assert_eq!((version, channel, instance), (VERSION, Channel::Events, 9));
        let (from, to) = ("192.0.2.2:500".parse().unwrap(), "192.0.2.1:4500".parse().unwrap());
        let sent = arrived(from, to, b"IKE");
        let read = packet(&sent).unwrap();
        assert_eq!(read, Packet { source: from, destination: to, payload: b"IKE" });
        assert_eq!(packet(&sent[..47]), Err(Malformed));
    }

    #[test]
    fn answers_have_the_lengths_of_the_header() {
        let ports = (Some(500), 4500);
        let device = "a-very-long-name-of-a-device".to_owned();
        let is =
            Welcome { is_new: true, is_udp_only: true, families: (true, false), ports, device };
        let written = welcome(1, &is);
        assert_eq!(written.len(), 32);
        assert_eq!(written[8..16], [0, 0, 0, 7, 1, 244, 17, 148]);
        assert_eq!((written[30], written[31]), (b'm', 0));
        assert_eq!(done(1).len(), 8);
        assert_eq!(spi(1, 2).len(), 12);
        assert_eq!(used(1, UseOf::default()).len(), 32);
        let name = Name { destination: "192.0.2.1:4500".parse().unwrap(), spi: 0x2001 };
        assert_eq!(expired(name, true).len(), 36);
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(acquire(9, 17, (v6, v6), Some((1, 2))).len(), 88);
    }
}
