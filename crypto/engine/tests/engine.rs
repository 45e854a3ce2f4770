//! The engine's promises, shown with drivers made for the purpose: no cryptography here.

use keyway_engine::{
    Algorithm, Cost, Demand, Derivation, Driver, DriverSession, DriverStream, Engine, Error, Key,
    Parameters, Request, Selection, Step,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use zeroize::Zeroizing;

type Act = Arc<dyn Fn(&mut Request<'_>) -> Result<usize, Error> + Send + Sync>;

/// Does what `act` says with every request.
struct Scripted {
    name: &'static str,
    selection: Selection,
    only: Option<Algorithm>,
    opened: AtomicUsize,
    act: Act,
}

impl Scripted {
    fn new(
        name: &'static str,
        act: impl Fn(&mut Request<'_>) -> Result<usize, Error> + Send + Sync + 'static,
    ) -> Self {
        let (selection, only, opened) = (Selection::Any, None, AtomicUsize::new(0));
        Scripted { name, selection, only, opened, act: Arc::new(act) }
    }
}

struct State(Act);

impl DriverSession for State {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        (self.0)(request)
    }
}

struct Sum(u8);

impl DriverStream for Sum {
    fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        self.0 = data.iter().fold(self.0, |sum, byte| sum.wrapping_add(*byte));
        Ok(())
    }

    fn fork(&self) -> Result<Box<dyn DriverStream>, Error> {
        Ok(Box::new(Sum(self.0)))
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<(), Error> {
        out.fill(self.0);
        Ok(())
    }
}

impl Driver for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn selection(&self) -> Selection {
        self.selection
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.only.is_none_or(|only| steps == [only])
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        match steps[0].key {
            Key::Secret([]) => Err(Error::InvalidKey("empty")),
            Key::Pkcs1(_) => Err(Error::Unsupported(Algorithm::RsaPkcs1Sha256)),
            _ => Ok(Box::new(State(self.act.clone()))),
        }
    }

    fn stream(&self, _: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        Ok(Box::new(Sum(0)))
    }
}

fn fill(byte: u8) -> impl Fn(&mut Request<'_>) -> Result<usize, Error> + Send + Sync {
    move |request| match request {
        Request::Random { out } | Request::Derive { out, .. } => {
            out.fill(byte);
            Ok(out.len())
        }
        _ => Ok(0),
    }
}

fn derivation() -> Derivation {
    Derivation {
        algorithm: Algorithm::Pbkdf2Sha256,
        cost: Cost::Pbkdf2 { iterations: 1 },
        password: Zeroizing::new(b"password".to_vec()),
        salt: b"salt".to_vec(),
        output_bytes: 4,
    }
}

fn random_byte(engine: &Engine) -> u8 {
    let mut out = [0];
    engine.random(&mut out).unwrap();
    out[0]
}

#[test]
fn the_first_fitting_driver_is_chosen_and_a_named_one_obeyed() {
    let mut digests = Scripted::new("test-digests", fill(1));
    digests.only = Some(Algorithm::Sha256);
    let mut shy = Scripted::new("test-shy", fill(2));
    shy.selection = Selection::Named;
    let engine = Engine::builder()
        .driver(Arc::new(digests))
        .driver(Arc::new(shy))
        .driver(Arc::new(Scripted::new("test-any", fill(3))))
        .build();
    assert_eq!(random_byte(&engine), 3);
    let open = |driver| {
        let key = Key::None;
        engine.session(Parameters::new(Algorithm::Random, key).on(driver))
    };
    assert_eq!(open(Demand::Named("test-shy")).unwrap().driver(), "test-shy");
    assert_eq!(
        open(Demand::Named("test-digests")).err(),
        Some(Error::Unsupported(Algorithm::Random))
    );
    assert_eq!(open(Demand::Named("absent")).err(), Some(Error::NoSuchDriver));
    assert_eq!(open(Demand::Any).unwrap().driver(), "test-any");
}

#[test]
fn a_bad_key_is_the_callers_fault_and_is_not_tried_elsewhere() {
    let second = Arc::new(Scripted::new("test-second", fill(0)));
    let engine = Engine::builder()
        .driver(Arc::new(Scripted::new("test-first", fill(0))))
        .driver(second.clone())
        .build();
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[0; 17]));
    assert!(matches!(engine.session(parameters), Err(Error::InvalidKey(_))));
    let parameters = Parameters::new(Algorithm::HmacSha256, Key::Secret(&[]));
    assert_eq!(engine.session(parameters).err(), Some(Error::InvalidKey("empty")));
    assert_eq!(second.opened.load(Ordering::Relaxed), 0);
    let parameters = Parameters::new(Algorithm::RsaPkcs1Sha256, Key::Pkcs1(&[]));
    assert!(matches!(engine.session(parameters), Err(Error::Unsupported(_))));
    assert_eq!(second.opened.load(Ordering::Relaxed), 1);
}

#[test]
fn a_request_that_does_not_fit_never_reaches_the_driver() {
    let reached = Arc::new(AtomicUsize::new(0));
    let seen = reached.clone();
    let driver = Scripted::new("test-strict", move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Ok(0)
    });
    let engine = Engine::builder().driver(Arc::new(driver)).build();
    let aead =
        engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[1; 16]))).unwrap();
    let nonce = [0; 12];
    let refused = [
        aead.run(&mut Request::Random { out: &mut [0; 4] }),
        aead.run(&mut Request::Open { nonce: &nonce, aad: b"", data: &mut [0; 15] }),
        engine.digest(Algorithm::Sha256, &[b"x"], &mut [0; 31]).map(|()| 0),
        engine.run(
            Algorithm::Argon2id,
            &mut Request::Derive {
                cost: Cost::Argon2 { memory_kib: u32::MAX, passes: 1, lanes: 1 },
                password: b"",
                salt: b"",
                out: &mut [0; 32],
            },
        ),
        engine.run(
            Algorithm::Argon2id,
            &mut Request::Derive {
                cost: Cost::Pbkdf2 { iterations: 1 },
                password: b"",
                salt: b"",
                out: &mut [0; 32],
            },
        ),
    ];
    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    assert_eq!(refused[1], Err(Error::Authentication), "shorter than a tag is a forgery");
    assert_eq!(reached.load(Ordering::Relaxed), 0);
}

#[test]
fn every_request_is_counted_by_driver_and_algorithm() {
    let driver = Scripted::new("test-counted", |request| match request {
        Request::Random { out } if out.len() == 13 => {
            Err(Error::Driver { driver: "test-counted", why: "asked to" })
        }
        Request::Random { out } => Ok(out.len()),
        _ => Ok(0),
    });
    let engine = Engine::builder().driver(Arc::new(driver)).build();
    for _ in 0..10 {
        engine.random(&mut [0; 100]).unwrap();
    }
    engine.random(&mut [0; 13]).unwrap_err();
    let value =
        |what: &str| keyway_meter::counter(&format!("engine.test-counted.random.{what}")).value();
    assert_eq!(value("operations"), 11);
    assert_eq!(value("bytes"), 1013);
    assert_eq!(value("errors"), 1);
}

#[test]
fn a_stream_forks_and_finishes() {
    let engine = Engine::builder().driver(Arc::new(Scripted::new("test-sum", fill(0)))).build();
    let mut stream = engine.stream(Algorithm::Sha256).unwrap();
    stream.update(&[1, 2]).unwrap();
    let fork = stream.fork().unwrap();
    stream.update(&[4]).unwrap();
    let (mut whole, mut part) = ([0; 32], [0; 32]);
    stream.finish(&mut whole).unwrap();
    fork.finish(&mut part).unwrap();
    assert_eq!((whole, part), ([7; 32], [3; 32]));
    let short = engine.stream(Algorithm::Sha256).unwrap().finish(&mut [0; 31]);
    assert!(matches!(short, Err(Error::InvalidRequest(_))));
}

#[test]
fn a_full_slow_class_is_busy_and_what_it_accepted_completes_once() {
    let gate = Arc::new(Barrier::new(2));
    let held = gate.clone();
    let driver = Scripted::new("test-slow", move |request| {
        if let Request::Derive { password: b"hold", .. } = request {
            held.wait(); // the test knows that the worker is taken
            held.wait(); // and lets it go
        }
        fill(9)(request)
    });
    let engine = Engine::builder().driver(Arc::new(driver)).slow_pool(1, 2).build();
    let (sender, results) = mpsc::channel();
    let submit = |password: &[u8]| {
        let sender = sender.clone();
        let done = move |result: Result<Zeroizing<Vec<u8>>, Error>| {
            sender.send(result.map(|bytes| bytes.to_vec())).unwrap();
        };
        let password = Zeroizing::new(password.to_vec());
        engine.submit(Derivation { password, ..derivation() }, Box::new(done))
    };
    submit(b"hold").unwrap();
    gate.wait();
    submit(b"a").unwrap();
    submit(b"b").unwrap();
    assert_eq!(submit(b"c"), Err(Error::Busy));
    assert_eq!(keyway_meter::counter("engine.test-slow.pbkdf2-sha-256.busy").value(), 1);
    gate.wait();
    for _ in 0..3 {
        assert_eq!(results.recv().unwrap(), Ok(vec![9; 4]));
    }
    submit(b"d").unwrap();
    assert_eq!(results.recv().unwrap(), Ok(vec![9; 4]));
    assert!(results.try_recv().is_err(), "exactly one completion each");
}

#[test]
fn shutting_down_completes_what_waits() {
    let gate = Arc::new(Barrier::new(2));
    let held = gate.clone();
    let driver = Scripted::new("test-closing", move |request| {
        held.wait();
        held.wait();
        fill(9)(request)
    });
    let engine = Engine::builder().driver(Arc::new(driver)).slow_pool(1, 8).build();
    let (sender, results) = mpsc::channel();
    for index in 0..4 {
        let sender = sender.clone();
        let gate = gate.clone();
        let done = move |result: Result<Zeroizing<Vec<u8>>, Error>| {
            if index == 1 {
                gate.wait(); // the engine is being dropped: now let the running one finish
            }
            sender.send((index, result.map(drop))).unwrap();
        };
        engine.submit(derivation(), Box::new(done)).unwrap();
    }
    gate.wait();
    drop(engine);
    drop(sender);
    let mut all: Vec<_> = results.iter().collect();
    all.sort_by_key(|(index, _)| *index);
    let closed = Err(Error::Closed);
    assert_eq!(all, [(0, Ok(())), (1, closed), (2, closed), (3, closed)]);
}

#[test]
fn a_panicking_driver_costs_one_request_not_the_pool() {
    let driver = Scripted::new("test-panics", |request| match request {
        Request::Derive { password: b"panic", .. } => panic!("as told"),
        other => fill(5)(other),
    });
    let engine = Engine::builder().driver(Arc::new(driver)).slow_pool(1, 8).build();
    let (sender, results) = mpsc::channel();
    for password in [&b"panic"[..], b"fine"] {
        let sender = sender.clone();
        let done = move |result: Result<Zeroizing<Vec<u8>>, Error>| {
            sender.send(result.map(|bytes| bytes.to_vec())).unwrap();
        };
        let password = Zeroizing::new(password.to_vec());
        engine.submit(Derivation { password, ..derivation() }, Box::new(done)).unwrap();
    }
    assert!(matches!(results.recv().unwrap(), Err(Error::Driver { .. })));
    assert_eq!(results.recv().unwrap(), Ok(vec![5; 4]));
}

#[test]
fn the_engine_may_be_dropped_by_a_completion() {
    let engine = Engine::builder()
        .driver(Arc::new(Scripted::new("test-last", fill(1))))
        .slow_pool(1, 1)
        .build();
    let (sender, results) = mpsc::channel();
    let last = engine.clone();
    let (release, released) = mpsc::channel::<()>();
    let done = move |result: Result<Zeroizing<Vec<u8>>, Error>| {
        released.recv().unwrap();
        drop(last);
        sender.send(result.is_ok()).unwrap();
    };
    engine.submit(derivation(), Box::new(done)).unwrap();
    drop(engine);
    release.send(()).unwrap();
    assert!(results.recv().unwrap());
}

/// Holds a key called `its.key`, and hands out tags that are its length.
struct Holder;

impl Driver for Holder {
    fn name(&self) -> &str {
        "holder"
    }

    /// For its key it is found all the same.
    fn selection(&self) -> Selection {
        Selection::Named
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps == [Algorithm::HmacSha256]
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        match steps {
            [Step { key: Key::Named("its.key"), .. }] => Ok(Box::new(Holder)),
            [Step { algorithm, .. }] => Err(Error::Unsupported(*algorithm)),
            _ => Err(Error::invalid_request("it does no chains")),
        }
    }
}

impl DriverSession for Holder {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let Request::Mac { out, .. } = request else {
            return Err(Error::invalid_request("it only makes MACs"));
        };
        out.fill(7);
        Ok(out.len())
    }

    fn signature_bytes_max(&self) -> usize {
        9
    }
}

/// A named key is its driver's: no other takes its place while that one is gone, and the session
/// goes on when it is back.
#[test]
fn a_named_key_is_where_it_is_held_and_nowhere_else() {
    let builder = Engine::builder().driver(keyway_drivers::software());
    let engine = builder.driver(Arc::new(Holder)).build();
    let open = |name| engine.session(Parameters::new(Algorithm::HmacSha256, Key::Named(name)));
    let session = open("its.key").unwrap();
    assert_eq!(session.driver(), "holder");
    let mac = || {
        let mut out = [0; 32];
        session.run(&mut Request::Mac { data: &[b"abc"], out: &mut out }).map(|_| out)
    };
    assert_eq!(mac(), Ok([7; 32]));
    assert!(matches!(open("another").unwrap_err(), Error::InvalidKey(_)));
    assert!(matches!(open("Not A Name").unwrap_err(), Error::InvalidKey(_)));
    assert_eq!(session.signature_bytes_max(), 9);
    engine.unregister("holder");
    assert_eq!(mac(), Err(Error::Gone));
    engine.register(Arc::new(Holder)).unwrap();
    assert_eq!(mac(), Ok([7; 32]));
    // The facts known of the key outlive a connection to its holder.
    assert_eq!(session.signature_bytes_max(), 9);
}
