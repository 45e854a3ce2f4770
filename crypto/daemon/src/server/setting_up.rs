//! A client's requests before it can submit work: to be known, queue pairs, memory.

use super::budget::Share;
use super::guest::QueuePair;
use super::state::{SendAway, Server};
use crate::limits::{CLIENT_NAME_BYTES_MAX, STATUS_CLIENTS_MAX};
use crate::pump::{ClientId, Command};
use keyway_engine::Algorithm;
use keyway_ring::control::{Answer, DaemonStatus, VERSION};
use keyway_ring::descriptor::{RegionHandle, Status};
use keyway_ring::{Doorbell, SharedMemory};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Whether a client may call itself so: a virtual machine by its name, with more behind a space, and no other client.
fn fits(name: &str, vm: Option<&str>) -> bool {
    match (name.strip_prefix("vm:"), vm) {
        (None, None) => true,
        (Some(name), Some(vm)) => name.split(' ').next() == Some(vm),
        _ => false,
    }
}

impl Server {
    pub fn hello(&mut self, id: ClientId, version: u32, name: String) -> Result<Answer, SendAway> {
        let printable = |name: &str| name.chars().all(|c| !c.is_control());
        if version != VERSION {
            let text = format!("the daemon speaks version {VERSION} and not {version}");
            return Ok(Answer::refused(Status::Unsupported, text));
        }
        let guest = self.guest(id)?;
        if guest.name.is_some() || name.len() > CLIENT_NAME_BYTES_MAX || !printable(&name) {
            return Err(SendAway);
        }
        if !fits(&name, guest.caller.vm.as_deref()) {
            let why = "a name that begins with vm: is that of a virtual machine";
            return Ok(Answer::refused(Status::Unsupported, why));
        }
        self.admit(id, name)?;
        let does = |algorithm: &&Algorithm| self.engine.offers(&[**algorithm]);
        let algorithms =
            Algorithm::ALL.iter().filter(does).map(|it| it.name().to_owned()).collect();
        Ok(Answer::Hello { version: VERSION, algorithms, process: std::process::id() })
    }

    /// Gives a client to the pump that has the fewest.
    pub fn admit(&mut self, id: ClientId, name: String) -> Result<(), SendAway> {
        let loads = (0..self.pumps.len()).map(|pump| {
            (self.guests.values().filter(|it| it.name.is_some() && it.pump == pump).count(), pump)
        });
        let pump = loads.min().map_or(0, |(_, pump)| pump);
        let limits = self.options.limits;
        let caller = &self.guests.get(&id).ok_or(SendAway)?.caller;
        let weight = self.options.weights.of_client(caller);
        let guest = self.guest(id)?;
        (guest.name, guest.pump, guest.weight) = (Some(name), pump, weight);
        let (owner, usage) = (guest.caller.uid, guest.usage.clone());
        self.connected.increment();
        self.command(id, Command::Admit { client: id, owner, limits, weight, usage });
        Ok(())
    }

    pub fn queue(&mut self, id: ClientId, entries: u32) -> Result<(), SendAway> {
        let limits = self.options.limits;
        let guest = self.guest(id)?;
        let refuse = |server: &Self, why: &str| {
            let answer = Answer::refused(Status::Busy, why);
            server.reply(id, &answer, &[])
        };
        if guest.queues.len() >= limits.queues {
            return refuse(self, "a client has no more queue pairs than that");
        }
        if let Err(why) = self.may_add(id, Share::QUEUE) {
            return self.reply(id, &why.into(), &[]);
        }
        let guest = self.guest(id)?;
        let entries = entries.min(limits.queue_entries);
        let made = QueuePair::make(guest.next_queue, entries, guest.room.as_ref());
        let made = made.and_then(|pair| Ok((pair.bell.try_clone()?, pair)));
        let Ok((bell, pair)) = made else {
            return refuse(self, "the system has no room for a queue pair");
        };
        let Some(end) = pair.memory.daemon_end(0, 0) else {
            return refuse(self, "the system has no room for a queue pair");
        };
        let (number, entries) = (pair.number, pair.memory.entries());
        guest.next_queue += 1;
        let (answer, memory) = (pair.answer(), pair.memory.memory().clone());
        let is_told = pair.place.is_some();
        guest.queues.push(pair);
        let bell = Doorbell::from_fd(bell);
        self.command(id, Command::Pair { client: id, number, end, bell, entries });
        if is_told {
            return self.reply(id, &answer, &[]);
        }
        let pair = self.guests.get(&id).and_then(|guest| guest.queues.last()).ok_or(SendAway)?;
        let file = memory.file().map_err(|_| SendAway)?;
        self.reply(id, &answer, &[file, pair.bell.as_fd()])
    }

    pub fn close_queue(&mut self, id: ClientId, queue: u32) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        guest.queues.retain(|known| known.number != queue);
        self.command(id, Command::ClosePair(id, queue));
        Ok(())
    }

    pub fn region(&mut self, id: ClientId, bytes: u64) -> Result<(), SendAway> {
        let limits = self.options.limits;
        let guest = self.guest(id)?;
        let refuse =
            |server: &Self, status, why: &str| server.reply(id, &Answer::refused(status, why), &[]);
        if guest.regions.used() >= limits.regions.min(keyway_ring::limits::REGIONS_MAX) {
            return refuse(self, Status::Busy, "a client has no more regions than that");
        }
        let left = limits.region_bytes.saturating_sub(guest.region_bytes);
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= left);
        let Some(bytes) = bytes else {
            return refuse(self, Status::InvalidRequest, "a client has no more memory than that");
        };
        if let Err(why) = self.may_add(id, Share::region(bytes)) {
            return self.reply(id, &why.into(), &[]);
        }
        // Memory that is made here is as it should be. Memory that a client sent could be anything.
        let guest = self.guest(id)?;
        let memory = match &guest.room {
            None => SharedMemory::create(bytes),
            Some(room) => room.arena.take(bytes).ok_or(io::ErrorKind::OutOfMemory.into()),
        };
        let memory = match memory {
            Ok(memory) => memory,
            Err(why) if why.kind() == io::ErrorKind::OutOfMemory => {
                let why = "the memory that the virtual machine shares with the daemon is in use";
                return refuse(self, Status::Busy, why);
            }
            Err(why) => return refuse(self, Status::InvalidRequest, &why.to_string()),
        };
        let guest = self.guest(id)?;
        guest.region_generation = guest.region_generation.wrapping_add(1);
        guest.region_bytes += memory.bytes();
        let (generation, memory) = (guest.region_generation, Arc::new(memory));
        let Ok(index) = u8::try_from(guest.regions.insert((generation, memory.clone()))) else {
            return Err(SendAway);
        };
        let region = RegionHandle { index, generation };
        self.command(id, Command::Region { client: id, handle: region, memory: memory.clone() });
        if self.guest(id)?.room.is_some() {
            let (at, bytes) = (memory.offset() as u64, memory.bytes() as u64);
            return self.reply(id, &Answer::RegionAt { region, at, bytes }, &[]);
        }
        let file = memory.file().map_err(|_| SendAway)?;
        self.reply(id, &Answer::Region { region }, &[file])
    }

    pub fn forget(&mut self, id: ClientId, region: RegionHandle) -> Result<(), SendAway> {
        let guest = self.guest(id)?;
        let is_it = |(generation, _): &(u16, _)| *generation == region.generation;
        if let Some((_, memory)) = guest.regions.remove_if(usize::from(region.index), is_it) {
            guest.region_bytes -= memory.bytes();
            self.command(id, Command::Forget(id, region));
        }
        Ok(())
    }

    pub fn status(&mut self, id: ClientId) -> Result<Answer, SendAway> {
        let caller = self.guest(id)?.caller.clone();
        if !self.options.admission.administers(&caller) {
            return Ok(Answer::refused(
                Status::Unsupported,
                "only the daemon's administrators may",
            ));
        }
        let known = || self.guests.iter().filter(|(_, guest)| guest.name.is_some());
        Ok(Answer::Status(DaemonStatus {
            process: std::process::id(),
            since: self.since,
            pumps: self.pumps.len() as u32,
            clients: known().take(STATUS_CLIENTS_MAX).map(|(id, it)| it.status(*id)).collect(),
            clients_total: known().count() as u32,
        }))
    }
}
