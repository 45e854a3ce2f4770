//! The multibuffer driver does what the software driver does step by step, whatever comes together.

use keyway_engine::{
    Algorithm, Demand, Direction, Engine, Error, Iv, Key, Operation, Parameters, Part, Session,
    Step, Task,
};
use keyway_simd::CbcBackend;
use proptest::prelude::*;
use std::ops::Range;

/// Every kind of session there is, and a second one of the first kind.
const KINDS: [&[Algorithm]; 9] = [
    &[Algorithm::Aes128Cbc, Algorithm::HmacSha1],
    &[Algorithm::Aes128Cbc, Algorithm::HmacSha1],
    &[Algorithm::Aes128Cbc, Algorithm::HmacSha256],
    &[Algorithm::Aes256Cbc, Algorithm::HmacSha1],
    &[Algorithm::Aes256Cbc, Algorithm::HmacSha256],
    &[Algorithm::Aes128Cbc],
    &[Algorithm::Aes256Cbc],
    &[Algorithm::HmacSha1],
    &[Algorithm::HmacSha256],
];

fn engine(backend: CbcBackend) -> Engine {
    let multibuffer = keyway_drivers::multibuffer_on(backend);
    Engine::builder().driver(keyway_drivers::software()).driver(multibuffer).build()
}

/// A session of that kind, whose keys are its number's.
fn open(engine: &Engine, driver: &str, kind: usize) -> Session {
    let keys = [[kind as u8; 32], [!kind as u8; 32]];
    let steps: Vec<_> = KINDS[kind]
        .iter()
        .zip(&keys)
        .map(|(algorithm, key)| {
            let key = &key[..algorithm.key_bytes().unwrap_or(20)];
            Step { algorithm: *algorithm, key: Key::Secret(key) }
        })
        .collect();
    let parameters = match *steps {
        [step] => Parameters::new(step.algorithm, step.key),
        _ => Parameters::chain(&steps),
    };
    let session = engine.session(parameters.on(Demand::Named(driver))).unwrap();
    assert_eq!(session.algorithms(), KINDS[kind]);
    session
}

/// A request to be.
#[derive(Clone, Debug)]
struct Shape {
    kind: usize,
    fill: u8,
    text: Range<usize>,
    over: Range<usize>,
    tag: Range<usize>,
    iv: Option<usize>,
    undo: Undo,
}

/// Whether it decrypts or checks, what was sealed or something else.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Undo {
    No,
    Sealed,
    Other,
}

fn shape() -> impl Strategy<Value = Shape> {
    let header = 0_usize..=40;
    let blocks = prop_oneof![4 => 0_usize..=8, 2 => 8_usize..=80, 1 => Just(512)];
    // Most are laid out like IPsec's, some have whatever comes: tags in front, gaps, texts that are
    // not whole blocks, MACs of something else, IVs within the text.
    let usual = (header, blocks).prop_map(|(header, blocks)| {
        let end = header + 16 * blocks;
        (header..end, 0..end, end..end + 12)
    });
    let range = || (0_usize..=200, 0_usize..=200).prop_map(|(a, b)| a.min(b)..a.max(b));
    let odd = (range(), range(), 0_usize..=220, 3_usize..=33)
        .prop_map(|(text, over, tag, bytes)| (text, over, tag..tag + bytes));
    let undo = prop_oneof![6 => Just(Undo::No), 1 => Just(Undo::Sealed), 1 => Just(Undo::Other)];
    let iv = prop_oneof![Just(None), (0_usize..=64).prop_map(Some)];
    let kind = prop_oneof![3 => 0..2_usize, 2 => 0..KINDS.len()];
    let ranges = prop_oneof![4 => usual, 1 => odd];
    (kind, any::<u8>(), ranges, iv, undo).prop_map(|(kind, fill, (text, over, tag), iv, undo)| {
        Shape { kind, fill, text, over, tag, iv, undo }
    })
}

impl Shape {
    /// The operation; `software` seals what is to be opened.
    fn operation(&self, software: &Session) -> Operation {
        let Shape { kind, fill, ref text, ref over, ref tag, iv, undo } = *self;
        let bytes =
            |length: usize| (0..length).map(|at| fill.wrapping_add(at as u8)).collect::<Vec<_>>();
        let mut operation = match *KINDS[kind] {
            [_, _] => {
                let length = text.end.max(over.end).max(tag.end);
                let iv = iv.map_or(Iv::Given([fill; 16]), Iv::At);
                let cipher = Part::Cipher { iv, text: text.clone() };
                let mac = Part::Mac { over: over.clone(), tag: tag.clone() };
                let (direction, parts) = (Direction::Protect, vec![cipher, mac]);
                Operation::Chain { direction, data: bytes(length + 5).into(), length, parts }
            }
            [only] if only.iv_bytes() > 0 => Operation::encrypt([fill; 16], bytes(text.len())),
            [only] => Operation::mac(only, bytes(over.len())),
            _ => unreachable!("one step or two"),
        };
        if undo == Undo::Sealed {
            let _ = operation.with(|request| software.run(request));
        }
        if undo != Undo::No {
            operation = match operation {
                Operation::Chain { data, length, parts, .. } => {
                    Operation::Chain { direction: Direction::Unprotect, data, length, parts }
                }
                Operation::Encrypt { iv, data } => Operation::Decrypt { iv, data },
                other => other,
            };
        }
        operation
    }
}

/// The bytes that an operation left.
fn left(operation: &Operation) -> (&[u8], &[u8]) {
    match operation {
        Operation::Chain { data, .. }
        | Operation::Encrypt { data, .. }
        | Operation::Decrypt { data, .. } => (data, &[]),
        Operation::Mac { data, out } => (data, out),
        _ => unreachable!("no such operation is made here"),
    }
}

/// Runs shapes through a queue, so many at a time and with or without a hint of more, and compares.
fn compare(backend: CbcBackend, shapes: &[Shape], bursts: &[(usize, bool, bool)]) {
    let engine = engine(backend);
    let sessions = |driver| [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|kind| open(&engine, driver, kind));
    let (software, multibuffer) = (sessions("software"), sessions("multibuffer"));
    let mut tasks = Vec::new();
    let mut expected = Vec::new();
    for (user, shape) in shapes.iter().enumerate() {
        let mut operation = shape.operation(&software[shape.kind]);
        let session = &multibuffer[shape.kind];
        tasks.push(Task::tagged(session, operation.clone(), user as u64));
        let mut direct = operation.clone();
        let result = operation.with(|request| software[shape.kind].run(request));
        assert_eq!(direct.with(|request| session.run(request)), result, "{user}: {shape:?}");
        assert_eq!(left(&direct), left(&operation), "{user}: {shape:?}");
        expected.push((result, operation));
    }
    let mut queue = engine.queue(shapes.len());
    let mut done = Vec::new();
    let mut bursts = bursts.iter().cycle();
    while !tasks.is_empty() {
        let &(number, more, poll) = bursts.next().unwrap();
        let mut burst = tasks.drain(..number.min(tasks.len())).collect();
        queue.submit(&mut burst, more);
        assert!(burst.is_empty());
        if poll {
            queue.poll(&mut done);
        }
    }
    queue.poll(&mut done);
    assert_eq!(queue.in_flight(), 0, "nothing waits after it was polled");
    done.sort_by_key(|task| task.user);
    assert!(done.iter().map(|task| task.user).eq(0..shapes.len() as u64));
    for (task, (result, operation)) in done.iter().zip(&expected) {
        let shape = &shapes[task.user as usize];
        assert_eq!(task.result(), *result, "{}: {shape:?}", task.user);
        assert_eq!(left(&task.operation), left(operation), "{}: {shape:?}", task.user);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_mix_comes_out_as_from_software(
        shapes in proptest::collection::vec(shape(), 1..=70),
        bursts in proptest::collection::vec((1_usize..=70, any::<bool>(), any::<bool>()), 1..=5),
    ) {
        for backend in CbcBackend::available() {
            compare(backend, &shapes, &bursts);
        }
    }
}

/// So many packets of one length each, header in front and tag behind.
fn packets(lengths: impl Iterator<Item = usize>) -> Vec<Shape> {
    let packet = |bytes| {
        let (text, tag) = (24..24 + bytes, 24 + bytes..36 + bytes);
        Shape {
            kind: 0,
            fill: bytes as u8,
            over: 0..text.end,
            text,
            tag,
            iv: Some(8),
            undo: Undo::No,
        }
    };
    lengths.map(packet).collect()
}

#[test]
fn every_number_of_packets_comes_out_as_from_software() {
    for backend in CbcBackend::available() {
        for number in 1..=70 {
            compare(backend, &packets((0..number).map(|_| 512)), &[(number, false, true)]);
        }
        compare(backend, &packets((1..=64).map(|blocks| 16 * blocks)), &[(64, false, true)]);
        compare(backend, &packets([64; 31].into_iter().chain([1 << 16])), &[(32, false, true)]);
    }
}

#[test]
fn what_was_protected_together_is_what_it_was_and_a_wrong_tag_is_found() {
    for backend in CbcBackend::available() {
        let engine = engine(backend);
        let session = open(&engine, "multibuffer", 4);
        let plain: Vec<_> = packets((0..40).map(|count| 16 * count))
            .iter()
            .map(|shape| shape.operation(&session))
            .collect();
        let task = |(user, operation): (usize, &Operation)| {
            Task::tagged(&session, operation.clone(), user as u64)
        };
        let mut tasks: Vec<_> = plain.iter().enumerate().map(task).collect();
        let mut queue = engine.queue(40);
        for direction in [Direction::Protect, Direction::Unprotect] {
            for task in &mut tasks {
                let Operation::Chain { direction: way, data, length, .. } = &mut task.operation
                else {
                    unreachable!("they are chains");
                };
                *way = direction;
                if direction == Direction::Unprotect && task.user % 3 == 0 {
                    data[*length - 1] ^= 1;
                }
            }
            let before: Vec<_> = tasks.iter().map(|task| task.operation.clone()).collect();
            assert_eq!(queue.submit(&mut tasks, false), 40);
            assert_eq!(queue.poll(&mut tasks), 40);
            tasks.sort_by_key(|task| task.user);
            for (task, before) in tasks.iter().zip(&before) {
                let text = 24..24 + 16 * task.user as usize;
                let bytes = text.end + 12;
                let (data, _) = left(&task.operation);
                let (first, _) = left(&plain[task.user as usize]);
                if direction == Direction::Protect {
                    assert_eq!(task.result(), Ok(bytes));
                    assert_eq!(data[..24], first[..24]);
                    assert!(text.is_empty() || data[text.clone()] != first[text]);
                } else if task.user % 3 == 0 {
                    assert_eq!(task.result(), Err(Error::Authentication));
                    assert_eq!(data, left(before).0, "nothing is decrypted");
                } else {
                    assert_eq!(task.result(), Ok(bytes));
                    assert_eq!(data[..text.end], first[..text.end]);
                }
            }
        }
    }
}

#[test]
fn what_it_does_not_do_it_declines() {
    let engine = engine(CbcBackend::portable());
    let cipher = Step { algorithm: Algorithm::Aes128Cbc, key: Key::Secret(&[1; 16]) };
    let mac = Step { algorithm: Algorithm::HmacSha1, key: Key::Secret(&[1; 20]) };
    let other = Step { algorithm: Algorithm::HmacSha512, key: Key::Secret(&[1; 20]) };
    let open = |steps: &[Step<'_>]| {
        let driver = keyway_drivers::multibuffer_on(CbcBackend::portable());
        let algorithms: Vec<_> = steps.iter().map(|step| step.algorithm).collect();
        (driver.supports(&algorithms), driver.open(steps).is_ok())
    };
    assert_eq!(open(&[cipher, mac]), (true, true));
    for steps in [&[mac, cipher][..], &[cipher, other], &[other], &[cipher, mac, mac], &[]] {
        assert_eq!(open(steps), (false, false));
    }
    let keyless = Step { key: Key::None, ..mac };
    assert_eq!(open(&[cipher, keyless]), (true, false));
    let parameters = Parameters::new(Algorithm::Aes128Cbc, Key::Secret(&[1; 15]));
    let session = engine.session(parameters.on(Demand::Named("multibuffer")));
    assert!(matches!(session.err(), Some(Error::InvalidKey(_))));
}
