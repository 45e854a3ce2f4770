//! How a side that has nothing to poll sleeps, and is woken.
//!
//! The rule for both: a side that wants to sleep sets *armed*, looks once more, and then sleeps. A
//! side that has published something tests *armed* behind a fence, and rings if it is set. So while
//! both are awake, neither makes a system call.
//!
//! The client rings the daemon by an event counter, since the daemon waits for many clients at
//! once. The daemon wakes a client by a futex in their shared memory, where only that client can
//! wait. Neither is a call on something of the client's that could wait.

use crate::registers::Registers;
use rustix::event::EventfdFlags;
use rustix::thread::futex;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

/// A flag in shared memory: whether a side sleeps, or is about to.
#[derive(Clone, Copy, Debug)]
pub struct Armed<'a>(pub &'a AtomicU32);

impl Armed<'_> {
    /// Says that this side is about to sleep. It then looks once more.
    pub fn set(self) {
        self.0.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that it is awake.
    pub fn clear(self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// After something was published: whether the other side has to be woken. It answers so once.
    #[inline]
    pub fn take(self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::Relaxed) != 0
    }

    /// Sleeps until the flag is taken, or the time is over.
    pub fn sleep(self, most: Duration) {
        let most = rustix::time::Timespec {
            tv_sec: most.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: most.subsec_nanos().into(),
        };
        // Whatever ends it, the caller looks again.
        let _ = futex::wait(self.0, futex::Flags::empty(), 1, Some(&most));
    }

    /// Wakes the side that sleeps on the flag. Call it when [`Armed::take`] said so.
    pub fn wake(self) {
        let _ = futex::wake(self.0, futex::Flags::empty(), 1);
    }
}

/// An event counter by which a client rings the daemon, and which both have.
///
/// Its count and its flags are the client's as much as the daemon's: whether a read or a write
/// waits is a flag of the file and not of a descriptor, and a write waits once the other side has
/// filled the count. A read besides wakes whatever the client has made wait for it. So only clients
/// write to one, and neither side reads it: the daemon waits for it with others, edge-triggered,
/// where each ring counts anew.
///
/// In a virtual machine the client stores to a register of its device instead, and the hypervisor adds to the counter.
#[derive(Debug)]
pub struct Doorbell(Bell);

#[derive(Debug)]
enum Bell {
    Counter(OwnedFd),
    /// A device's, and which of its peers the daemon is there.
    Register(Arc<Registers>, u32),
}

impl Doorbell {
    /// A new one.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        Ok(Doorbell(Bell::Counter(counter()?)))
    }

    /// One that came over a socket.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Doorbell(Bell::Counter(fd))
    }

    /// One of a device's peer.
    pub(crate) fn of_registers(registers: Arc<Registers>, peer: u32) -> Self {
        Doorbell(Bell::Register(registers, peer))
    }

    /// Rings; only a client does.
    pub fn ring(&self) {
        match &self.0 {
            Bell::Counter(counter) => add_one(counter),
            Bell::Register(registers, peer) => registers.ring(*peer),
        }
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Bell::Counter(counter) => counter.as_fd(),
            Bell::Register(registers, _) => registers.as_fd(),
        }
    }
}

/// An event counter by which threads of one process wake each other. No other process has it.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// A new one.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        Ok(Alarm(counter()?))
    }

    /// Goes off.
    pub fn ring(&self) {
        add_one(&self.0);
    }

    /// How often it went off since this was asked last. Never waits.
    pub fn take(&self) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(&self.0, &mut count) {
            Ok(8) => u64::from_ne_bytes(count),
            _ => 0,
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn counter() -> io::Result<OwnedFd> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    Ok(rustix::event::eventfd(0, flags)?)
}

fn add_one(counter: &OwnedFd) {
    // It fails when it has rung so often that it is full, and then it need not.
    let _ = rustix::io::write(counter, &1_u64.to_ne_bytes());
}

/// Times that a wake-up is measured.
const ROUNDS: u32 = 8;

/// The time to wake a thread that sleeps on a futex, measured now: about as long as it pays to poll
/// before one sleeps. Takes a millisecond or so.
pub fn wake_cost() -> Duration {
    let (there, back) = (AtomicU32::new(0), AtomicU32::new(0));
    let wait = |flag: &AtomicU32, round: u32| {
        while flag.load(Ordering::Acquire) != round {
            let most = rustix::time::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            let _ = futex::wait(flag, futex::Flags::PRIVATE, round - 1, Some(&most));
        }
    };
    let wake = |flag: &AtomicU32, round: u32| {
        flag.store(round, Ordering::Release);
        let _ = futex::wake(flag, futex::Flags::PRIVATE, 1);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait(&there, round);
                wake(&back, round);
            }
        });
        let mut least = Duration::MAX;
        for round in 1..=ROUNDS {
            let begun = Instant::now();
            wake(&there, round);
            wait(&back, round);
            least = least.min(begun.elapsed() / 2);
        }
        least
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_counts() {
        let alarm = Alarm::new().unwrap();
        assert_eq!(alarm.take(), 0);
        alarm.ring();
        alarm.ring();
        assert_eq!((alarm.take(), alarm.take()), (2, 0));
    }

    #[test]
    fn a_sleeper_is_woken_once() {
        let flag = AtomicU32::new(0);
        let armed = Armed(&flag);
        assert!(!armed.take());
        std::thread::scope(|scope| {
            armed.set();
            let sleeper = scope.spawn(|| {
                while flag.load(Ordering::Relaxed) != 0 {
                    armed.sleep(Duration::from_secs(60));
                }
            });
            assert!(armed.take());
            armed.wake();
            sleeper.join().unwrap();
        });
        assert!(!armed.take());
    }

    #[test]
    fn waking_takes_some_time() {
        let cost = wake_cost();
        assert!(cost > Duration::ZERO && cost < Duration::from_secs(10), "{cost:?}");
    }
}
