//! When a run begins; for runs that are raced, all at one moment.

use crate::control::Interrupt;
use keyway_lock::Unpoisoned;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

/// From the last thread's being ready to the first start.
const HEAD_START: Duration = Duration::from_millis(5);
/// The head start if other runs have to be woken.
const JOINT_HEAD_START: Duration = Duration::from_millis(20);
/// The pause between two looks whether an end was asked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A moment, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// From 1970 on.
    pub(crate) unix: Duration,
}

impl Moment {
    pub(crate) fn after(wait: Duration) -> Moment {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Moment { at: Instant::now() + wait, unix: unix + wait }
    }
}

/// One of several runs that begin at the same moment: each waits until all have their connections. One
/// that is dropped before does not keep the others waiting.
#[derive(Debug)]
pub struct Barrier {
    gate: Arc<Gate>,
    is_counted: bool,
}

#[derive(Debug)]
struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug)]
struct State {
    /// Runs that are neither ready nor gone.
    awaited: usize,
    /// When all begin.
    begin: Option<Moment>,
}

impl Barrier {
    /// So many that wait for one another.
    #[must_use]
    pub fn of(count: usize) -> Vec<Barrier> {
        let state = Mutex::new(State { awaited: count, begin: None });
        let gate = Arc::new(Gate { state, opened: Condvar::new() });
        (0..count).map(|_| Barrier { gate: gate.clone(), is_counted: true }).collect()
    }

    /// Waits for the others; says when all begin. If an end is asked for, that is now.
    fn wait(mut self, interrupt: &Interrupt) -> Moment {
        self.leave();
        let mut state = self.gate.state();
        loop {
            if let Some(begin) = state.begin {
                return begin;
            }
            if interrupt.came() {
                return Moment::after(Duration::ZERO);
            }
            let waited = self.gate.opened.wait_timeout(state, LOOK_EVERY);
            state = waited.unpoisoned().0;
        }
    }

    /// Lets the others begin without this one.
    fn leave(&mut self) {
        if !std::mem::take(&mut self.is_counted) {
            return;
        }
        let mut state = self.gate.state();
        state.awaited -= 1;
        if state.awaited == 0 {
            state.begin = Some(Moment::after(JOINT_HEAD_START));
            self.gate.opened.notify_all();
        }
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

/// The moment at which a run begins whose connections are open.
pub(crate) fn moment(barrier: Option<Barrier>, interrupt: &Interrupt) -> Moment {
    match barrier {
        Some(barrier) => barrier.wait(interrupt),
        None => Moment::after(HEAD_START),
    }
}
