//! A UDP socket, or a raw one of ESP (IP protocol 50): datagrams in and out, in batches.
//!
//! **Sending.** Datagrams of one destination, ECN and length lie one behind the other in a *burst*, which is one message
//! with `UDP_SEGMENT`; bursts go out by `sendmmsg`. Where the kernel or a device cannot cut (`EIO`), and on raw sockets,
//! each datagram is a message.
//!
//! **A full buffer.** The socket's buffer is how a device that is slower than the caller says so. A flush waits for room
//! for 5 ms at most, so that packets wait where they come from (a TUN device's queue, whose length their senders see), and
//! are not dropped by dozens. Then it drops what is left.
//!
//! **Path MTU.** No datagram is fragmented, here (`IP_MTU_DISCOVER`, `IPV6_DONTFRAG`) or on its way (DF). The kernel learns
//! of shorter paths by ICMP, and refuses what is longer.

use crate::address::{Control, RawAddress, Told, read_address};
use crate::error::Error;
use crate::limits::{
    BURST_BYTES_MAX, DATAGRAM_BYTES_MAX, MESSAGES_MAX, ROOM_WAIT_MILLISECONDS, SEGMENTS_MAX,
    WAITING_BYTES_MAX,
};
use crate::system::{self, Arrival, Outgoing};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, ipproto};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// What a socket is to be.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Where it is bound. `[::]` takes IPv4 too, with UDP. A raw socket has no port: it is not looked at.
    pub address: SocketAddr,
    /// The one interface that it sends and receives through.
    pub interface: Option<String>,
    /// The mark of what it sends (`SO_MARK`), which policy routing sees.
    pub mark: Option<u32>,
    /// Bytes of datagrams that wait to be received, and of such that wait to be sent. Without `CAP_NET_ADMIN` the kernel
    /// gives less: `net.core.rmem_max` and `net.core.wmem_max`.
    pub buffer_bytes: usize,
}

impl SocketOptions {
    /// The usual ones: any interface, no mark, 4 MiB.
    #[must_use]
    pub fn new(address: SocketAddr) -> SocketOptions {
        SocketOptions { address, interface: None, mark: None, buffer_bytes: 4 << 20 }
    }
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its source. IPv4 is IPv4, on a socket of IPv6 too. The port of a raw socket's is 0.
    pub source: SocketAddr,
    /// Its destination, an address of this host.
    pub destination: Option<IpAddr>,
    /// The ECN field of its IP header, 0 to 3.
    pub ecn: u8,
}

/// What a flush sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub packets: u64,
    /// Datagrams that it did not take, those too long among them.
    pub dropped: u64,
    /// A destination whose path takes less than a datagram had: [`Socket::path_mtu`] says how much.
    pub too_long: Option<SocketAddr>,
    /// Why the last datagram was dropped that was not too long. `WouldBlock`: the socket's buffer stayed full.
    pub error: Option<ErrorKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Udp,
    Esp,
}

/// A socket's end, one thread's.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
    kind: Kind,
    is_ipv6: bool,
    /// The ends share it.
    probe: Arc<Mutex<Probe>>,
    arrived: Arrived,
    waiting: Waiting,
    malformed: u64,
}

/// Where datagrams are received. Made by the first receiving.
#[derive(Debug, Default)]
struct Arrived {
    data: Vec<u8>,
    arrivals: Vec<Arrival>,
    /// Messages to ask for: twice those of the last call. Those that stay empty cost as much to prepare as others.
    ask: usize,
}

/// Bytes between the buffers of two messages: those of the longest, and some, so that their first bytes do not share a
/// set of the processor's caches.
const STRIDE: usize = (64 << 10) + 5 * 64;
/// The fewest messages to ask for.
const ASK_MIN: usize = 8;

/// Datagrams to be sent.
#[derive(Debug)]
struct Waiting {
    /// Datagrams may share a burst.
    has_gso: bool,
    bursts: Vec<Burst>,
    /// Of the bursts, those in use. The others keep their buffers.
    used: usize,
    bytes: usize,
    sent: Sent,
}

#[derive(Debug)]
struct Burst {
    to: SocketAddr,
    address: RawAddress,
    ecn: u8,
    control: Control,
    data: Vec<u8>,
    /// Bytes of the first datagram and of all others but the last.
    segment_bytes: usize,
    segments: usize,
    /// The last is shorter: nothing may follow.
    is_closed: bool,
}

impl Socket {
    /// A UDP socket.
    ///
    /// # Errors
    /// The address is in use or not this host's, there is no such interface, or a mark was asked for without
    /// `CAP_NET_ADMIN`.
    pub fn udp(options: &SocketOptions) -> Result<Socket, Error> {
        Socket::open(options, Kind::Udp, options.address).map_err(|why| {
            failed(format!("opening the UDP socket {}", options.address), why, options)
        })
    }

    /// A raw socket of ESP (IP protocol 50), of the address's family.
    ///
    /// # Errors
    /// As [`Socket::udp`]; it takes `CAP_NET_RAW`.
    pub fn raw(options: &SocketOptions) -> Result<Socket, Error> {
        let mut address = options.address;
        address.set_port(0);
        Socket::open(options, Kind::Esp, address)
            .map_err(|why| failed(format!("opening the ESP socket {}", address.ip()), why, options))
    }

    fn open(options: &SocketOptions, kind: Kind, address: SocketAddr) -> io::Result<Socket> {
        let is_ipv6 = address.is_ipv6();
        let (socket_type, protocol) = match kind {
            Kind::Udp => (SocketType::DGRAM, ipproto::UDP),
            Kind::Esp => (SocketType::RAW, ipproto::ESP),
        };
        let file = new(is_ipv6, socket_type, protocol)?;
        restrict(&file, options.interface.as_deref(), options.mark)?;
        let on = 1_i32.to_ne_bytes();
        // An IPv6 socket of UDP has IPv4 datagrams too, if it is bound to `[::]`.
        if !is_ipv6 || kind == Kind::Udp {
            sockopt::set_ip_mtu_discover(&file, Ipv4PathMtuDiscovery::DO)?;
            sockopt::set_ip_recvtos(&file, true)?;
        }
        if is_ipv6 {
            if kind == Kind::Udp {
                sockopt::set_ipv6_v6only(&file, false)?;
            }
            sockopt::set_ipv6_mtu_discover(&file, Ipv6PathMtuDiscovery::DO)?;
            system::set_option(&file, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, &on)?;
            sockopt::set_ipv6_recvtclass(&file, true)?;
            system::set_option(&file, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &on)?;
        } else {
            system::set_option(&file, libc::IPPROTO_IP, libc::IP_PKTINFO, &on)?;
        }
        if kind == Kind::Udp {
            // Without it (before Linux 5.0) each datagram comes by itself.
            let _ = system::set_option(&file, libc::SOL_UDP, libc::UDP_GRO, &on);
        }
        // More than the system's limit takes a privilege.
        let bytes = options.buffer_bytes;
        if sockopt::set_socket_recv_buffer_size_force(&file, bytes).is_err() {
            sockopt::set_socket_recv_buffer_size(&file, bytes)?;
        }
        if sockopt::set_socket_send_buffer_size_force(&file, bytes).is_err() {
            sockopt::set_socket_send_buffer_size(&file, bytes)?;
        }
        rustix::net::bind(&file, &address)?;
        // It says whether the kernel knows of it (Linux 4.18).
        let has_gso =
            kind == Kind::Udp && system::option(&file, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok();
        let probe = Probe::new(options)?;
        Ok(Socket::new(file, kind, is_ipv6, Arc::new(Mutex::new(probe)), has_gso))
    }

    fn new(
        file: OwnedFd,
        kind: Kind,
        is_ipv6: bool,
        probe: Arc<Mutex<Probe>>,
        has_gso: bool,
    ) -> Socket {
        let waiting =
            Waiting { has_gso, bursts: Vec::new(), used: 0, bytes: 0, sent: Sent::default() };
        let arrived = Arrived::default();
        Socket { file, kind, is_ipv6, probe, arrived, waiting, malformed: 0 }
    }

    /// A second end of this socket, for a second thread.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Socket> {
        let file = self.file.try_clone()?;
        let (probe, has_gso) = (self.probe.clone(), self.waiting.has_gso);
        Ok(Socket::new(file, self.kind, self.is_ipv6, probe, has_gso))
    }

    /// Where it is bound: with port 0 asked for, the port is the kernel's choice.
    ///
    /// # Errors
    /// The system's.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        let address = rustix::net::getsockname(&self.file)?;
        SocketAddr::try_from(address).map_err(io::Error::from)
    }

    /// One call, which does not wait: calls `each` with each datagram that is there, up to a limit. The count of them;
    /// 0 where none is there. An IPv4 header, which raw sockets get too, is cut off.
    ///
    /// # Errors
    /// The interface of the socket is gone, or memory is short. The socket may be used further.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8], Received)) -> io::Result<usize> {
        let Arrived { data, arrivals, ask } = &mut self.arrived;
        if data.is_empty() {
            *data = vec![0; MESSAGES_MAX * STRIDE];
            *arrivals = vec![Arrival::NONE; MESSAGES_MAX];
            *ask = ASK_MIN;
        }
        let mut count = 0;
        // Messages may come of which none is sound.
        while count == 0 {
            let file = self.file.as_fd();
            let messages = match system::receive(file, data, STRIDE, &mut arrivals[..*ask]) {
                Ok(messages) => messages,
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                Err(why) => return Err(why),
            };
            *ask = (messages * 2).clamp(ASK_MIN, MESSAGES_MAX);
            let buffers = data.chunks_exact(STRIDE).zip(&arrivals[..messages]);
            for (buffer, arrival) in buffers {
                let taken = match self.kind {
                    Kind::Udp => datagrams(buffer, arrival, &mut each),
                    Kind::Esp => payload(buffer, arrival, &mut each),
                };
                match taken {
                    Some(datagrams) => count += datagrams,
                    None => self.malformed += 1,
                }
            }
        }
        Ok(count)
    }

    /// Takes a datagram to be sent, which is the `parts` one after the other. `ecn` is 0 to 3. Datagrams of a destination
    /// keep their order. Where much waits already, it is sent.
    pub fn push(&mut self, to: SocketAddr, ecn: u8, parts: &[&[u8]]) {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let waiting = &mut self.waiting;
        if bytes > DATAGRAM_BYTES_MAX {
            waiting.sent.dropped += 1;
            waiting.sent.too_long = Some(to);
            return;
        }
        if waiting.bytes + bytes > WAITING_BYTES_MAX {
            waiting.send(self.file.as_fd());
        }
        let used = &mut waiting.bursts[..waiting.used];
        let last = used.iter_mut().rfind(|burst| burst.to == to);
        let joined = last.filter(|burst| waiting.has_gso && burst.takes(ecn, bytes));
        let burst = match joined {
            Some(burst) => {
                burst.segments += 1;
                burst.is_closed = bytes < burst.segment_bytes;
                burst
            }
            None => {
                if waiting.used == MESSAGES_MAX {
                    waiting.send(self.file.as_fd());
                }
                waiting.begin(to, ecn, bytes, self.kind, self.is_ipv6)
            }
        };
        for part in parts {
            burst.data.extend_from_slice(part);
        }
        waiting.bytes += bytes;
    }

    /// Sends what is left, and says what became of all datagrams since the last flush. It may wait for room in the
    /// socket's buffer, for 5 ms.
    pub fn flush(&mut self) -> Sent {
        self.waiting.send(self.file.as_fd());
        std::mem::take(&mut self.waiting.sent)
    }

    /// The longest IP packet on the way to there, in bytes, as the kernel knows it now.
    ///
    /// # Errors
    /// No route leads there.
    pub fn path_mtu(&self, to: IpAddr) -> io::Result<u32> {
        self.probe.lock().unwrap_or_else(PoisonError::into_inner).mtu(to.to_canonical())
    }

    /// How many messages were no datagrams: longer than any, of another family, or with an IPv4 header that is none. They
    /// were dropped.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn failed(what: String, why: io::Error, options: &SocketOptions) -> Error {
    let advice = match why.kind() {
        ErrorKind::PermissionDenied => {
            ": a mark takes CAP_NET_ADMIN, a raw socket CAP_NET_RAW, a port below 1,024 CAP_NET_BIND_SERVICE"
        }
        ErrorKind::AddrInUse => ": another socket has that port",
        ErrorKind::AddrNotAvailable => ": it is no address of this host",
        _ if why.raw_os_error() == Some(libc::ENODEV) && options.interface.is_some() => {
            ": there is no interface of that name"
        }
        _ => "",
    };
    Error::new(what, why, advice)
}

/// Looks up routes: a socket that sends nothing. It is made with the other, since a mark takes a privilege, which the
/// process may give up.
#[derive(Debug)]
struct Probe {
    file: OwnedFd,
    is_ipv6: bool,
    interface: Option<String>,
}

impl Probe {
    fn new(options: &SocketOptions) -> io::Result<Probe> {
        let mut address = options.address;
        address.set_port(0);
        let is_ipv6 = address.is_ipv6();
        let file = new(is_ipv6, SocketType::DGRAM, ipproto::UDP)?;
        restrict(&file, None, options.mark)?;
        if is_ipv6 {
            sockopt::set_ipv6_v6only(&file, false)?;
        }
        if !address.ip().is_unspecified() {
            rustix::net::bind(&file, &address)?;
        }
        Ok(Probe { file, is_ipv6, interface: options.interface.clone() })
    }

    fn mtu(&self, to: IpAddr) -> io::Result<u32> {
        let mapped = match to {
            IpAddr::V4(to) if self.is_ipv6 => to.to_ipv6_mapped().into(),
            to => to,
        };
        // To connect a UDP socket is to look up a route: no packet goes out. The end of the connection before frees its
        // source again, and its interface. Port 9 discards.
        rustix::net::connect_unspec(&self.file)?;
        restrict(&self.file, self.interface.as_deref(), None)?;
        rustix::net::connect(&self.file, &SocketAddr::new(mapped, 9))?;
        let (level, name) = match to {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
        };
        let mtu = system::option(&self.file, level, name)?;
        Ok(mtu.unsigned_abs())
    }
}

fn new(is_ipv6: bool, kind: SocketType, protocol: Protocol) -> io::Result<OwnedFd> {
    let family = if is_ipv6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(family, kind, flags, Some(protocol))?)
}

fn restrict(file: &OwnedFd, interface: Option<&str>, mark: Option<u32>) -> io::Result<()> {
    if let Some(name) = interface {
        system::set_option(file, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name.as_bytes())?;
    }
    if let Some(mark) = mark {
        system::set_option(file, libc::SOL_SOCKET, libc::SO_MARK, &mark.to_ne_bytes())?;
    }
    Ok(())
}

/// The count of datagrams of one message, which UDP's GRO may have joined. None where it is none.
fn datagrams(
    buffer: &[u8],
    arrival: &Arrival,
    each: &mut impl FnMut(&[u8], Received),
) -> Option<usize> {
    let told = Told::read(&arrival.control[..arrival.control_bytes]);
    let received = Received {
        source: read_address(&arrival.address)?,
        destination: told.destination,
        ecn: told.traffic_class & 3,
    };
    let data = &buffer[..arrival.bytes];
    if arrival.is_cut {
        return None;
    }
    match told.segment_bytes {
        Some(bytes) if 0 < bytes && bytes < data.len() => {
            data.chunks(bytes).for_each(|datagram| each(datagram, received));
            Some(data.len().div_ceil(bytes))
        }
        _ => {
            each(data, received);
            Some(1)
        }
    }
}

/// One packet of a raw socket, which has a header in IPv4.
fn payload(
    buffer: &[u8],
    arrival: &Arrival,
    each: &mut impl FnMut(&[u8], Received),
) -> Option<usize> {
    let mut told = Told::read(&arrival.control[..arrival.control_bytes]);
    let mut source = read_address(&arrival.address)?;
    source.set_port(0);
    let mut data = &buffer[..arrival.bytes];
    if arrival.is_cut {
        return None;
    }
    if source.is_ipv4() {
        let header: &[u8; 20] = data.first_chunk()?;
        let bytes = usize::from(header[0] & 15) * 4;
        if header[0] >> 4 != 4 || bytes < header.len() {
            return None;
        }
        told.traffic_class = header[1];
        told.destination = Some(Ipv4Addr::from(*header[16..].first_chunk::<4>()?).into());
        data = data.get(bytes..)?;
    }
    let ecn = told.traffic_class & 3;
    each(data, Received { source, destination: told.destination, ecn });
    Some(1)
}

impl Waiting {
    /// A burst, for a first datagram of so many bytes.
    fn begin(
        &mut self,
        to: SocketAddr,
        ecn: u8,
        bytes: usize,
        kind: Kind,
        is_ipv6: bool,
    ) -> &mut Burst {
        if self.used == self.bursts.len() {
            self.bursts.push(Burst::empty());
        }
        let burst = &mut self.bursts[self.used];
        self.used += 1;
        let mut destination = to;
        if kind == Kind::Esp {
            destination.set_port(0);
        }
        burst.to = to;
        burst.address = RawAddress::new(destination, is_ipv6);
        burst.ecn = ecn;
        burst.control = Control::NONE;
        if ecn != 0 {
            let (level, name) = match to.ip().to_canonical() {
                IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            burst.control.add(level, name, &i32::from(ecn & 3).to_ne_bytes());
        }
        burst.data.clear();
        burst.segment_bytes = bytes;
        burst.segments = 1;
        burst.is_closed = false;
        burst
    }

    /// Sends all.
    fn send(&mut self, socket: BorrowedFd<'_>) {
        let mut next = 0;
        let mut has_waited = false;
        for burst in &mut self.bursts[..self.used] {
            if burst.segments > 1 {
                let bytes = (burst.segment_bytes as u16).to_ne_bytes();
                burst.control.add(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes);
            }
        }
        while next < self.used {
            let bursts = &self.bursts[next..self.used];
            match system::send(socket, bursts.iter().map(Burst::message)) {
                Ok(0) => break,
                Ok(count) => {
                    self.sent.packets +=
                        bursts[..count].iter().map(|burst| burst.segments as u64).sum::<u64>();
                    next += count;
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => {
                    if has_waited || !gets_room(socket) {
                        let left: usize = bursts.iter().map(|burst| burst.segments).sum();
                        self.sent.dropped += left as u64;
                        self.sent.error = Some(ErrorKind::WouldBlock);
                        break;
                    }
                    has_waited = true;
                }
                Err(why) => {
                    let burst = &bursts[0];
                    // Before Linux 6.14 a datagram that is too long is EINVAL in a burst.
                    let cannot_cut = matches!(why.raw_os_error(), Some(libc::EIO | libc::EINVAL));
                    if burst.segments > 1 && (cannot_cut || is_too_long(&why)) {
                        let went = burst.send_each(socket, &mut self.sent);
                        if cannot_cut && went {
                            self.has_gso = false;
                        }
                    } else {
                        self.sent.refuse(burst.to, burst.segments, &why);
                    }
                    next += 1;
                }
            }
        }
        self.used = 0;
        self.bytes = 0;
    }
}

impl Burst {
    /// One to be begun.
    fn empty() -> Burst {
        let to = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        Burst {
            to,
            address: RawAddress::new(to, true),
            ecn: 0,
            control: Control::NONE,
            data: Vec::new(),
            segment_bytes: 0,
            segments: 0,
            is_closed: false,
        }
    }

    /// Whether one more datagram of so many bytes can be the next segment.
    fn takes(&self, ecn: u8, bytes: usize) -> bool {
        !self.is_closed
            && self.ecn == ecn
            && self.segments < SEGMENTS_MAX
            && 0 < bytes
            && bytes <= self.segment_bytes
            && self.data.len() + bytes <= BURST_BYTES_MAX
    }

    fn message(&self) -> Outgoing<'_> {
        Outgoing {
            address: self.address.as_bytes(),
            control: self.control.as_bytes(),
            data: &self.data,
        }
    }

    /// Sends its datagrams each by itself. Whether all went.
    fn send_each(&self, socket: BorrowedFd<'_>, sent: &mut Sent) -> bool {
        let mut control = Control::NONE;
        if self.ecn != 0 {
            control = self.control.first();
        }
        let mut all_went = true;
        let mut too_long = usize::MAX;
        for data in self.data.chunks(self.segment_bytes) {
            let message =
                || Outgoing { address: self.address.as_bytes(), control: control.as_bytes(), data };
            let result = loop {
                if data.len() >= too_long {
                    break Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
                }
                match system::send(socket, std::iter::once(message())) {
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    result => break result,
                }
            };
            match result {
                Ok(_) => sent.packets += 1,
                Err(why) => {
                    all_went = false;
                    if is_too_long(&why) {
                        too_long = data.len();
                    }
                    sent.refuse(self.to, 1, &why);
                }
            }
        }
        all_went
    }
}

impl Sent {
    fn refuse(&mut self, to: SocketAddr, datagrams: usize, why: &io::Error) {
        self.dropped += datagrams as u64;
        if is_too_long(why) {
            self.too_long = Some(to);
        } else {
            self.error = Some(why.kind());
        }
    }
}

fn is_too_long(why: &io::Error) -> bool {
    why.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Whether there is room in the socket's buffer now, or in a moment.
fn gets_room(socket: BorrowedFd<'_>) -> bool {
    let nanoseconds = i64::from(ROOM_WAIT_MILLISECONDS) * 1_000_000;
    let timeout = Timespec { tv_sec: 0, tv_nsec: nanoseconds as _ };
    let mut polled = [PollFd::new(&socket, PollFlags::OUT)];
    rustix::event::poll(&mut polled, Some(&timeout)) == Ok(1)
}
