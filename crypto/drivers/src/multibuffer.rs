//! AES-CBC and HMAC of many requests at a time.
//!
//! CBC encryption and hashing are chains of steps that wait for each other, so one request leaves
//! most of a wide processor idle; the backend fills it with requests of other lanes. That pays from
//! about four requests of one kind on. What comes alone, what decrypts, and what is laid out as the
//! backend cannot take it, is done as the `software` driver does it, step by step.

use crate::{pass_on, software};
use keyway_engine::{
    Algorithm, Direction, Driver, DriverQueue, DriverSession, Error, Flow, Iv, Key, Operation,
    Part, Request, Step, Task, Waker, run_chain,
};
use keyway_simd::{CbcBackend, CbcKey, Cipher, Hash, HmacKey, Job, Mac};
use std::array;
use std::sync::Arc;

const NAME: &str = "multibuffer";

/// Most requests that are gathered before they are worked on.
const GROUP: usize = 32;
/// Fewest requests, of whatever kind, that are done sooner together than one after another.
const COMPANY_MIN: usize = 3;
/// What a request costs beside its message, in bytes: keys, padding, the outer hash.
const FIXED_BYTES: usize = 128;

/// A driver, `multibuffer`, for AES-128/256-CBC, for HMAC with SHA-1 or SHA-256, and for chains of
/// the first and the second (encrypt-then-MAC: RFC 4303, RFC 7366), that works on up to 16 requests
/// of a queue at the same time; [`Direction::Unprotect`] and lone requests are done like the
/// `software` driver does them. `None` where the processor has nothing to gain from it.
///
/// It computes on the submitting thread, and keeps what was submitted with `more` until there are
/// 32 requests or the queue is polled.
pub fn multibuffer() -> Option<Arc<dyn Driver>> {
    CbcBackend::detect().map(multibuffer_on)
}

/// The same with this backend, be it worth it or not: for tests.
pub fn multibuffer_on(backend: CbcBackend) -> Arc<dyn Driver> {
    Arc::new(Multibuffer { backend, software: software() })
}

struct Multibuffer {
    backend: CbcBackend,
    software: Arc<dyn Driver>,
}

impl Driver for Multibuffer {
    fn name(&self) -> &str {
        NAME
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        Kind::of(steps).is_some() && steps.iter().all(|step| self.software.supports(&[*step]))
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let algorithms: Vec<_> = steps.iter().map(|step| step.algorithm).collect();
        Kind::of(&algorithms).ok_or(Error::invalid_request("it does not do such a chain"))?;
        let software =
            steps.iter().map(|step| self.software.open(&[*step])).collect::<Result<_, _>>()?;
        let mut session = Session { cipher: None, mac: None, algorithms, software };
        for Step { algorithm, key } in steps {
            let Key::Secret(key) = key else { return Err(Error::Unsupported(*algorithm)) };
            match algorithm {
                Algorithm::HmacSha1 => session.mac = Some(HmacKey::new(Hash::Sha1, key)),
                Algorithm::HmacSha256 => session.mac = Some(HmacKey::new(Hash::Sha256, key)),
                _ => session.cipher = Some(cbc_key(key)?),
            }
        }
        Ok(Box::new(session))
    }

    fn queue(&self, _: &Waker) -> Option<Box<dyn DriverQueue>> {
        let (waiting, finished) = (Vec::with_capacity(GROUP), Vec::new());
        Some(Box::new(Queue { backend: self.backend, waiting, finished }))
    }
}

fn cbc_key(key: &[u8]) -> Result<CbcKey, Error> {
    match (key.try_into(), key.try_into()) {
        (Ok(key), _) => Ok(CbcKey::aes128(key)),
        (_, Ok(key)) => Ok(CbcKey::aes256(key)),
        _ => Err(Error::InvalidKey("it is not as long as the algorithm's keys are")),
    }
}

/// What the lanes of a batch have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Aes128,
    Aes256,
    Sha1,
    Sha256,
    Aes128Sha1,
    Aes128Sha256,
    Aes256Sha1,
    Aes256Sha256,
}

impl Kind {
    fn of(steps: &[Algorithm]) -> Option<Self> {
        use Algorithm::{Aes128Cbc, Aes256Cbc, HmacSha1, HmacSha256};
        match steps {
            [Aes128Cbc] => Some(Kind::Aes128),
            [Aes256Cbc] => Some(Kind::Aes256),
            [HmacSha1] => Some(Kind::Sha1),
            [HmacSha256] => Some(Kind::Sha256),
            [Aes128Cbc, HmacSha1] => Some(Kind::Aes128Sha1),
            [Aes128Cbc, HmacSha256] => Some(Kind::Aes128Sha256),
            [Aes256Cbc, HmacSha1] => Some(Kind::Aes256Sha1),
            [Aes256Cbc, HmacSha256] => Some(Kind::Aes256Sha256),
            _ => None,
        }
    }
}

struct Session {
    cipher: Option<CbcKey>,
    mac: Option<HmacKey>,
    algorithms: Vec<Algorithm>,
    /// The same steps, each as the software driver does it.
    software: Vec<Box<dyn DriverSession>>,
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        if let [only] = &*self.software {
            return only.run(request);
        }
        run_chain(request, &self.algorithms, |index, request| match self.software.get(index) {
            Some(step) => step.run(request),
            None => Err(Error::invalid_request("a chain has one part for each step")),
        })
    }
}

impl Session {
    /// Makes of an operation that fits (see [`Waiting::new`]) a job for the backend, with the bytes it
    /// will have put out.
    #[inline]
    fn job<'t>(&'t self, operation: &'t mut Operation) -> Option<(usize, Job<'t>)> {
        match operation {
            Operation::Chain { direction: Direction::Protect, data, length, parts } => {
                let [Part::Cipher { iv, text }, Part::Mac { over, tag }] = &**parts else {
                    return None;
                };
                let iv = match iv {
                    Iv::Given(iv) => *iv,
                    Iv::At(at) => *data.get(*at..)?.first_chunk()?,
                };
                let (message, rest) = data.split_at_mut_checked(tag.start)?;
                let (key, tag) = (self.mac.as_ref()?, rest.get_mut(..tag.len())?);
                let cipher = Cipher { key: self.cipher.as_ref()?, iv, range: text.clone() };
                let mac = Mac { key, range: over.clone(), front: &[], back: &[], tag };
                Some((*length, Job { message, cipher: Some(cipher), mac: Some(mac) }))
            }
            Operation::Encrypt { iv, data } => {
                let (key, range) = (self.cipher.as_ref()?, 0..data.len());
                let cipher = Some(Cipher { key, iv: *iv, range });
                Some((data.len(), Job { message: data, cipher, mac: None }))
            }
            Operation::Mac { data, out } => {
                let (key, range, bytes) = (self.mac.as_ref()?, 0..data.len(), out.len());
                let mac = Some(Mac { key, range, front: &[], back: &[], tag: out });
                Some((bytes, Job { message: data, cipher: None, mac }))
            }
            _ => None,
        }
    }
}

/// A job of nothing.
fn nothing<'t>() -> Job<'t> {
    Job { message: &mut [], cipher: None, mac: None }
}

/// A consumer's queue: what waits for company, and what is done.
struct Queue {
    backend: CbcBackend,
    waiting: Vec<Waiting>,
    finished: Vec<Box<Task>>,
}

struct Waiting {
    /// `None` for one that is not for the backend.
    kind: Option<Kind>,
    /// Bytes of the message.
    bytes: usize,
    task: Box<Task>,
}

impl DriverQueue for Queue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, more: bool) -> Flow {
        if !more && self.waiting.len() + tasks.len() < COMPANY_MIN {
            tasks.iter_mut().for_each(|task| task.run());
            pass_on(tasks, &mut self.finished);
        }
        while !tasks.is_empty() {
            let room = GROUP - self.waiting.len();
            self.waiting.extend(tasks.drain(..room.min(tasks.len())).map(Waiting::new));
            if self.waiting.len() == GROUP {
                self.work();
            }
        }
        if !more {
            self.work();
        }
        Flow::Open
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        self.work();
        pass_on(&mut self.finished, done);
    }
}

impl Queue {
    /// Does all that waits.
    fn work(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        // Lanes are of one kind, and all go as far as the shortest.
        self.waiting.sort_unstable_by_key(|waiting| (waiting.kind, waiting.bytes));
        for alike in self.waiting.chunk_by_mut(|one, other| one.kind == other.kind) {
            let (together, alone) = alike.split_at_mut(company(alike));
            if !together.is_empty() {
                seal(self.backend, together);
            }
            alone.iter_mut().for_each(|waiting| waiting.task.run());
        }
        self.finished.extend(self.waiting.drain(..).map(|waiting| waiting.task));
    }
}

impl Waiting {
    fn new(task: Box<Task>) -> Self {
        let fits = match &task.operation {
            Operation::Chain { direction: Direction::Protect, parts, .. } => match &**parts {
                // The backend wants the tag apart from the message.
                [Part::Cipher { text, .. }, Part::Mac { over, tag }] => {
                    text.len().is_multiple_of(16) && text.end.max(over.end) <= tag.start
                }
                _ => false,
            },
            Operation::Encrypt { .. } | Operation::Mac { .. } => true,
            _ => false,
        };
        let kind = if fits { Kind::of(task.session().algorithms()) } else { None };
        Waiting { kind, bytes: task.operation.bytes(), task }
    }
}

/// How many from the front are done sooner together than one after another. Lanes take as long as
/// the longest of them does, and that takes as long as so many of its length one after another.
fn company(alike: &[Waiting]) -> usize {
    let enough = match alike.first().and_then(|first| first.kind) {
        None => return 0,
        Some(Kind::Aes128 | Kind::Aes256) => COMPANY_MIN,
        Some(Kind::Aes128Sha1 | Kind::Aes256Sha1) => 4,
        Some(Kind::Sha256) => 9,
        Some(Kind::Sha1 | Kind::Aes128Sha256 | Kind::Aes256Sha256) => 5,
    };
    let work = |waiting: &Waiting| waiting.bytes + FIXED_BYTES;
    let mut all: usize = alike.iter().map(work).sum();
    let mut number = alike.len();
    for longest in alike.iter().rev().map(work) {
        if all >= enough * longest {
            break;
        }
        all -= longest;
        number -= 1;
    }
    number
}

/// Takes at most [`GROUP`] of one kind through the backend.
fn seal(backend: CbcBackend, together: &mut [Waiting]) {
    let number = together.len();
    let mut results = [None; GROUP];
    let mut tasks = together.iter_mut().zip(&mut results);
    let mut jobs: [Job<'_>; GROUP] = array::from_fn(|_| {
        let Some((Waiting { task, .. }, result)) = tasks.next() else { return nothing() };
        task.begin();
        let parts = task.parts_as::<Session>();
        let Some((bytes, job)) = parts.and_then(|(session, operation)| session.job(operation))
        else {
            return nothing();
        };
        *result = Some(bytes);
        job
    });
    let sealed = jobs.get_mut(..number).is_some_and(|jobs| backend.seal(jobs).is_ok());
    for (Waiting { task, .. }, result) in together.iter_mut().zip(results) {
        match result {
            Some(bytes) if sealed => task.complete(Ok(bytes)),
            // The backend did not touch it.
            _ => task.run(),
        }
    }
}
