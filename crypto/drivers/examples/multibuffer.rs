//! Measures AES-128-CBC with HMAC through a queue, `multibuffer` next to `software`:
//! `cargo run --release -p keyway-drivers --example multibuffer`.

use keyway_engine::{
    Algorithm, Demand, Direction, Engine, Iv, Key, Operation, Parameters, Part, Step, Task,
};
use std::hint::black_box;
use std::time::Instant;

/// SPI, sequence number and IV of an ESP packet: under the MAC, not encrypted.
const HEADER_BYTES: usize = 24;
const TAG_BYTES: usize = 12;
const WAITING: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Short runs by turns, so that a disturbance does not hit one side only.
const RUNS: usize = 41;
const RUN_BYTES: usize = 1 << 19;

fn main() {
    let Some(multibuffer) = keyway_drivers::multibuffer() else {
        println!("This processor has no backend that is worth a batch.");
        return;
    };
    let software = keyway_drivers::software();
    let engine = Engine::builder().driver(software).driver(multibuffer).build();
    let cipher = Step { algorithm: Algorithm::Aes128Cbc, key: Key::Secret(&[7; 16]) };
    let mac = |algorithm| Step { algorithm, key: Key::Secret(&[9; 20]) };
    let (sha1, sha256) = (mac(Algorithm::HmacSha1), mac(Algorithm::HmacSha256));
    println!("ns per request, best of {RUNS} runs by turns: multibuffer, in brackets software");
    for steps in [&[cipher, sha1][..], &[cipher, sha256], &[cipher], &[sha1], &[sha256]] {
        let names: Vec<_> = steps.iter().map(|step| step.algorithm.name()).collect();
        print!("{:<26}", names.join(" and "));
        WAITING.iter().for_each(|waiting| print!(" {:>15}", format!("{waiting} waiting")));
        println!();
        for bytes in [64, 256, 1024, 8192] {
            print!("{bytes:>20} bytes");
            for waiting in WAITING {
                let times = ["multibuffer", "software"].map(|driver| {
                    let run = Run::new(&engine, driver, steps, bytes, waiting);
                    (run, f64::INFINITY)
                });
                let [(_, multi), (_, soft)] = best(times);
                print!(" {:>15}", format!("{multi:.0} ({soft:.0})"));
            }
            println!();
        }
    }
}

fn best(mut runs: [(Run, f64); 2]) -> [(Run, f64); 2] {
    for _ in 0..RUNS {
        for (run, best) in &mut runs {
            *best = best.min(run.time());
        }
    }
    runs
}

/// Packets of one size that go through a queue together, again and again.
struct Run {
    queue: keyway_engine::Queue,
    tasks: Vec<Box<Task>>,
    rounds: usize,
}

impl Run {
    fn new(
        engine: &Engine,
        driver: &str,
        steps: &[Step<'_>],
        bytes: usize,
        waiting: usize,
    ) -> Self {
        let parameters = match steps {
            [step] => Parameters::new(step.algorithm, step.key),
            _ => Parameters::chain(steps),
        };
        let session = engine.session(parameters.on(Demand::Named(driver))).expect("it opens");
        let text = HEADER_BYTES..HEADER_BYTES + bytes;
        let operation = || match steps {
            [_, _] => Operation::Chain {
                direction: Direction::Protect,
                data: vec![1; text.end + TAG_BYTES].into(),
                length: text.end + TAG_BYTES,
                parts: vec![
                    Part::Cipher { iv: Iv::At(HEADER_BYTES - 16), text: text.clone() },
                    Part::Mac { over: 0..text.end, tag: text.end..text.end + TAG_BYTES },
                ],
            },
            [step] if step.algorithm == Algorithm::Aes128Cbc => {
                Operation::encrypt([0; 16], vec![1; bytes])
            }
            _ => Operation::mac(session.algorithm(), vec![1; bytes]),
        };
        let tasks = (0..waiting).map(|_| Task::new(&session, operation())).collect();
        let rounds = RUN_BYTES / (bytes + 256) / waiting + 1;
        Run { queue: engine.queue(waiting), tasks, rounds }
    }

    /// Nanoseconds of one request.
    fn time(&mut self) -> f64 {
        let Run { queue, tasks, rounds } = self;
        let start = Instant::now();
        for _ in 0..*rounds {
            queue.submit(black_box(tasks), false);
            queue.poll(black_box(tasks));
        }
        let all = (*rounds * tasks.len()) as f64;
        assert!(tasks.iter().all(|task| task.result().is_ok()));
        start.elapsed().as_secs_f64() * 1e9 / all
    }
}
