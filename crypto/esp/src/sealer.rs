//! Seals packets in batches.

use crate::cause::Cause;
use crate::dispatch::{Dispatch, Dispatcher};
use crate::groups::Groups;
use crate::inner_packet::{InnerPacket, protocol};
use crate::lifetime::Time;
use crate::limits::{BATCH_PACKETS_MAX, SEALED_BYTES_MAX};
use crate::outbound_sa::OutboundSa;
use crate::parameters::{Association, Mode};
use crate::suite::HEADER_BYTES;
use crate::tasks::{HIGH_BYTES, Tasks, refill, set_aad, set_nonce, set_parts};
use crate::trailer;
use keyway_engine::{Direction, Engine, Operation, Task};
use std::fmt;
use std::sync::Arc;

/// Bytes in front of the text with an AEAD.
const AEAD_FRONT_BYTES: usize = HEADER_BYTES + 8;
/// Length of the initialisation vector of CBC, in bytes.
const CBC_IV_BYTES: usize = 16;

/// Seals packets of any associations in batches. It belongs to one thread; its buffers and tasks are used again.
pub struct Sealer {
    engine: Engine,
    dispatcher: Dispatcher,
    tasks: Tasks,
    groups: Groups<OutboundSa>,
    packets: Vec<Packet>,
    /// The sizes of the packets of one association.
    sizes: Vec<usize>,
    /// Initialisation vectors of CBC, which nothing may foretell.
    ivs: Vec<u8>,
}

/// A packet of the batch.
struct Packet {
    user: u64,
    ecn: u8,
    inner_bytes: usize,
    /// Header and initialisation vector, where these are apart from the text.
    front: [u8; AEAD_FRONT_BYTES],
    /// `None` while the engine has it.
    task: Option<Box<Task>>,
    outcome: Result<(), Cause>,
}

/// A sealed packet.
#[derive(Clone, Copy, Debug)]
pub struct Sealed<'a> {
    /// The congestion bits for the outer header: those of the inner one (RFC 6040 § 4.1).
    pub ecn: u8,
    /// One after the other they are the ESP packet, from the SPI to the ICV.
    pub parts: [&'a [u8]; 3],
}

impl Sealed<'_> {
    /// Length of the ESP packet, in bytes.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// Whether it has no bytes, which no ESP packet is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts the ESP packet behind what is there.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        self.parts.iter().for_each(|part| out.extend_from_slice(part));
    }
}

impl Sealer {
    /// A sealer whose requests reach the engine in this way.
    pub fn new(engine: &Engine, dispatch: Dispatch) -> Sealer {
        Sealer {
            engine: engine.clone(),
            dispatcher: Dispatcher::new(engine, dispatch),
            tasks: Tasks::new(Direction::Protect),
            groups: Groups::new(),
            packets: Vec::new(),
            sizes: Vec::new(),
            ivs: Vec::new(),
        }
    }

    /// Copies a packet into the batch. `user` comes back with it.
    ///
    /// # Errors
    /// [`Cause::QueueFull`] if the batch has [`BATCH_PACKETS_MAX`] packets, [`Cause::TooLong`], or [`Cause::Transport`]
    /// if the association's mode cannot carry it.
    pub fn push(
        &mut self,
        sa: &Arc<OutboundSa>,
        inner: &InnerPacket<'_>,
        user: u64,
    ) -> Result<(), Cause> {
        if self.packets.len() >= BATCH_PACKETS_MAX {
            return Err(Cause::QueueFull);
        }
        let association = sa.association();
        let (next_header, payload) = match association.mode {
            Mode::Tunnel if inner.source().is_ipv4() => (protocol::IPV4, inner.bytes()),
            Mode::Tunnel => (protocol::IPV6, inner.bytes()),
            Mode::Transport => inner.transport().ok_or(Cause::Transport)?,
        };
        if association.suite.sealed_bytes(payload.len()) > SEALED_BYTES_MAX {
            return Err(Cause::TooLong);
        }
        let mut task = self.tasks.take(association);
        fill(&mut task.operation, association, payload, next_header);
        if self.packets.is_empty() {
            // They are left of a batch that ended in a panic of the caller's.
            self.groups.clear();
        }
        self.groups.push(sa);
        self.packets.push(Packet {
            user,
            ecn: inner.ecn(),
            inner_bytes: payload.len(),
            front: [0; AEAD_FRONT_BYTES],
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

    /// Numbers and seals the batch, in one call of the engine, and hands it out in the order of pushing. Those of one
    /// association have ascending numbers in that order. A number that a packet has taken is not used again, whatever
    /// becomes of the packet.
    pub fn seal(&mut self, now: Time, mut each: impl FnMut(u64, Result<Sealed<'_>, Cause>)) {
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
        for (number, packet) in self.packets.drain(..).enumerate() {
            let association = self.groups.of_packet(number).association();
            let Some(task) = packet.task else {
                each(packet.user, Err(Cause::Engine));
                continue;
            };
            let sealed = packet.outcome.map(|()| Sealed {
                ecn: packet.ecn,
                parts: parts(&task.operation, &packet.front, association),
            });
            each(packet.user, sealed);
            self.tasks.put(association, task);
        }
        self.groups.clear();
    }

    /// Gives the packets of one association their numbers, and the engine their tasks.
    fn submit(&mut self, group: usize, now: Time) {
        let sa = self.groups.association(group);
        let association = sa.association();
        self.sizes.clear();
        self.sizes.extend(self.groups.packets(group).map(|at| self.packets[at].inner_bytes));
        let reserved = sa.reserve(&self.sizes, now);
        self.ivs.clear();
        if !association.suite.is_aead() {
            self.ivs.resize(CBC_IV_BYTES * reserved.packets, 0);
            if let Err(error) = self.engine.random(&mut self.ivs) {
                let failed = Err(Cause::from(error));
                self.groups.packets(group).for_each(|at| self.packets[at].outcome = failed);
                return;
            }
        }
        let mut ivs = self.ivs.chunks_exact(CBC_IV_BYTES);
        for (index, at) in self.groups.packets(group).enumerate() {
            let packet = &mut self.packets[at];
            if index >= reserved.packets {
                packet.outcome = Err(reserved.otherwise);
                continue;
            }
            let number = reserved.first + index as u64;
            let Some(mut task) = packet.task.take() else { continue };
            task.user = at as u64;
            let iv = sa.iv(number);
            match &mut task.operation {
                Operation::Seal { nonce, aad, .. } => {
                    set_nonce(nonce, association, &iv);
                    set_aad(aad, association, number);
                    write_header(&mut packet.front, association, number, &iv);
                }
                Operation::Chain { data, length, .. } => {
                    write_header(data, association, number, ivs.next().unwrap_or_default());
                    let high_at = *length - association.suite.icv_bytes() - HIGH_BYTES;
                    if association.esn {
                        write(data, high_at, &((number >> 32) as u32).to_be_bytes());
                    }
                }
                _ => {}
            }
            self.dispatcher.add(&association.session, task);
        }
    }

    /// Lets go of the associations that it has seen, and of the buffers: the keys of those that are gone elsewhere are
    /// wiped. For a thread that goes on with others.
    pub fn release(&mut self) {
        self.tasks.clear();
    }
}

/// Puts text, padding and trailer into a task, with room for all else.
fn fill(operation: &mut Operation, association: &Association, payload: &[u8], next_header: u8) {
    let suite = association.suite;
    match operation {
        Operation::Seal { data, .. } => {
            refill(data, suite.padded_bytes(payload.len()), |data| {
                data.extend_from_slice(payload);
                trailer::append(data, suite, payload.len(), next_header);
            });
        }
        Operation::Chain { data, length, parts, .. } => {
            let bytes = suite.sealed_bytes(payload.len());
            refill(data, bytes + HIGH_BYTES, |data| {
                data.resize(suite.front_bytes(), 0);
                data.extend_from_slice(payload);
                trailer::append(data, suite, payload.len(), next_header);
                data.resize(bytes + if association.esn { HIGH_BYTES } else { 0 }, 0);
                *length = data.len();
            });
            set_parts(parts, association, suite.padded_bytes(payload.len()));
        }
        _ => {}
    }
}

/// Writes SPI, number and initialisation vector to the front.
fn write_header(packet: &mut [u8], association: &Association, number: u64, iv: &[u8]) {
    write(packet, 0, &association.spi.to_be_bytes());
    write(packet, 4, &(number as u32).to_be_bytes());
    write(packet, HEADER_BYTES, iv);
}

fn write(packet: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = packet.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// The parts of a packet that was sealed.
fn parts<'a>(
    operation: &'a Operation,
    front: &'a [u8],
    association: &Association,
) -> [&'a [u8]; 3] {
    match operation {
        Operation::Seal { data, tag, .. } => [front, data, tag],
        Operation::Chain { data, .. } => {
            // The upper half of the number is authenticated and not sent.
            let icv_at = data.len().saturating_sub(association.suite.icv_bytes());
            let (rest, icv) = data.split_at(icv_at);
            let unsent = if association.esn { HIGH_BYTES } else { 0 };
            [rest.get(..rest.len().saturating_sub(unsent)).unwrap_or_default(), icv, &[]]
        }
        _ => [&[]; 3],
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("packets", &self.len()).finish_non_exhaustive()
    }
}
