//! The loop: waits for a front end, its messages and its guest's requests.

use crate::connection::{Connection, Ended};
use crate::limits::Limits;
use keyway_engine::Engine;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::process::{PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const LISTENER: u64 = 0;
const END: u64 = 1;
const SOCKET: u64 = 2;
const PEER: u64 = 3;
const FIRST_RING: u64 = 4;
const EVENTS_AT_ONCE: usize = 8;

/// Serves one virtual machine at a time at this listening Unix stream socket, until `end` is readable. While a front end
/// is connected, others are let in and sent away. The sessions of a connection are gone with it.
///
/// It sleeps while there is nothing to do. It is meant for a process of its own: a front end that cuts a file of the
/// guest's memory raises SIGBUS here, and one that fills an event at the wrong moment, or gives a file whose file system
/// does not answer, stops this thread. That costs its own machine only, and the process' parent starts it again.
/// SIGPIPE has to be ignored, as it is by programs of Rust. `report` gets a line for each ring that its driver broke and
/// for each message that was refused, at most 16 a connection, and one for a connection that this device has closed.
///
/// # Errors
/// If the listener or `end` cannot be waited for, or no more connections can be taken.
pub fn serve(
    listener: OwnedFd,
    end: BorrowedFd<'_>,
    engine: &Engine,
    limits: Limits,
    report: &dyn Fn(&str),
) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&listener)?;
    rustix::fs::fcntl_setfl(&listener, flags | OFlags::NONBLOCK)?;
    let waiting = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&waiting, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&waiting, end, EventData::new_u64(END), EventFlags::IN)?;
    // With the process of the front end. One that hands over its own end of the connection, in the place of any other
    // file, is seen to end by nothing else.
    let mut connection: Option<(Connection<'_>, Option<OwnedFd>)> = None;
    let mut is_busy = false;
    loop {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events =
            [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS_AT_ONCE];
        let count = match epoll::wait(&waiting, &mut events, is_busy.then_some(&now)) {
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(why) => return Err(why.into()),
        };
        for event in &events[..count] {
            match event.data.u64() {
                LISTENER => {
                    let Some(socket) = accept(&listener)? else { continue };
                    // One that is gone may have its end behind its messages.
                    if connection.as_ref().is_none_or(|(it, _)| it.is_closed()) {
                        let files = (waiting.as_fd(), socket);
                        let numbers = (SOCKET, FIRST_RING);
                        let peer = process(&files.1);
                        if let Some(peer) = &peer {
                            epoll::add(&waiting, peer, EventData::new_u64(PEER), EventFlags::IN)?;
                        }
                        let next = Connection::new(files, numbers, engine, limits, report)?;
                        connection = Some((next, peer));
                    }
                }
                END => return Ok(()),
                PEER => {
                    connection = None;
                    report("the front end's connection is closed: its process has ended");
                }
                // A connection that ended before may have left events.
                SOCKET => {
                    if let Some(Err(Ended(why))) = connection.as_mut().map(|(it, _)| it.receive()) {
                        connection = None;
                        if let Some(why) = why {
                            report(&format!("the front end's connection is closed: {why}"));
                        }
                    }
                }
                ring => {
                    if let Some((connection, _)) = &mut connection {
                        connection.kicked(ring);
                    }
                }
            }
        }
        is_busy = connection.as_mut().is_some_and(|(it, _)| it.work());
    }
}

/// The process at the other end; none if it is in another namespace, or gone.
fn process(socket: &OwnedFd) -> Option<OwnedFd> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    pidfd_open(peer.pid, PidfdFlags::empty()).ok()
}

/// A connection, unless its front end is gone already.
fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(why) => Err(why.into()),
    }
}
