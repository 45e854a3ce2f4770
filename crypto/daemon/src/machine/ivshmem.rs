//! The protocol in which a hypervisor gets its memory and its bells (QEMU, docs/specs/ivshmem-spec.txt: "Inter-VM shared
//! memory server"): messages of one 64-bit number each, little-endian, some with a file. The hypervisor says nothing.

use super::room::Room;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

/// The protocol's version.
const VERSION: i64 = 0;
/// A version that no hypervisor speaks.
const NO_VERSION: i64 = i64::MAX;
/// The peer that the hypervisor is.
const HYPERVISOR: i64 = 0;
/// The message that brings the memory.
const MEMORY: i64 = -1;

/// Sends a hypervisor away, in the only words that it understands: QEMU 7.2 waits for ever if the connection just ends.
pub fn refuse(socket: impl AsFd) {
    let _ = say(socket.as_fd(), NO_VERSION, None);
}

/// Says all there is to say, without waiting.
///
/// # Errors
/// The system's; `WouldBlock` if the other side does not read.
pub fn greet(socket: impl AsFd, room: &Room) -> io::Result<()> {
    let socket = socket.as_fd();
    say(socket, VERSION, None)?;
    say(socket, HYPERVISOR, None)?;
    say(socket, MEMORY, Some(room.arena.memory().file()?))?;
    for (place, bell) in room.bells.iter().enumerate() {
        say(socket, Room::peer(place).into(), Some(bell.as_fd()))?;
    }
    Ok(())
}

fn say(socket: BorrowedFd<'_>, number: i64, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.into_iter().collect();
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    let bytes = number.to_le_bytes();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, flags)? {
        8 => Ok(()),
        _ => Err(io::ErrorKind::WouldBlock.into()),
    }
}
