//! Work for drivers under test, and what must come out of it.
#![allow(dead_code)] // each test program uses its part

use keyway_engine::{
    Algorithm, Demand, Driver, DriverSession, Engine, Error, Key, Operation, Parameters, Queue,
    Request, Session, Step, Task,
};
use proptest::prelude::*;
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

/// Longer than anything here takes: a task that waits so long was forgotten.
pub const FOREVER: Duration = Duration::from_secs(120);

pub fn engine(driver: Arc<dyn Driver>) -> Engine {
    Engine::builder().driver(driver).slow_pool(1, 1).build()
}

/// Sessions of three kinds of work on the driver of that name.
pub fn sessions(engine: &Engine, driver: &str, ordered: bool) -> [Session; 3] {
    sessions_on(engine, Demand::Named(driver), ordered)
}

pub fn sessions_on(engine: &Engine, demand: Demand<'_>, ordered: bool) -> [Session; 3] {
    [
        (Algorithm::Aes128Gcm, Key::Secret(&[7; 16])),
        (Algorithm::HmacSha256, Key::Secret(&[8; 32])),
        (Algorithm::Sha256, Key::None),
    ]
    .map(|(algorithm, key)| {
        let mut parameters = Parameters::new(algorithm, key).on(demand);
        parameters.ordered = ordered;
        engine.session(parameters).unwrap()
    })
}

/// The kind, of three, that the task of this number is.
fn kind(number: u64) -> usize {
    (number * 7 / 3) as usize % 3
}

pub fn operation(number: u64) -> Operation {
    let data = vec![number as u8; (number as usize * 37) % 600];
    match kind(number) {
        0 => {
            let mut nonce = [0; 12];
            nonce[..8].copy_from_slice(&number.to_le_bytes());
            Operation::seal(nonce, b"header", data)
        }
        1 => Operation::mac(Algorithm::HmacSha256, data),
        _ => Operation::digest(Algorithm::Sha256, data),
    }
}

fn output(operation: &Operation) -> Vec<u8> {
    match operation {
        Operation::Seal { data, tag, .. } => [&data[..], tag].concat(),
        Operation::Mac { out, .. } | Operation::Digest { out, .. } => out.clone(),
        _ => panic!("no such work is made here"),
    }
}

pub fn digest(session: &Session, data: &[u8], user: u64) -> Box<Task> {
    let operation = Operation::digest(Algorithm::Sha256, data);
    Task::tagged(session, operation, user)
}

/// The next step of a consumer.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Submit { count: usize, more: bool },
    Poll,
    Wait,
}

pub fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (1usize..20, any::<bool>()).prop_map(|(count, more)| Act::Submit { count, more }),
        1 => Just(Act::Poll),
        1 => Just(Act::Wait),
    ];
    proptest::collection::vec(act, 1..24)
}

/// Does all that, and returns every task in the order in which they came back; the numbers of those
/// that were accepted are 0, 1, 2 and so on.
pub fn drive(queue: &mut Queue, sessions: &[Session; 3], acts: &[Act]) -> Vec<Box<Task>> {
    let (mut next, mut refused, mut done) = (0, Vec::new(), Vec::new());
    for act in acts {
        match *act {
            Act::Submit { count, more } => {
                while refused.len() < count {
                    refused.push(Task::tagged(&sessions[kind(next)], operation(next), next));
                    next += 1;
                }
                let (offered, capacity) = (refused.len(), queue.capacity());
                let accepted = queue.submit(&mut refused, more);
                assert_eq!(accepted, offered.min(capacity));
                assert_eq!(refused.len(), offered - accepted);
            }
            Act::Poll => {
                let before = (done.len(), queue.in_flight());
                let found = queue.poll(&mut done);
                assert_eq!((done.len(), queue.in_flight()), (before.0 + found, before.1 - found));
            }
            Act::Wait => {
                let waited = queue.in_flight() > 0;
                assert_eq!(queue.wait(&mut done, FOREVER) > 0, waited);
            }
        }
    }
    finish(queue, &mut done);
    assert_eq!(done.len(), next as usize - refused.len());
    done
}

/// Waits for all that is in flight.
pub fn finish(queue: &mut Queue, done: &mut Vec<Box<Task>>) {
    while queue.in_flight() > 0 {
        assert!(queue.wait(done, FOREVER) > 0, "tasks were forgotten");
    }
}

/// Each number once, and each result the software's unless it is an error that `allowed` knows.
pub fn check(done: &[Box<Task>], allowed: impl Fn(Error) -> bool) {
    let engine = engine(keyway_drivers::software());
    let sessions = sessions(&engine, "software", false);
    let mut seen = vec![false; done.len()];
    for task in done {
        let number = task.user;
        assert!(!std::mem::replace(&mut seen[number as usize], true), "{number} came twice");
        let mut expected = operation(number);
        let result = expected.with(|request| sessions[kind(number)].run(request));
        match task.result() {
            Err(error) if allowed(error) => {}
            other => {
                assert_eq!(other, result, "{number}");
                assert_eq!(output(&task.operation), output(&expected), "{number}");
            }
        }
    }
}

/// Whether each session's tasks came back in the order of their numbers.
pub fn in_order(done: &[Box<Task>]) -> bool {
    (0..3).all(|which| {
        let numbers = done.iter().map(|task| task.user).filter(|number| kind(*number) == which);
        numbers.is_sorted()
    })
}

/// Software that a test holds, and that panics when it is told to.
struct Told {
    inner: Arc<dyn Driver>,
    /// Met twice by the digest of `hold`: when it is begun and when it may go on.
    gate: Arc<Barrier>,
    gone: mpsc::Sender<()>,
}

/// The driver, its gate, and what tells that it was dropped.
pub fn told() -> (Arc<dyn Driver>, Arc<Barrier>, mpsc::Receiver<()>) {
    let gate = Arc::new(Barrier::new(2));
    let (gone, is_gone) = mpsc::channel();
    let told = Told { inner: keyway_drivers::software(), gate: gate.clone(), gone };
    (Arc::new(told), gate, is_gone)
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.gone.send(());
    }
}

struct ToldSession {
    inner: Box<dyn DriverSession>,
    gate: Arc<Barrier>,
}

impl Driver for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.inner.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(ToldSession { inner: self.inner.open(steps)?, gate: self.gate.clone() }))
    }
}

impl DriverSession for ToldSession {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        if let Request::Digest { data: [b"hold"], .. } = request {
            self.gate.wait();
            self.gate.wait();
        }
        let result = self.inner.run(request);
        if let Request::Digest { data: [b"panic"], .. } | Request::Open { aad: b"panic", .. } =
            request
        {
            panic!("as told");
        }
        result
    }
}
