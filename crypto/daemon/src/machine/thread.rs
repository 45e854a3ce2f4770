//! The thread of a virtual machine: it greets the machine's hypervisor, and carries the messages of its processes.

use super::ivshmem;
use super::relay::{Over, Relay};
use super::room::Room;
use crate::closing::{Closer, Line};
use crate::keys::{Caller, Unseen};
use crate::limits::{MACHINE_ACCEPT_PAUSE, MACHINE_PAUSE, MACHINE_SAID, MACHINE_UID};
use crate::options::Report;
use crate::vital::vital;
use keyway_ring::mailbox::MailboxEnd;
use keyway_ring::{Alarm, Peer, Socket};
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A machine that has come, as a client for the control thread.
pub struct Newcomer {
    /// The control thread's end of its connection.
    pub socket: Socket,
    pub caller: Caller,
    /// The machine's memory, if that is the way to it.
    pub room: Option<Arc<Room>>,
}

/// How the thread tells the control thread of machines that come.
#[derive(Clone)]
pub struct Door {
    pub newcomers: Sender<Newcomer>,
    pub alarm: Arc<Alarm>,
    pub closer: Closer,
    pub report: Report,
}

/// The control thread's handle on a machine. When it is dropped, the machine is served no more.
pub struct Machine {
    pub name: String,
    end: Arc<(AtomicBool, Alarm)>,
    thread: Option<JoinHandle<Stopped>>,
}

/// A machine whose thread has stopped.
pub struct Stopped {
    pub listener: OwnedFd,
    pub serving: Option<Serving>,
}

/// A machine that is there.
pub struct Serving {
    /// The connection of its hypervisor.
    pub hypervisor: Line,
    pub room: Arc<Room>,
    pub relay: Relay,
}

const END: u64 = 0;
const LISTENER: u64 = 1;
const HYPERVISOR: u64 = 2;
const MAILBOX: u64 = 3;
const CONTROL: u64 = 4;

/// The caller that a machine is, of so many that the daemon has.
pub fn caller(name: &str, number: usize, pid: u32) -> Caller {
    let uid = MACHINE_UID + number as u32;
    let (executable, vm) = (Err(Unseen::Machine), Some(name.to_owned()));
    Caller { uid, gid: uid, groups: Vec::new(), pid, executable, vm }
}

impl Machine {
    /// Serves a machine by this name, the so-manyth of the daemon's: at a listening socket, and where another daemon has
    /// been if that has handed something over.
    ///
    /// # Errors
    /// The system's.
    pub fn start(name: &str, number: usize, from: Stopped, door: Door) -> io::Result<Machine> {
        let end = Arc::new((AtomicBool::new(false), Alarm::new()?));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &end.1, EventData::new_u64(END), EventFlags::IN)?;
        epoll::add(&epoll, &from.listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let Stopped { listener, serving } = from;
        let mut thread = Thread {
            name: name.to_owned(),
            number,
            door,
            epoll,
            end: end.clone(),
            listener,
            serving: None,
            said: None,
        };
        if let Some(serving) = serving {
            thread.watch(&serving)?;
            thread.serving = Some(serving);
        }
        let spawned = thread::Builder::new().name(format!("vm-{number}"));
        let spawned = spawned.spawn(move || {
            vital(|| thread.run());
            thread.stop()
        })?;
        Ok(Machine { name: name.to_owned(), end, thread: Some(spawned) })
    }

    /// Stops its thread where it is, to be handed over or started again. `None` if it has stopped.
    pub fn stop(mut self) -> Option<Stopped> {
        self.end()
    }

    fn end(&mut self) -> Option<Stopped> {
        let thread = self.thread.take()?;
        self.end.0.store(true, Ordering::Release);
        self.end.1.ring();
        thread.join().ok()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(Stopped { serving: Some(serving), .. }) = self.end() {
            serving.relay.close();
        }
    }
}

struct Thread {
    name: String,
    number: usize,
    door: Door,
    epoll: OwnedFd,
    end: Arc<(AtomicBool, Alarm)>,
    listener: OwnedFd,
    serving: Option<Serving>,
    /// When something was said last.
    said: Option<Instant>,
}

impl Thread {
    fn run(&mut self) {
        // Something may have come while no thread was there.
        let mut has_more = true;
        while !self.end.0.load(Ordering::Acquire) {
            let mut events = [const { MaybeUninit::uninit() }; 8];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let waited = epoll::wait(&self.epoll, &mut events, has_more.then_some(&now));
            let Ok((events, _)) = waited else { continue };
            let mut has_rung = std::mem::take(&mut has_more);
            for event in events {
                let flags = event.flags;
                match event.data.u64() {
                    END => {}
                    LISTENER => self.accept(),
                    CONTROL | MAILBOX if !flags.contains(EventFlags::RDHUP) => has_rung = true,
                    // The hypervisor has gone, or the control thread has sent the machine away.
                    _ => self.leave(None),
                }
            }
            if has_rung {
                has_more = self.carry();
                // A machine that rings without pause has one processor of its own busy, and none of the host's.
                thread::sleep(MACHINE_PAUSE);
            }
        }
    }

    fn stop(self) -> Stopped {
        // The files may be another daemon's to wait for.
        Stopped { listener: self.listener, serving: self.serving }
    }

    fn accept(&mut self) {
        let socket = match accept_with(&self.listener, SocketFlags::CLOEXEC) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
            // There are too many files: it waits meanwhile, and is told of again.
            Err(_) => return thread::sleep(MACHINE_ACCEPT_PAUSE),
        };
        let user = Peer::of(&socket).map_or(u32::MAX, |peer| peer.uid);
        let line = Line::new(Socket::from_fd(socket), user, &self.door.closer);
        if self.serving.is_some() {
            ivshmem::refuse(&line);
            return self
                .say("another hypervisor has connected, and is sent away: the machine is in use");
        }
        match self.begin(line) {
            Ok(serving) => self.serving = Some(serving),
            Err(why) => self.say(&format!("its hypervisor cannot be served: {why}")),
        }
    }

    /// Tells the administrator something, and the next thing only after a while: a process that connects again and again
    /// fills no log.
    fn say(&mut self, what: &str) {
        let now = Instant::now();
        if self.said.is_none_or(|before| now.duration_since(before) >= MACHINE_SAID) {
            self.said = Some(now);
            (self.door.report)(&format!("virtual machine {}: {what}", self.name));
        }
    }

    fn begin(&self, hypervisor: Line) -> io::Result<Serving> {
        let peer = Peer::of(&hypervisor)?;
        let room = Room::new()?;
        let mailbox = MailboxEnd::open(room.arena.memory(), Room::peer(0));
        let mailbox = mailbox.ok_or(io::ErrorKind::OutOfMemory)?;
        ivshmem::greet(&hypervisor, &room)?;
        let (socket, its) = Socket::pair()?;
        let caller = caller(&self.name, self.number, peer.pid);
        let newcomer = Newcomer { socket, caller, room: Some(room.clone()) };
        let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
        self.door.newcomers.send(newcomer).map_err(gone)?;
        self.door.alarm.ring();
        let relay = Relay::begin(mailbox, its, &self.name);
        let relay = relay.map_err(|_| io::Error::from(io::ErrorKind::NotConnected))?;
        let serving = Serving { hypervisor, room, relay };
        self.watch(&serving)?;
        Ok(serving)
    }

    fn watch(&self, serving: &Serving) -> io::Result<()> {
        // Nothing is read from a hypervisor, which says nothing.
        let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ET;
        epoll::add(&self.epoll, &serving.hypervisor, EventData::new_u64(HYPERVISOR), ends)?;
        let rings = EventFlags::IN | EventFlags::ET;
        if let Some(bell) = serving.room.bells.first() {
            epoll::add(&self.epoll, bell, EventData::new_u64(MAILBOX), rings)?;
        }
        let both = rings | EventFlags::OUT | EventFlags::RDHUP;
        epoll::add(&self.epoll, serving.relay.socket(), EventData::new_u64(CONTROL), both)?;
        Ok(())
    }

    /// Carries messages, and says whether there may be more.
    fn carry(&mut self) -> bool {
        let Some(serving) = &mut self.serving else { return false };
        serving.relay.work().unwrap_or_else(|Over(why)| {
            self.leave(why);
            false
        })
    }

    /// The machine is gone, or the control thread has sent it away.
    fn leave(&mut self, why: Option<String>) {
        let Some(serving) = self.serving.take() else { return };
        serving.relay.close();
        if let Some(bell) = serving.room.bells.first() {
            let _ = epoll::delete(&self.epoll, bell);
        }
        let _ = epoll::delete(&self.epoll, &serving.hypervisor);
        if let Some(why) = why {
            self.say(&format!("it is not served: {why}"));
        }
    }
}
