//! A thread that carries packets from the device to the network.

use crate::figures::Reason;
use crate::limits::{BATCH_PACKETS, MTU_MIN, TROUBLE_PAUSE};
use crate::stop::{Stop, Waited};
use crate::tables::{Peer, Sockets, View, is_of_the_link};
use keyway_engine::Engine;
use keyway_esp::{Cause, Dispatch, InnerPacket, Sealer, too_big};
use keyway_packet_io::TunQueue;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

/// The thread's things.
pub struct Outward {
    queue: TunQueue,
    work: Work,
}

struct Work {
    view: View,
    sockets: Sockets,
    sealer: Sealer,
    /// Messages to the inside.
    answers: Vec<Vec<u8>>,
    /// The thread for packets whose keys a daemon has.
    aside: Option<SyncSender<Vec<u8>>>,
}

impl Outward {
    /// Carries what comes out of this queue. Packets whose keys a daemon has go to `aside`, if there is one: the daemon
    /// may hang, and others do not wait for it.
    pub fn new(
        engine: &Engine,
        view: View,
        queue: TunQueue,
        sockets: Sockets,
        aside: Option<SyncSender<Vec<u8>>>,
    ) -> Outward {
        let sealer = Sealer::new(engine, Dispatch::Queued);
        Outward { queue, work: Work { view, sockets, sealer, answers: Vec::new(), aside } }
    }

    /// Carries what another thread puts aside, until that one ends.
    pub fn run_aside(mut self, packets: &Receiver<Vec<u8>>) {
        while let Ok(first) = packets.recv() {
            self.work.refresh();
            self.work.take(&first);
            for packet in packets.try_iter().take(BATCH_PACKETS - 1) {
                self.work.take(&packet);
            }
            self.pass_on();
        }
    }

    /// Works until it is to stop.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn run(mut self, stop: &Stop) -> io::Result<()> {
        loop {
            self.work.refresh();
            let received = self.fill();
            self.pass_on();
            let waited = match received {
                // More may be there, but an end comes first.
                Ok(1..) if !stop.is_asked() => continue,
                Ok(_) => stop.wait(&[&self.queue], None),
                Err(why) if is_gone(&why) => return Err(why),
                // The device is down, perhaps.
                Err(_) => stop.wait(&[], Some(TROUBLE_PAUSE)),
            };
            if waited == Waited::Stopped {
                return Ok(());
            }
        }
    }

    /// Seals and sends what waits, and answers to the inside.
    fn pass_on(&mut self) {
        self.work.seal();
        self.work.send();
        for answer in self.work.answers.drain(..) {
            self.queue.push(&answer);
        }
        let written = self.queue.flush();
        self.work.view.shared().figures.too_big.add(written.packets);
    }

    /// Takes packets until none is there, or enough are for a batch.
    fn fill(&mut self) -> io::Result<usize> {
        let work = &mut self.work;
        let mut packets = 0;
        while packets < BATCH_PACKETS {
            match self.queue.receive(|packet| work.take(packet))? {
                0 => break,
                count => packets += count,
            }
        }
        Ok(packets)
    }
}

/// Whether there is no device any more.
pub fn is_gone(why: &io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [Errno::BADFD, Errno::NODEV, Errno::NXIO, Errno::BADF];
    why.raw_os_error().is_some_and(|error| gone.iter().any(|it| it.raw_os_error() == error))
}

/// What a batch keeps of a packet, in the number that comes back with it.
#[derive(Clone, Copy)]
struct Tag {
    /// The index of its peer.
    peer: u32,
    /// Its length, which no 16 bits exceed.
    bytes: usize,
    /// It is longer than its path takes.
    is_long: bool,
}

impl Tag {
    fn to_number(self) -> u64 {
        u64::from(self.peer) << 32 | u64::from(self.is_long) << 31 | self.bytes as u64
    }

    fn of(number: u64) -> Tag {
        let (low, flag) = (number & u64::from(u32::MAX), 1 << 31);
        let (peer, bytes) = ((number >> 32) as u32, (low & (flag - 1)) as usize);
        Tag { peer, bytes, is_long: low & flag != 0 }
    }
}

/// Whether a packet that is longer than its tunnel takes goes there sealed and in fragments: an IPv4 packet that any
/// router may fragment, and an IPv6 one that every path has to take (RFC 2473 § 7.1).
fn may_be_fragmented(inner: &InnerPacket<'_>) -> bool {
    match inner.destination() {
        IpAddr::V4(_) => !inner.dont_fragment(),
        IpAddr::V6(_) => inner.bytes().len() as u64 <= MTU_MIN,
    }
}

impl Work {
    /// Looks at the tables of now.
    fn refresh(&mut self) {
        if self.view.refresh() {
            self.sealer.release();
        }
    }

    /// Takes a packet out of the device.
    fn take(&mut self, packet: &[u8]) {
        if self.sealer.len() >= BATCH_PACKETS {
            self.seal();
        }
        if let Err((reason, bytes)) = self.try_take(packet) {
            self.view.shared().figures.out.dropped(reason, bytes);
        }
    }

    fn try_take(&mut self, packet: &[u8]) -> Result<(), (Reason, usize)> {
        let Work { view, sealer, answers, aside, .. } = self;
        let bytes = packet.len();
        let is_ip = matches!(packet.first().map(|first| first >> 4), Some(4 | 6));
        let inner = InnerPacket::parse(packet).map_err(|_| match is_ip {
            true => (Cause::Malformed.into(), bytes),
            false => (Reason::Noise, bytes),
        })?;
        let tables = view.tables();
        let index = *tables.outbound.find(&inner).ok_or_else(|| {
            match is_of_the_link(inner.destination()) {
                true => (Reason::Noise, bytes),
                false => (Cause::Selectors.into(), bytes),
            }
        })?;
        let peer = tables.peers.get(index as usize).ok_or((Cause::Selectors.into(), bytes))?;
        if peer.is_sealed(&inner) {
            return Err((Reason::Loop, bytes));
        }
        let Some(sa) = &peer.sa else {
            return Err((peer.drop_reason(&inner, &view.shared().door), bytes));
        };
        if let Some(aside) = aside.as_ref().filter(|_| sa.is_named()) {
            return aside.try_send(packet.to_vec()).or(Err((Cause::QueueFull.into(), bytes)));
        }
        let room = peer.room();
        let is_long = inner.bytes().len() > room;
        if is_long && !may_be_fragmented(&inner) {
            // In the receiver's name: the system takes none from one of its own addresses. The receiver's is behind
            // the device.
            let mtu = u32::try_from(room).unwrap_or(u32::MAX);
            answers.extend(too_big(&inner, mtu, inner.destination()));
            return Err((Cause::TooLong.into(), bytes));
        }
        let tag = Tag { peer: index, bytes, is_long };
        sealer.push(sa, &inner, tag.to_number()).map_err(|cause| (cause.into(), bytes))
    }

    /// Seals what waits, and hands it to the sockets.
    fn seal(&mut self) {
        if self.sealer.is_empty() {
            return;
        }
        let Work { view, sockets, sealer, .. } = self;
        let (tables, shared) = (view.tables().clone(), view.shared().clone());
        let (mut packets, mut all_bytes) = (0, 0);
        let mut last: Option<&Arc<Peer>> = None;
        sealer.seal(shared.clock.now(), |tag, sealed| {
            let Tag { peer, bytes, is_long } = Tag::of(tag);
            let peer = tables.peers.get(peer as usize);
            if let Some(peer) = peer
                && !last.is_some_and(|last| Arc::ptr_eq(last, peer))
            {
                last = Some(peer);
                if peer.asks() {
                    shared.want_keeper();
                }
            }
            let socket = peer.and_then(|peer| Some((peer.to, sockets.to(peer.to)?)));
            match (sealed, socket) {
                (Ok(sealed), Some((to, socket))) => {
                    match is_long {
                        true => socket.send_in_fragments(to, sealed.ecn, &sealed.parts),
                        false => socket.push(to, sealed.ecn, &sealed.parts),
                    }
                    (packets, all_bytes) = (packets + 1, all_bytes + bytes as u64);
                }
                (Ok(_), None) => shared.figures.out.dropped(Reason::System, bytes),
                (Err(cause), _) => shared.figures.out.dropped(cause, bytes),
            }
        });
        shared.figures.out.gone(packets, all_bytes);
    }

    /// Sends what the sockets have.
    fn send(&mut self) {
        let figures = &self.view.shared().figures;
        let mut too_long = Vec::new();
        self.sockets.flush(|sent| {
            if sent.dropped > 0 {
                figures.out.many_dropped(Reason::System, sent.dropped, 0);
            }
            too_long.extend(sent.too_long);
        });
        // The path has become narrower than it was.
        for to in too_long {
            let Ok(mtu) = self.sockets.path_mtu(to) else { continue };
            let peers = self.view.tables().peers.iter();
            peers.filter(|peer| peer.to.ip() == to.ip()).for_each(|peer| peer.set_path(mtu));
        }
    }
}
