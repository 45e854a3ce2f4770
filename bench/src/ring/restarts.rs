//! Claim 8: what a client in load notices when the daemon is killed and started again, where the
//! engine may do the work itself meanwhile, and when another daemon takes over, where it may not.
//! As long as a daemon is there, the engine has it do the work in either case.
//!
//! Every request has a number and a text of its own. Answers are opened again in this process.

use super::client::Client;
use super::daemon::Daemon;
use super::{Arguments, text};
use crate::report::{Claim, Findings, Table};
use keyway_engine::Task;
use keyway_engine::{
    Algorithm, Demand, Engine, Key, Linear, NONCE_BYTES, Operation, Parameters, Session,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DEPTH: usize = 16;
const BYTES: usize = 4096;
/// Times that the daemon goes.
const TIMES: usize = 4;
/// Between two of them, and how long it stays away.
const PAUSE: Duration = Duration::from_millis(250);
const NAME: &str = "restarts";

pub fn measure(_: &Arguments) -> Result<Findings, String> {
    let mut table = Table::new(
        "8 AES-128-GCM of 4096 B, 16 in flight, while the daemon goes four times",
        &[
            "it is",
            "requests",
            "failed",
            "lost",
            "twice",
            "by a daemon",
            "by the last one",
            "longest pause, ms",
        ],
    );
    let mut claims = Vec::new();
    for (how, demand) in [("killed", Demand::Any), ("replaced", Demand::Named("remote"))] {
        let folder = tempfile::tempdir().map_err(text)?;
        let daemon = Daemon::start(folder.path(), &[])?;
        let (engine, remote) = daemon.client(NAME)?;
        let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]));
        let session = engine.session(parameters.on(demand)).map_err(text)?;
        prefer_remote(&engine);
        let before = done_by_remote();
        let over = AtomicBool::new(false);
        let (seen, last) = thread::scope(|scope| {
            let others = scope.spawn(|| {
                let last = replace(daemon, folder.path(), how == "killed");
                over.store(true, Ordering::Release);
                last
            });
            let seen = work(&engine, &session, &over);
            (seen, others.join().unwrap_or_else(|_| Err("a thread panicked".into())))
        });
        let (seen, last) = (seen?, last?);
        let there = Client::connect(last.socket(), "looks")?.status(NAME)?.requests;
        drop(remote);
        let Seen { requests, failed, lost, twice, pause } = seen;
        let good = requests as f64 - (failed + lost + twice) as f64;
        let name = format!("8 requests done once, daemon {how}");
        let share = [good / requests as f64];
        claims.push(Claim::rate(&name, "of 1", &share, "all", &[1.0]).demand(1.0));
        let by_daemons = done_by_remote() - before;
        let counts =
            [requests, failed, lost, twice, by_daemons, there].map(|count| count.to_string());
        let mut row = vec![how.to_owned()];
        row.extend(counts);
        row.push(format!("{:.1}", pause.as_secs_f64() * 1e3));
        table.rows.push(row);
    }
    Ok(Findings { claims, tables: vec![table] })
}

/// Has the engine take what the daemon does not do for so slow that it is a last resort.
fn prefer_remote(engine: &Engine) {
    let slow = Linear { fixed: 1e6, per_byte: 0.0 };
    for driver in engine.drivers().into_iter().filter(|driver| driver.name != "remote") {
        // One that is gone by now needs none.
        let _ = engine.set_cost(&driver.name, &[Algorithm::Aes128Gcm], slow, slow);
    }
}

/// Requests of AES-128-GCM that daemons have done for this process.
fn done_by_remote() -> u64 {
    keyway_meter::counter("engine.remote.aes-128-gcm.operations").value()
}

/// Has one daemon follow the other, and hands back the last.
fn replace(mut daemon: Daemon, folder: &Path, kill: bool) -> Result<Daemon, String> {
    for _ in 0..TIMES {
        thread::sleep(PAUSE);
        daemon = match kill {
            true => {
                daemon.kill()?;
                thread::sleep(PAUSE);
                Daemon::start(folder, &[])?
            }
            // The one before ends by itself.
            false => Daemon::start(folder, &["--take-over"])?,
        };
    }
    thread::sleep(PAUSE);
    Ok(daemon)
}

/// The fate of the requests.
#[derive(Default)]
struct Seen {
    requests: u64,
    failed: u64,
    lost: u64,
    twice: u64,
    /// Longest time without an answer.
    pause: Duration,
}

fn work(engine: &Engine, session: &Session, over: &AtomicBool) -> Result<Seen, String> {
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]));
    // By an engine of its own: for this one the daemon is software of this host, too.
    let check = keyway_drivers::engine().session(parameters).map_err(text)?;
    let mut queue = engine.queue(DEPTH);
    let mut tasks: Vec<Box<Task>> = (0..DEPTH)
        .map(|_| Task::new(session, Operation::seal([0; NONCE_BYTES], [], [0; BYTES])))
        .collect();
    // How often each number has come back.
    let mut times: Vec<u8> = Vec::new();
    let mut seen = Seen::default();
    let mut last = Instant::now();
    let mut done = Vec::new();
    while queue.in_flight() > 0 || !over.load(Ordering::Acquire) {
        if !over.load(Ordering::Acquire) {
            for task in &mut tasks {
                let number = times.len() as u64;
                times.push(0);
                task.user = number;
                if let Operation::Seal { nonce, data, .. } = &mut task.operation {
                    (*nonce, _) = text_of(number);
                    data.fill(number as u8);
                }
            }
            queue.submit(&mut tasks, false);
        }
        if queue.wait(&mut done, Duration::from_millis(1)) == 0 {
            continue;
        }
        seen.pause = seen.pause.max(last.elapsed());
        last = Instant::now();
        for task in &mut done {
            times[task.user as usize] = times[task.user as usize].saturating_add(1);
            let (nonce, byte) = text_of(task.user);
            let good = match (task.result(), &mut task.operation) {
                (Ok(_), Operation::Seal { data, tag, .. }) => {
                    let mut text = data.to_vec();
                    text.extend_from_slice(tag);
                    let opened = check.open_in_place(&nonce, &[], &mut text);
                    opened == Ok(BYTES) && text.iter().take(BYTES).all(|it| *it == byte)
                }
                _ => false,
            };
            seen.failed += u64::from(!good);
        }
        tasks.append(&mut done);
    }
    seen.requests = times.len() as u64;
    seen.lost = times.iter().filter(|times| **times == 0).count() as u64;
    seen.twice = times.iter().filter(|times| **times > 1).count() as u64;
    Ok(seen)
}

/// The nonce of a request, and the byte that its text is made of.
fn text_of(number: u64) -> ([u8; NONCE_BYTES], u8) {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(&number.to_ne_bytes());
    (nonce, number as u8)
}
