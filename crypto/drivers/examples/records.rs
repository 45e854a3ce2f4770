//! Measures what the engine adds to a sealed record, next to the library called directly, and what
//! a queue adds: `cargo run --release -p keyway-drivers --example records`.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use keyway_engine::{Algorithm, Demand, Engine, Key, Operation, Parameters, Session, Task};
use std::hint::black_box;
use std::time::Instant;

const KEY: [u8; 16] = [7; 16];
const AAD: [u8; 5] = [23, 3, 3, 0, 0];
/// Short runs by turns, so that a disturbance does not hit one side only.
const RUNS: usize = 200;
const RUN_SEALS: u32 = 2_000;

fn main() {
    let engine = keyway_drivers::engine();
    engine.register(keyway_test_drivers::null()).expect("there is no other of that name");
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&KEY));
    let open = |driver| engine.session(parameters.on(driver)).expect("it is there");
    let (session, null) = (open(Demand::Any), open(Demand::Named("null")));
    let direct = UnboundKey::new(&AES_128_GCM, &KEY).expect("the key has the right length");
    let direct = LessSafeKey::new(direct);
    println!("AES-128-GCM seal, ns: best (median) of {RUNS} runs of {RUN_SEALS}");
    println!("{:>8} {:>18} {:>18} {:>18}", "bytes", "library", "engine", "engine, null");
    for bytes in [64, 1350, 16 * 1024] {
        let mut data = vec![0; bytes];
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..RUNS {
            times[0].push(time(&mut data, |nonce, data| {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let tag = direct.seal_in_place_separate_tag(nonce, Aad::from(&AAD), data);
                black_box(tag.is_ok());
            }));
            times[1].push(time(&mut data, |nonce, data| {
                black_box(session.seal(nonce, &AAD, data).is_ok());
            }));
            times[2].push(time(&mut data, |nonce, data| {
                black_box(null.seal(nonce, &AAD, data).is_ok());
            }));
        }
        let [library, engine, null] = times.map(|mut runs| {
            runs.sort_by(f64::total_cmp);
            format!("{:.1} ({:.1})", runs[0], runs[RUNS / 2])
        });
        println!("{bytes:>8} {library:>18} {engine:>18} {null:>18}");
    }
    println!("The same through a queue, ns for one request, 64 bytes");
    println!("{:>8} {:>18} {:>18}", "flying", "engine", "engine, null");
    for flying in [1, 4, 32] {
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..RUNS {
            times[0].push(time_queue(&engine, &session, flying));
            times[1].push(time_queue(&engine, &null, flying));
        }
        let [engine, null] = times.map(|mut runs| {
            runs.sort_by(f64::total_cmp);
            format!("{:.1} ({:.1})", runs[0], runs[RUNS / 2])
        });
        println!("{flying:>8} {engine:>18} {null:>18}");
    }
}

/// Nanoseconds of one seal, when so many go through a queue and back together.
fn time_queue(engine: &Engine, session: &Session, flying: usize) -> f64 {
    let seal = || Operation::seal([0; 12], AAD, [0; 64]);
    let mut queue = engine.queue(flying);
    let mut tasks: Vec<_> = (0..flying).map(|_| Task::new(session, seal())).collect();
    let rounds = RUN_SEALS as usize / flying;
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(queue.submit(black_box(&mut tasks), false));
        black_box(queue.poll(black_box(&mut tasks)));
    }
    start.elapsed().as_secs_f64() * 1e9 / (rounds * flying) as f64
}

/// Nanoseconds of one seal.
fn time(data: &mut [u8], seal: impl Fn(&[u8; 12], &mut [u8])) -> f64 {
    let start = Instant::now();
    for count in 0..RUN_SEALS {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&count.to_ne_bytes());
        seal(black_box(&nonce), black_box(data));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(RUN_SEALS)
}
