//! How a running daemon hands everything to one that takes its place: the socket it listens at, its
//! clients' connections, rings and memory, and their sessions.
//!
//! The new daemon connects to the old one's socket like a client and asks to [take
//! over](keyway_ring::control::Ask::TakeOver), twice: a new daemon that is stopped after the first
//! time holds up no client. Changes of keys that are under way come first; until then the new
//! daemon is told to ask again. The old one's pumps finish what they have taken, but for slow
//! requests, and take no more. Then it sends a [`Part`] at a time, each with its files, and goes on
//! if the new one does not say in the end that it has them all. Clients notice nothing but a pause:
//! what they submit meanwhile waits in their rings, which stay where they are.
//!
//! Keys go over the socket too. So it only goes to a process of the daemon's own user, or root's.

use crate::machine::{Position, SlotState};
use keyway_ring::control::{self, Answer, Step};
use keyway_ring::descriptor::{DESCRIPTOR_WORDS, RegionHandle, SessionHandle};
use keyway_ring::{Received, Socket};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A part of what is handed over, in this order.
#[derive(Serialize, Deserialize)]
pub enum Part {
    /// The first one, with the listening socket.
    Daemon {
        /// Number of the next client.
        next: u64,
        /// When it started, in seconds since 1970.
        since: u64,
        /// Whether the socket's path is the daemon's to remove in the end.
        removes_socket: bool,
    },
    /// A virtual machine that may come, with the socket where its hypervisor connects. If it is there, then also with
    /// the connection of its hypervisor, its memory and its connection to the control thread.
    Machine {
        /// Its name.
        name: String,
        /// How far it is, if it is there.
        position: Option<Position>,
    },
    /// The vhost-user device of a virtual machine, with the link to its process.
    Device {
        /// The machine's name.
        name: String,
    },
    /// Some bells of the machine before.
    Bells,
    /// Something of what a process of the machine before has.
    Slot {
        /// The process' slot.
        slot: usize,
        /// What it has.
        state: SlotState,
    },
    /// A client, with its connection.
    Client {
        /// Its number.
        number: u64,
        /// The client's name for itself; nothing before it has said so.
        name: Option<String>,
        /// Its process when it connected.
        pid: u32,
        /// Its user.
        uid: u32,
        /// Its group.
        gid: u32,
        /// The others.
        groups: Vec<u32>,
        /// Its program, if that was seen.
        executable: Option<String>,
        /// The virtual machine that it is.
        vm: Option<String>,
        /// Whether its memory is that of the machine.
        has_room: bool,
        /// Number of its next queue pair.
        next_queue: u32,
        /// Generation of its last region.
        region_generation: u16,
    },
    /// A queue pair of the client before, with its memory and the doorbell. It comes after all that
    /// its requests may name.
    Queue {
        /// Its number.
        number: u32,
        /// Entries of each ring.
        entries: u32,
        /// Requests that were taken.
        taken: u64,
        /// Requests that were answered.
        answered: u64,
    },
    /// A region of the client before, with its memory.
    Region(RegionHandle),
    /// That of a virtual machine, which lies in the machine's memory.
    RegionAt {
        /// The client's handle for it.
        handle: RegionHandle,
        /// Where it begins.
        at: usize,
        /// How long it is.
        bytes: usize,
    },
    /// A [queue pair](Part::Queue) of a virtual machine, which lies in the machine's memory.
    QueueAt {
        /// Its number.
        number: u32,
        /// Entries of each ring.
        entries: u32,
        /// Requests that were taken.
        taken: u64,
        /// Requests that were answered.
        answered: u64,
        /// Where it begins.
        at: usize,
        /// How long it is.
        bytes: usize,
        /// Its bell, as the hypervisor's peer.
        bell: u32,
    },
    /// A session of the client before.
    Session {
        /// The client's handle for it.
        handle: SessionHandle,
        /// The steps that it was opened with.
        steps: Vec<Step>,
        /// Whether its key was made by the daemon.
        is_generated: bool,
    },
    /// That was all. The new daemon answers with [`Part::Taken`].
    End,
    /// The new daemon has it all, and serves.
    Taken,
    /// A slow request of the queue pair before that was taken and not answered: the new daemon does it again.
    UnderWay([u64; DESCRIPTOR_WORDS]),
    /// The new daemon is at work: it says so every [`ALIVE_EVERY`](crate::limits::ALIVE_EVERY).
    Alive,
}

/// Sends a part.
///
/// # Errors
/// The system's.
pub fn send(socket: &Socket, part: &Part, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = control::encode(part).map_err(|_| io::ErrorKind::InvalidData)?;
    socket.send(&bytes, files)
}

/// Receives a part.
///
/// # Errors
/// The system's; `UnexpectedEof` at the end, `PermissionDenied` for a refusal, `InvalidData` for
/// something else.
pub fn receive(socket: &Socket) -> io::Result<(Part, Vec<OwnedFd>)> {
    let Received { bytes, fds } = socket.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if let Ok(Answer::Refused { why, .. }) = control::decode_answer(&bytes) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let part = control::decode(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok((part, fds))
}
