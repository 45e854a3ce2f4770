//! Claim 4: a request run on the caller's stack, beside the policy of 2003, which hands each one to
//! a dispatch thread and its result to a return thread.

use super::{Arguments, Findings, best, column, openssl, time};
use crate::plot;
use crate::report::{Claim, Table, median};
use indicatif::ProgressBar;
use keyway_engine::{
    Algorithm, Demand, Driver, Engine, IV_BYTES_MAX, Key, NONCE_BYTES, Parameters, Request,
    Session, TAG_BYTES,
};
use std::hint::black_box;
use std::sync::Arc;

const SIZES: [usize; 6] = [16, 64, 256, 1024, 4096, 16_384];
const RUNS: usize = 4;
/// Nanoseconds that a run should take, and calls at most.
const RUN_NS: f64 = 2e6;
const RUN_CALLS: f64 = 200.0;
const ROUNDS_MAX: usize = 5;

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let kinds: [(&str, Algorithm, Arc<dyn Driver>); 3] = [
        ("null", Algorithm::Aes128Ctr, keyway_test_drivers::null()),
        ("3DES-CBC", Algorithm::TripleDesCbc, keyway_drivers::software()),
        ("AES-128-GCM", Algorithm::Aes128Gcm, keyway_drivers::software()),
    ];
    let mut found = Findings::default();
    let mut table = Table::new(
        "4 direct dispatch and the threads of 2003, us a request: medians of the rounds' bests",
        &["", "bytes", "direct", "two threads", "times", "OpenSSL"],
    );
    let mut series = Vec::new();
    let rounds = arguments.rounds.min(ROUNDS_MAX);
    progress.inc_length((kinds.len() * SIZES.len()) as u64);
    for (colour, (label, algorithm, driver)) in kinds.into_iter().enumerate() {
        let queued =
            keyway_test_drivers::queued2003(driver.clone()).map_err(|error| error.to_string())?;
        let names = [driver.name().to_owned(), queued.name().to_owned()];
        let engine = Engine::builder().legacy(true).driver(driver).driver(queued).build();
        let key = vec![7; algorithm.key_bytes().unwrap_or(16)];
        let key: Vec<_> = key.iter().zip(0..).map(|(byte, at): (&u8, u8)| byte ^ at).collect();
        let open = |name: &str| {
            let parameters = Parameters::new(algorithm, Key::Secret(&key)).on(Demand::Named(name));
            engine.session(parameters).map_err(|error| error.to_string())
        };
        let (direct, queued) = (open(&names[0])?, open(&names[1])?);
        let mut lines = [Vec::new(), Vec::new()];
        for bytes in SIZES {
            let mut data = vec![0; bytes];
            for session in [&direct, &queued] {
                run(session, &mut data)?;
            }
            let mut other = data.clone();
            let mut direct = || timed(&direct, &mut data);
            let mut queued = || timed(&queued, &mut other);
            let rounds: Vec<_> =
                (0..rounds).map(|_| best(RUNS, &mut [&mut direct, &mut queued])).collect();
            let (ours, theirs) = (column(&rounds, 0), column(&rounds, 1));
            let (our, their) = (median(&ours), median(&theirs));
            let name = format!("4 {label}, {bytes} B, direct dispatch");
            found
                .claims
                .push(Claim::cost(&name, "us", &ours, "two threads (2003)", &theirs).demand(1.0));
            let openssl = (algorithm == Algorithm::TripleDesCbc && bytes == 1024)
                .then(|| openssl::speed("des-ede3-cbc", bytes));
            table.rows.push(vec![
                label.into(),
                bytes.to_string(),
                format!("{our:.3}"),
                format!("{their:.3}"),
                format!("{:.1}", their / our),
                openssl.flatten().map(|ns| format!("{:.3}", ns / 1e3)).unwrap_or_default(),
            ]);
            for (line, figure) in lines.iter_mut().zip([our, their]) {
                line.push((bytes as f64, bytes as f64 * 8.0 / figure));
            }
            progress.inc(1);
        }
        for (points, (way, dashed)) in
            lines.into_iter().zip([("direct", false), ("two threads", true)])
        {
            series.push(plot::line(format!("{label}, {way}"), points, colour, dashed));
        }
    }
    found.tables.push(table);
    if let Some(folder) = &arguments.svg {
        let labels = ("bytes a request", "Mbit/s");
        plot::draw(folder, "dispatch.svg", "One thread, one request at a time", labels, series)?;
    }
    Ok(found)
}

fn run(session: &Session, data: &mut [u8]) -> Result<usize, String> {
    let mut tag = [0; TAG_BYTES];
    let (nonce, iv) = ([0; NONCE_BYTES], [0; IV_BYTES_MAX]);
    let mut request = match session.algorithm() {
        Algorithm::Aes128Gcm => Request::Seal { nonce: &nonce, aad: &[], data, tag: &mut tag },
        _ => Request::Encrypt { iv: &iv, data },
    };
    session.run(&mut request).map_err(|error| error.to_string())
}

/// Microseconds a request.
fn timed(session: &Session, data: &mut [u8]) -> f64 {
    let mut call = || {
        black_box(run(session, black_box(data)).is_ok());
    };
    let first = time(1, &mut call);
    let calls = (RUN_NS / first).clamp(2.0, RUN_CALLS) as usize;
    time(calls, &mut call) / 1e3
}
