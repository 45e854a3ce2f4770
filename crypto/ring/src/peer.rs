//! The process at the other end of a connection, as the kernel noted it when it connected.
//!
//! A socket keeps these credentials when it is inherited or handed on: they name the process that
//! connected, and not one that uses the socket later.

use rustix::net::sockopt::socket_peercred;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A process that has connected.
#[derive(Debug)]
pub struct Peer {
    /// Its number when it connected. A later process may have it by now.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// The groups that it had beside that.
    pub groups: Vec<u32>,
    /// The process itself, whatever becomes of its number (a pidfd); `None` if the system, older than
    /// Linux 6.5, does not give it, or the process had gone.
    pub process: Option<OwnedFd>,
}

impl Peer {
    /// The process that has connected to this socket, or made it as one of a pair.
    ///
    /// # Errors
    /// The system's.
    pub fn of(socket: impl AsFd) -> io::Result<Peer> {
        let socket = socket.as_fd();
        let credentials = socket_peercred(socket)?;
        Ok(Peer {
            pid: credentials.pid.as_raw_nonzero().get() as u32,
            uid: credentials.uid.as_raw(),
            gid: credentials.gid.as_raw(),
            groups: groups(socket)?,
            process: process(socket).ok(),
        })
    }
}

/// Most groups of a process: Linux' `NGROUPS_MAX`.
const GROUPS_MAX: usize = 65_536;

fn groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut room = 32;
    loop {
        let mut groups = vec![0; room];
        match option(socket, libc::SO_PEERGROUPS, &mut groups) {
            Ok(count) => {
                groups.truncate(count);
                return Ok(groups);
            }
            Err(why) if why.raw_os_error() == Some(libc::ERANGE) && room < GROUPS_MAX => {
                room = GROUPS_MAX;
            }
            Err(why) => return Err(why),
        }
    }
}

fn process(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut number = [u32::MAX];
    option(socket, libc::SO_PEERPIDFD, &mut number)?;
    let number = number[0] as i32;
    if number < 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    // SAFETY: the kernel has just opened it for this call, and no other code knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Reads an option of the socket that is some words, and says how many they are.
fn option(socket: BorrowedFd<'_>, name: i32, words: &mut [u32]) -> io::Result<usize> {
    let word = size_of::<u32>();
    let mut bytes = std::mem::size_of_val(words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes, which is what `words` has, and their number.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            words.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if result == 0 {
        Ok((bytes as usize / word).min(words.len()))
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Socket;

    #[test]
    fn it_is_this_process() {
        let (one, _other) = Socket::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.uid, rustix::process::getuid().as_raw());
        let own: Vec<u32> =
            rustix::process::getgroups().unwrap().iter().map(|group| group.as_raw()).collect();
        assert_eq!(peer.groups, own);
        assert!(peer.process.is_some());
    }
}
