//! The thread that does tasks, and the tree that shows them.

use super::board::{Begun, Board, Outcome};
use super::run::Runner;
use crate::limits::{STOP_LOOK_EVERY, TASK_END_WAIT};
use keyway_host::failure::Failure;
use keyway_host::limits::yield_to_others;
use keyway_lock::Unpoisoned;
use keyway_server::log::{Log, Severity, Value};
use keyway_server::{Directory, Provider, VirtualTree};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime};

/// The tasks of a server, which end when it does.
pub struct Tasks {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    board: Mutex<Board>,
    changed: Condvar,
}

impl Tasks {
    /// Publishes the tree `cn=tasks`, and does from now on what clients ask for.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub fn start(directory: &Directory, runner: Runner, log: Log) -> Result<Tasks, Failure> {
        let shared: Arc<Shared> = Arc::default();
        runner.tidy();
        let work = shared.clone();
        let thread = thread::Builder::new()
            .name("tasks".to_owned())
            .spawn(move || work.run(&runner, &log))
            .map_err(|why| Failure::new(format!("cannot start a thread: {why}")))?;
        let (shown, placed) = (shared.clone(), shared.clone());
        let provider = Provider::new(move |_| shown.board.lock().unpoisoned().entries());
        let provider = provider.placed_by(move |placement, reply| {
            placed.board.lock().unpoisoned().place(placement, reply);
            placed.changed.notify_one();
        });
        directory.publish(VirtualTree::Tasks, provider);
        Ok(Tasks { shared, thread })
    }

    /// Stops what is under way, and waits for its end, but not for a disk that does not answer.
    pub fn end(self) {
        self.shared.board.lock().unpoisoned().close();
        self.shared.changed.notify_one();
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < TASK_END_WAIT {
            thread::sleep(STOP_LOOK_EVERY);
        }
    }
}

impl Shared {
    fn run(&self, runner: &Runner, log: &Log) {
        yield_to_others();
        loop {
            let mut board = self.board.lock().unpoisoned();
            let begun = loop {
                if board.is_closed() {
                    return;
                }
                match board.begin() {
                    Some(begun) => break begun,
                    None => board = self.changed.wait(board).unpoisoned(),
                }
            };
            drop(board);
            let outcome = runner.run(&begun);
            say(log, &begun, &outcome);
            self.board.lock().unpoisoned().end(outcome);
        }
    }
}

fn say(log: &Log, task: &Begun, outcome: &Outcome) {
    let is_well = outcome.is_well || task.stop.is_asked();
    let severity = if is_well { Severity::Info } else { Severity::Warning };
    let line = outcome.lines.first().map(String::as_str).unwrap_or_default();
    let text =
        format!("{} {} over LDAP, for {}: {line}", task.work.command(), task.name, task.author);
    log.say(SystemTime::now(), severity, "task", &[("text", Value::Text(&text))]);
}
