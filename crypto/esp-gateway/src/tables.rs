//! What the threads that carry packets look at: the tables of one moment, swapped whole; and the sockets.

use crate::clock::Clock;
use crate::figures::Figures;
use keyway_esp::{Inbound, InnerPacket, Mode, Outbound, OutboundSa, Suite};
use keyway_lock::Unpoisoned;
use keyway_packet_io::{Sent, Socket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Bytes of a UDP header.
const UDP_BYTES: usize = 8;
/// ESP's number among the protocols of IP.
const ESP: u8 = 50;
/// UDP's.
const UDP: u8 = 17;

/// The other end of a tunnel, for what goes out.
pub struct Peer {
    /// Where sealed packets go; a port of 0 is raw ESP.
    pub to: SocketAddr,
    /// The security association; `None` while its key cannot be had.
    pub sa: Option<Arc<OutboundSa>>,
    suite: Suite,
    mode: Mode,
    /// Longest packet that fits in, in bytes.
    room: AtomicUsize,
    /// Fewer numbers than this are left: it is time for more.
    low: AtomicU64,
    /// More were asked for.
    has_asked: AtomicBool,
}

impl Peer {
    /// One whose path is not known yet.
    pub fn new(to: SocketAddr, sa: Option<Arc<OutboundSa>>, suite: Suite, mode: Mode) -> Peer {
        let (room, low) = (AtomicUsize::new(usize::MAX), AtomicU64::new(0));
        Peer { to, sa, suite, mode, room, low, has_asked: AtomicBool::new(false) }
    }

    /// Longest packet that fits in, in bytes.
    pub fn room(&self) -> usize {
        self.room.load(Ordering::Relaxed)
    }

    /// The path takes IP packets of so many bytes.
    pub fn set_path(&self, mtu: u32) {
        let header = if self.to.is_ipv4() { 20 } else { 40 };
        let udp = if self.to.port() == 0 { 0 } else { UDP_BYTES };
        let inner = self.suite.inner_bytes_max((mtu as usize).saturating_sub(header + udp));
        // In transport mode the packet's own header is the outer one.
        let inner = if self.mode == Mode::Transport { inner + header } else { inner };
        self.room.store(inner, Ordering::Relaxed);
    }

    /// Fewer numbers than this call for more.
    pub fn set_low(&self, low: u64) {
        self.low.store(low, Ordering::Relaxed);
        self.has_asked.store(false, Ordering::Release);
    }

    /// Whether more numbers are to be asked for now: it says so once.
    pub fn asks(&self) -> bool {
        let Some(sa) = &self.sa else { return false };
        sa.end().saturating_sub(sa.next_number()) < self.low.load(Ordering::Relaxed)
            && !self.has_asked.swap(true, Ordering::AcqRel)
    }

    /// Whether this packet is a sealed one, on its way to this peer.
    pub fn is_sealed(&self, inner: &InnerPacket<'_>) -> bool {
        if inner.destination() != self.to.ip() {
            return false;
        }
        match self.to.port() {
            0 => inner.protocol() == ESP,
            port => inner.protocol() == UDP && inner.ports().is_some_and(|(_, to)| to == port),
        }
    }
}

/// The tables of one moment.
#[derive(Default)]
pub struct Tables {
    /// Indexes of peers, by what goes to them.
    pub outbound: Outbound<u32>,
    /// The peers.
    pub peers: Vec<Arc<Peer>>,
    /// Security associations for what comes in.
    pub inbound: Inbound,
}

/// What all threads share.
pub struct Shared {
    tables: Mutex<Arc<Tables>>,
    /// Goes up with each swap.
    generation: AtomicU64,
    /// The keeper is wanted.
    wanted: Mutex<bool>,
    want: Condvar,
    /// The clock.
    pub clock: Clock,
    /// The counters.
    pub figures: Figures,
}

impl Shared {
    /// Without any tunnel.
    pub fn new(clock: Clock) -> Shared {
        Shared {
            tables: Mutex::default(),
            generation: AtomicU64::new(1),
            wanted: Mutex::new(false),
            want: Condvar::new(),
            clock,
            figures: Figures::new(),
        }
    }

    /// Swaps the tables.
    pub fn publish(&self, tables: Tables) {
        *self.tables.lock().unpoisoned() = Arc::new(tables);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The tables of now.
    pub fn tables(&self) -> Arc<Tables> {
        self.tables.lock().unpoisoned().clone()
    }

    /// Has the keeper look around.
    pub fn want_keeper(&self) {
        *self.wanted.lock().unpoisoned() = true;
        self.want.notify_all();
    }

    /// Waits until the keeper is wanted, at most so long.
    pub fn wait_until_wanted(&self, most: Duration) {
        let wanted = self.wanted.lock().unpoisoned();
        let waited = self.want.wait_timeout_while(wanted, most, |wanted| !*wanted);
        *waited.unpoisoned().0 = false;
    }
}

/// A thread's own view of the tables.
pub struct View {
    shared: Arc<Shared>,
    tables: Arc<Tables>,
    generation: u64,
}

impl View {
    /// That of now.
    pub fn new(shared: &Arc<Shared>) -> View {
        View { shared: shared.clone(), tables: shared.tables(), generation: 0 }
    }

    /// Looks whether there are others by now.
    pub fn refresh(&mut self) {
        let generation = self.shared.generation.load(Ordering::Acquire);
        if generation != self.generation {
            (self.generation, self.tables) = (generation, self.shared.tables());
        }
    }

    /// The tables.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// What all threads share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// The sockets of a thread.
pub struct Sockets {
    /// ESP in UDP.
    pub udp: Option<Socket>,
    /// ESP over IPv4, and over IPv6.
    pub raw: Vec<(bool, Socket)>,
}

impl Sockets {
    /// A second end of each.
    ///
    /// # Errors
    /// The system's.
    pub fn try_clone(&self) -> io::Result<Sockets> {
        let udp = self.udp.as_ref().map(Socket::try_clone).transpose()?;
        let raw = self.raw.iter().map(|(is_v4, socket)| Ok((*is_v4, socket.try_clone()?)));
        Ok(Sockets { udp, raw: raw.collect::<io::Result<_>>()? })
    }

    /// All of them.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Socket> {
        self.udp.iter_mut().chain(self.raw.iter_mut().map(|(_, socket)| socket))
    }

    /// The one that leads to this peer.
    pub fn to(&mut self, to: SocketAddr) -> Option<&mut Socket> {
        match to.port() {
            0 => self.raw.iter_mut().find(|(is_v4, _)| *is_v4 == to.is_ipv4()).map(|(_, it)| it),
            _ => self.udp.as_mut(),
        }
    }

    /// The longest packet on the way to a peer, in bytes.
    ///
    /// # Errors
    /// The system's: no route leads there.
    pub fn path_mtu(&mut self, to: SocketAddr) -> io::Result<u32> {
        self.to(to).ok_or(io::ErrorKind::AddrNotAvailable)?.path_mtu(to.ip())
    }

    /// Sends what is left in each.
    pub fn flush(&mut self, mut each: impl FnMut(Sent)) {
        self.all().for_each(|socket| each(socket.flush()));
    }
}

/// Whether it is an address that a system speaks to on any device, without being asked to: many receivers, or a
/// neighbour on the link.
pub fn is_of_the_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_multicast() || it.is_broadcast() || it.is_link_local(),
        IpAddr::V6(it) => it.is_multicast() || it.is_unicast_link_local(),
    }
}
