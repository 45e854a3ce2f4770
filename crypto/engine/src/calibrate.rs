//! Measures what a driver's work costs, the first time that there is a choice.
//!
//! Two sizes are measured, each single and batched. That takes some hundred microseconds on a
//! processor and some milliseconds on a slow device. What cannot be measured without the consumer's
//! key (RSA) stays unknown. An unknown driver is tried first, and its first request is the measurement.

use crate::costs::Linear;
use crate::metrics::Work;
use crate::parameters::Parameters;
use crate::registered::RegisteredDriver;
use crate::registry::Registry;
use crate::session::Session;
use crate::{
    Algorithm, Direction, Flow, IV_BYTES_MAX, Iv, Key, Kind, MASK_BYTES, NONCE_BYTES, Operation,
    PacketKey, PacketKeys, Part, SAMPLE_BYTES, Step, TAG_BYTES, Task, Waker, clock,
};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// The sizes that are measured, in bytes.
const SIZES: [usize; 2] = [64, 2048];
/// Requests in a batch.
const BATCH: usize = 16;
/// A single request is run at most so many times, and the fastest counts.
const RUNS: usize = 5;
/// Length of a packet's header, in bytes: a connection's name of eight, a number of one.
const PACKET_HEADER_BYTES: usize = 10;
/// Nanoseconds after which no further run is begun.
const BUDGET_NS: u64 = 3_000_000;
/// By what factor a byte may cost more in a single request than in a batch, where it costs more than
/// [`SLOW_BYTE_NS`].
const SLOPE_FACTOR_MAX: f64 = 1.5;
/// Nanoseconds a byte. On a processor only 3DES is as slow.
const SLOW_BYTE_NS: f64 = 5.0;
/// Nanoseconds after which a device that does not answer is given up.
const TIMEOUT_NS: u64 = 200_000_000;

/// Measures a driver for these steps, unless that was done. `work` is the driver's for them.
pub(crate) fn once(
    registry: &Arc<Registry>,
    driver: &Arc<RegisteredDriver>,
    work: &Work,
    steps: &[Algorithm],
) {
    let costs = &work.costs;
    if costs.is_calibrated() {
        return;
    }
    // Two measurements at once would disturb each other.
    let _measuring = costs.measuring.lock().unwrap_or_else(PoisonError::into_inner);
    if costs.is_calibrated() {
        return;
    }
    if let Some((single, batched)) = measure(registry, driver, steps) {
        costs.calibrate(single, batched);
    }
}

/// Measures one algorithm of a driver because its costs are to be shown.
pub(crate) fn to_show(
    registry: &Arc<Registry>,
    driver: &Arc<RegisteredDriver>,
    algorithm: Algorithm,
) {
    let key = key(algorithm);
    let step = step(algorithm, &key);
    let parameters = Parameters::new(step.algorithm, step.key);
    if Session::open_on(registry, parameters, driver).is_ok() {
        once(registry, driver, &driver.work(&[algorithm]), &[algorithm]);
    }
}

/// The costs of a single request and of one in a batch.
fn measure(
    registry: &Arc<Registry>,
    driver: &Arc<RegisteredDriver>,
    steps: &[Algorithm],
) -> Option<(Linear, Linear)> {
    let keys: Vec<_> = steps.iter().map(|step| key(*step)).collect();
    let pairs = steps.iter().zip(&keys);
    let own: Vec<Step<'_>> = pairs.map(|(algorithm, key)| step(*algorithm, key)).collect();
    let parameters = match *own {
        [step] => Parameters::new(step.algorithm, step.key),
        _ => Parameters::chain(&own),
    };
    let session = Session::open_on(registry, parameters, driver).ok()?;
    let mut single = [(0, 0.0); 2];
    let mut batched = [(0, 0.0); 2];
    for ((single, batched), bytes) in single.iter_mut().zip(&mut batched).zip(SIZES) {
        let best = single_ns(&session, bytes)?;
        *single = (bytes, best);
        *batched = (bytes, batched_ns(&session, driver, bytes).unwrap_or(best));
    }
    let batched = Linear::through(batched[0], batched[1]);
    let mut single = Linear::through(single[0], single[1]);
    // The batch was measured for longer. Only code that works on several requests at a time does a
    // byte much faster in a batch, and such code is never that slow.
    if single.per_byte > SLOPE_FACTOR_MAX * batched.per_byte && single.per_byte > SLOW_BYTE_NS {
        single.per_byte = batched.per_byte;
    }
    Some((single, batched))
}

/// Nanoseconds of a single request.
fn single_ns(session: &Session, bytes: usize) -> Option<f64> {
    let state = session.state(0)?;
    let mut operation = operation(session, bytes)?;
    let begun = clock::now();
    let mut best = f64::MAX;
    for run in 0..RUNS {
        let start = clock::now();
        operation.with(|request| state.run(request)).ok()?;
        best = best.min((clock::now() - start) as f64);
        // Two at least: one may have been interrupted.
        if run > 0 && clock::now() - begun > BUDGET_NS {
            break;
        }
    }
    Some(best)
}

/// Nanoseconds a request in a batch.
fn batched_ns(session: &Session, driver: &RegisteredDriver, bytes: usize) -> Option<f64> {
    let waker = Waker::new();
    let mut queue = driver.implementation.as_ref()?.queue(&waker)?;
    let mut best = None::<f64>;
    // Once to warm up.
    for _ in 0..2 {
        let task = || {
            let mut task = Task::new(session, operation(session, bytes)?);
            // The session has one binding. A task that only measures is not admitted by a queue.
            task.binding = 0;
            Some(task)
        };
        let mut tasks: Vec<_> = (0..BATCH).map_while(|_| task()).collect();
        let (expected, mut done) = (tasks.len(), Vec::new());
        let begun = clock::now();
        while done.len() < expected {
            let flow = queue.submit(&mut tasks, false);
            queue.poll(&mut done);
            if flow == Flow::Gone || clock::now() - begun > TIMEOUT_NS {
                return None;
            }
            if done.len() < expected
                && let Some(due) = queue.due()
                && due > 100_000
            {
                waker.sleep(Duration::from_nanos(due.min(TIMEOUT_NS)), || false);
            }
        }
        let took = (clock::now() - begun) as f64 / expected as f64;
        if done.iter().any(|task| task.result().is_err()) {
            return None;
        }
        best = Some(best.map_or(took, |best| best.min(took)));
    }
    best
}

/// A key to measure with. No two parts of it are equal: some ciphers refuse that.
fn key(algorithm: Algorithm) -> Vec<u8> {
    (0..algorithm.key_bytes().unwrap_or(32)).map(|at| 0x5a ^ at as u8).collect()
}

/// A step with a key fit to measure with.
fn step(algorithm: Algorithm, key: &[u8]) -> Step<'_> {
    let key = match algorithm.kind() {
        Kind::Aead | Kind::Cipher | Kind::Mac | Kind::Hkdf | Kind::Mask => Key::Secret(key),
        Kind::Packet => Key::Packet(PacketKeys::new(key, PacketKey { key, iv: &[0; NONCE_BYTES] })),
        Kind::Exchange | Kind::Kem | Kind::Signature => Key::Generate,
        _ => Key::None,
    };
    Step { algorithm, key }
}

/// The operation that a session is measured with. `None` if it needs the consumer's key or is slow on
/// purpose.
fn operation(session: &Session, bytes: usize) -> Option<Operation> {
    let zeros = |length| Zeroizing::new(vec![0; length]);
    let out = |algorithm: Algorithm| algorithm.output_bytes();
    if let [_, _, ..] = session.algorithms() {
        return Some(chain(session.algorithms(), bytes));
    }
    let algorithm = session.algorithm();
    Some(match algorithm.kind() {
        Kind::Aead => {
            let gmac = matches!(algorithm, Algorithm::Aes128Gmac | Algorithm::Aes256Gmac);
            let (aad, data) = if gmac { (bytes, 0) } else { (16, bytes) };
            Operation::Seal {
                nonce: [0; NONCE_BYTES],
                aad: vec![0; aad],
                data: vec![0; data],
                tag: [0; TAG_BYTES],
            }
        }
        Kind::Packet => {
            let packet = vec![0; PACKET_HEADER_BYTES + bytes + TAG_BYTES];
            Operation::Protect { number: 0, header_bytes: PACKET_HEADER_BYTES, packet }
        }
        Kind::Mask => Operation::Mask { sample: [0; SAMPLE_BYTES], out: [0; MASK_BYTES] },
        Kind::Cipher => Operation::Encrypt { iv: [0; IV_BYTES_MAX], data: vec![0; bytes] },
        Kind::Compression => {
            // Neither all bytes equal nor all different.
            let data = (0..bytes).map(|at| (at * at / 64) as u8).collect();
            Operation::Compress { data, out: vec![0; 2 * bytes + 256] }
        }
        Kind::Hash => Operation::Digest { data: vec![0; bytes], out: vec![0; out(algorithm)?] },
        Kind::Mac => Operation::Mac { data: vec![0; bytes], out: vec![0; out(algorithm)?] },
        Kind::Hkdf => Operation::Expand { info: vec![0; 16], out: zeros(32) },
        Kind::Exchange => {
            Operation::Agree { peer: session.public_key().ok()?, out: zeros(out(algorithm)?) }
        }
        Kind::Kem => Operation::Encapsulate {
            peer: session.public_key().ok()?,
            ciphertext: vec![0; algorithm.ciphertext_bytes()?],
            secret: zeros(out(algorithm)?),
        },
        Kind::Signature => {
            Operation::Sign { message: vec![0; bytes], out: vec![0; session.signature_bytes_max()] }
        }
        Kind::Random => Operation::Random { out: zeros(bytes) },
        Kind::Encryption | Kind::Password => return None,
    })
}

/// A text, and behind it room for the tag of each MAC.
fn chain(steps: &[Algorithm], bytes: usize) -> Operation {
    let mut length = bytes;
    let part = |algorithm: &Algorithm| match algorithm.kind() {
        Kind::Mac => {
            let (over, tag) = (0..length, algorithm.output_bytes().unwrap_or(0));
            length += tag;
            Part::Mac { over, tag: length - tag..length }
        }
        Kind::Compression => Part::Compression { text: 0..bytes },
        _ => Part::Cipher { iv: Iv::Given([0; IV_BYTES_MAX]), text: 0..bytes },
    };
    let parts: Vec<_> = steps.iter().map(part).collect();
    let data = vec![0; length + bytes + 256];
    Operation::Chain { direction: Direction::Protect, data, length, parts }
}
