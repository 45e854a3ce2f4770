//! Where the last tasks of a queue went.
//!
//! Tasks mostly come in bursts of one session, or of a few by turns. The next one of the same
//! session, and of lengths for which the scheduler would choose the same driver, goes where the
//! last one went. To admit it takes a few comparisons.

use crate::costs::Mode;
use crate::lengths::LengthLimits;
use crate::limits::ROUTES;
use crate::metrics::Work;
use crate::{Algorithm, Kind, Operation, TAG_BYTES, Task};
use std::sync::Arc;

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
    /// `None` where there is no route.
    pub work: Option<Arc<Work>>,
    /// Where there was a choice, the mode in which it was made. Then the limits are its size class.
    pub mode: Option<Mode>,
    /// Whether the session's packets have ascending numbers.
    pub numbered: bool,
}

impl CachedRoute {
    pub const NONE: CachedRoute = CachedRoute {
        session: 0,
        epoch: 0,
        end: 0,
        limits: Algorithm::Random.length_limits(),
        binding: 0,
        work: None,
        mode: None,
        numbered: false,
    };

    /// The end that all of these tasks go to, if they take this route. Then they are admitted and
    /// counted.
    #[inline]
    pub fn admit(&self, tasks: &mut [Box<Task>], mode: Mode, epoch: u64) -> Option<usize> {
        let work = self.work.as_ref()?;
        if self.epoch != epoch || self.mode.is_some_and(|chosen| chosen != mode) {
            return None;
        }
        // The commonest kinds are checked without making a request of them.
        let bytes = match self.limits.kind() {
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
        let bytes = bytes?;
        if self.numbered && !take_numbers(tasks) {
            return None;
        }
        work.operations.add(tasks.len() as u64);
        work.bytes.add(bytes as u64);
        Some(self.end)
    }

    /// The bytes of them all, if every one takes this route.
    #[inline(always)]
    fn admit_each(
        &self,
        tasks: &mut [Box<Task>],
        bytes: impl Fn(&mut Task) -> Option<usize> + Copy,
    ) -> Option<usize> {
        let CachedRoute { session, limits, binding, .. } = *self;
        let mut sum = 0;
        for task in tasks {
            sum += task.follow(session, &limits, binding, bytes)?;
        }
        Some(sum)
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
