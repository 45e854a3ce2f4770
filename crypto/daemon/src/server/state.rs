//! The state of the control thread, and how it speaks to clients and pumps.

use super::changes::Changes;
use super::guest::Guest;
use crate::closing::{Closer, Line};
use crate::limits::MACHINES_MAX;
use crate::machine::{Device, Door, Machine, Newcomer, Stopped};
use crate::options::{DeviceOptions, HandedOver, MachineOptions, Machines, Options};
use crate::pump::{ClientId, Command, Pump};
use crate::slow::Slow;
use keyway_engine::Engine;
use keyway_meter::{Counter, counter};
use keyway_ring::control::{self, Answer};
use keyway_ring::{Alarm, Socket};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The subject of an event: not a client's number.
pub const LISTENER: u64 = u64::MAX;
pub const ENDED: u64 = u64::MAX - 1;
pub const MACHINES: u64 = u64::MAX - 2;

pub struct Server {
    pub engine: Engine,
    /// With it go those who have not been accepted, and what they have sent.
    pub listener: Line,
    pub closer: Closer,
    pub options: Options,
    pub ended: Arc<(AtomicBool, Alarm)>,
    pub epoll: OwnedFd,
    pub pumps: Vec<Pump>,
    /// If it holds keys.
    pub changes: Option<Changes>,
    /// Whether no client is let in, since too much waits to be closed.
    pub is_shut: bool,
    pub guests: BTreeMap<ClientId, Guest>,
    pub machines: Vec<Machine>,
    pub devices: Vec<Device>,
    pub newcomers: Newcomers,
    pub next: ClientId,
    /// When it started, in seconds since 1970.
    pub since: u64,
    pub handed_over: Option<HandedOver>,
    /// When the keys' usage counts were saved.
    pub saved: Instant,
    pub connected: Counter,
    pub gone: Counter,
    pub turned_away: Counter,
    pub evicted: Counter,
}

/// The virtual machines that have come, as their threads say.
pub struct Newcomers {
    pub all: Receiver<Newcomer>,
    pub alarm: Arc<Alarm>,
    /// The other end, for their threads.
    pub door: Door,
}

/// The virtual machines that were served until now, by their names.
#[derive(Default)]
pub struct Before {
    pub machines: Vec<(String, Stopped)>,
    /// The links to their devices.
    pub devices: Vec<(String, OwnedFd)>,
}

fn take<T>(from: &mut Vec<(String, T)>, name: &str) -> Option<T> {
    let at = from.iter().position(|(known, _)| known == name)?;
    Some(from.swap_remove(at).1)
}

/// Why a client is sent away.
pub struct SendAway;

impl Server {
    pub fn new(
        engine: &Engine,
        listener: OwnedFd,
        options: Options,
        ended: &Arc<(AtomicBool, Alarm)>,
        handed_over: HandedOver,
    ) -> io::Result<Self> {
        let (closer, own) = (Closer::default(), rustix::process::getuid().as_raw());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &ended.1, EventData::new_u64(ENDED), EventFlags::IN)?;
        let slow =
            Arc::new(Slow::start(options.keys.as_ref().map_or(0, |keys| keys.tokens_count()))?);
        let newcomers = {
            let ((tell, all), alarm) = (channel(), Arc::new(Alarm::new()?));
            let (alarm_too, report) = (alarm.clone(), options.machines.report.clone());
            let closer = closer.clone();
            let door = Door { newcomers: tell, alarm: alarm_too, closer, report };
            Newcomers { all, alarm, door }
        };
        epoll::add(&epoll, &newcomers.alarm, EventData::new_u64(MACHINES), EventFlags::IN)?;
        let start = |index| Pump::start(engine, &slow, index, options.spin);
        let pumps = (0..options.pumps.max(1)).map(start).collect::<io::Result<_>>()?;
        let sight = options.admission.witness.sight();
        let changes = options.keys.as_ref().map(|keys| Changes::start(keys, sight)).transpose()?;
        Ok(Server {
            engine: engine.clone(),
            listener: Line::new(Socket::from_fd(listener), own, &closer),
            closer,
            options,
            ended: ended.clone(),
            epoll,
            pumps,
            changes,
            is_shut: false,
            guests: BTreeMap::new(),
            machines: Vec::new(),
            devices: Vec::new(),
            newcomers,
            next: 1,
            since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs()),
            handed_over: Some(handed_over),
            saved: Instant::now(),
            connected: counter("cryptod.clients.connected"),
            gone: counter("cryptod.clients.gone"),
            turned_away: counter("cryptod.clients.turned_away"),
            evicted: counter("cryptod.clients.evicted"),
        })
    }

    /// Whether all virtual machines of the options can be served, with what was served until now.
    ///
    /// # Errors
    /// `InvalidInput` if there are too many, or one has no place where it connects.
    pub fn check_machines(&self, before: &Before) -> io::Result<()> {
        let invalid = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let Machines { all, devices, .. } = &self.options.machines;
        if all.len() + devices.len() > MACHINES_MAX {
            return invalid(format!("a daemon has no more virtual machines than {MACHINES_MAX}"));
        }
        let is_lost = |it: &&MachineOptions| {
            it.listener.is_none() && before.machines.iter().all(|(name, _)| *name != it.name)
        };
        let is_lost_device = |it: &&DeviceOptions| {
            it.link.is_none() && before.devices.iter().all(|(name, _)| *name != it.name)
        };
        let lost = all.iter().find(is_lost).map(|it| &it.name);
        match lost.or(devices.iter().find(is_lost_device).map(|it| &it.name)) {
            None => Ok(()),
            Some(name) => invalid(format!(
                "virtual machine {name}: something is at its socket, and the daemon before did not hand it over; \
                 remove that"
            )),
        }
    }

    /// Serves the virtual machines of the options, and goes on with those that were served until now. Those that are in no
    /// option are served no more.
    ///
    /// # Errors
    /// As [`Server::check_machines`]; the system's.
    pub fn start_machines(&mut self, mut before: Before) -> io::Result<()> {
        self.check_machines(&before)?;
        let Machines { all, devices, .. } = self.options.machines.clone();
        let names = all.iter().map(|it| &it.name).chain(devices.iter().map(|it| &it.name));
        let mut numbers: Vec<String> = Vec::new();
        for name in names {
            if !numbers.contains(name) {
                numbers.push(name.clone());
            }
        }
        let number = |name: &str| numbers.iter().position(|it| it == name).unwrap_or_default();
        for MachineOptions { name, listener } in &all {
            let from = match (take(&mut before.machines, name), listener) {
                (Some(from), _) => from,
                (None, Some(listener)) => {
                    Stopped { listener: listener.try_clone()?, serving: None }
                }
                (None, None) => continue,
            };
            let door = self.newcomers.door.clone();
            self.machines.push(Machine::start(name, number(name), from, door)?);
        }
        for DeviceOptions { name, link } in &devices {
            let link = match (take(&mut before.devices, name), link) {
                (Some(link), _) => link,
                (None, Some(link)) => link.try_clone()?,
                (None, None) => continue,
            };
            let door = self.newcomers.door.clone();
            self.devices.push(Device::start(name, number(name), link, door)?);
        }
        for (name, Stopped { serving, .. }) in before.machines {
            if let Some(serving) = serving {
                serving.relay.close();
            }
            (self.options.machines.report)(&format!(
                "virtual machine {name} is served no more: this daemon was started without its --vm"
            ));
        }
        Ok(())
    }

    /// Stops the threads of all virtual machines, which are served again or handed over.
    pub fn stop_machines(&mut self) -> Before {
        let machines = std::mem::take(&mut self.machines).into_iter();
        let devices = std::mem::take(&mut self.devices).into_iter();
        Before {
            machines: machines.filter_map(|it| Some((it.name.clone(), it.stop()?))).collect(),
            devices: devices.filter_map(|it| Some((it.name.clone(), it.stop()?))).collect(),
        }
    }

    /// Answers a client, with these files.
    pub fn reply(
        &self,
        id: ClientId,
        answer: &Answer,
        files: &[BorrowedFd<'_>],
    ) -> Result<(), SendAway> {
        let guest = self.guests.get(&id).ok_or(SendAway)?;
        let bytes = control::encode(answer).map_err(|_| SendAway)?;
        guest.socket.try_send(&bytes, files).map_err(|_| SendAway)
    }

    pub fn guest(&mut self, id: ClientId) -> Result<&mut Guest, SendAway> {
        self.guests.get_mut(&id).ok_or(SendAway)
    }

    /// Has the client's pump do something.
    pub fn command(&self, id: ClientId, command: Command) {
        let pump = self.guests.get(&id).and_then(|guest| self.pumps.get(guest.pump));
        if let Some(pump) = pump {
            pump.command(command);
        }
    }
}
