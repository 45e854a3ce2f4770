//! Claim 1: what a ring costs by itself, beside a line of the cache that goes to the other
//! processor and back.
//!
//! The system calls of both processes are counted by strace while requests go to and fro.

use super::client::{Client, Ring};
use super::daemon::Daemon;
use super::{Arguments, DAEMON, best, column, run_on, text};
use crate::report::{Claim, Findings, Table, median};
use keyway_ring::ClientEnd;
use keyway_ring::descriptor::{Descriptor, Opcode};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::hint::spin_loop;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

const DEPTHS: [usize; 4] = [1, 4, 8, 32];
/// Runs of every side in a round, and operations of a run.
const RUNS: usize = 40;
const OPERATIONS: usize = 2_000;
/// Requests during which system calls are counted.
const COUNTED: usize = 1_000_000;

/// The most that one request may take of a raw round trip.
const ONE_MOST: f64 = 1.2;
const DEEP_NS_MAX: f64 = 15.0;
/// Those with which a process notices that it is looked at.
const CALLS_MAX: f64 = 1e-4;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &["--allow-debugging"])?;
    let client = Client::connect(daemon.socket(), "null")?;
    let Ring { mut end, bell } = client.ring(64)?;
    let ring = || bell.ring();
    let mut rounds = Vec::new();
    let mut raw = Vec::new();
    for _ in 0..arguments.rounds {
        raw.push(ping_pong()?);
        let mut round = [0.0; DEPTHS.len()];
        for (figure, depth) in round.iter_mut().zip(DEPTHS) {
            [*figure] = best(RUNS, [&mut || turn(&mut end, depth, OPERATIONS, &ring)]);
        }
        rounds.push(round);
    }
    let (one, deep) = (column(&rounds, 0), column(&rounds, DEPTHS.len() - 1));
    let mut claims = vec![
        Claim::cost("1 null operation, 1 in flight", "ns", &one, "a line there and back", &raw)
            .demand(1.0 / ONE_MOST),
        Claim::at_most("1 null operation, 32 in flight", "ns", &deep, DEEP_NS_MAX),
    ];
    let before = client.status("null")?;
    let calls = system_calls(folder.path(), &daemon, || {
        for depth in [1, 32] {
            turn(&mut end, depth, COUNTED / 2, &ring);
        }
    });
    let after = client.status("null")?;
    match calls {
        Ok(calls) => {
            let name = "1 system calls a request, both processes";
            let calls = [calls as f64 / COUNTED as f64];
            claims.push(Claim::at_most(name, "calls", &calls, CALLS_MAX));
        }
        Err(why) => eprintln!("system calls are not counted: {why}"),
    }
    let title = "1 null operation, ns: medians";
    let mut table = Table::new(title, &["in flight", "ring", "a line there and back"]);
    for (index, depth) in DEPTHS.into_iter().enumerate() {
        let ours = format!("{:.1}", median(&column(&rounds, index)));
        let raw = if depth == 1 { format!("{:.1}", median(&raw)) } else { String::new() };
        table.rows.push(vec![depth.to_string(), ours, raw]);
    }
    let mut events = Table::new("1 events of these requests", &["doorbells", "wake-ups"]);
    let rung = (after.doorbells - before.doorbells).to_string();
    events.rows.push(vec![rung, (after.wakeups - before.wakeups).to_string()]);
    Ok(Findings { claims, tables: vec![table, events] })
}

/// Nanoseconds of one of so many requests, so many in flight. `ring` is called when the daemon sleeps. It makes no
/// system call by itself, so that a guest without a system can run it.
#[inline(never)]
pub(crate) fn turn(end: &mut ClientEnd, depth: usize, operations: usize, ring: &dyn Fn()) -> f64 {
    let null = Descriptor { opcode: Opcode::Null as u8, ..Descriptor::default() };
    let (mut submitted, mut done) = (0, 0);
    let begun = Instant::now();
    while done < operations {
        let target = (done + depth).min(operations);
        if submitted < target {
            for _ in submitted..target {
                end.submit(&null);
            }
            submitted = target;
            if end.must_ring() {
                ring();
            }
        }
        let before = done;
        while end.poll().is_some() {
            done += 1;
        }
        if done == before {
            spin_loop();
        }
    }
    begun.elapsed().as_secs_f64() * 1e9 / operations as f64
}

/// Alone in its lines, the one that the processor fetches with it included.
#[repr(align(128))]
struct Line(AtomicU32);

/// Nanoseconds that a line of the cache takes to the other processor and back: the best run.
fn ping_pong() -> Result<f64, String> {
    let line = Line(AtomicU32::new(0));
    let trips = (RUNS * OPERATIONS) as u32;
    let wait = |value| {
        while line.0.load(Ordering::Acquire) != value {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let pinned = run_on(DAEMON);
            for trip in 0..trips {
                wait(2 * trip + 1);
                line.0.store(2 * trip + 2, Ordering::Release);
            }
            pinned
        });
        let mut best = f64::MAX;
        let mut begun = Instant::now();
        for trip in 0..trips {
            line.0.store(2 * trip + 1, Ordering::Release);
            wait(2 * trip + 2);
            if (trip as usize + 1).is_multiple_of(OPERATIONS) {
                best = best.min(begun.elapsed().as_secs_f64() * 1e9 / OPERATIONS as f64);
                begun = Instant::now();
            }
        }
        other.join().map_err(|_| "a thread panicked")??;
        Ok(best)
    })
}

/// How many system calls both processes make meanwhile.
fn system_calls(folder: &Path, daemon: &Daemon, work: impl FnOnce()) -> Result<u64, String> {
    let summary = folder.join("calls");
    let processes = [std::process::id(), daemon.id()];
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&summary);
    for process in processes {
        command.args(["-p", &process.to_string()]);
    }
    let mut child =
        command.stderr(Stdio::piped()).spawn().map_err(|why| format!("strace: {why}"))?;
    let says = BufReader::new(child.stderr.take().ok_or("strace has no output")?);
    let attached = says.lines().map_while(Result::ok).take(processes.len());
    let attached = attached.filter(|line| line.contains("attached")).count();
    if attached == processes.len() {
        work();
    }
    let _ = kill_process(Pid::from_child(&child), Signal::INT);
    child.wait().map_err(text)?;
    if attached < processes.len() {
        return Err("strace may not look at the two processes".into());
    }
    let summary = fs::read_to_string(&summary).map_err(text)?;
    let total = summary.lines().find(|line| line.ends_with("total"));
    let total = total.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok(total.unwrap_or(0))
}
