//! Taking the place of another daemon, with everything that it hands over.

use super::guest::{Guest, Opened, QueuePair};
use super::state::{Before, Server};
use crate::closing::Line;
use crate::handover::{self, Part};
use crate::keys::{Caller, Unseen};
use crate::limits::{ALIVE_EVERY, TAKE_OVER_AGAIN, TAKE_OVER_WAIT};
use crate::machine::{Relay, Room, Serving, Stopped};
use crate::options::{HandedOver, Options};
use crate::pump::{ClientId, Command};
use keyway_engine::Engine;
use keyway_ring::control::{self, Answer, Ask, VERSION};
use keyway_ring::descriptor::{Descriptor, RegionHandle, Status};
use keyway_ring::limits::REGION_BYTES_MAX;
use keyway_ring::{Alarm, Doorbell, Peer, Received, RingMemory, SharedMemory, Socket};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

impl Server {
    /// Takes over from the daemon that listens at this path: see
    /// [`Daemon::take_over`](crate::Daemon::take_over).
    pub fn take_over(
        engine: &Engine,
        path: &Path,
        options: impl FnOnce() -> io::Result<Options>,
        ended: &Arc<(AtomicBool, Alarm)>,
        handed_over: HandedOver,
    ) -> io::Result<Server> {
        let socket = Socket::connect(path)?;
        let Received { bytes, fds: mut files } = ask_for_all(&socket)?;
        let part = control::decode(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
        let alive = Alive::tell(&socket)?;
        let Part::Daemon { next, since, removes_socket } = part else {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it does not hand over"));
        };
        let listener = files.pop().ok_or(io::ErrorKind::InvalidData)?;
        let mut server = Server::new(engine, listener, options()?, ended, handed_over)?;
        (server.next, server.since) = (next, since);
        server.options.socket = server.options.socket.take().filter(|_| removes_socket);
        server.take_all(&socket, alive)?;
        Ok(server)
    }

    /// No client is served, or told that it is not, before the other daemon knows that this one has
    /// it all.
    fn take_all(&mut self, socket: &Socket, alive: Alive) -> io::Result<()> {
        let (tell, _) = channel();
        self.pumps.iter().for_each(|pump| {
            pump.hand_over(true);
            pump.command(Command::Freeze(tell.clone()));
        });
        let mut current = Current::default();
        loop {
            let (part, files) = handover::receive(socket)?;
            if matches!(part, Part::End) {
                break;
            }
            self.take(&mut current, part, files).ok_or(io::ErrorKind::InvalidData)?;
        }
        let machines = std::mem::take(&mut current.machines).into_iter();
        let machines = machines.map(Arrival::stopped).collect();
        let before = Before { machines, devices: std::mem::take(&mut current.devices) };
        self.check_machines(&before)?;
        drop(alive);
        handover::send(socket, &Part::Taken, &[])?;
        self.start_machines(before)?;
        self.pumps.iter().for_each(|pump| {
            pump.hand_over(false);
            pump.command(Command::Thaw);
        });
        Ok(())
    }

    /// Takes a part of what another daemon hands over, for this client and this queue pair of its. `None` if
    /// it makes no sense.
    fn take(&mut self, at: &mut Current, part: Part, mut files: Vec<OwnedFd>) -> Option<()> {
        let Current { client: current, queue, machines, devices } = at;
        match part {
            Part::Machine { name, position } => {
                files.reverse();
                let listener = files.pop()?;
                let serving = match position {
                    None => None,
                    Some(position) => {
                        let hypervisor = Socket::from_fd(files.pop()?);
                        let user = Peer::of(&hypervisor).map_or(u32::MAX, |peer| peer.uid);
                        let hypervisor = Line::new(hypervisor, user, &self.closer);
                        let memory = SharedMemory::adopt(files.pop()?, REGION_BYTES_MAX).ok()?;
                        let socket = Socket::from_fd(files.pop()?);
                        let memory = Arc::new(memory);
                        let relay = Relay::resume(&memory, socket, position)?;
                        Some(Arriving { hypervisor, memory, bells: Vec::new(), relay, room: None })
                    }
                };
                machines.push(Arrival { name, listener, serving });
            }
            Part::Device { name } => devices.push((name, files.pop()?)),
            Part::Bells => {
                let bells = files.into_iter().map(Doorbell::from_fd);
                machines.last_mut()?.serving.as_mut()?.bells.extend(bells);
            }
            Part::Slot { slot, state } => {
                let relay = &mut machines.last_mut()?.serving.as_mut()?.relay;
                relay.slots.get_mut(slot)?.add(state);
            }
            Part::Client {
                number,
                name,
                pid,
                uid,
                gid,
                groups,
                executable,
                vm,
                has_room,
                next_queue,
                region_generation,
            } => {
                let executable = executable.map(PathBuf::from).ok_or(Unseen::Untold);
                let caller = Caller { uid, gid, groups, pid, executable, vm };
                let room = match &caller.vm {
                    None => None,
                    Some(_) if !has_room => None,
                    Some(name) => {
                        let machine = machines.iter_mut().find(|it| it.name == *name)?;
                        Some(machine.serving.as_mut()?.room())
                    }
                };
                let line = Line::new(Socket::from_fd(files.pop()?), uid, &self.closer);
                let mut guest = Guest::new(line, caller, room);
                (guest.next_queue, guest.region_generation) = (next_queue, region_generation);
                let data = EventData::new_u64(number);
                epoll::add(&self.epoll, &guest.socket, data, EventFlags::IN).ok()?;
                self.guests.insert(number, guest);
                if let Some(name) = name {
                    self.admit(number, name).ok()?;
                }
                *current = number;
            }
            Part::Queue { number, entries, taken, answered } => {
                let (bell, memory) = (files.pop()?, files.pop()?);
                let memory = RingMemory::adopt(memory, entries).ok()?;
                let end = memory.daemon_end(taken, answered)?;
                let to_ring = bell.try_clone().ok()?;
                let guest = self.guests.get_mut(current)?;
                guest.queues.push(QueuePair { number, memory, bell: to_ring, place: None });
                *queue = number;
                let (client, bell) = (*current, Doorbell::from_fd(bell));
                self.command(client, Command::Pair { client, number, end, bell, entries });
            }
            Part::QueueAt { number, entries, taken, answered, at, bytes, bell } => {
                let guest = self.guests.get_mut(current)?;
                let room = guest.room.clone()?;
                let memory = room.arena.take_at(at..at.checked_add(bytes)?)?;
                let memory = RingMemory::of(memory, entries).ok()?;
                let end = memory.daemon_end(taken, answered)?;
                let place = room.bell_of(bell)?;
                let (bell, to_ring) = (place.file().ok()?, place.file().ok()?);
                guest.queues.push(QueuePair { number, memory, bell: to_ring, place: Some(place) });
                *queue = number;
                let (client, bell) = (*current, Doorbell::from_fd(bell));
                self.command(client, Command::Pair { client, number, end, bell, entries });
            }
            Part::RegionAt { handle, at, bytes } => {
                let room = self.guests.get(current)?.room.clone()?;
                let memory = room.arena.take_at(at..at.checked_add(bytes)?)?;
                self.take_region(*current, handle, memory)?;
            }
            Part::Region(handle) => {
                let memory = SharedMemory::adopt(files.pop()?, REGION_BYTES_MAX).ok()?;
                self.take_region(*current, handle, memory)?;
            }
            Part::Session { handle, steps, is_generated } => {
                // One that cannot be opened here is one that its client opens anew.
                let client = *current;
                let caller = self.guests.get(current)?.caller.clone();
                // Another key is not the session's.
                let is_lost = steps.iter().any(|step| step.key == control::Key::Generate);
                let opened = Some(self.session(&caller, &steps)).filter(|_| !is_lost);
                let Some(Ok((session, key))) = opened else { return Some(()) };
                let weight = self.options.weights.of_session(&steps);
                let opened = Opened { generation: handle.generation, steps, is_generated };
                self.guests.get_mut(current)?.sessions.insert_at(usize::from(handle.index), opened);
                self.command(client, Command::Session { client, handle, session, key, weight });
            }
            Part::UnderWay(words) => {
                let descriptor = Descriptor::from_words(words);
                let (client, number) = (*current, *queue);
                self.command(client, Command::Again { client, number, descriptor });
            }
            Part::Daemon { .. } | Part::End | Part::Taken | Part::Alive => return None,
        }
        Some(())
    }

    fn take_region(
        &mut self,
        client: ClientId,
        handle: RegionHandle,
        memory: SharedMemory,
    ) -> Option<()> {
        let memory = Arc::new(memory);
        let guest = self.guests.get_mut(&client)?;
        guest.region_bytes += memory.bytes();
        guest.regions.insert_at(usize::from(handle.index), (handle.generation, memory.clone()));
        self.command(client, Command::Region { client, handle, memory });
        Some(())
    }
}

/// Where it is among the parts.
#[derive(Default)]
struct Current {
    client: ClientId,
    queue: u32,
    machines: Vec<Arrival>,
    devices: Vec<(String, OwnedFd)>,
}

/// A virtual machine that is handed over.
struct Arrival {
    name: String,
    listener: OwnedFd,
    serving: Option<Arriving>,
}

/// One that is there.
struct Arriving {
    hypervisor: Line,
    memory: Arc<SharedMemory>,
    bells: Vec<Doorbell>,
    relay: Relay,
    /// Made once its bells are there.
    room: Option<Arc<Room>>,
}

impl Arriving {
    fn room(&mut self) -> Arc<Room> {
        let (memory, bells) = (&self.memory, &mut self.bells);
        let room = self.room.get_or_insert_with(|| Room::of(memory.clone(), std::mem::take(bells)));
        room.clone()
    }
}

impl Arrival {
    fn stopped(self) -> (String, Stopped) {
        let serving = self.serving.map(|mut arriving| {
            let room = arriving.room();
            let Arriving { hypervisor, relay, .. } = arriving;
            Serving { hypervisor, room, relay }
        });
        (self.name, Stopped { listener: self.listener, serving })
    }
}

/// Says hello like a client, and then what for, until the other daemon sends the first part.
fn ask_for_all(socket: &Socket) -> io::Result<Received> {
    let say = |ask: &Ask| {
        let bytes = control::encode(ask).map_err(|_| io::ErrorKind::InvalidData)?;
        socket.send(&bytes, &[])
    };
    let hear = || socket.receive()?.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof));
    let refused = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    say(&Ask::Hello { version: VERSION, name: "cryptod".to_owned() })?;
    match control::decode_answer(&hear()?.bytes) {
        Ok(Answer::Hello { .. }) => {}
        Ok(Answer::Refused { why, .. }) => return refused(why),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    }
    let begun = Instant::now();
    loop {
        say(&Ask::TakeOver)?;
        let heard = hear()?;
        match control::decode_answer(&heard.bytes) {
            Ok(Answer::Done) => {}
            Ok(Answer::Refused { status, .. })
                if status == Status::Busy as u8 && begun.elapsed() < TAKE_OVER_WAIT =>
            {
                thread::sleep(TAKE_OVER_AGAIN);
            }
            Ok(Answer::Refused { why, .. }) => return refused(why),
            _ => return Ok(heard),
        }
    }
}

/// Tells the other daemon that this one is at work, as long as it is kept.
struct Alive {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Alive {
    fn tell(socket: &Socket) -> io::Result<Alive> {
        let socket = Socket::from_fd(socket.as_fd().try_clone_to_owned()?);
        let (stop, stopped) = channel();
        let thread = thread::Builder::new().name("alive".to_owned()).spawn(move || {
            while stopped.recv_timeout(ALIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
                // Where it does not fit, there are enough of them.
                let _ = control::encode(&Part::Alive).map(|part| socket.try_send(&part, &[]));
            }
        })?;
        Ok(Alive { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
