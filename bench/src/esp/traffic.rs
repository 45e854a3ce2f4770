//! The sender behind one gateway and the sink behind the other: one thread that does both.
//!
//! It holds to a window: so many packets are under way and no more, so that no queue overflows and the gateways have
//! always something to do. Packets that do not come within a while are lost, and others take their place.

use super::gateway::Gateway;
use super::network::{Host, Network};
use crate::ring::common::text;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{UdpGroSegment, UdpGsoSegment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{RecvFlags, recv};
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How the packets are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// UDP datagrams, each by itself.
    Single,
    /// UDP datagrams that come out of the device as one long packet (`UDP_SEGMENT`), if the gateway takes such.
    Segments,
    /// A TCP connection, which the system cuts (TSO).
    Stream,
}

pub struct Case {
    pub name: &'static str,
    /// Of a whole IP packet in the tunnel.
    pub bytes: usize,
    pub form: Form,
    /// Windows to try, in packets; each gateway is measured with the one that suits it. A device's queue has 500.
    pub windows: &'static [usize],
}

/// Packets of one call: so many that the longest fill 64 KiB, with what a tunnel adds to each. Those that are to go by
/// themselves are cut by the system before the device has them: a call for each would be slower than a gateway.
const SEGMENTS: usize = 44;
/// Segments that a device takes in one packet.
const CUT: &str = "1";
const UNCUT: &str = "65535";

const WINDOWS: [usize; 4] = [SEGMENTS, 2 * SEGMENTS, 5 * SEGMENTS, 10 * SEGMENTS];

pub const CASES: [Case; 5] = [
    Case { name: "64 B", bytes: 64, form: Form::Single, windows: &WINDOWS },
    Case { name: "512 B", bytes: 512, form: Form::Single, windows: &WINDOWS },
    Case { name: "1,400 B", bytes: 1400, form: Form::Single, windows: &WINDOWS },
    Case { name: "1,400 B, GSO", bytes: 1400, form: Form::Segments, windows: &WINDOWS },
    Case { name: "TCP, 1,400 B", bytes: 1400, form: Form::Stream, windows: &[0] },
];

/// Of IPv4 and UDP, and of IPv4 and TCP with its time stamps.
const UDP_HEADERS: usize = 28;
const TCP_HEADERS: usize = 52;

impl Case {
    fn payload(&self) -> usize {
        self.bytes - if self.form == Form::Stream { TCP_HEADERS } else { UDP_HEADERS }
    }
}

/// Of one run.
#[derive(Clone, Copy)]
pub struct Sample {
    pub sent: usize,
    pub arrived: usize,
    /// Of both gateways.
    pub processor: Duration,
    pub elapsed: Duration,
}

impl Sample {
    /// Thousands of packets that arrived for a second of the processor.
    pub fn rate(&self) -> f64 {
        self.arrived as f64 / self.processor.as_secs_f64() / 1e3
    }
}

const PORT: u16 = 9;
/// Of the sink, so that it loses nothing.
const RECEIVE_BUFFER: usize = 16 << 20;
/// After so long without any, those under way are lost.
const LOST_AFTER: Duration = Duration::from_millis(20);
/// How long a pair of gateways may take until a packet goes through.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sockets on both hosts.
pub struct Ends {
    /// What it sends is cut into datagrams.
    sender: UdpSocket,
    sink: UdpSocket,
    writer: TcpStream,
    reader: TcpStream,
    buffer: Vec<u8>,
}

impl Ends {
    /// Opens them, and waits until a packet has gone through the gateways.
    pub fn open(network: &Network) -> Result<Ends, String> {
        let begun = Instant::now();
        loop {
            match Ends::try_open(network) {
                Err(why) if begun.elapsed() > PATIENCE => {
                    return Err(format!("nothing goes through the gateways: {why}"));
                }
                Err(_) => std::thread::sleep(LOST_AFTER),
                ends => return ends,
            }
        }
    }

    fn try_open(network: &Network) -> Result<Ends, String> {
        let (sink, listener) = network.inside(Host::B, || {
            let address = (Host::B.inner(), PORT);
            let sink = UdpSocket::bind(address).map_err(text)?;
            set_socket_recv_buffer_size_force(&sink, RECEIVE_BUFFER).map_err(text)?;
            setsockopt(&sink, UdpGroSegment, &true).map_err(text)?;
            Ok((sink, TcpListener::bind(address).map_err(text)?))
        })?;
        let sender = network.inside(Host::A, || {
            let sender = UdpSocket::bind((Host::A.inner(), 0)).map_err(text)?;
            sender.connect((Host::B.inner(), PORT)).map_err(text)?;
            Ok(sender)
        })?;
        sender.send(&[0]).map_err(text)?;
        sink.set_read_timeout(Some(PATIENCE / 10)).map_err(text)?;
        sink.recv(&mut [0]).map_err(text)?;
        sink.set_nonblocking(true).map_err(text)?;
        let connect = || TcpStream::connect((Host::B.inner(), PORT)).map_err(text);
        let writer = network.inside(Host::A, connect)?;
        let (reader, _) = listener.accept().map_err(text)?;
        for stream in [&writer, &reader] {
            stream.set_nonblocking(true).map_err(text)?;
        }
        Ok(Ends { sender, sink, writer, reader, buffer: vec![0; 1 << 18] })
    }

    /// Sends for so long, and waits for what is under way. The window is in packets.
    pub fn run(
        &mut self,
        case: &Case,
        (network, gateway): (&Network, &Gateway),
        window: usize,
        time: Duration,
    ) -> Result<Sample, String> {
        while self.take(case)? > 0 {}
        let segments = if case.form == Form::Single { CUT } else { UNCUT };
        let device = gateway.device();
        network.ip(Host::A, &["link", "set", device, "gso_max_segs", segments])?;
        let segment = i32::try_from(case.payload()).map_err(text)?;
        setsockopt(&self.sender, UdpGsoSegment, &segment).map_err(text)?;
        let (mut sent, mut arrived, mut lost) = (0, 0, 0);
        let (begun, before) = (Instant::now(), gateway.time());
        loop {
            let is_open = begun.elapsed() < time;
            let room = (window + lost + arrived).saturating_sub(sent);
            let sent_now = if is_open { self.send(case, room)? } else { 0 };
            let arrived_now = self.take(case)?;
            sent += sent_now;
            arrived += arrived_now;
            if !is_open && sent <= arrived + lost {
                break;
            }
            if sent_now + arrived_now > 0 || self.wait(case)? {
                continue;
            }
            if case.form != Form::Stream {
                lost = sent.saturating_sub(arrived);
            } else if begun.elapsed() > time + PATIENCE {
                return Err("a TCP connection stands still".into());
            }
        }
        let (elapsed, processor) = (begun.elapsed(), gateway.time() - before);
        if case.form == Form::Stream {
            // Those were bytes.
            (sent, arrived) = (sent / case.payload(), arrived / case.payload());
        }
        if arrived == 0 {
            return Err(format!("no packet of {} arrives", case.name));
        }
        Ok(Sample { sent, arrived, processor, elapsed })
    }

    /// Sends a batch if there is room for it, and says how many packets that is. Of a stream these are bytes, and there
    /// is room for what the socket takes.
    fn send(&mut self, case: &Case, room: usize) -> Result<usize, String> {
        let payload = case.payload();
        match case.form {
            Form::Single | Form::Segments if room < SEGMENTS => Ok(0),
            Form::Single | Form::Segments => {
                let sent = self.sender.send(&self.buffer[..SEGMENTS * payload]);
                sent.map(|bytes| bytes / payload).map_err(text)
            }
            Form::Stream => all(|| self.writer.write(&self.buffer)),
        }
    }

    /// Takes what is there, and says how many packets (of a stream: bytes) that is.
    fn take(&mut self, case: &Case) -> Result<usize, String> {
        let payload = case.payload();
        match case.form {
            Form::Stream => all(|| discard(&self.reader, &mut self.buffer)),
            // Several that were joined on the way come as one.
            _ => all(|| discard(&self.sink, &mut [])).map(|bytes| bytes / payload),
        }
    }

    /// Whether something came within a while.
    fn wait(&self, case: &Case) -> Result<bool, String> {
        let time = Timespec { tv_sec: 0, tv_nsec: LOST_AFTER.as_nanos() as i64 };
        let end = match case.form {
            Form::Stream => self.reader.as_fd(),
            _ => self.sink.as_fd(),
        };
        let mut end = [PollFd::from_borrowed_fd(end, PollFlags::IN)];
        poll(&mut end, Some(&time)).map(|ready| ready > 0).map_err(text)
    }
}

/// Takes what comes next, and says how many bytes it has. They are not copied, so that the sink is fast: of a connection
/// as many as the buffer has are thrown away, of a datagram all that do not fit.
fn discard(socket: impl AsFd, buffer: &mut [u8]) -> std::io::Result<usize> {
    Ok(recv(socket, buffer, RecvFlags::TRUNC)?.1)
}

/// Calls until it would have to wait, and adds up.
fn all(mut call: impl FnMut() -> std::io::Result<usize>) -> Result<usize, String> {
    let mut bytes = 0;
    loop {
        match call() {
            Ok(0) => return Ok(bytes),
            Ok(more) => bytes += more,
            Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(bytes),
            Err(why) => return Err(why.to_string()),
        }
    }
}
