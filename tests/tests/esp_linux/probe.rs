//! What a user of the tunnels does: packets of every size to a guest that echoes them, and streams.

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_ip_tos, set_ipv6_tclass, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, recv,
    send, socket_with,
};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The port at which the guest echoes.
const ECHO: u16 = 7;
/// Packets on the way at once.
const AT_ONCE: usize = 32;
/// How long an answer is waited for that never comes.
const LATE: Duration = Duration::from_secs(20);

/// What asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// ICMP's or ICMPv6's echo request
    Ping,
    Udp,
}

/// Packets of one kind between two addresses, from a thread in the gateway's namespace.
pub struct Probe {
    socket: OwnedFd,
    asks: Asks,
    v4: bool,
    mark: u16,
}

impl Probe {
    /// Opens one. `mark` tells its pings from others'.
    pub fn new(asks: Asks, from: IpAddr, to: IpAddr, mark: u16) -> io::Result<Probe> {
        let v4 = from.is_ipv4();
        let (kind, protocol) = match asks {
            Asks::Ping if v4 => (SocketType::RAW, Some(ipproto::ICMP)),
            Asks::Ping => (SocketType::RAW, Some(ipproto::ICMPV6)),
            Asks::Udp => (SocketType::DGRAM, None),
        };
        let socket = open(kind, protocol, from)?;
        let port = if asks == Asks::Udp { ECHO } else { 0 };
        connect(&socket, &SocketAddr::new(to, port))?;
        Ok(Probe { socket, asks, v4, mark })
    }

    /// The type of service or traffic class of what it sends, ECN within it.
    pub fn set_class(&self, class: u8) -> io::Result<()> {
        if self.v4 {
            set_ip_tos(&self.socket, class)?;
        } else {
            set_ipv6_tclass(&self.socket, class.into())?;
        }
        Ok(())
    }

    /// How long [`receive`](Probe::receive) waits.
    pub fn patience(&self, limit: Duration) -> io::Result<()> {
        Ok(set_socket_timeout(&self.socket, Timeout::Recv, Some(limit))?)
    }

    /// Sends one packet with so many bytes of payload, which are its own.
    pub fn send(&self, bytes: usize) -> io::Result<()> {
        let payload = payload(bytes);
        let packet = match self.asks {
            Asks::Udp => payload,
            Asks::Ping => ping(if self.v4 { 8 } else { 128 }, self.v4, self.mark, &payload),
        };
        send(&self.socket, &packet, SendFlags::empty())?;
        Ok(())
    }

    /// The next answer: how many bytes of payload it has. `None`: there is none within the time.
    pub fn receive(&self) -> io::Result<Option<usize>> {
        Ok(self.receive_with_class()?.map(|(bytes, _)| bytes))
    }

    /// As [`receive`](Probe::receive), and the answer's type of service where it is a ping of IPv4, 0 elsewhere.
    pub fn receive_with_class(&self) -> io::Result<Option<(usize, u8)>> {
        let mut buffer = vec![0; 65536];
        loop {
            let (_, bytes) = match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                received => received?,
            };
            let (mut answer, mut class) = (&buffer[..bytes], 0);
            if self.asks == Asks::Ping {
                if self.v4 {
                    class = answer[1];
                    answer = &answer[usize::from(answer[0] & 15) * 4..];
                }
                let echo = if self.v4 { 0 } else { 129 };
                if answer.len() < 8 || answer[0] != echo || answer[4..6] != self.mark.to_be_bytes()
                {
                    continue;
                }
                answer = &answer[8..];
            }
            if answer != payload(answer.len()) {
                let why = format!("an answer of {} bytes is not what was sent", answer.len());
                return Err(io::Error::other(why));
            }
            return Ok(Some((answer.len(), class)));
        }
    }

    /// Sends packets of all these sizes, and waits for the answers to each.
    pub fn ask(&self, sizes: impl IntoIterator<Item = usize>) -> Result<(), String> {
        let mut waits = BTreeSet::new();
        let mut sizes = sizes.into_iter().peekable();
        self.patience(LATE).map_err(|why| why.to_string())?;
        while sizes.peek().is_some() || !waits.is_empty() {
            while let Some(bytes) = sizes.next_if(|_| waits.len() < AT_ONCE) {
                self.send(bytes).map_err(|why| format!("{:?} of {bytes}: {why}", self.asks))?;
                waits.insert(bytes);
            }
            match self.receive() {
                Ok(Some(bytes)) if waits.remove(&bytes) => {}
                Ok(Some(bytes)) => return Err(format!("{:?}: {bytes} again", self.asks)),
                Ok(None) => return Err(format!("{:?}: no answer to {waits:?}", self.asks)),
                Err(why) => return Err(format!("{:?}: {why}", self.asks)),
            }
        }
        Ok(())
    }
}

/// Sends bytes in a TCP stream to the guest's echo, and takes them back.
pub fn stream(from: IpAddr, to: IpAddr, bytes: usize) -> Result<(), String> {
    let socket = open(SocketType::STREAM, None, from).map_err(|why| why.to_string())?;
    set_socket_timeout(&socket, Timeout::Recv, Some(LATE)).map_err(|why| why.to_string())?;
    let to = SocketAddr::new(to, ECHO);
    connect(&socket, &to).map_err(|why| format!("{to}: {why}"))?;
    let (stream, sent) = (TcpStream::from(socket), payload(bytes));
    let back = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (&stream).write_all(&sent)?;
            stream.shutdown(Shutdown::Write)
        });
        let mut back = Vec::with_capacity(bytes);
        let read = (&stream).read_to_end(&mut back);
        if let Err(why) = read {
            // The writer waits for nothing more.
            let _ = stream.shutdown(Shutdown::Both);
            let _ = writer.join();
            return Err(format!("{to}: {why} after {} bytes", back.len()));
        }
        writer.join().map_err(|_| "the writer")?.map_err(|why| format!("{to}: {why}"))?;
        Ok(back)
    })?;
    let same = back.iter().zip(&sent).take_while(|(back, sent)| back == sent).count();
    if back.len() == bytes && same == bytes {
        Ok(())
    } else {
        Err(format!("{to}: {} of {bytes} bytes came back, {same} as they were", back.len()))
    }
}

fn open(
    kind: SocketType,
    protocol: Option<rustix::net::Protocol>,
    from: IpAddr,
) -> io::Result<OwnedFd> {
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    Ok(socket)
}

/// Bytes that depend on how many they are.
fn payload(bytes: usize) -> Vec<u8> {
    let mut state = bytes as u32 | 1;
    let mut byte = || {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (state >> 24) as u8
    };
    (0..bytes).map(|_| byte()).collect()
}

/// An echo request; the kernel sets the checksum of ICMPv6 itself.
fn ping(kind: u8, v4: bool, mark: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![kind, 0, 0, 0];
    packet.extend(mark.to_be_bytes());
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend(payload);
    if v4 {
        let sum = crate::frames::checksum(&packet, 0);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}
