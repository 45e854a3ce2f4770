//! Data in lent memory comes out of every driver's queue as data in a task's own, and stays where
//! it is.

use keyway_drivers::{Pool, multibuffer_on, pool, simd_on, software};
use keyway_engine::{
    Algorithm, Buffer, Demand, Driver, Engine, Memory, Nonces, Operation, Parameters, Session,
    Step, Task, workload,
};
use keyway_simd::CbcBackend;
use keyway_simd::packet::PacketBackend;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes around the lent ones, which no driver may touch.
const MARGIN_BYTES: usize = 64;
const UNTOUCHED: u8 = 0xa5;

const SECRET: [u8; 64] = [7; 64];

/// A part of a larger whole.
struct Region {
    whole: Vec<u8>,
    lent: Range<usize>,
}

impl Memory for Region {
    fn bytes(&self) -> &[u8] {
        &self.whole[self.lent.clone()]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.whole[self.lent.clone()]
    }
}

/// Lent memory that says the same.
fn lend(buffer: Buffer) -> Buffer {
    let margin = [UNTOUCHED; MARGIN_BYTES];
    let lent = MARGIN_BYTES..MARGIN_BYTES + buffer.len();
    Buffer::lent(Region { whole: [&margin[..], &buffer, &margin].concat(), lent })
}

/// All that may be lent of an operation.
fn buffers(operation: &mut Operation) -> Vec<&mut Buffer> {
    use Operation::*;
    match operation {
        Seal { data, .. } | Open { data, .. } | Encrypt { data, .. } | Decrypt { data, .. } => {
            vec![data]
        }
        Chain { data, .. } | Digest { data, .. } | Mac { data, .. } => vec![data],
        Protect { packet, .. } | Unprotect { packet, .. } => vec![packet],
        Compress { data, out } | Decompress { data, out } => vec![data, out],
        other => panic!("{other:?} has nothing to lend"),
    }
}

/// Has them done on a queue, those in odd places in lent memory, and returns them in their order.
fn done(engine: &Engine, session: &Session, operations: Vec<Operation>) -> Vec<Box<Task>> {
    let tasks = operations.into_iter().zip(0..).map(|(mut operation, place)| {
        if place % 2 == 1 {
            for buffer in buffers(&mut operation) {
                *buffer = lend(buffer.clone());
            }
        }
        Task::tagged(session, operation, place)
    });
    let mut tasks: Vec<_> = tasks.collect();
    let mut queue = engine.queue(tasks.len());
    assert_eq!(queue.submit(&mut tasks, false), queue.in_flight());
    while queue.in_flight() > 0 {
        queue.wait(&mut tasks, Duration::from_secs(1));
    }
    tasks.sort_by_key(|task| task.user);
    for task in tasks.iter_mut().filter(|task| task.user % 2 == 1) {
        for buffer in buffers(&mut task.operation) {
            let Region { whole, lent } = buffer.memory().expect("it was lent, and came back");
            let mut margins = whole[..lent.start].iter().chain(&whole[lent.end..]);
            assert!(margins.all(|byte| *byte == UNTOUCHED));
        }
    }
    tasks
}

/// Does work of many lengths and undoes it, each twice: in the task's own bytes and in lent ones.
fn compare(driver: Arc<dyn Driver>, steps: &[Algorithm]) {
    let engine = Engine::builder().driver(driver.clone()).build();
    let step = |algorithm: &Algorithm| {
        let bytes = workload::secret_bytes(*algorithm).unwrap_or(0);
        Step { algorithm: *algorithm, key: workload::key(*algorithm, &SECRET[..bytes]) }
    };
    let keyed: Vec<_> = steps.iter().map(step).collect();
    let parameters = match *keyed {
        [Step { algorithm, key }] => Parameters::new(algorithm, key),
        _ => Parameters::chain(&keyed),
    };
    let parameters = parameters.on(Demand::Named(driver.name())).nonces(Nonces::Given);
    let session = engine.session(parameters).unwrap();
    let texts = (1..=24).map(|blocks| vec![blocks as u8; 16 * blocks]);
    let operations = texts.flat_map(|text| {
        let operation = workload::operation(steps, text, Vec::new(), 0);
        [operation.clone(), operation]
    });
    let made = done(&engine, &session, operations.collect());
    agree(driver.name(), steps, &made);
    let inverse = |task: &Task| workload::inverse(&task.operation, task.result().unwrap());
    let Some(inverses) = made.iter().map(|task| inverse(task)).collect::<Option<Vec<_>>>() else {
        return;
    };
    let back = done(&engine, &session, inverses);
    agree(driver.name(), steps, &back);
    for (blocks, pair) in (1..).zip(back.chunks(2)) {
        assert_eq!(pair[1].output().unwrap(), vec![blocks as u8; 16 * blocks]);
    }
}

fn agree(driver: &str, steps: &[Algorithm], tasks: &[Box<Task>]) {
    for pair in tasks.chunks(2) {
        let [own, lent] = [0, 1].map(|place| {
            let task = &pair[place];
            (task.result(), task.output(), task.operation.tag())
        });
        assert!(own.0.is_ok(), "{driver} {steps:?}: {:?}", own.0);
        assert_eq!(own, lent, "{driver} {steps:?}");
    }
}

#[test]
fn every_driver_works_in_lent_memory() {
    use Algorithm::*;
    let threads = pool("pool", software(), Pool { threads: 2, cores: None, depth: 16 }).unwrap();
    let simd = PacketBackend::available().map(simd_on);
    let multibuffer = CbcBackend::available().map(multibuffer_on);
    let steps: [&[Algorithm]; 8] = [
        &[Aes128Gcm],
        &[ChaCha20Poly1305],
        &[QuicAes128Gcm],
        &[Aes128Cbc],
        &[HmacSha256],
        &[Sha256],
        &[Lz4],
        &[Aes128Cbc, HmacSha1],
    ];
    let mut runs = 0;
    for driver in [software(), threads].into_iter().chain(simd).chain(multibuffer) {
        // The engine takes a chain apart for a driver that does its steps.
        let does = |steps: &&&[Algorithm]| steps.iter().all(|step| driver.supports(&[*step]));
        for steps in steps.iter().filter(does) {
            compare(driver.clone(), steps);
            runs += 1;
        }
    }
    assert!(runs >= 21, "{runs}");
}
