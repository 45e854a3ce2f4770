//! The memory before the slow hash, by its driver's sessions.

use keyway_drivers::limits::{WRONG_FORGET, WRONG_MAX};
use keyway_drivers::{Remember, Verifier, software};
use keyway_engine::{
    Algorithm, Cost, Driver, DriverSession, Effort, Engine, Error, ExpectedLength, Field, Key,
    Parameters, Request, Session, Step, Zeroizing, limits,
};
use proptest::prelude::*;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const COST: Cost = Cost::Pbkdf2 { iterations: 2 };
const ALGORITHM: Algorithm = Algorithm::Pbkdf2Sha256;
/// The bytes that are random here.
const KEY: u8 = 0xd7;

/// The software driver, which counts its derivations.
struct Counting {
    software: Arc<dyn Driver>,
    derived: Arc<AtomicUsize>,
}

struct CountingSession {
    software: Box<dyn DriverSession>,
    derived: Arc<AtomicUsize>,
}

impl Driver for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.software.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let (software, derived) = (self.software.open(steps)?, self.derived.clone());
        Ok(Box::new(CountingSession { software, derived }))
    }
}

impl DriverSession for CountingSession {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Random { out } => {
                out.fill(KEY);
                return Ok(out.len());
            }
            Request::Derive { .. } | Request::VerifyPassword { effort: Effort::Full, .. } => {
                self.derived.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        self.software.run(request)
    }
}

/// A verifier with a clock that a test moves.
struct Bench {
    engine: Engine,
    verifier: Arc<Verifier>,
    derived: Arc<AtomicUsize>,
    now_ms: Arc<AtomicU64>,
}

impl Bench {
    fn new(remember: Remember) -> Bench {
        let (derived, now_ms) = (Arc::<AtomicUsize>::default(), Arc::<AtomicU64>::default());
        let inner = Counting { software: software(), derived: derived.clone() };
        let clock = {
            let now_ms = now_ms.clone();
            Box::new(move || Duration::from_millis(now_ms.load(Ordering::Relaxed)))
        };
        let verifier = Verifier::new(Arc::new(inner), remember, clock).unwrap();
        let engine = Engine::builder().driver(verifier.clone()).build();
        Bench { engine, verifier, derived, now_ms }
    }

    fn open(&self, key: Key<'_>) -> Session {
        self.engine.session(Parameters::new(ALGORITHM, key)).unwrap()
    }

    fn derived(&self) -> usize {
        self.derived.load(Ordering::Relaxed)
    }

    fn pass(&self, time: Duration) {
        self.now_ms.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }
}

const HOUR: Remember = Remember { most: 100, age: Duration::from_secs(3_600) };

/// A stored value.
#[derive(Clone, Debug, PartialEq)]
struct Stored {
    salt: Vec<u8>,
    expected: Vec<u8>,
}

fn stored(session: &Session, password: &[u8], salt: &[u8]) -> Stored {
    let mut expected = vec![0; 32];
    session.run(&mut Request::Derive { cost: COST, password, salt, out: &mut expected }).unwrap();
    Stored { salt: salt.to_vec(), expected }
}

fn verify(
    session: &Session,
    effort: Effort,
    entry: &[u8],
    password: &[u8],
    stored: &Stored,
) -> Result<usize, Error> {
    let Stored { salt, expected } = stored;
    session.run(&mut Request::VerifyPassword {
        effort,
        cost: COST,
        entry,
        password,
        salt,
        expected,
    })
}

use Effort::{Full, Recall};

#[test]
fn a_right_password_is_derived_once_and_a_wrong_one_each_time() {
    let bench = Bench::new(HOUR);
    let session = bench.open(Key::None);
    let value = stored(&session, b"secret", b"salt");
    let before = bench.derived();
    assert_eq!(verify(&session, Recall, b"ada", b"secret", &value), Ok(0));
    assert_eq!(verify(&session, Full, b"ada", b"secret", &value), Ok(1));
    for effort in [Recall, Full, Recall] {
        assert_eq!(verify(&session, effort, b"ada", b"secret", &value), Ok(1));
    }
    assert_eq!(bench.derived(), before + 1);
    for number in 1..=5 {
        let wrong = verify(&session, Full, b"ada", b"Secret", &value);
        assert_eq!(wrong, Err(Error::Authentication));
        assert_eq!(verify(&session, Recall, b"ada", b"Secret", &value), Ok(0));
        assert_eq!(bench.derived(), before + 1 + number);
    }
    assert_eq!(verify(&session, Recall, b"ada", b"secret", &value), Ok(1));
    let long = [0; limits::ENTRY_BYTES_MAX + 1];
    let wanted = ExpectedLength::AtMost(limits::ENTRY_BYTES_MAX);
    let refused = Err(Error::length(Field::Entry, long.len(), wanted));
    assert_eq!(verify(&session, Recall, &long, b"secret", &value), refused);
    assert_eq!(verify(&session, Full, &long, b"secret", &value), refused);
    // An entry without a name is not remembered.
    assert_eq!(verify(&session, Full, b"", b"secret", &value), Ok(1));
    assert_eq!(verify(&session, Recall, b"", b"secret", &value), Ok(0));
}

#[test]
fn what_is_known_is_known_of_one_entry_one_value_and_one_pepper() {
    let bench = Bench::new(HOUR);
    let session = bench.open(Key::None);
    let value = stored(&session, b"secret", b"salt");
    assert_eq!(verify(&session, Full, b"ada", b"secret", &value), Ok(1));
    assert_eq!(verify(&session, Recall, b"bob", b"secret", &value), Ok(0));
    // A password set anew has another value, and the old password is not right for it.
    for new in [stored(&session, b"other", b"salt"), stored(&session, b"secret", b"tlas")] {
        assert_eq!(verify(&session, Recall, b"ada", b"secret", &new), Ok(0));
    }
    // No part runs into the next one.
    assert_eq!(verify(&session, Recall, b"ada", b"ecret", &value), Ok(0));
    let shifted = Stored { salt: b"sal".to_vec(), expected: [b"t", &value.expected[..]].concat() };
    assert_eq!(verify(&session, Recall, b"ada", b"secret", &shifted), Ok(0));
    // Another algorithm or cost with the same bytes.
    let other = bench.engine.session(Parameters::new(Algorithm::Pbkdf2Sha512, Key::None)).unwrap();
    assert_eq!(verify(&other, Recall, b"ada", b"secret", &value), Ok(0));
    // A pepper makes it another password; sessions of one pepper are one.
    let peppered = bench.open(Key::Secret(&[1; 16]));
    assert_eq!(verify(&peppered, Recall, b"ada", b"secret", &value), Ok(0));
    assert_eq!(verify(&peppered, Full, b"ada", b"secret", &value), Err(Error::Authentication));
    let value = stored(&peppered, b"secret", b"salt");
    assert_eq!(verify(&peppered, Full, b"ada", b"secret", &value), Ok(1));
    assert_eq!(
        verify(&bench.open(Key::Secret(&[1; 16])), Recall, b"ada", b"secret", &value),
        Ok(1)
    );
    assert_eq!(
        verify(&bench.open(Key::Secret(&[2; 16])), Recall, b"ada", b"secret", &value),
        Ok(0)
    );
}

#[test]
fn wrong_passwords_of_one_entry_are_held_up_and_what_is_remembered_is_not() {
    let bench = Bench::new(HOUR);
    let session = bench.open(Key::None);
    let value = stored(&session, b"secret", b"salt");
    assert_eq!(verify(&session, Full, b"ada", b"secret", &value), Ok(1));
    let wrong = || verify(&session, Full, b"ada", b"wrong", &value);
    for _ in 0..WRONG_MAX {
        assert_eq!(wrong(), Err(Error::Authentication));
    }
    let before = bench.derived();
    assert_eq!(wrong(), Err(Error::Busy));
    assert_eq!(bench.derived(), before);
    // The owner goes on, and so do others.
    assert_eq!(verify(&session, Recall, b"ada", b"secret", &value), Ok(1));
    assert_eq!(verify(&session, Full, b"ada", b"secret", &value), Ok(1));
    assert_eq!(verify(&session, Full, b"bob", b"wrong", &value), Err(Error::Authentication));
    assert_eq!(bench.derived(), before + 1);
    bench.pass(3 * WRONG_FORGET);
    let after: Vec<_> = (0..5).map(|_| wrong().unwrap_err()).collect();
    use Error::{Authentication, Busy};
    assert_eq!(after, [Authentication, Authentication, Authentication, Busy, Busy]);
    // Right ones cost nothing.
    for _ in 0..2 * WRONG_MAX {
        bench.verifier.remember(Remember::NOTHING);
        assert_eq!(verify(&session, Full, b"eve", b"secret", &value), Ok(1));
    }
}

#[test]
fn less_may_be_remembered_at_any_time() {
    let bench = Bench::new(Remember { most: 10, ..HOUR });
    let session = bench.open(Key::None);
    let value = stored(&session, b"secret", b"salt");
    for entry in 0..30_u32 {
        assert_eq!(verify(&session, Full, &entry.to_be_bytes(), b"secret", &value), Ok(1));
        assert_eq!(bench.verifier.remembered(), 10.min(entry as usize + 1));
    }
    bench.verifier.remember(Remember { most: 3, ..HOUR });
    let known = |entry: u32| verify(&session, Recall, &entry.to_be_bytes(), b"secret", &value);
    assert_eq!((26..30).map(|entry| known(entry).unwrap()).collect::<Vec<_>>(), [0, 1, 1, 1]);
    bench.verifier.remember(Remember::NOTHING);
    assert_eq!((bench.verifier.remembered(), known(29)), (0, Ok(0)));
    assert_eq!(verify(&session, Full, b"ada", b"secret", &value), Ok(1));
    assert_eq!(verify(&session, Recall, b"ada", b"secret", &value), Ok(0));
}

/// How often this process has these bytes at a multiple of eight in memory that it can write; the
/// test has their complement.
fn in_memory(complement: &[u8]) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    let mut found = 0;
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [from, to] = [from, to].map(|digits| u64::from_str_radix(digits, 16).unwrap());
        // The bytes read must not be found later.
        let mut bytes = Zeroizing::new(vec![0; (to - from) as usize]);
        let Ok(()) = memory.read_exact_at(&mut bytes, from) else { continue };
        let windows = bytes.windows(complement.len()).step_by(8);
        let is_it = |window: &&[u8]| window.iter().zip(complement).all(|(a, b)| *a == !*b);
        found += windows.filter(is_it).count();
    }
    found
}

/// The MACs go with the driver; the bytes of the key, and those that HMAC makes of them first, are
/// gone as soon as it stands.
#[test]
fn key_and_memory_are_wiped() {
    // The complement of the MAC, as Python's hmac has it.
    let proof = [
        0x51, 0xb9, 0x9e, 0x6a, 0xf0, 0xff, 0xce, 0xa8, 0xd0, 0x12, 0x40, 0x07, 0x27, 0x76, 0x17,
        0x85, 0x09, 0x48, 0xb7, 0xf0, 0xd2, 0x67, 0x27, 0x76, 0x0d, 0xf4, 0x49, 0x38, 0xac, 0x1c,
        0xbe, 0xb0,
    ];
    let bench = Bench::new(HOUR);
    for made in [KEY, KEY ^ 0x36, KEY ^ 0x5c] {
        assert_eq!(in_memory(&[!made; 16]), 0, "{made:x}");
    }
    let ask = |effort| {
        // As a pool's thread does, whose stack is not looked at afterwards.
        std::thread::scope(|scope| {
            let ask = || {
                let session = bench.open(Key::None);
                let value = stored(&session, b"secret", b"salt");
                verify(&session, effort, b"wiped", b"secret", &value)
            };
            scope.spawn(ask).join().unwrap()
        })
    };
    assert_eq!((ask(Full), ask(Recall)), (Ok(1), Ok(1)));
    assert!(in_memory(&proof) > 0);
    drop(bench);
    assert_eq!(in_memory(&proof), 0);
}

/// A right password that the plain model remembers, the one that was asked for longest ago first.
#[derive(Debug)]
struct Right {
    entry: u8,
    value: usize,
    since: u64,
}

#[derive(Clone, Debug)]
enum Act {
    Ask { full: bool, entry: u8, value: usize, password: usize },
    Pass { ms: u64 },
    Limit { most: usize },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (any::<bool>(), 0..4_u8, 0..3_usize, 0..3_usize).prop_map(
            |(full, entry, value, password)| Act::Ask { full, entry, value, password }
        ),
        2 => (0..700_u64).prop_map(|ms| Act::Pass { ms }),
        1 => (0..6_usize).prop_map(|most| Act::Limit { most }),
    ]
}

proptest! {
    #[test]
    fn it_answers_as_a_plain_model(acts in prop::collection::vec(act(), 1..120)) {
        const AGE_MS: u64 = 1_000;
        let age = Duration::from_millis(AGE_MS);
        let bench = Bench::new(Remember { most: 4, age });
        let session = bench.open(Key::None);
        let passwords = [&b"one"[..], b"two", b"three"];
        let values: Vec<_> =
            passwords.iter().map(|password| stored(&session, password, b"salt")).collect();
        let (mut model, mut most, mut now, mut looked) = (Vec::<Right>::new(), 4, 0, 0);
        for act in acts {
            match act {
                Act::Pass { ms } => {
                    bench.pass(Duration::from_millis(ms));
                    now += ms;
                }
                Act::Limit { most: new } => {
                    bench.verifier.remember(Remember { most: new, age });
                    (most, looked) = (new, now);
                    model.retain(|right| now - right.since < AGE_MS);
                    model.drain(..model.len().saturating_sub(most));
                }
                Act::Ask { full, entry, value, password } => {
                    let effort = if full { Full } else { Recall };
                    let before = bench.derived();
                    let answer = verify(
                        &session, effort, &[b'e', entry], passwords[password], &values[value],
                    );
                    let derived = bench.derived() - before;
                    if now - looked > AGE_MS / 8 {
                        looked = now;
                        model.retain(|right| now - right.since < AGE_MS);
                    }
                    let right = password == value;
                    let at = model.iter().position(|it| (it.entry, it.value) == (entry, value));
                    let young = at.filter(|at| right && now - model[*at].since < AGE_MS);
                    let expected = match (young, full, right) {
                        (Some(at), ..) => {
                            let it = model.remove(at);
                            model.push(it);
                            (Ok(1), 0)
                        }
                        (None, false, _) => (Ok(0), 0),
                        (None, true, false) => (Err(Error::Authentication), 1),
                        (None, true, true) => {
                            if most > 0 {
                                at.map(|at| model.remove(at));
                                model.push(Right { entry, value, since: now });
                                model.drain(..model.len().saturating_sub(most));
                            }
                            (Ok(1), 1)
                        }
                    };
                    prop_assert_eq!((answer, derived), expected);
                }
            }
            prop_assert_eq!(bench.verifier.remembered(), model.len());
            prop_assert!(model.len() <= most);
        }
    }
}
