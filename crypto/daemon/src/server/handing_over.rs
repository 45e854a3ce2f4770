//! Handing everything over to a daemon that takes this one's place.

use super::guest::{Guest, Opened, QueuePair};
use super::state::{Before, SendAway, Server};
use crate::handover::{self, Part};
use crate::keys::Caller;
use crate::limits::{FREEZE, SUCCESSOR_SILENCE};
use crate::machine::{Serving, Stopped};
use crate::pump::{ClientId, Command, Position};
use keyway_ring::Socket;
use keyway_ring::control::Answer;
use keyway_ring::descriptor::{RegionHandle, SessionHandle, Status};
use keyway_ring::limits::MESSAGE_FDS_MAX;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Instant;

impl Server {
    /// Hands everything to the daemon at the other end of this client's connection, when it asks for the
    /// second time. If it does not take it, everything is as before.
    pub fn hand_over(&mut self, id: ClientId) -> Result<(), SendAway> {
        let guest = self.guests.get_mut(&id).ok_or(SendAway)?;
        if !self.options.admission.administers(&guest.caller) {
            let answer =
                Answer::refused(Status::Unsupported, "only the daemon's own user may take over");
            return self.reply(id, &answer, &[]);
        }
        if !std::mem::replace(&mut guest.takes_over, true) {
            return self.reply(id, &Answer::Done, &[]);
        }
        let process = guest.caller.pid;
        // Changes that were asked for are made first, but for keys that are being made, which are in no use yet. No
        // thread waits for them: the new daemon asks again, and until then no more are taken.
        if self.changes.as_ref().is_some_and(|changes| !changes.is_idle()) {
            let answer = Answer::refused(Status::Busy, "keys are being changed; ask again");
            return self.reply(id, &answer, &[]);
        }
        let machines = self.stop_machines();
        // Those whose threads have let them in, and that this thread has not seen yet.
        self.let_machines_in();
        let sent = self.freeze().and_then(|positions| {
            self.give_up_keys()?;
            self.send_everything(id, &machines, &positions)
        });
        match sent {
            Ok(()) => {
                self.pumps.iter().for_each(|pump| pump.hand_over(true));
                if let Some(changes) = self.changes.take() {
                    changes.abandon();
                }
                self.ended.0.store(true, Ordering::Release);
                if let Some(handed_over) = self.handed_over.take() {
                    handed_over(process);
                }
                Ok(())
            }
            Err(_) => {
                if let Some(keys) = &self.options.keys {
                    // Where the other one has it still, keys are used here and not changed.
                    let _ = keys.take_back();
                }
                self.pumps.iter().for_each(|pump| pump.command(Command::Thaw));
                if let Err(why) = self.start_machines(machines) {
                    (self.options.machines.report)(&format!(
                        "virtual machines are served no more: {why}"
                    ));
                }
                Err(SendAway)
            }
        }
    }

    fn give_up_keys(&self) -> io::Result<()> {
        let Some(keys) = &self.options.keys else { return Ok(()) };
        keys.give_up().map_err(io::Error::other)
    }

    fn freeze(&self) -> io::Result<Vec<Position>> {
        let (tell, told) = channel();
        for pump in &self.pumps {
            pump.command(Command::Freeze(tell.clone()));
        }
        let mut positions = Vec::new();
        for _ in &self.pumps {
            positions.extend(told.recv_timeout(FREEZE).map_err(|_| io::ErrorKind::TimedOut)?);
        }
        Ok(positions)
    }

    fn send_everything(
        &self,
        to: ClientId,
        before: &Before,
        positions: &[Position],
    ) -> io::Result<()> {
        let socket = &self.guests.get(&to).ok_or(io::ErrorKind::NotConnected)?.socket;
        // One that hangs must not hold up the clients for longer than that.
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(socket, direction, Some(SUCCESSOR_SILENCE))?;
        }
        let begun = Instant::now();
        let removes_socket = self.options.socket.is_some();
        let part = Part::Daemon { next: self.next, since: self.since, removes_socket };
        handover::send(socket, &part, &[self.listener.as_fd()])?;
        for (name, machine) in &before.machines {
            send_machine(socket, name, machine)?;
        }
        for (name, link) in &before.devices {
            handover::send(socket, &Part::Device { name: name.clone() }, &[link.as_fd()])?;
        }
        for (id, guest) in self.guests.iter().filter(|(id, _)| **id != to) {
            send_client(socket, *id, guest)?;
            send_queues(socket, *id, guest, positions)?;
        }
        handover::send(socket, &Part::End, &[])?;
        loop {
            match handover::receive(socket)? {
                (Part::Taken, _) => return Ok(()),
                (Part::Alive, _) if begun.elapsed() < FREEZE => {}
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}

/// A virtual machine, with what its clients' parts lie in.
fn send_machine(socket: &Socket, name: &str, machine: &Stopped) -> io::Result<()> {
    let Stopped { listener, serving } = machine;
    let name = name.to_owned();
    let Some(Serving { hypervisor, room, relay }) = serving else {
        let part = Part::Machine { name, position: None };
        return handover::send(socket, &part, &[listener.as_fd()]);
    };
    let part = Part::Machine { name, position: Some(relay.position()) };
    let memory = room.arena.memory().file()?;
    let files = [listener.as_fd(), hypervisor.as_fd(), memory, relay.socket()];
    handover::send(socket, &part, &files)?;
    for bells in room.bells.chunks(MESSAGE_FDS_MAX) {
        let files: Vec<_> = bells.iter().map(AsFd::as_fd).collect();
        handover::send(socket, &Part::Bells, &files)?;
    }
    for (slot, state) in relay.slots.iter().enumerate().filter(|(_, state)| !state.is_empty()) {
        for state in state.pieces() {
            handover::send(socket, &Part::Slot { slot, state }, &[])?;
        }
    }
    Ok(())
}

/// A client with all that its requests may name.
fn send_client(socket: &Socket, id: ClientId, guest: &Guest) -> io::Result<()> {
    let Caller { uid, gid, groups, pid, executable, vm } = &guest.caller;
    if let Some(name) = vm {
        let (name, has_room) = (name.clone(), guest.room.is_some());
        handover::send(socket, &Part::Vm { name, has_room }, &[])?;
    }
    let part = Part::Client {
        number: id,
        name: guest.name.clone(),
        pid: *pid,
        uid: *uid,
        gid: *gid,
        groups: groups.clone(),
        executable: executable.as_ref().ok().and_then(|it| Some(it.to_str()?.to_owned())),
        next_queue: guest.next_queue,
        region_generation: guest.region_generation,
    };
    handover::send(socket, &part, &[guest.socket.as_fd()])?;
    for (index, (generation, memory)) in guest.regions.iter() {
        let handle = RegionHandle { index: index as u8, generation: *generation };
        match guest.room {
            None => handover::send(socket, &Part::Region(handle), &[memory.file()?])?,
            Some(_) => {
                let (at, bytes) = (memory.offset(), memory.bytes());
                handover::send(socket, &Part::RegionAt { handle, at, bytes }, &[])?;
            }
        }
    }
    for (index, Opened { generation, steps, is_generated }) in guest.sessions.iter() {
        let handle = SessionHandle { index: index as u16, generation: *generation };
        let (steps, is_generated) = (steps.clone(), *is_generated);
        handover::send(socket, &Part::Session { handle, steps, is_generated }, &[])?;
    }
    Ok(())
}

/// Its queue pairs, and how far each is.
fn send_queues(
    socket: &Socket,
    id: ClientId,
    guest: &Guest,
    positions: &[Position],
) -> io::Result<()> {
    for QueuePair { number, memory, bell, place } in &guest.queues {
        let is_its = |it: &&Position| it.client == id && it.queue == *number;
        let Some(position) = positions.iter().find(is_its) else { continue };
        let Position { taken, answered, ref under_way, .. } = *position;
        let (number, entries) = (*number, memory.entries());
        match place {
            None => {
                let part = Part::Queue { number, entries, taken, answered };
                handover::send(socket, &part, &[memory.memory().file()?, bell.as_fd()])?;
            }
            Some(place) => {
                let (at, bytes) = (memory.memory().offset(), memory.memory().bytes());
                let bell = place.peer();
                let part = Part::QueueAt { number, entries, taken, answered, at, bytes, bell };
                handover::send(socket, &part, &[])?;
            }
        }
        for descriptor in under_way {
            handover::send(socket, &Part::UnderWay(descriptor.to_words()), &[])?;
        }
    }
    Ok(())
}
