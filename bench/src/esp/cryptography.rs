//! The cryptography of a packet alone: in batches through the engine's queue, as the gateway has it done.

use super::keyway::ALGORITHM;
use super::network::MTU;
use crate::ring::common::text;
use keyway_engine::{Algorithm, Key, NONCE_BYTES, Operation, Parameters, Queue, Task};
use std::hint::black_box;
use std::time::Instant;

/// Packets that are sealed together.
const BATCH: usize = 64;
const RUNS: usize = 100;
/// The trailer of a packet of [`MTU`] bytes, and the header that is authenticated with it: SPI and 64 bits of a number.
const TRAILER_BYTES: usize = 4;
const AAD_BYTES: usize = 12;

pub struct Cryptography {
    queue: Queue,
    tasks: Vec<Box<Task>>,
}

impl Cryptography {
    pub fn new() -> Result<Cryptography, String> {
        let engine = keyway_drivers::engine();
        let algorithm = Algorithm::Aes256Gcm;
        debug_assert_eq!(algorithm.name(), ALGORITHM);
        let session = engine.session(Parameters::new(algorithm, Key::Secret(&[7; 32])));
        let session = session.map_err(text)?;
        let seal = |number: usize| {
            let mut nonce = [0; NONCE_BYTES];
            nonce[..8].copy_from_slice(&number.to_be_bytes());
            let text = vec![7; MTU + TRAILER_BYTES];
            Task::new(&session, Operation::seal(nonce, [1; AAD_BYTES], text))
        };
        Ok(Cryptography { queue: engine.queue(BATCH), tasks: (0..BATCH).map(seal).collect() })
    }

    /// Nanoseconds to seal a packet of [`MTU`] bytes and to open it, which is as much work again: the best of many runs.
    pub fn nanoseconds(&mut self) -> f64 {
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let begun = Instant::now();
            self.queue.submit(&mut self.tasks, false);
            while self.queue.in_flight() > 0 {
                self.queue.poll(&mut self.tasks);
            }
            best = best.min(begun.elapsed().as_nanos() as f64);
            black_box(&self.tasks);
        }
        2.0 * best / BATCH as f64
    }
}
