//! Claim 2: AES-128-GCM through the ring beside the same in this process.
//!
//! No ratio is demanded: a crossing costs more than it wins, and the scheduler keeps such work in
//! the caller. The rows say how much more.
//!
//! Both sides go through the engine's queue, and this thread writes and reads a word in each line
//! of every text, as who makes and uses it does. Lent texts lie in memory that the daemon reaches;
//! owned ones are copied there and back.

use super::daemon::Daemon;
use super::{Arguments, best, column, text};
use crate::report::{Claim, Findings, Table, median};
use keyway_drivers::remote::Remote;
use keyway_engine::{
    Algorithm, Buffer, Demand, Engine, Key, NONCE_BYTES, Operation, Parameters, Queue, Session,
    Task,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes of a text.
const SIZES: [usize; 3] = [256, 1504, 16_384];
const DEPTH: usize = 32;
/// Runs of every side in a round, and bytes that a run works on.
const RUNS: usize = 30;
const BYTES: usize = 2 << 20;
/// Fewest turns of a run.
const TURNS: usize = 6;
/// So much longer than they take, the daemon has done all that are in flight, and still polls.
const PATIENCE: Duration = Duration::from_micros(2);

const KEY: Key<'static> = Key::Secret(&[7; 16]);
const LINE: usize = 64;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let (engine, remote) = daemon.client("records")?;
    let open = |demand| engine.session(Parameters::new(Algorithm::Aes128Gcm, KEY).on(demand));
    let here = open(Demand::Software).map_err(text)?;
    let there = open(Demand::Named("remote")).map_err(text)?;
    let lent = |bytes| remote.buffer(bytes).map_err(text);
    let mut found = Findings::default();
    let mut table = Table::new(
        "2 AES-128-GCM, ns a text: medians",
        &["bytes", "in flight", "in process", "lent", "owned", "client's own"],
    );
    let row = |bytes: usize, depth: usize, rounds: &[[f64; 3]], own: &str| {
        let mut row = vec![bytes.to_string(), depth.to_string()];
        row.extend((0..3).map(|side| format!("{:.0}", median(&column(rounds, side)))));
        row.push(own.to_owned());
        row
    };
    for bytes in SIZES {
        let mut local = Round::new(&engine, &here, DEPTH, || Ok(vec![1; bytes].into()))?;
        let mut borrowed = Round::new(&engine, &there, DEPTH, || lent(bytes))?;
        let mut owned = Round::new(&engine, &there, DEPTH, || Ok(vec![1; bytes].into()))?;
        let turns = (BYTES / bytes / DEPTH).max(TURNS) * DEPTH;
        let rounds: Vec<[f64; 3]> = (0..arguments.rounds)
            .map(|_| {
                best(
                    RUNS,
                    [&mut || local.turn(turns), &mut || borrowed.turn(turns), &mut || {
                        owned.turn(turns)
                    }],
                )
            })
            .collect();
        let [here, lent, copied] = [0, 1, 2].map(|side| column(&rounds, side));
        let name = format!("2 AES-128-GCM, {bytes} B, 32 in flight");
        found.claims.push(Claim::cost(&name, "ns", &lent, "in process", &here));
        let name = name + ", copied";
        found.claims.push(Claim::cost(&name, "ns", &copied, "in process", &here).secondary());
        let wait = Duration::from_nanos((median(&lent) * DEPTH as f64) as u64) + PATIENCE;
        let own = client_costs(arguments, &mut borrowed, wait);
        table.rows.push(row(bytes, DEPTH, &rounds, &format!("{:.1}", median(&own))));
    }
    alone(arguments, &engine, &remote, [&here, &there], &mut found.claims)?;
    found.tables.push(table);
    Ok(found)
}

/// A single text at a time.
fn alone(
    arguments: &Arguments,
    engine: &Engine,
    remote: &Remote,
    [here, there]: [&Session; 2],
    claims: &mut Vec<Claim>,
) -> Result<(), String> {
    let bytes = SIZES[1];
    let mut local = Round::new(engine, here, 1, || Ok(vec![1; bytes].into()))?;
    let mut lent = Round::new(engine, there, 1, || remote.buffer(bytes).map_err(text))?;
    let mut data = vec![1; bytes];
    let mut rounds: Vec<[f64; 4]> = Vec::new();
    for _ in 0..arguments.rounds {
        let mut other = data.clone();
        rounds.push(best(
            RUNS,
            [
                &mut || local.turn(BYTES / bytes),
                &mut || lent.turn(BYTES / bytes),
                &mut || direct(here, &mut other, BYTES / bytes),
                &mut || direct(there, &mut data, BYTES / bytes),
            ],
        ));
    }
    let [queued, lent, called, copied] = [0, 1, 2, 3].map(|side| column(&rounds, side));
    let name = format!("2 AES-128-GCM, {bytes} B, 1 in flight");
    claims.push(Claim::cost(&name, "ns", &lent, "in process", &queued));
    let name = name + ", by call, copied";
    claims.push(Claim::cost(&name, "ns", &copied, "in process", &called).secondary());
    Ok(())
}

fn direct(session: &Session, data: &mut [u8], operations: usize) -> f64 {
    let begun = Instant::now();
    for _ in 0..operations {
        touch(data);
        black_box(session.seal(&[0; NONCE_BYTES], &[], data).is_ok());
    }
    begun.elapsed().as_secs_f64() * 1e9 / operations as f64
}

/// Writes and reads a word in each line.
fn touch(data: &mut [u8]) {
    for line in data.chunks_exact_mut(LINE) {
        line[0] = black_box(line[LINE - 1]);
    }
}

fn client_costs(arguments: &Arguments, round: &mut Round, wait: Duration) -> Vec<f64> {
    let one = |_| {
        let [best] = best(RUNS, [&mut || round.own(20, wait)]);
        best
    };
    (0..arguments.rounds).map(one).collect()
}

/// A queue whose tasks go round.
struct Round {
    queue: Queue,
    tasks: Vec<Box<Task>>,
}

impl Round {
    fn new(
        engine: &Engine,
        session: &Session,
        depth: usize,
        buffer: impl Fn() -> Result<Buffer, String>,
    ) -> Result<Self, String> {
        let task = |_| {
            let operation = Operation::seal([0; NONCE_BYTES], [], buffer()?);
            Ok::<_, String>(Task::new(session, operation))
        };
        let tasks = (0..depth).map(task).collect::<Result<_, _>>()?;
        Ok(Round { queue: engine.queue(depth), tasks })
    }

    /// Nanoseconds of one of at least so many, as many in flight as there can be. At the end all
    /// are back.
    fn turn(&mut self, operations: usize) -> f64 {
        let begun = Instant::now();
        let (mut submitted, mut done) = (0, 0);
        while done < operations {
            if submitted < operations {
                for task in &mut self.tasks {
                    if let Operation::Seal { data, .. } = &mut task.operation {
                        touch(data);
                    }
                }
                submitted += self.queue.submit(&mut self.tasks, false);
            }
            done += self.queue.poll(&mut self.tasks);
        }
        let each = begun.elapsed().as_secs_f64() * 1e9 / done as f64;
        while self.queue.in_flight() > 0 {
            self.queue.poll(&mut self.tasks);
        }
        each
    }

    /// Nanoseconds that it takes this thread to submit and collect one, when it never waits and its
    /// bytes are not looked at.
    fn own(&mut self, turns: usize, wait: Duration) -> f64 {
        let (mut spent, mut done) = (Duration::ZERO, 0);
        for _ in 0..turns {
            let begun = Instant::now();
            self.queue.submit(&mut self.tasks, false);
            spent += begun.elapsed();
            while begun.elapsed() < wait {}
            let begun = Instant::now();
            done += self.queue.poll(&mut self.tasks);
            spent += begun.elapsed();
            while self.queue.in_flight() > 0 {
                done += self.queue.poll(&mut self.tasks);
            }
        }
        spent.as_secs_f64() * 1e9 / done as f64
    }
}
