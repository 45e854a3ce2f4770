//! Measures what a driver's work costs, the first time that there is a choice.
//!
//! Two sizes are measured, each single and batched. That takes some hundred microseconds on a
//! processor and some milliseconds on a slow device. A cost that cannot be measured without the
//! consumer's key (RSA) stays unknown. An unknown driver is tried first, and its first request is
//! the measurement.

use crate::costs::Linear;
use crate::metrics::Work;
use crate::parameters::Parameters;
use crate::registered::RegisteredDriver;
use crate::registry::Registry;
use crate::session::Session;
use crate::{Algorithm, Flow, Kind, Operation, Step, Task, Waker, clock, driver, workload};
use keyway_lock::Unpoisoned;
use std::sync::Arc;
use std::time::Duration;

/// The sizes that are measured, in bytes.
const SIZES: [usize; 2] = [64, 2048];
/// Requests in a batch.
const BATCH: usize = 16;
/// A single request is run at most so many times, and the fastest counts.
const RUNS: usize = 5;
/// Nanoseconds after which no further run is begun.
const BUDGET_NS: u64 = 3_000_000;
/// By what factor a byte may cost more in a single request than in a batch, where it costs more
/// than [`SLOW_BYTE_NS`].
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
    let _measuring = costs.measuring.lock().unpoisoned();
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
    let secret = secret(algorithm);
    let parameters = Parameters::new(algorithm, workload::key(algorithm, &secret));
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
    let secrets: Vec<_> = steps.iter().map(|step| secret(*step)).collect();
    let pairs = steps.iter().zip(&secrets);
    let own =
        pairs.map(|(step, secret)| Step { algorithm: *step, key: workload::key(*step, secret) });
    let own: Vec<_> = own.collect();
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
    let mut queue = driver::queue(driver, &waker)?;
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

/// A secret to measure with. No two parts of it are equal: some ciphers refuse that.
fn secret(algorithm: Algorithm) -> Vec<u8> {
    (0..workload::secret_bytes(algorithm).unwrap_or(0)).map(|at| 0x5a ^ at as u8).collect()
}

/// The operation that a session is measured with. `None` if it needs the consumer's key or is slow
/// on purpose.
fn operation(session: &Session, bytes: usize) -> Option<Operation> {
    let steps = session.algorithms();
    let (mut bytes, mut peer) = (bytes, Vec::new());
    match session.algorithm().kind() {
        Kind::Encryption | Kind::Password => return None,
        Kind::Exchange | Kind::Kem => peer = session.public_key().ok()?,
        // No consumer derives more than a key or two at a time.
        Kind::Hkdf => bytes = 32,
        _ => {}
    }
    // Neither all bytes equal nor all different, for compression.
    let text = (0..bytes).map(|at| (at * at / 64) as u8).collect();
    Some(workload::operation(steps, text, peer, session.signature_bytes_max()))
}
