//! A hardware accelerator as the two OCF papers had them, in time: what it takes, how long it takes
//! it, and when the host gets to know. The arithmetic is done by another driver on the host, which
//! is as fast as it is: [`software`](keyway_drivers::software) for the right bytes,
//! [`null`](crate::null) where only time counts and the card is faster than the host (four 5820s
//! are, at 3DES).
//!
//! A queue works the bytes when it is polled, outside the device's lock, and only those of requests
//! that the device has announced: what it dies with has not been touched. The clock is asked in one
//! place, [`Shared::look`]; `device` is told.

mod card;
mod device;

pub use card::Card;

use device::{Device, HALVES, Half, Slot};
use keyway_engine::{
    Algorithm, Driver, DriverQueue, DriverSession, Error, Flow, Key, Kind, Place, Request, Step,
    Task, Waker, run_chain,
};
use keyway_lock::Unpoisoned;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Shorter waits are spent polling: to sleep and to be woken takes about as long.
const SPIN_NS: u64 = 50_000;

/// A card that is plugged in now, under this name, whose arithmetic `inner` does. `inner` must be a
/// driver that computes on its caller's stack.
pub fn simulated(name: &str, card: Card, inner: Arc<dyn Driver>) -> Simulated {
    let state = State { device: Device::new(&card), waiting: Vec::new() };
    Simulated {
        shared: Arc::new(Shared {
            name: name.to_owned(),
            inner,
            born: Instant::now(),
            state: Mutex::new(state),
            queues: AtomicU64::new(0),
            card,
        }),
    }
}

/// A simulated card: the driver, and the hand that pulls it out. Clones are the same card.
#[derive(Clone)]
pub struct Simulated {
    shared: Arc<Shared>,
}

/// Counts of a card's work since it was plugged in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that its rings took.
    pub accepted: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// How often a submission found a ring full.
    pub refused: u64,
    /// Interrupts that it raised.
    pub interrupts: u64,
    /// For how long its symmetric half worked.
    pub busy: Duration,
    /// For how long its public-key half worked.
    pub busy_public_key: Duration,
    /// For how long it has been there.
    pub elapsed: Duration,
}

impl Counters {
    /// The part of the time for which the symmetric half worked, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        self.busy.as_secs_f64() / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The counts since an earlier look at the same card.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            accepted: self.accepted - earlier.accepted,
            bytes: self.bytes - earlier.bytes,
            refused: self.refused - earlier.refused,
            interrupts: self.interrupts - earlier.interrupts,
            busy: self.busy - earlier.busy,
            busy_public_key: self.busy_public_key - earlier.busy_public_key,
            elapsed: self.elapsed - earlier.elapsed,
        }
    }
}

impl Simulated {
    /// Pulls the card out of its slot. Requests that it had announced are done; the rest of the
    /// accepted ones are given back.
    pub fn kill(&self) {
        self.shared.change(Device::kill);
    }

    /// The card stops and says nothing. After [`Card::watchdog_ns`] it is taken for dead.
    pub fn hang(&self) {
        self.shared.change(Device::hang);
    }

    /// The card dies when it has worked on so many requests, counted from the first it ever took,
    /// and turns to the next; a request that it had no time to announce is lost with it.
    pub fn kill_after(&self, requests: u64) {
        self.shared.change(|device| device.kill_after(requests));
    }

    /// Its counts until now.
    pub fn counters(&self) -> Counters {
        let state = self.shared.look();
        let device = &state.device;
        Counters {
            accepted: device.accepted,
            bytes: device.bytes,
            refused: device.refused,
            interrupts: device.interrupts(),
            busy: Duration::from_nanos(device.busy(Half::Symmetric)),
            busy_public_key: Duration::from_nanos(device.busy(Half::PublicKey)),
            elapsed: Duration::from_nanos(device.now),
        }
    }
}

struct Shared {
    name: String,
    card: Card,
    inner: Arc<dyn Driver>,
    born: Instant,
    state: Mutex<State>,
    /// Queues made so far.
    queues: AtomicU64,
}

struct State {
    device: Device,
    /// Queues, by number, that found a ring full; woken when there is room.
    waiting: Vec<(u64, Waker)>,
}

impl Shared {
    fn now(&self) -> u64 {
        self.born.elapsed().as_nanos() as u64
    }

    /// The device as it is now.
    fn look(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unpoisoned();
        // Asked under the lock: so no thread brings an older time than the one before.
        if state.device.advance(self.now()) {
            for (_, waker) in state.waiting.drain(..) {
                waker.wake();
            }
        }
        state
    }

    fn change(&self, change: impl FnOnce(&mut Device)) {
        change(&mut self.look().device);
        // Wakes every thread that waits for the card.
        drop(self.look());
    }

    /// Waits until `ready` has an answer; until then it says when to ask again.
    fn wait<T>(&self, mut ready: impl FnMut(&mut Device) -> Result<T, u64>) -> T {
        loop {
            let at = match ready(&mut self.look().device) {
                Ok(answer) => return answer,
                Err(at) => at,
            };
            match at.saturating_sub(self.now()) {
                0 => {}
                wait if wait > SPIN_NS => thread::sleep(Duration::from_nanos(wait - SPIN_NS)),
                _ => {
                    while self.now() < at {
                        std::hint::spin_loop();
                    }
                }
            }
        }
    }
}

impl Driver for Simulated {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn place(&self) -> Place {
        Place::Device
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        let Shared { card, inner, .. } = &*self.shared;
        let in_one_pass = match steps {
            [_] => true,
            [first, second] => (first.kind(), second.kind()) == (Kind::Cipher, Kind::Mac),
            _ => false,
        };
        let one_by_one = || steps.iter().all(|step| inner.supports(&[*step]));
        in_one_pass
            && steps.iter().all(|step| card.algorithms.contains(step))
            && (inner.supports(steps) || one_by_one())
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let Shared { card, inner, .. } = &*self.shared;
        let [Step { algorithm, key }, ..] = *steps else {
            return Err(Error::invalid_request("a session has at least one step"));
        };
        if self.shared.look().device.is_dead() {
            return Err(Error::Gone);
        }
        let half = match algorithm.kind() {
            Kind::Signature | Kind::Encryption | Kind::Exchange | Kind::Kem => Half::PublicKey,
            _ => Half::Symmetric,
        };
        // Public keys are cheap for the host: a card is asked for private ones.
        if algorithm.kind() == Kind::Signature && matches!(key, Key::None) {
            return Err(Error::Unsupported(algorithm));
        }
        let algorithms: Vec<_> = steps.iter().map(|step| step.algorithm).collect();
        let arithmetic = if inner.supports(&algorithms) {
            vec![inner.open(steps)?]
        } else {
            steps.iter().map(|step| inner.open(&[*step])).collect::<Result<_, _>>()?
        };
        let signature_ns = match arithmetic.first() {
            Some(key) if half == Half::PublicKey => card.signature_ns(key.signature_bytes_max()),
            _ => 0,
        };
        let shared = self.shared.clone();
        Ok(Box::new(Session { shared, half, signature_ns, algorithms, arithmetic }))
    }

    fn queue(&self, waker: &Waker) -> Option<Box<dyn DriverQueue>> {
        let shared = self.shared.clone();
        Some(Box::new(Queue {
            number: shared.queues.fetch_add(1, Ordering::Relaxed),
            waker: waker.clone(),
            pending: [VecDeque::new(), VecDeque::new()],
            accepted: Vec::new(),
            refused: None,
            shared,
        }))
    }
}

struct Session {
    shared: Arc<Shared>,
    half: Half,
    /// How long a signature takes.
    signature_ns: u64,
    algorithms: Vec<Algorithm>,
    /// The inner driver's: one session, or one for each step of a chain it does not do whole.
    arithmetic: Vec<Box<dyn DriverSession>>,
}

impl Session {
    /// Nanoseconds that a request occupies the card.
    fn service(&self, request: &Request<'_>) -> u64 {
        let card = &self.shared.card;
        match request {
            Request::Sign { .. } => self.signature_ns,
            Request::Chain { direction, .. } => {
                card.symmetric_ns(request.bytes(), Some(*direction))
            }
            _ if self.half == Half::PublicKey => card.operation_ns,
            _ => card.symmetric_ns(request.bytes(), None),
        }
    }

    fn work(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match &*self.arithmetic {
            [whole] => whole.run(request),
            steps => {
                run_chain(request, &self.algorithms, |index, request| match steps.get(index) {
                    Some(step) => step.run(request),
                    None => Err(STRANGER),
                })
            }
        }
    }
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let (service, bytes) = (self.service(request), request.bytes());
        let slot = self.shared.wait(|device| {
            if device.is_dead() {
                return Ok(Err(Error::Gone));
            }
            let slot = device.accept(self.half, service, bytes);
            device.close();
            if slot.is_none() {
                keyway_engine::found_busy();
            }
            slot.map(Ok).ok_or_else(|| device.capacity_at(self.half))
        })?;
        // The buffers are not touched before the card would begin, so that it can die until then;
        // from then on the host computes while the card is taken to.
        self.shared.wait(|device| match device.has_begun(&slot) {
            true => Ok(Ok(())),
            false if device.is_dead() => Ok(Err(Error::Gone)),
            false => Err(slot.begin.min(device.announces_at(&slot))),
        })?;
        let result = self.work(request);
        self.shared.wait(|device| match device.is_announced(&slot) || device.is_dead() {
            true => Ok(()),
            false => Err(device.announces_at(&slot)),
        });
        result
    }

    fn signature_bytes_max(&self) -> usize {
        self.arithmetic.first().map_or(0, |key| key.signature_bytes_max())
    }
}

struct Queue {
    shared: Arc<Shared>,
    number: u64,
    waker: Waker,
    /// Accepted by each half and not yet handed back, in order.
    pending: [VecDeque<(Slot, Box<Task>)>; 2],
    /// Empty between calls, kept for its room.
    accepted: Vec<Slot>,
    /// The half that had no room.
    refused: Option<Half>,
}

impl DriverQueue for Queue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, more: bool) -> Flow {
        self.refused = None;
        let mut state = self.shared.look();
        let State { device, waiting } = &mut *state;
        if device.is_dead() {
            return Flow::Gone;
        }
        for task in tasks.iter_mut() {
            let (half, service, bytes) = match task.parts_as::<Session>() {
                Some((session, operation)) => {
                    let service = operation.with(|request| session.service(request));
                    (session.half, service, operation.bytes())
                }
                // Not a task of ours; `poll` says so.
                None => (Half::Symmetric, 0, 0),
            };
            match device.accept(half, service, bytes) {
                Some(slot) => self.accepted.push(slot),
                None => {
                    self.refused = Some(half);
                    if waiting.iter().all(|(number, _)| *number != self.number) {
                        waiting.push((self.number, self.waker.clone()));
                    }
                    break;
                }
            }
        }
        if !more {
            device.close();
        }
        drop(state);
        let taken = tasks.drain(..self.accepted.len());
        for (slot, mut task) in self.accepted.drain(..).zip(taken) {
            task.begin();
            self.pending[slot.half as usize].push_back((slot, task));
        }
        if self.refused.is_some() { Flow::Busy } else { Flow::Open }
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        if self.pending.iter().all(VecDeque::is_empty) {
            return;
        }
        let state = self.shared.look();
        let announced = HALVES.map(|half| state.device.announced(half));
        let dead = state.device.is_dead();
        drop(state);
        for (pending, announced) in self.pending.iter_mut().zip(announced) {
            while let Some((slot, mut task)) =
                pending.pop_front_if(|(slot, _)| dead || slot.number < announced)
            {
                if slot.number < announced {
                    let result = match task.parts_as::<Session>() {
                        Some((session, operation)) => operation.with(|task| session.work(task)),
                        None => Err(STRANGER),
                    };
                    task.complete(result);
                } else {
                    task.give_back();
                }
                done.push(task);
            }
        }
    }

    fn due(&self) -> Option<u64> {
        let state = self.shared.look();
        let device = &state.device;
        let firsts = self.pending.iter().filter_map(|pending| pending.front());
        let announced = firsts.map(|(slot, _)| device.announces_at(slot));
        let capacity = self.refused.map(|half| device.capacity_at(half));
        announced.chain(capacity).min().map(|at| at.saturating_sub(device.now))
    }
}

const STRANGER: Error =
    Error::Driver { driver: "simulated", why: "the task is of another driver's session" };
