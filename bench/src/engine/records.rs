//! Claim 2: what a direct call adds to AES-128-GCM, beside the library called without an engine.
//! The driver is `software`, which calls the same library: what is measured is the engine, not a
//! faster driver.

use super::{Arguments, Findings, column, time};
use crate::gauge::Gauge;
use crate::report::{Claim, Table, median};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use indicatif::ProgressBar;
use keyway_engine::{Algorithm, Demand, Key, NONCE_BYTES, Parameters, Request, TAG_BYTES};
use std::hint::black_box;

const KEY: [u8; 16] = [7; 16];
/// A TLS record's.
const AAD: [u8; 5] = [23, 3, 3, 0, 0];
const SIZES: [usize; 7] = [64, 256, 1024, 1350, 4096, 8192, 16_384];
const RUNS: usize = 60;
/// Bytes sealed in a run, and calls at most.
const RUN_BYTES: usize = 400_000;
const RUN_CALLS: usize = 1_000;

const ADDED_NS_MAX: f64 = 15.0;

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let engine = keyway_drivers::engine();
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&KEY));
    let session = engine
        .session(parameters.on(Demand::Named("software")))
        .map_err(|error| error.to_string())?;
    let library = UnboundKey::new(&AES_128_GCM, &KEY).map_err(|error| error.to_string())?;
    let library = LessSafeKey::new(library);
    let mut gauge = Gauge::new();
    let mut figures = SIZES.map(|_| Vec::new());
    progress.inc_length(arguments.rounds as u64);
    for _ in 0..arguments.rounds {
        for (bytes, rounds) in SIZES.into_iter().zip(&mut figures) {
            // One buffer for both, so that neither is luckier with its pages.
            let (mut data, mut tag) = (vec![0; bytes], [0; TAG_BYTES]);
            let calls = (RUN_BYTES / bytes).min(RUN_CALLS);
            rounds.push(gauge.undisturbed(|| {
                let mut best = vec![f64::MAX; 2];
                for _ in 0..RUNS {
                    let mut count = 0;
                    let ours = time(calls, || {
                        let (nonce, data) = (&nonce(&mut count), black_box(&mut data[..]));
                        let mut request = Request::Seal { nonce, aad: &AAD, data, tag: &mut tag };
                        black_box(session.run(&mut request).is_ok());
                    });
                    let mut count = 0;
                    let theirs = time(calls, || {
                        let nonce = Nonce::assume_unique_for_key(nonce(&mut count));
                        let (aad, data) = (Aad::from(&AAD), black_box(&mut data[..]));
                        if let Ok(made) = library.seal_in_place_separate_tag(nonce, aad, data) {
                            tag.copy_from_slice(made.as_ref());
                        }
                    });
                    best = vec![best[0].min(ours), best[1].min(theirs)];
                }
                best
            }));
        }
        progress.inc(1);
    }
    let mut found = Findings::default();
    let mut table = Table::new(
        "2 AES-128-GCM seal by direct call, driver software, ns: medians of the rounds' bests",
        &["bytes", "Keyway", "aws-lc-rs", "difference"],
    );
    for (bytes, rounds) in SIZES.into_iter().zip(&figures) {
        let (ours, theirs) = (column(rounds, 0), column(rounds, 1));
        let allowed: Vec<_> = theirs.iter().map(|library| library + ADDED_NS_MAX).collect();
        let name = format!("2 AES-128-GCM seal, {bytes} B, direct call");
        let claim = Claim::cost(&name, "ns", &ours, "aws-lc-rs + 15 ns", &allowed);
        found.claims.push(claim.demand(1.0));
        let added: Vec<_> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect();
        let figures = [median(&ours), median(&theirs), median(&added)];
        let mut row = vec![bytes.to_string()];
        row.extend(figures.map(|figure| format!("{figure:.1}")));
        table.rows.push(row);
    }
    found.tables.push(table);
    Ok(found)
}

/// The next one.
fn nonce(count: &mut u64) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(&count.to_ne_bytes());
    *count += 1;
    nonce
}
