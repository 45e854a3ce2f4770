//! The thread itself: clients are let in, their messages taken in turn, and clients that leave
//! forgotten.

use super::budget::{Share, TooMuch};
use super::guest::Guest;
use super::state::{ENDED, LISTENER, MACHINES, SendAway, Server};
use crate::closing::Line;
use crate::keys::Caller;
use crate::limits::{ACCEPTED_AT_ONCE, HELLO, STRANGERS_MAX, USAGE_SAVE_S};
use crate::machine::{Newcomer, Room};
use crate::pump::{ClientId, Command};
use keyway_ring::Socket;
use keyway_ring::control::{self, Answer, Ask};
use keyway_ring::descriptor::Status;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

impl Server {
    /// Serves until the daemon ends or has handed over.
    pub fn run(&mut self) {
        self.serve_all();
        if self.handed_over.is_none() {
            return;
        }
        for socket in &self.options.machines.sockets {
            // Where it fails, the next start removes it.
            let _ = fs::remove_file(socket);
        }
        // The listener is closed elsewhere, and from now on no daemon listens there.
        let _ = shutdown(&self.listener, Shutdown::Both);
        if let Some(socket) = &self.options.socket {
            // Where it fails, the next start removes it.
            let _ = fs::remove_file(socket);
        }
    }

    fn serve_all(&mut self) {
        while !self.ended.0.load(Ordering::Acquire) {
            let strangers = self.guests.values().any(|guest| guest.name.is_none());
            // Those who do not say who they are leave in time.
            let save = self.options.keys.as_ref().map(|_| USAGE_SAVE_S as i64);
            self.shut_or_open();
            let timeout = if strangers || self.is_shut { Some(1) } else { save };
            let timeout = timeout.map(|tv_sec| rustix::time::Timespec { tv_sec, tv_nsec: 0 });
            let mut events = [const { std::mem::MaybeUninit::uninit() }; 64];
            let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, timeout.as_ref()) else {
                continue;
            };
            for event in events {
                // A message after a handover is for the daemon that took over.
                if self.ended.0.load(Ordering::Acquire) {
                    return;
                }
                match event.data.u64() {
                    LISTENER => self.accept(),
                    ENDED => {}
                    MACHINES => self.let_machines_in(),
                    client => self.serve(client),
                }
            }
            self.drop_the_silent();
            self.save_usage();
        }
    }

    /// Saves how often keys were used, now and then.
    fn save_usage(&mut self) {
        if self.saved.elapsed() >= Duration::from_secs(USAGE_SAVE_S)
            && let Some(changes) = &self.changes
        {
            changes.save_usage();
            self.saved = Instant::now();
        }
    }

    /// Lets in who waits, but no more than so many before others have their turn.
    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            if self.closer.is_full() {
                return;
            }
            let Ok(socket) = accept_with(&self.listener, SocketFlags::CLOEXEC) else { return };
            self.let_in(socket);
        }
    }

    fn let_in(&mut self, socket: OwnedFd) {
        let caller = Caller::of(&socket, &self.options.admission.witness).ok();
        let user = caller.as_ref().map_or(u32::MAX, |caller| caller.uid);
        let admits = |caller: &Caller| self.options.admission.admits(caller);
        let admitted = match caller.filter(admits) {
            Some(caller) => {
                self.make_room(&caller, Share::CONNECTION).map(|()| caller).map_err(Answer::from)
            }
            None => {
                let why = "this user and program are not among the daemon's clients";
                Err(Answer::refused(Status::Unsupported, why))
            }
        };
        let caller = match admitted {
            Ok(caller) => caller,
            Err(why) => {
                self.turned_away.increment();
                let last_words = control::encode(&why).ok();
                return self.closer.turn_away(Socket::from_fd(socket), user, last_words);
            }
        };
        self.add(Socket::from_fd(socket), caller, None);
    }

    fn add(&mut self, socket: Socket, caller: Caller, room: Option<Arc<Room>>) {
        let id = self.next;
        let line = Line::new(socket, caller.uid, &self.closer);
        if epoll::add(&self.epoll, &line, EventData::new_u64(id), EventFlags::IN).is_err() {
            return;
        }
        self.next += 1;
        self.guests.insert(id, Guest::new(line, caller, room));
    }

    /// Lets virtual machines in whose hypervisors have come.
    pub fn let_machines_in(&mut self) {
        self.newcomers.alarm.take();
        while let Ok(Newcomer { socket, caller, room }) = self.newcomers.all.try_recv() {
            let share = room.as_ref().map_or(Share::CONNECTION, |_| Share::MACHINE);
            match self.make_room(&caller, share) {
                Ok(()) => self.add(socket, caller, room),
                Err(why) => {
                    self.turned_away.increment();
                    if let Ok(words) = control::encode(&Answer::from(why)) {
                        let _ = socket.try_send(&words, &[]);
                    }
                }
            }
        }
    }

    /// Lets no client in while too much waits to be closed.
    fn shut_or_open(&mut self) {
        let is_full = self.closer.is_full();
        if is_full != self.is_shut {
            let events = if is_full { EventFlags::empty() } else { EventFlags::IN };
            let data = EventData::new_u64(LISTENER);
            if epoll::modify(&self.epoll, &self.listener, data, events).is_ok() {
                self.is_shut = is_full;
            }
        }
    }

    /// Makes room for a connection, if need be at the cost of those who have not said who they are.
    ///
    /// # Errors
    /// Says what there is too much of.
    fn make_room(&mut self, caller: &Caller, more: Share) -> Result<(), TooMuch> {
        let strangers = self.guests.values().filter(|guest| guest.name.is_none()).count();
        if strangers >= STRANGERS_MAX {
            self.evict(None);
        }
        let administers = self.options.admission.administers(caller);
        loop {
            let room = self.may_have(caller.uid, administers, more);
            let Err(why) = room else { return Ok(()) };
            if !self.evict(why.user) {
                return Err(why);
            }
        }
    }

    /// Sends away the oldest that has not said who it is, of this user if one is given.
    fn evict(&mut self, user: Option<u32>) -> bool {
        let Some(oldest) = self.oldest_stranger(user) else { return false };
        self.evicted.increment();
        self.remove(oldest);
        true
    }

    /// Answers one message.
    fn serve(&mut self, id: ClientId) {
        let Some(guest) = self.guests.get(&id) else { return };
        // One that brings files is left where it is: to drop them could wait.
        let answered = match guest.socket.try_receive_plain() {
            Ok(Some(message)) => self.answer(id, message),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Ok(None) | Err(_) => Err(SendAway),
        };
        if answered.is_err() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: ClientId) {
        let Some(guest) = self.guests.remove(&id) else { return };
        if guest.name.is_some() {
            self.gone.increment();
            if let Some(pump) = self.pumps.get(guest.pump) {
                pump.command(Command::Remove(id));
            }
        }
    }

    fn drop_the_silent(&mut self) {
        let silent = |guest: &Guest| guest.name.is_none() && guest.since.elapsed() > HELLO;
        let silent: Vec<_> =
            self.guests.iter().filter(|(_, guest)| silent(guest)).map(|(id, _)| *id).collect();
        silent.into_iter().for_each(|id| self.remove(id));
    }

    fn answer(&mut self, id: ClientId, bytes: Zeroizing<Vec<u8>>) -> Result<(), SendAway> {
        let ask = control::decode_ask(&bytes).map_err(|_| SendAway)?;
        drop(bytes);
        let is_known = self.guests.get(&id).is_some_and(|guest| guest.name.is_some());
        if !is_known && !matches!(ask, Ask::Hello { .. }) {
            return Err(SendAway);
        }
        let answer = match ask {
            Ask::Hello { version, name } => self.hello(id, version, name)?,
            Ask::Queue { entries } => return self.queue(id, entries),
            Ask::Region { bytes } => return self.region(id, bytes),
            Ask::Open { steps } => self.open(id, steps)?,
            Ask::CloseQueue { queue } => return self.close_queue(id, queue),
            Ask::Forget { region } => return self.forget(id, region),
            Ask::Close { session } => return self.close(id, session),
            Ask::Status => self.status(id)?,
            Ask::Ping => Answer::Done,
            Ask::TakeOver => return self.hand_over(id),
            Ask::Keys(ask) => return self.manage(id, ask),
            Ask::Export { session, under } => self.export(id, session, &under)?,
            Ask::Import { under, sealed } => self.import(id, &under, &sealed)?,
            Ask::Usable { name } => self.usable(id, &name)?,
            Ask::Granted { after } => self.granted(id, &after)?,
            Ask::NameSpaces => self.name_spaces(id)?,
            Ask::Certificates { name } => self.certificates(id, &name)?,
        };
        self.reply(id, &answer, &[])
    }
}
