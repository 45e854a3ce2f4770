//! Claim 8: a program that computes, beside threads that have cryptography done.
//!
//! Figure 4 of the OpenBSD paper of 2003: a processor-bound program takes as long as ever while
//! cards do the cryptography of up to 24 threads, and ever longer while software does it. The card
//! is simulated: it takes the time that the real one took, and none of the processor's.

use super::{Arguments, Findings};
use crate::report::{Claim, Table, median};
use indicatif::ProgressBar;
use keyway_engine::{Algorithm, Demand, Engine, IV_BYTES_MAX, Key, Parameters, Request, Session};
use keyway_test_drivers::Card;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 24];
/// Multiplications of the program; the paper's had 2^32.
const MULTIPLICATIONS: u64 = 1 << 27;
/// Bytes of a request: the longest of the paper's.
const BYTES: usize = 16_384;
const ROUNDS_MAX: usize = 5;
/// Least pace of the program while a card works for the most threads, as a part of its pace without
/// company.
const PACE_MIN: f64 = 0.9;

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let card = Card::broadcom_5820();
    let card = keyway_test_drivers::simulated("bcm-5820", card, keyway_test_drivers::null());
    let software = keyway_drivers::software();
    let engine = Engine::builder().legacy(true).driver(Arc::new(card)).driver(software).build();
    let key: [u8; 24] = std::array::from_fn(|at| at as u8 * 7);
    let open = |driver| {
        let parameters = Parameters::new(Algorithm::TripleDesCbc, Key::Secret(&key));
        engine.session(parameters.on(Demand::Named(driver))).map_err(|error| error.to_string())
    };
    let (on_card, in_software) = (open("bcm-5820")?, open("software")?);
    let mut found = Findings::default();
    let title = "8 a program that computes beside 3DES-CBC of 16 KiB, ms: medians";
    let mut table = Table::new(title, &["threads", "alone", "on a card", "in software"]);
    let rounds = arguments.rounds.min(ROUNDS_MAX);
    progress.inc_length(THREADS.len() as u64);
    for threads in THREADS {
        let [mut alone, mut card, mut software] = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            alone.push(beside(0, &on_card));
            card.push(beside(threads, &on_card));
            software.push(beside(threads, &in_software));
        }
        let name = format!("8 a program beside {threads} threads on a card");
        let claim = Claim::cost(&name, "ms", &card, "alone", &alone);
        let is_most = Some(&threads) == THREADS.last();
        found.claims.push(if is_most { claim.demand(PACE_MIN) } else { claim.secondary() });
        let name = format!("8 a program beside {threads} threads in software");
        found.claims.push(Claim::cost(&name, "ms", &software, "alone", &alone).secondary());
        let row = [&alone, &card, &software].map(|took| format!("{:.0}", median(took)));
        table.rows.push([vec![threads.to_string()], row.to_vec()].concat());
        progress.inc(1);
    }
    found.tables.push(table);
    Ok(found)
}

/// Milliseconds that the program takes while so many threads have requests done.
fn beside(threads: usize, session: &Session) -> f64 {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut data = vec![0; BYTES];
                while !over.load(Ordering::Relaxed) {
                    let iv = [0; IV_BYTES_MAX];
                    let mut request = Request::Encrypt { iv: &iv, data: &mut data };
                    black_box(session.run(&mut request).is_ok());
                }
            });
        }
        let begun = Instant::now();
        let mut product = 1_u64;
        for number in 0..MULTIPLICATIONS {
            product = multiply(product, number);
        }
        black_box(product);
        over.store(true, Ordering::Relaxed);
        begun.elapsed().as_secs_f64() * 1e3
    })
}

/// A call and a multiplication, as in the paper's program.
#[inline(never)]
fn multiply(product: u64, number: u64) -> u64 {
    black_box(product.wrapping_mul(number | 1))
}
