//! Waiting for sockets and for a moment: epoll, with a timer that is accurate to microseconds where
//! epoll's own time limit is in milliseconds.

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;

/// The token of the timer's events.
const TIMER: u64 = u64::MAX;
/// Events that are taken at once.
const EVENTS: usize = 1_024;
/// The longest wait: an end may be asked for meanwhile.
const LONGEST_MS: u64 = 50;

/// Something happened to a socket: it can be read, or written, or both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Happened {
    pub(crate) token: u64,
    /// The other side has closed it: the end is to be read, too.
    pub(crate) has_ended: bool,
}

pub(crate) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<Event>,
    /// The moment that the timer is set to.
    armed_ns: u64,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Edge-triggered: setting it again is enough, it need not be read.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Poller { epoll, timer, events: Vec::with_capacity(EVENTS), armed_ns: 0 })
    }

    /// Watches a socket; closing it ends that.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)?;
        Ok(())
    }

    /// Waits until something happens, or that moment has come.
    pub(crate) fn wait(&mut self, now_ns: u64, until_ns: u64) -> io::Result<()> {
        let left_ns = until_ns.saturating_sub(now_ns);
        let limit_ms = if left_ns == 0 { 0 } else { LONGEST_MS };
        if left_ns > 0 && left_ns < LONGEST_MS * 1_000_000 && self.armed_ns != until_ns {
            self.armed_ns = until_ns;
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once(left_ns))?;
        }
        let limit = Timespec { tv_sec: 0, tv_nsec: limit_ms as i64 * 1_000_000 };
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Hands over what has happened.
    pub(crate) fn take(&mut self, into: &mut Vec<Happened>) {
        let happened = self.events.drain(..).map(|event| {
            let (data, flags) = (event.data, event.flags);
            let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            Happened { token: data.u64(), has_ended: flags.intersects(ends) }
        });
        into.clear();
        into.extend(happened.filter(|event| event.token != TIMER));
    }
}

fn once(after_ns: u64) -> Itimerspec {
    let value = Timespec {
        tv_sec: (after_ns / 1_000_000_000) as i64,
        tv_nsec: (after_ns % 1_000_000_000) as i64,
    };
    Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value }
}
