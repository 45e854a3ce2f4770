//! Measures what a driver's work costs, the first time that there is a choice.
//!
//! Two sizes, alone and in company; some hundred microseconds for a processor, some milliseconds for
//! a slow device. What cannot be measured without a key of the consumer's (RSA) stays unknown, and
//! an unknown driver is tried first: its first requests are the measurement.

use crate::costs::Linear;
use crate::lane::Lane;
use crate::parameters::Parameters;
use crate::registry::Registry;
use crate::session::{Binding, Session};
use crate::{
    Algorithm, Direction, Flow, IV_BYTES_MAX, Iv, Key, Kind, MASK_BYTES, NONCE_BYTES, Operation,
    PacketKey, PacketKeys, Part, SAMPLE_BYTES, Step, TAG_BYTES, Task, Waker, clock,
};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// Sizes measured, in bytes.
const SIZES: [usize; 2] = [64, 2048];
/// Requests that are under way together.
const COMPANY: usize = 16;
/// Most times that a lone request is run; the fastest counts.
const RUNS: usize = 5;
/// Length of a packet's header, in bytes: a connection's name of eight, a number of one.
const PACKET_HEADER_BYTES: usize = 10;
/// Nanoseconds after which a measurement makes do with what it has.
const BUDGET: u64 = 3_000_000;
/// How much more a byte may cost alone than among others, where it costs more than [`SLOW_BYTE`].
const SLOPES: f64 = 1.5;
/// Nanoseconds a byte; no processor's own arithmetic is as slow but 3DES.
const SLOW_BYTE: f64 = 5.0;
/// Nanoseconds after which a device that does not answer is given up.
const PATIENCE: u64 = 200_000_000;

/// Measures the binding's driver for these steps, unless that was done.
pub(crate) fn once(registry: &Arc<Registry>, binding: &Binding, steps: &[Algorithm]) {
    let costs = &binding.work.costs;
    if costs.is_learned() {
        return;
    }
    // Two at once would measure each other.
    let _measuring = costs.measuring.lock().unwrap_or_else(PoisonError::into_inner);
    if costs.is_learned() {
        return;
    }
    if let Some((alone, together)) = measure(registry, binding, steps) {
        costs.learn(alone, together);
    }
}

fn measure(
    registry: &Arc<Registry>,
    binding: &Binding,
    steps: &[Algorithm],
) -> Option<(Linear, Linear)> {
    let keys: Vec<_> = steps.iter().map(|step| key(*step)).collect();
    let pairs = steps.iter().zip(&keys);
    let own: Vec<Step<'_>> = pairs.map(|(algorithm, key)| step(*algorithm, key)).collect();
    let parameters = match *own {
        [step] => Parameters::new(step.algorithm, step.key),
        _ => Parameters::chain(&own),
    };
    let session = Session::open_on(registry, parameters, &binding.lane).ok()?;
    let state = session.state(0)?;
    let mut alone = [(0, 0.0); 2];
    let mut together = [(0, 0.0); 2];
    for ((alone, together), bytes) in alone.iter_mut().zip(&mut together).zip(SIZES) {
        let mut operation = operation(&session, bytes)?;
        let begun = clock::now();
        let mut best = f64::MAX;
        for run in 0..RUNS {
            let start = clock::now();
            operation.with(|request| state.run(request)).ok()?;
            best = best.min((clock::now() - start) as f64);
            // Two at least: one may have been interrupted.
            if run > 0 && clock::now() - begun > BUDGET {
                break;
            }
        }
        *alone = (bytes, best);
        *together = (bytes, company(&session, binding, bytes).unwrap_or(best));
    }
    let together = Linear::through(together[0], together[1]);
    let mut alone = Linear::through(alone[0], alone[1]);
    // Many together were measured for longer, and a byte alone costs hardly more than among others
    // but for kernels that work on several requests at a time, which have no slow bytes.
    if alone.per_byte > SLOPES * together.per_byte && alone.per_byte > SLOW_BYTE {
        alone.per_byte = together.per_byte;
    }
    Some((alone, together))
}

/// Nanoseconds a request when many are under way.
fn company(session: &Session, binding: &Binding, bytes: usize) -> Option<f64> {
    let waker = Waker::new();
    let mut queue = binding.lane.driver.as_ref()?.queue(&waker)?;
    let mut best = None::<f64>;
    // Once to warm up.
    for _ in 0..2 {
        let task = || {
            let mut task = Task::new(session, operation(session, bytes)?);
            // Its own binding is the one there is; nobody admits what only measures.
            task.binding = 0;
            Some(task)
        };
        let mut tasks: Vec<_> = (0..COMPANY).map_while(|_| task()).collect();
        let (expected, mut done) = (tasks.len(), Vec::new());
        let begun = clock::now();
        while done.len() < expected {
            let flow = queue.submit(&mut tasks, false);
            queue.poll(&mut done);
            if flow == Flow::Gone || clock::now() - begun > PATIENCE {
                return None;
            }
            if done.len() < expected
                && let Some(due) = queue.due()
                && due > 100_000
            {
                waker.sleep(Duration::from_nanos(due.min(PATIENCE)), || false);
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

/// A key to measure with, no two parts of which are equal, which some ciphers refuse.
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

/// What such a session is measured with; `None` if it needs a consumer's key or is slow on purpose.
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
            // Neither all alike nor all different.
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

/// Text, and room for a tag of each MAC behind it.
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

/// Measures one algorithm of a lane because somebody wants to see it.
pub(crate) fn show(registry: &Arc<Registry>, lane: &Arc<Lane>, algorithm: Algorithm) {
    let key = key(algorithm);
    let step = step(algorithm, &key);
    let parameters = Parameters::new(step.algorithm, step.key);
    if let Ok(session) = Session::open_on(registry, parameters, lane)
        && let Some(binding) = session.inner().binding(0)
    {
        once(registry, binding, &[algorithm]);
    }
}
