//! Opens packets in batches.

use crate::cause::Cause;
use crate::dispatch::{Dispatch, Dispatcher};
use crate::ecn;
use crate::groups::Groups;
use crate::inbound_sa::{Inbound, InboundSa};
use crate::inner_packet::{IPV4_BYTES, IPV6_BYTES, InnerPacket, protocol, set_ecn, write_header};
use crate::lifetime::{Life, Time};
use crate::limits::{BATCH_PACKETS_MAX, SEALED_BYTES_MAX};
use crate::parameters::{Association, Mode};
use crate::suite::HEADER_BYTES;
use crate::tasks::{HIGH_BYTES, Tasks, edit, refill, set_aad, set_nonce, set_parts};
use crate::trailer;
use keyway_engine::{Buffer, Direction, Engine, Operation, Task};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The fields of a packet's outer header that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Its source.
    pub source: IpAddr,
    /// Its destination; of the family of `source`.
    pub destination: IpAddr,
    /// Its congestion bits ([`InnerPacket::ecn`]).
    pub ecn: u8,
}

/// Opens packets of any associations in batches. It belongs to one thread; its buffers and tasks are used again.
pub struct Opener {
    dispatcher: Dispatcher,
    tasks: Tasks,
    groups: Groups<InboundSa>,
    packets: Vec<Packet>,
    /// The sizes of the packets of one association that were authentic and new, and which these are.
    sizes: Vec<usize>,
    accepted: Vec<usize>,
}

/// A packet of the batch.
struct Packet {
    outer: Outer,
    /// The half of its number that was sent; then all of it.
    number: u64,
    /// Where its text begins in the buffer, and how many bytes it has.
    text_at: usize,
    text_bytes: usize,
    /// `None` while the engine has it.
    task: Option<Box<Task>>,
    outcome: Result<(), Cause>,
}

impl Opener {
    /// An opener whose requests reach the engine in this way.
    pub fn new(engine: &Engine, dispatch: Dispatch) -> Opener {
        Opener {
            dispatcher: Dispatcher::new(engine, dispatch),
            tasks: Tasks::new(Direction::Unprotect),
            groups: Groups::new(),
            packets: Vec::new(),
            sizes: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// Copies an ESP packet, from the SPI to the ICV, into the batch.
    ///
    /// # Errors
    /// [`Cause::Spi`] if there is no association for it, [`Cause::Malformed`] or [`Cause::TooLong`] if it has none of the
    /// lengths that it can have, [`Cause::QueueFull`] if the batch has [`BATCH_PACKETS_MAX`] packets.
    pub fn push(&mut self, inbound: &Inbound, esp: &[u8], outer: Outer) -> Result<(), Cause> {
        let (header, _) = esp.split_first_chunk::<HEADER_BYTES>().ok_or(Cause::Malformed)?;
        let [_, _, _, _, number @ ..] = *header;
        let sa = inbound.of_packet(esp).ok_or(Cause::Spi)?;
        if esp.len() > SEALED_BYTES_MAX {
            return Err(Cause::TooLong);
        }
        let association = sa.association();
        let text_bytes = association.suite.text_bytes(esp.len()).ok_or(Cause::Malformed)?;
        if self.packets.len() >= BATCH_PACKETS_MAX {
            return Err(Cause::QueueFull);
        }
        let mut task = self.tasks.take(association);
        let text_at = fill(&mut task.operation, association, esp, text_bytes);
        if self.packets.is_empty() {
            // They are left of a batch that ended in a panic of the caller's.
            self.groups.clear();
        }
        self.groups.push(sa);
        self.packets.push(Packet {
            outer,
            number: u32::from_be_bytes(number).into(),
            text_at,
            text_bytes,
            task: Some(task),
            outcome: Err(Cause::Engine),
        });
        Ok(())
    }

    /// Packets of the batch.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether the batch has no packets.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Opens the batch and hands out, in the order of pushing, the IP packets of those that are good.
    ///
    /// Numbers that were received before are left out. The engine opens the others in one call. Those that are
    /// authentic move the window, unless another thread has received their numbers meanwhile. Then padding, dummies,
    /// selectors and congestion bits are looked at, and what is behind the IP packet is cut off.
    pub fn open(
        &mut self,
        now: Time,
        mut each: impl FnMut(Result<&mut [u8], Cause>, &Arc<InboundSa>),
    ) {
        for group in 0..self.groups.len() {
            self.submit(group, now);
        }
        let packets = &mut self.packets;
        self.dispatcher.collect(|task, result| {
            // It is what `submit` has set.
            if let Some(packet) = packets.get_mut(task.user as usize) {
                packet.outcome = result.map(drop).map_err(Cause::from);
                packet.task = Some(task);
            }
        });
        for group in 0..self.groups.len() {
            self.accept(group);
        }
        for (number, mut packet) in self.packets.drain(..).enumerate() {
            let sa = self.groups.of_packet(number);
            let Some(mut task) = packet.task.take() else {
                each(Err(Cause::Engine), sa);
                continue;
            };
            let opened = match (packet.outcome, data(&mut task.operation)) {
                (Ok(()), Some(data)) => inner(data, &packet, sa),
                (Ok(()), None) => Err(Cause::Engine),
                (Err(cause), _) => Err(cause),
            };
            each(opened, sa);
            self.tasks.put(sa.association(), task);
        }
        self.groups.clear();
    }

    /// Looks at the window, and gives the engine the packets of one association that may be new.
    fn submit(&mut self, group: usize, now: Time) {
        let sa = self.groups.association(group);
        let association = sa.association();
        if sa.state(now) == Life::Ended {
            let ended = Err(Cause::Lifetime);
            self.groups.packets(group).for_each(|at| self.packets[at].outcome = ended);
            return;
        }
        let window = sa.window();
        for at in self.groups.packets(group) {
            let packet = &mut self.packets[at];
            let number = match association.esn {
                true => window.number(packet.number as u32),
                false => Some(packet.number),
            };
            packet.outcome = match number.filter(|number| window.look(*number)) {
                Some(number) => {
                    packet.number = number;
                    Ok(())
                }
                None => Err(Cause::Replay),
            };
        }
        drop(window);
        for at in self.groups.packets(group) {
            let packet = &mut self.packets[at];
            if packet.outcome.is_err() {
                continue;
            }
            let Some(mut task) = packet.task.take() else { continue };
            packet.outcome = Err(Cause::Engine);
            task.user = at as u64;
            match &mut task.operation {
                Operation::Open { aad, .. } => set_aad(aad, association, packet.number),
                Operation::Chain { data, .. } if association.esn => {
                    let high_at = packet.text_at + packet.text_bytes;
                    if let Some(high) = data.get_mut(high_at..high_at + HIGH_BYTES) {
                        high.copy_from_slice(&((packet.number >> 32) as u32).to_be_bytes());
                    }
                }
                _ => {}
            }
            self.dispatcher.add(&association.session, task);
        }
    }

    /// Moves the window over the packets of one association that are authentic and still new.
    fn accept(&mut self, group: usize) {
        let sa = self.groups.association(group);
        self.accepted.clear();
        let authentic = self.groups.packets(group).filter(|at| self.packets[*at].outcome.is_ok());
        self.accepted.extend(authentic);
        if self.accepted.is_empty() {
            return;
        }
        let mut window = sa.window();
        let packets = &mut self.packets;
        self.accepted.retain(|at| {
            let new = window.take(packets[*at].number);
            if !new {
                packets[*at].outcome = Err(Cause::Replay);
            }
            new
        });
        drop(window);
        self.sizes.clear();
        for at in &self.accepted {
            self.sizes.push(self.packets[*at].inner_bytes());
        }
        let counted = sa.counted().take(&self.sizes).packets as usize;
        for at in self.accepted.get(counted..).unwrap_or_default() {
            self.packets[*at].outcome = Err(Cause::Lifetime);
        }
    }

    /// Lets go of the associations that it has seen, and of the buffers: the keys of those that are gone elsewhere are
    /// wiped. For a thread that goes on with others.
    pub fn release(&mut self) {
        self.tasks.clear();
    }
}

impl Packet {
    /// Its text, where it is authentic.
    fn text<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        data.get(self.text_at..self.text_at + self.text_bytes).unwrap_or_default()
    }

    /// Bytes of its text without the trailer, where it is authentic.
    fn inner_bytes(&self) -> usize {
        let text = self.task.as_ref().map_or(&[][..], |task| self.text(task.operation.output()));
        trailer::read(text).map_or(self.text_bytes, |(bytes, _)| bytes)
    }
}

/// Puts an ESP packet into a task, with all but the upper half of its number. Returns where its text begins.
fn fill(
    operation: &mut Operation,
    association: &Association,
    esp: &[u8],
    text_bytes: usize,
) -> usize {
    let suite = association.suite;
    match operation {
        Operation::Open { nonce, data, .. } => {
            let (front, rest) = esp.split_at_checked(suite.front_bytes()).unwrap_or_default();
            set_nonce(nonce, association, front.get(HEADER_BYTES..).unwrap_or_default());
            refill(data, rest.len(), |data| data.extend_from_slice(rest));
            0
        }
        Operation::Chain { data, length, parts, .. } => {
            let icv_at = suite.front_bytes() + text_bytes;
            let (front, icv) = esp.split_at_checked(icv_at).unwrap_or_default();
            refill(data, esp.len() + HIGH_BYTES, |data| {
                data.extend_from_slice(front);
                if association.esn {
                    data.extend([0; HIGH_BYTES]);
                }
                data.extend_from_slice(icv);
                *length = data.len();
            });
            set_parts(parts, association, text_bytes);
            suite.front_bytes()
        }
        _ => 0,
    }
}

/// The buffer of a task.
fn data(operation: &mut Operation) -> Option<&mut Buffer> {
    match operation {
        Operation::Open { data, .. } | Operation::Chain { data, .. } => Some(data),
        _ => None,
    }
}

/// The IP packet of an authentic ESP packet.
fn inner<'a>(data: &'a mut Buffer, packet: &Packet, sa: &InboundSa) -> Result<&'a mut [u8], Cause> {
    let text = packet.text(data);
    let (bytes, next_header) = trailer::read(text).ok_or(Cause::Malformed)?;
    if next_header == protocol::NONE {
        return Err(Cause::Dummy);
    }
    let ip = match sa.mode() {
        Mode::Tunnel => {
            let version = match next_header {
                protocol::IPV4 => 4,
                protocol::IPV6 => 6,
                _ => return Err(Cause::Malformed),
            };
            let ip = data.get_mut(packet.text_at..packet.text_at + bytes);
            ip.filter(|ip| ip.first().is_some_and(|first| first >> 4 == version))
        }
        Mode::Transport => with_header(data, packet, bytes, next_header),
    };
    let ip = ip.ok_or(Cause::Malformed)?;
    let parsed = InnerPacket::parse(ip).or(Err(Cause::Malformed))?;
    if sa.mode() == Mode::Transport && parsed.transport().is_none() {
        return Err(Cause::Transport);
    }
    if !sa.selectors().fit_inbound(&parsed) {
        return Err(Cause::Selectors);
    }
    let (ecn, bytes) = (parsed.ecn(), parsed.bytes().len());
    let merged = match sa.mode() {
        Mode::Tunnel => ecn::decapsulated(ecn, packet.outer.ecn).ok_or(Cause::Ecn)?,
        // The outer header was the packet's own.
        Mode::Transport => ecn,
    };
    if merged != ecn {
        set_ecn(ip, merged);
    }
    ip.get_mut(..bytes).ok_or(Cause::Malformed)
}

/// Puts an IP header before what came in transport mode. `None` if there is none that fits.
fn with_header<'a>(
    data: &'a mut Buffer,
    packet: &Packet,
    bytes: usize,
    next_header: u8,
) -> Option<&'a mut [u8]> {
    let Outer { source, destination, ecn } = packet.outer;
    let header_bytes = if source.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES };
    let mut text_at = packet.text_at;
    if text_at < header_bytes {
        edit(data, |own| {
            own.resize(own.len().max(header_bytes + bytes), 0);
            own.copy_within(text_at..text_at + bytes, header_bytes);
        });
        text_at = header_bytes;
    }
    let ip = data.get_mut(text_at - header_bytes..text_at + bytes)?;
    let (header, payload) = ip.split_at_mut_checked(header_bytes)?;
    write_header(header, (source, destination), (next_header, payload.len()), ecn)?;
    Some(ip)
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("packets", &self.len()).finish_non_exhaustive()
    }
}
