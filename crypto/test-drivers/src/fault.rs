//! A driver that fails as planned, for tests of everything that must survive it.
//!
//! All its chances come from one seed: the same calls in the same order fail in the same way. Its
//! queues work when they are polled, on the poller's stack.

use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, DriverStream, Error, Flow, Operation, Place,
    Request, Selection, Step, Task, Waker,
};
use keyway_lock::Unpoisoned;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The faults of the driver, and how often they happen. [`Plan::default`] is a driver without
/// fault.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where the chances come from.
    pub seed: u64,
    /// Probability, 0 to 1, that a request is not begun and answered with [`Error::Driver`].
    pub errors: f64,
    /// Probability, 0 to 1, that a queue takes a part of what it is offered and then nothing until
    /// it is polled. It takes a task at least if it has none.
    pub busy: f64,
    /// Most polls that find nothing before a task is finished.
    pub delay: u32,
    /// Whether what one poll finds is in disorder.
    pub shuffle: bool,
    /// After how many requests, queued and single ones together, the driver dies; `None` for
    /// never. Those with which an engine measures its costs count.
    pub dies_after: Option<u64>,
    /// Whether the scheduler may choose it.
    pub selection: Selection,
    /// Where it says that it computes.
    pub place: Place,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            seed: 0,
            errors: 0.0,
            busy: 0.0,
            delay: 0,
            shuffle: false,
            dies_after: None,
            selection: Selection::Any,
            place: Place::Device,
        }
    }
}

/// A driver that has `inner` do the work and fails as planned, and a handle to it. It takes tasks
/// without end unless the plan says that it is busy.
///
/// A dead driver opens nothing and takes nothing, and single requests stay as they were. Tasks that
/// its queues had accepted come out with the next poll: some finished, some given back, and some
/// failed in the middle, with damaged data.
pub fn fault(name: &str, inner: Arc<dyn Driver>, plan: Plan) -> (Arc<dyn Driver>, FaultHandle) {
    let shared = Arc::new(Shared {
        plan,
        left: AtomicU64::new(plan.dies_after.unwrap_or(u64::MAX)),
        dead: AtomicBool::new(plan.dies_after == Some(0)),
        accepted: AtomicU64::new(0),
        returned: AtomicU64::new(0),
        queues: AtomicU64::new(0),
        single: Mutex::new(Random(plan.seed)),
    });
    let handle = FaultHandle { shared: shared.clone() };
    (Arc::new(Faulty { name: name.to_owned(), inner, shared }), handle)
}

/// Watches a faulty driver and kills it.
#[derive(Clone)]
pub struct FaultHandle {
    shared: Arc<Shared>,
}

impl FaultHandle {
    /// The driver is dead from now on.
    pub fn kill(&self) {
        self.shared.dead.store(true, Ordering::Release);
    }

    /// Whether it is.
    pub fn is_dead(&self) -> bool {
        self.shared.is_dead()
    }

    /// Requests that it has accepted, queued and single ones.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Those of them that have come back, however they ended.
    pub fn returned(&self) -> u64 {
        self.shared.returned.load(Ordering::Relaxed)
    }
}

struct Shared {
    plan: Plan,
    /// Requests until it dies.
    left: AtomicU64,
    dead: AtomicBool,
    accepted: AtomicU64,
    returned: AtomicU64,
    /// Queues that were made, each of which has its own chances.
    queues: AtomicU64,
    /// The chances of single requests.
    single: Mutex<Random>,
}

impl Shared {
    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// How many of so many requests it lives to accept.
    fn accept(&self, most: usize) -> usize {
        if self.is_dead() {
            return 0;
        }
        let next = |left: u64| Some(left - left.min(most as u64));
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let (Ok(left) | Err(left)) = before;
        let taken = left.min(most as u64);
        if taken == left {
            self.dead.store(true, Ordering::Release);
        }
        self.accepted.fetch_add(taken, Ordering::Relaxed);
        taken as usize
    }
}

struct Faulty {
    name: String,
    inner: Arc<dyn Driver>,
    shared: Arc<Shared>,
}

impl Driver for Faulty {
    fn name(&self) -> &str {
        &self.name
    }

    fn selection(&self) -> Selection {
        self.shared.plan.selection
    }

    fn place(&self) -> Place {
        self.shared.plan.place
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.inner.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        if self.shared.is_dead() {
            return Err(Error::Gone);
        }
        let inner = self.inner.open(steps)?;
        Ok(Box::new(State { inner, shared: self.shared.clone() }))
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        if self.shared.is_dead() { Err(Error::Gone) } else { self.inner.stream(algorithm) }
    }

    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        let shared = self.shared.clone();
        // Not the seed plus a number: such sequences would be one, shifted.
        let number = shared.queues.fetch_add(1, Ordering::Relaxed) + 1;
        let random = Random(Random(shared.plan.seed ^ number << 32).next());
        Some(Box::new(Queue { shared, random, pending: Vec::new(), blocked: false }))
    }
}

struct State {
    inner: Box<dyn DriverSession>,
    shared: Arc<Shared>,
}

impl DriverSession for State {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        if self.shared.accept(1) == 0 {
            return Err(Error::Gone);
        }
        let fails = {
            let mut random = self.shared.single.lock().unpoisoned();
            random.chance(self.shared.plan.errors)
        };
        let result = if fails { Err(PLANNED) } else { self.inner.run(request) };
        self.shared.returned.fetch_add(1, Ordering::Relaxed);
        result
    }

    fn signature_bytes_max(&self) -> usize {
        self.inner.signature_bytes_max()
    }
}

const PLANNED: Error = Error::Driver { driver: "fault", why: "it was planned" };
const DIED: Error = Error::Driver { driver: "fault", why: "it died in the middle" };

struct Queue {
    shared: Arc<Shared>,
    random: Random,
    pending: Vec<Pending>,
    /// Whether it takes nothing until it is polled.
    blocked: bool,
}

struct Pending {
    /// How many polls must find nothing first.
    polls: u32,
    task: Box<Task>,
}

impl DriverQueue for Queue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _more: bool) -> Flow {
        let plan = &self.shared.plan;
        if !self.blocked {
            let mut most = tasks.len();
            // A queue that has nothing need not be polled, and would stay blocked.
            let least = usize::from(self.pending.is_empty());
            if most > least && self.random.chance(plan.busy) {
                most = least + self.random.below((most - least) as u64) as usize;
                self.blocked = true;
            }
            let taken = self.shared.accept(most);
            for task in tasks.drain(..taken) {
                let polls = self.random.below(u64::from(plan.delay) + 1) as u32;
                self.pending.push(Pending { polls, task });
            }
        }
        if self.shared.is_dead() {
            Flow::Gone
        } else if self.blocked {
            Flow::Busy
        } else {
            Flow::Open
        }
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        self.blocked = false;
        let (dead, before) = (self.shared.is_dead(), done.len());
        for mut pending in mem::take(&mut self.pending) {
            if dead {
                self.die(&mut pending.task);
            } else if pending.polls > 0 {
                pending.polls -= 1;
                self.pending.push(pending);
                continue;
            } else if self.random.chance(self.shared.plan.errors) {
                pending.task.complete(Err(PLANNED));
            } else {
                run(&mut pending.task);
            }
            done.push(pending.task);
        }
        let found = &mut done[before..];
        if self.shared.plan.shuffle {
            for last in (1..found.len()).rev() {
                found.swap(last, self.random.below(last as u64 + 1) as usize);
            }
        }
        self.shared.returned.fetch_add(found.len() as u64, Ordering::Relaxed);
    }

    fn due(&self) -> Option<u64> {
        (!self.pending.is_empty()).then_some(0)
    }
}

impl Queue {
    /// Ends a task that was accepted when the driver died.
    fn die(&mut self, task: &mut Task) {
        match self.random.below(3) {
            0 => run(task),
            1 => task.give_back(),
            _ => {
                match &mut task.operation {
                    Operation::Seal { data, .. }
                    | Operation::Open { data, .. }
                    | Operation::Encrypt { data, .. }
                    | Operation::Decrypt { data, .. }
                    | Operation::Chain { data, .. } => {
                        data.iter_mut().for_each(|byte| *byte = !*byte)
                    }
                    _ => {}
                }
                task.complete(Err(DIED));
            }
        }
    }
}

fn run(task: &mut Task) {
    task.begin();
    let result = match task.parts_as::<State>() {
        Some((state, operation)) => operation.with(|request| state.inner.run(request)),
        None => Err(Error::invalid_request("its session is another driver's")),
    };
    task.complete(result);
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 17).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let once = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        twice ^ twice >> 31
    }

    /// A number below `end`, which is not 0; some are likelier than others by `end` / 2^64.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self, probability: f64) -> bool {
        const ONE: f64 = (1u64 << 53) as f64;
        ((self.next() >> 11) as f64) < probability * ONE
    }
}
