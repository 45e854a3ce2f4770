//! A driver around software that writes down every operation and fails those it is told to.

use keyway_engine::{
    Algorithm, Driver, DriverSession, DriverStream, Engine, Error, Key, Request, Step,
};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A request to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A session with a key that was given.
    Open,
    Generate,
    Extract,
    Stream,
    Update,
    Fork,
    Finish,
    Seal,
    OpenRecord,
    Mask,
    Digest,
    Mac,
    Expand,
    PublicKey,
    Agree,
    Encapsulate,
    Decapsulate,
    Sign,
    Verify,
    Random,
}

#[derive(Clone)]
pub struct Probe {
    software: Arc<dyn Driver>,
    without: &'static [Algorithm],
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    events: Vec<(Op, Algorithm)>,
    /// The positions in `events` that fail.
    fails: Range<usize>,
}

impl Probe {
    pub fn new() -> Self {
        Self::without(&[])
    }

    /// One that cannot do everything.
    pub fn without(without: &'static [Algorithm]) -> Self {
        Probe { software: keyway_drivers::software(), without, state: Arc::default() }
    }

    /// An engine with this driver alone.
    pub fn engine(&self) -> Engine {
        Engine::builder().driver(Arc::new(self.clone())).slow_pool(0, 0).build()
    }

    /// Forgets what was written down, and from now on fails the operations at these positions.
    pub fn restart(&self, fails: Range<usize>) {
        *self.state.lock().unwrap() = State { events: Vec::new(), fails };
    }

    pub fn events(&self) -> Vec<(Op, Algorithm)> {
        self.state.lock().unwrap().events.clone()
    }

    pub fn count(&self, op: Op) -> usize {
        self.events().iter().filter(|event| event.0 == op).count()
    }

    pub fn count_of(&self, op: Op, algorithm: Algorithm) -> usize {
        self.events().iter().filter(|event| **event == (op, algorithm)).count()
    }

    fn step(&self, op: Op, algorithm: Algorithm) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap();
        let position = state.events.len();
        state.events.push((op, algorithm));
        if state.fails.contains(&position) {
            return Err(Error::Driver { driver: "probe", why: "it was told to" });
        }
        Ok(())
    }
}

impl Driver for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        !steps.iter().any(|step| self.without.contains(step)) && self.software.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let Step { algorithm, key } = steps[0];
        match key {
            // The engine opens these once in its life; that is no operation.
            Key::None => {}
            Key::Generate => self.step(Op::Generate, algorithm)?,
            Key::Extract { .. } => self.step(Op::Extract, algorithm)?,
            _ => self.step(Op::Open, algorithm)?,
        }
        let inner = self.software.open(steps)?;
        Ok(Box::new(Session { probe: self.clone(), algorithm, inner }))
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.step(Op::Stream, algorithm)?;
        let inner = self.software.stream(algorithm)?;
        Ok(Box::new(Stream { probe: self.clone(), algorithm, inner }))
    }
}

struct Session {
    probe: Probe,
    algorithm: Algorithm,
    inner: Box<dyn DriverSession>,
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let op = match request {
            Request::Seal { .. } => Op::Seal,
            Request::Open { .. } => Op::OpenRecord,
            Request::Mask { .. } => Op::Mask,
            Request::Digest { .. } => Op::Digest,
            Request::Mac { .. } => Op::Mac,
            Request::Expand { .. } => Op::Expand,
            Request::PublicKey { .. } => Op::PublicKey,
            Request::Agree { .. } => Op::Agree,
            Request::Encapsulate { .. } => Op::Encapsulate,
            Request::Decapsulate { .. } => Op::Decapsulate,
            Request::Sign { .. } => Op::Sign,
            Request::Verify { .. } => Op::Verify,
            Request::Random { .. } => Op::Random,
            _ => panic!("TLS asks for nothing else"),
        };
        self.probe.step(op, self.algorithm)?;
        self.inner.run(request)
    }

    fn signature_bytes_max(&self) -> usize {
        self.inner.signature_bytes_max()
    }
}

struct Stream {
    probe: Probe,
    algorithm: Algorithm,
    inner: Box<dyn DriverStream>,
}

impl DriverStream for Stream {
    fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        self.probe.step(Op::Update, self.algorithm)?;
        self.inner.update(data)
    }

    fn fork(&self) -> Result<Box<dyn DriverStream>, Error> {
        self.probe.step(Op::Fork, self.algorithm)?;
        let inner = self.inner.fork()?;
        Ok(Box::new(Stream { probe: self.probe.clone(), algorithm: self.algorithm, inner }))
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<(), Error> {
        self.probe.step(Op::Finish, self.algorithm)?;
        self.inner.finish(out)
    }
}
