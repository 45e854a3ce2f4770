//! AES-CBC and HMAC of many requests at a time.
//!
//! CBC encryption and hashing are chains of steps that wait for each other, so one request leaves
//! most of a wide processor idle. The backend fills it with more requests, one in each lane. That
//! pays from about four requests of one kind on. The `software` driver's code runs the others:
//! single requests, decryption, and layouts that the backend does not know.

use crate::batch_queue::{BatchQueue, BatchRunner};
use crate::software;
use keyway_engine::{
    Algorithm, Direction, Driver, DriverQueue, DriverSession, Error, Iv, Key, Operation, Part,
    Request, Step, Task, Waker, run_chain,
};
use keyway_simd::{CbcBackend, CbcKey, Cipher, Hash, HmacKey, Job, Mac};
use std::array;
use std::sync::Arc;

const NAME: &str = "multibuffer";

/// Most requests that are gathered before they are run.
const BATCH_MAX: usize = 32;
/// Fewest requests, of whatever kind, that are faster in a batch than one after another.
const BATCH_MIN: usize = 3;
/// The bytes of a request beside its message: keys, padding, the outer hash.
const FIXED_BYTES: usize = 128;

/// A driver, `multibuffer`, for AES-128/256-CBC, for HMAC with SHA-1 or SHA-256, and for chains of
/// the first and the second (encrypt-then-MAC: RFC 4303, RFC 7366), that works on up to 16 requests
/// of a queue at the same time. [`Direction::Unprotect`] and single requests go the way of the
/// `software` driver. `None` where the processor has nothing to gain from it.
///
/// It computes on the submitting thread, and keeps what was submitted with `more` until there are
/// 32 requests or the queue is polled.
pub fn multibuffer() -> Option<Arc<dyn Driver>> {
    CbcBackend::detect().map(multibuffer_on)
}

/// As [`multibuffer`], with this backend, whether it is faster or not: for tests.
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
        let sorted = Vec::with_capacity(BATCH_MAX);
        Some(Box::new(BatchQueue::new(Runner { backend: self.backend, sorted })))
    }
}

fn cbc_key(key: &[u8]) -> Result<CbcKey, Error> {
    match (key.try_into(), key.try_into()) {
        (Ok(key), _) => Ok(CbcKey::aes128(key)),
        (_, Ok(key)) => Ok(CbcKey::aes256(key)),
        _ => Err(Error::InvalidKey("it is not as long as the algorithm's keys are")),
    }
}

/// The kind of work that the lanes of a batch have in common.
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
    /// Sessions of the software driver for these steps.
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
    /// Makes a job for the backend of an operation that fits (see [`Classified::new`]). Also
    /// returns the length of its output in bytes.
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

/// A job without work.
fn no_job<'t>() -> Job<'t> {
    Job { message: &mut [], cipher: None, mac: None }
}

struct Runner {
    backend: CbcBackend,
    /// Empty between two batches.
    sorted: Vec<Classified>,
}

struct Classified {
    /// `None` for one that is not for the backend.
    kind: Option<Kind>,
    /// Bytes of the message.
    bytes: usize,
    task: Box<Task>,
}

impl BatchRunner for Runner {
    const BATCH_MAX: usize = BATCH_MAX;

    fn run(&mut self, tasks: &mut Vec<Box<Task>>) {
        if tasks.len() < BATCH_MIN {
            tasks.iter_mut().for_each(|task| task.run());
            return;
        }
        self.sorted.extend(tasks.drain(..).map(Classified::new));
        // The lanes of a batch are of one kind, and take as long as the longest.
        self.sorted.sort_unstable_by_key(|entry| (entry.kind, entry.bytes));
        for same_kind in self.sorted.chunk_by_mut(|one, other| one.kind == other.kind) {
            let (batch, singles) = same_kind.split_at_mut(batch_len(same_kind));
            if !batch.is_empty() {
                seal(self.backend, batch);
            }
            singles.iter_mut().for_each(|entry| entry.task.run());
        }
        tasks.extend(self.sorted.drain(..).map(|entry| entry.task));
    }
}

impl Classified {
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
        Classified { kind, bytes: task.operation.bytes(), task }
    }
}

/// How many from the front are faster in a batch than one after another. A batch takes as long as
/// its longest request in a lane, and that as long as `enough` of its length one after another.
fn batch_len(same_kind: &[Classified]) -> usize {
    let enough = match same_kind.first().and_then(|first| first.kind) {
        None => return 0,
        Some(Kind::Aes128 | Kind::Aes256) => BATCH_MIN,
        Some(Kind::Aes128Sha1 | Kind::Aes256Sha1) => 4,
        Some(Kind::Sha256) => 9,
        Some(Kind::Sha1 | Kind::Aes128Sha256 | Kind::Aes256Sha256) => 5,
    };
    let work = |entry: &Classified| entry.bytes + FIXED_BYTES;
    let mut all: usize = same_kind.iter().map(work).sum();
    let mut number = same_kind.len();
    for longest in same_kind.iter().rev().map(work) {
        if all >= enough * longest {
            break;
        }
        all -= longest;
        number -= 1;
    }
    number
}

/// Takes at most [`BATCH_MAX`] of one kind through the backend.
fn seal(backend: CbcBackend, batch: &mut [Classified]) {
    let number = batch.len();
    let mut results = [None; BATCH_MAX];
    let mut tasks = batch.iter_mut().zip(&mut results);
    let mut jobs: [Job<'_>; BATCH_MAX] = array::from_fn(|_| {
        let Some((Classified { task, .. }, result)) = tasks.next() else { return no_job() };
        task.begin();
        let parts = task.parts_as::<Session>();
        let Some((bytes, job)) = parts.and_then(|(session, operation)| session.job(operation))
        else {
            return no_job();
        };
        *result = Some(bytes);
        job
    });
    let sealed = jobs.get_mut(..number).is_some_and(|jobs| backend.seal(jobs).is_ok());
    for (Classified { task, .. }, result) in batch.iter_mut().zip(results) {
        match result {
            Some(bytes) if sealed => task.complete(Ok(bytes)),
            // The backend did not touch it.
            _ => task.run(),
        }
    }
}
