//! Where the last tasks of a queue went.
//!
//! Tasks mostly come in bursts of one session, or of a few by turns. The next one of the same
//! session, and of lengths for which the scheduler would choose the same driver, goes where the
//! last one went. To admit it takes a few comparisons.

use crate::costs::Mode;
use crate::lengths::LengthLimits;
use crate::limits::ROUTES;
use crate::{Algorithm, Kind, Operation, TAG_BYTES, Task};

/// The routes of some sessions, each in the place that its session's number has.
pub(crate) struct Routes {
    routes: Box<[CachedRoute; ROUTES]>,
    /// The place of the session that was looked at last.
    last: usize,
}

impl Routes {
    pub fn none() -> Self {
        Routes { routes: Box::new([CachedRoute::NONE; ROUTES]), last: 0 }
    }

    /// That of the session that was looked at last.
    #[inline]
    pub fn last(&self) -> &CachedRoute {
        &self.routes[self.last % ROUTES]
    }

    /// That of this session, or another's.
    #[inline]
    pub fn of(&mut self, session: u64) -> &CachedRoute {
        self.last = session as usize % ROUTES;
        self.last()
    }

    pub fn put(&mut self, route: CachedRoute) {
        self.last = route.session as usize % ROUTES;
        self.routes[self.last] = route;
    }
}

/// Where the next task of the same session goes without a choice.
pub(crate) struct CachedRoute {
    pub session: u64,
    /// The epoch at which it is so.
    pub epoch: u64,
    /// Index of the queue's end of the driver.
    pub end: usize,
    /// The lengths for which it is so.
    pub limits: LengthLimits,
    pub binding: u32,
    /// Where there was a choice, the mode in which it was made. Then the limits are its size class.
    pub mode: Option<Mode>,
    /// Whether the session's packets have ascending numbers.
    pub numbered: bool,
}

impl CachedRoute {
    /// No task takes it: no session has that number.
    pub const NONE: CachedRoute = CachedRoute {
        session: 0,
        epoch: 0,
        end: 0,
        limits: Algorithm::Random.length_limits(),
        binding: 0,
        mode: None,
        numbered: false,
    };

    /// The end that all of these tasks go to, if they take this route. Then they are admitted.
    #[inline]
    pub fn admit(&self, tasks: &mut [Box<Task>], mode: Mode, epoch: u64) -> Option<usize> {
        if self.epoch != epoch || self.mode.is_some_and(|chosen| chosen != mode) {
            return None;
        }
        // The commonest kinds are checked without making a request of them.
        let admitted = match self.limits.kind() {
            Kind::Cipher => self.admit_each(tasks, |task| match &task.operation {
                Operation::Encrypt { data, .. } | Operation::Decrypt { data, .. } => {
                    Some(data.len())
                }
                _ => None,
            }),
            Kind::Aead => self.admit_each(tasks, |task| match &task.operation {
                Operation::Seal { data, .. } => Some(data.len()),
                Operation::Open { data, .. } => data.len().checked_sub(TAG_BYTES),
                _ => None,
            }),
            _ => self.admit_each(tasks, Task::fits),
        };
        if !admitted || self.numbered && !take_numbers(tasks) {
            return None;
        }
        Some(self.end)
    }

    /// Whether every one of them takes this route.
    #[inline(always)]
    fn admit_each(
        &self,
        tasks: &mut [Box<Task>],
        bytes: impl Fn(&mut Task) -> Option<usize> + Copy,
    ) -> bool {
        let CachedRoute { session, limits, binding, .. } = *self;
        tasks.iter_mut().all(|task| task.follow(session, &limits, binding, bytes))
    }
}

/// Takes the packet numbers of tasks of one session, if they ascend.
fn take_numbers(tasks: &[Box<Task>]) -> bool {
    let number = |task: &Task| match task.operation {
        Operation::Protect { number, .. } => Some(number),
        _ => None,
    };
    let mut numbers = tasks.iter().filter_map(|task| number(task));
    let (Some(task), Some(first)) = (tasks.first(), numbers.next()) else { return true };
    let mut last = first;
    for number in numbers {
        if number <= last {
            return false;
        }
        last = number;
    }
    task.session().inner().usage.take_numbers(first, last).is_ok()
}
