//! The tasks that wait, the one that is under way, and the last of those that have ended.

use super::work::{BASE, CLASS, COMMAND, DESCRIPTION, FILE, Wanted, Work};
use crate::limits::{TASKS_KEPT_MAX, TASKS_WAITING_MAX};
use keyway_host::shutdown::Stop;
use keyway_schema::operational::{CREATE_TIMESTAMP, CREATORS_NAME, generalized_time};
use keyway_server::{Placement, Reply, VirtualEntry, VirtualTree};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// How far a task has got.
#[derive(Debug, Default)]
pub(super) struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Notes how much of how much is done.
    pub fn set(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }
}

/// How a task has ended.
pub(super) struct Outcome {
    /// Whether it did what it was to do, and found nothing wrong.
    pub is_well: bool,
    /// In words, a line each.
    pub lines: Vec<String>,
}

enum State {
    Waiting,
    Running,
    Ended(SystemTime, &'static str, Vec<String>),
}

struct Task {
    wanted: Wanted,
    author: String,
    added: SystemTime,
    started: Option<SystemTime>,
    state: State,
    progress: Arc<Progress>,
    stop: Stop,
    /// Clients that want it to be gone, and wait for its end.
    leaving: Vec<Reply>,
}

/// A task that begins.
pub(super) struct Begun {
    pub name: String,
    /// The client that asked for it.
    pub author: String,
    pub work: Work,
    pub progress: Arc<Progress>,
    pub stop: Stop,
}

/// All of them, in the order in which they were added.
#[derive(Default)]
pub(super) struct Board {
    tasks: VecDeque<Task>,
    is_closed: bool,
}

impl Board {
    /// Does what a client asks for, or says why it is not done. A reply that is not called yet is kept.
    pub fn place(&mut self, placement: Placement, reply: Reply) {
        match placement {
            Placement::Add { author, entry } => reply(self.add(author, &entry)),
            Placement::Delete { dn } => self.delete(&dn, reply),
        }
    }

    fn add(&mut self, author: String, entry: &VirtualEntry) -> Result<(), String> {
        let wanted = Wanted::read(entry)?;
        if self.tasks.iter().any(|task| task.wanted.name.eq_ignore_ascii_case(&wanted.name)) {
            return Err("a task of this name is there already".to_owned());
        }
        let waiting = self.tasks.iter().filter(|task| matches!(task.state, State::Waiting)).count();
        if waiting >= TASKS_WAITING_MAX {
            return Err(format!("{waiting} tasks wait already; delete one of them, or wait"));
        }
        self.tasks.push_back(Task {
            wanted,
            author,
            added: SystemTime::now(),
            started: None,
            state: State::Waiting,
            progress: Arc::default(),
            stop: Stop::by_hand(),
            leaving: Vec::new(),
        });
        Ok(())
    }

    fn delete(&mut self, dn: &str, reply: Reply) {
        let Some(at) = self.tasks.iter().position(|task| task.dn() == dn) else {
            return reply(Err("it is gone already".to_owned()));
        };
        match self.tasks.get_mut(at) {
            Some(task) if matches!(task.state, State::Running) => {
                task.stop.ask();
                task.leaving.push(reply);
            }
            _ => {
                self.tasks.remove(at);
                reply(Ok(()));
            }
        }
    }

    /// Begins the first task that waits.
    pub fn begin(&mut self) -> Option<Begun> {
        let task = self.tasks.iter_mut().find(|task| matches!(task.state, State::Waiting))?;
        task.state = State::Running;
        task.started = Some(SystemTime::now());
        let Task { wanted: Wanted { name, work, .. }, author, progress, stop, .. } = task;
        let (name, work, author) = (name.clone(), work.clone(), author.clone());
        Some(Begun { name, author, work, progress: progress.clone(), stop: stop.clone() })
    }

    /// Notes how the one that is under way has ended.
    pub fn end(&mut self, outcome: Outcome) {
        let is_running = |task: &Task| matches!(task.state, State::Running);
        let Some(at) = self.tasks.iter().position(is_running) else { return };
        let Some(task) = self.tasks.get_mut(at) else { return };
        let status = if outcome.is_well { "done" } else { "failed" };
        task.state = State::Ended(SystemTime::now(), status, outcome.lines);
        let leaving = std::mem::take(&mut task.leaving);
        if !leaving.is_empty() {
            self.tasks.remove(at);
        }
        leaving.into_iter().for_each(|reply| reply(Ok(())));
        let ended = |task: &Task| matches!(task.state, State::Ended(..));
        while self.tasks.iter().filter(|task| ended(task)).count() > TASKS_KEPT_MAX {
            let oldest = self.tasks.iter().position(ended);
            oldest.map(|oldest| self.tasks.remove(oldest));
        }
    }

    /// Asks the one that is under way to end, and begins no other.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.tasks.iter().for_each(|task| task.stop.ask());
    }

    /// Whether none begins any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The entries: that of the tree's top, then those of the tasks.
    pub fn entries(&self) -> Vec<VirtualEntry> {
        let attributes = [
            ("cn", vec!["tasks".to_owned()]),
            (
                "description",
                vec![format!("Work of the server; add an entry of class {CLASS} to have it begun")],
            ),
        ];
        let dn = VirtualTree::Tasks.dn().to_owned();
        let top = VirtualEntry::new(dn, "applicationProcess", &attributes);
        [top].into_iter().chain(self.tasks.iter().map(Task::entry)).collect()
    }
}

impl Task {
    fn dn(&self) -> String {
        format!("cn={},{}", self.wanted.name, VirtualTree::Tasks.dn())
    }

    fn entry(&self) -> VirtualEntry {
        let Wanted { name, work, description } = &self.wanted;
        let (base, file) = match work {
            Work::Export { base, file } => (base.clone(), Some(file.clone())),
            Work::Backup | Work::Verify => (None, None),
        };
        let (ended, status, result) = match &self.state {
            State::Waiting => (None, "waiting", Vec::new()),
            State::Running => (None, "running", Vec::new()),
            State::Ended(at, status, result) => (Some(*at), *status, result.clone()),
        };
        let one = |text: Option<String>| Vec::from_iter(text);
        let number =
            |number: &AtomicU64| self.started.map(|_| number.load(Ordering::Relaxed).to_string());
        let attributes = [
            ("cn", vec![name.clone()]),
            (DESCRIPTION, description.clone()),
            (COMMAND, vec![work.command().to_owned()]),
            (BASE, one(base)),
            (FILE, one(file)),
            ("keywayTaskStatus", vec![status.to_owned()]),
            ("keywayTaskDone", one(number(&self.progress.done))),
            ("keywayTaskTotal", one(number(&self.progress.total).filter(|total| total != "0"))),
            ("keywayTaskStarted", one(self.started.map(generalized_time))),
            ("keywayTaskEnded", one(ended.map(generalized_time))),
            ("keywayTaskResult", result),
            (CREATORS_NAME, one(Some(self.author.clone()).filter(|author| !author.is_empty()))),
            (CREATE_TIMESTAMP, vec![generalized_time(self.added)]),
        ];
        VirtualEntry::new(self.dn(), CLASS, &attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    fn place(board: &mut Board, placement: Placement) -> Receiver<Result<(), String>> {
        let (sender, receiver) = channel();
        board.place(placement, Box::new(move |done| sender.send(done).unwrap()));
        receiver
    }

    fn add(board: &mut Board, name: &str) -> Result<(), String> {
        let attributes = [("cn", vec![name.to_owned()]), (COMMAND, vec!["export".to_owned()])];
        let entry = VirtualEntry::new(format!("cn={name},cn=tasks"), CLASS, &attributes);
        place(board, Placement::Add { author: "cn=me".to_owned(), entry }).recv().unwrap()
    }

    fn delete(board: &mut Board, name: &str) -> Receiver<Result<(), String>> {
        place(board, Placement::Delete { dn: format!("cn={name},cn=tasks") })
    }

    fn status(board: &Board, name: &str) -> Option<String> {
        let entries = board.entries();
        let entry = entries.iter().find(|entry| entry.dn == format!("cn={name},cn=tasks"))?;
        let status = entry.attributes.iter().find(|(name, _)| name == "keywayTaskStatus");
        status.map(|(_, values)| String::from_utf8(values.concat()).unwrap())
    }

    fn well() -> Outcome {
        Outcome { is_well: true, lines: vec!["all of it".to_owned()] }
    }

    #[test]
    fn they_are_done_in_their_order_and_kept() {
        let mut board = Board::default();
        add(&mut board, "one").unwrap();
        add(&mut board, "two").unwrap();
        assert!(add(&mut board, "ONE").unwrap_err().contains("already"));
        assert_eq!(board.begin().unwrap().name, "one");
        assert_eq!(status(&board, "one").as_deref(), Some("running"));
        board.end(well());
        assert_eq!(status(&board, "one").as_deref(), Some("done"));
        assert_eq!(status(&board, "two").as_deref(), Some("waiting"));
        assert_eq!(board.begin().unwrap().name, "two");
        assert!(board.begin().is_none());
        board.end(Outcome { is_well: false, lines: Vec::new() });
        assert_eq!(status(&board, "two").as_deref(), Some("failed"));
    }

    #[test]
    fn one_under_way_is_stopped_before_it_goes() {
        let mut board = Board::default();
        add(&mut board, "one").unwrap();
        add(&mut board, "two").unwrap();
        let begun = board.begin().unwrap();
        let gone = delete(&mut board, "one");
        assert!(begun.stop.is_asked() && gone.try_recv().is_err());
        board.end(Outcome { is_well: false, lines: Vec::new() });
        assert_eq!(gone.recv().unwrap(), Ok(()));
        assert_eq!(status(&board, "one"), None);
        assert_eq!(delete(&mut board, "two").recv().unwrap(), Ok(()));
        assert!(board.begin().is_none());
        assert!(delete(&mut board, "two").recv().unwrap().is_err());
    }

    #[test]
    fn there_is_an_end_to_those_that_wait_and_those_that_are_kept() {
        let mut board = Board::default();
        for number in 0..TASKS_WAITING_MAX {
            add(&mut board, &format!("t{number}")).unwrap();
        }
        assert!(add(&mut board, "more").unwrap_err().contains("wait already"));
        for number in 0..2 * TASKS_KEPT_MAX {
            board.begin().unwrap();
            board.end(well());
            add(&mut board, &format!("u{number}")).unwrap();
        }
        assert_eq!(board.entries().len(), 1 + TASKS_WAITING_MAX + TASKS_KEPT_MAX);
        assert_eq!(status(&board, "t0"), None);
    }
}
