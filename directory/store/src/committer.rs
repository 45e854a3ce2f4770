//! The committer: one thread that gathers waiting changes, commits them together, answers them.
//!
//! With syncs of `s` and `w` writers that wait, the rate is `w / (s + work)`: while one group is being
//! synced the next one gathers, and no writer waits for a group to fill.

use std::sync::mpsc::Receiver;
use std::time::Instant;

use keyway_meter::{Counter, Gauge, Histogram};

use crate::disk::Reserve;
use crate::limits::{APPENDED_BYTES_MAX, GROUP_BYTES_MAX, GROUP_JOBS_MAX, RESERVE_BYTES};
use crate::shared::Shared;
use crate::task::Task;
use crate::{Error, Write};

/// A message in the committer's queue.
pub(crate) enum Message {
    Job(Box<dyn Task>),
    /// The last one: jobs accepted before it are still committed and answered.
    Close,
}

pub(crate) struct Committer<'s> {
    shared: &'s Shared,
    reserve: Reserve,
    commits: Counter,
    changes: Counter,
    sync_errors: Counter,
    sync: Histogram,
    group: Histogram,
    waiting: Gauge,
}

/// Jobs that were accepted and are not answered.
pub(crate) fn waiting() -> Gauge {
    keyway_meter::gauge("store.waiting")
}

/// A job of the present group.
struct Member {
    task: Box<dyn Task>,
    /// Its last run has deleted entries and added none: it may use the reserve on a full disk.
    shrinks: bool,
}

impl<'s> Committer<'s> {
    pub(crate) fn new(shared: &'s Shared) -> Committer<'s> {
        Committer {
            shared,
            reserve: Reserve::hold(shared.dir()),
            commits: keyway_meter::counter("store.commits"),
            changes: keyway_meter::counter("store.changes"),
            sync_errors: keyway_meter::counter("store.sync_errors"),
            sync: keyway_meter::histogram("store.sync"),
            group: keyway_meter::histogram("store.group"),
            waiting: waiting(),
        }
    }

    /// Serves the queue until its end.
    pub(crate) fn run(&mut self, queue: &Receiver<Message>) {
        let mut waiting = Vec::new();
        let mut open = true;
        while open || !waiting.is_empty() {
            open = open && gather(queue, &mut waiting);
            if !waiting.is_empty() {
                self.run_group(&mut waiting);
            }
        }
    }

    /// Runs jobs from the front of `waiting` in one transaction, commits and answers them.
    fn run_group(&mut self, waiting: &mut Vec<Member>) {
        if let Some(why) = self.shared.failure() {
            return self.answer(waiting.drain(..), &Err(Error::Failed { why }));
        }
        let mut write = match Write::begin(self.shared) {
            Ok(write) => write,
            Err(error) => {
                self.shared.fail(&error);
                return self.answer(waiting.drain(..), &Err(error));
            }
        };
        // A log of several machines takes no larger ones.
        let bytes_max = match self.shared.append() {
            Some(_) => APPENDED_BYTES_MAX,
            None => GROUP_BYTES_MAX,
        };
        let mut ran = 0;
        while let Some(member) = waiting.get_mut(ran)
            && write.bytes() <= bytes_max
        {
            let (puts, growth) = (write.puts(), write.growth());
            write.begin_job();
            let good = member.task.run(&mut write);
            member.shrinks = write.growth() < growth;
            if !good && write.puts() != puts {
                write.abort();
                return self.run_without(waiting, ran);
            }
            ran += 1;
        }
        let group = waiting.drain(..ran);
        match self.commit(write) {
            Err(Error::DiskFull) => {
                let group = group.collect();
                self.shrink(group);
            }
            // The others are not to suffer from the large one.
            Err(Error::TooLargeToAppend { .. }) if ran > 1 => {
                let group: Vec<Member> = group.collect();
                group.into_iter().for_each(|member| self.run_group(&mut vec![member]));
            }
            committed => self.answer(group, &committed),
        }
    }

    /// The job at `failed` has put something and then failed: those before it run again and commit
    /// without it; those behind it are left for the next group.
    fn run_without(&mut self, waiting: &mut Vec<Member>, failed: usize) {
        let mut culprit = waiting.remove(failed);
        let mut before: Vec<Member> = waiting.drain(..failed).collect();
        while !before.is_empty() {
            self.run_group(&mut before);
        }
        culprit.task.finish(Ok(()));
        self.waiting.move_by(-1);
    }

    fn answer(&self, members: impl Iterator<Item = Member>, committed: &Result<(), Error>) {
        for mut member in members {
            member.task.finish(committed.clone());
            self.waiting.move_by(-1);
        }
    }

    /// The disk was too full for this group. Its deletions alone may use the reserve.
    fn shrink(&mut self, group: Vec<Member>) {
        let (mut shrinking, others): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|member| member.shrinks);
        self.answer(others.into_iter(), &Err(Error::DiskFull));
        if shrinking.is_empty() {
            return;
        }
        let has_reserve = self.reserve.release();
        // What goes leaves a row in the feed. Rows before it make room for that, so that the store does not grow
        // and the reserve can be taken again.
        let has_room = self.make_room_of_feed();
        if !has_reserve && !has_room {
            return self.answer(shrinking.into_iter(), &Err(Error::DiskFull));
        }
        // The reserve is gone now, and each failure takes rows of the feed along, so this ends.
        while !shrinking.is_empty() {
            self.run_group(&mut shrinking);
        }
        self.reserve.renew();
    }

    /// Gives up the oldest rows of the feed on a full disk, as much as the reserve has and as much again. Readers that
    /// have not read them are told so. Whether there were any.
    fn make_room_of_feed(&mut self) -> bool {
        let Ok(mut write) = Write::begin(self.shared) else { return false };
        match write.trim_feed_by(2 * RESERVE_BYTES) {
            Ok(true) => self.commit(write).is_ok(),
            // There is nothing to give up, or it cannot be read: deletions have the reserve.
            _ => {
                write.abort();
                false
            }
        }
    }

    fn commit(&mut self, write: Write<'_>) -> Result<(), Error> {
        if write.puts() == 0 {
            write.abort();
            return Ok(());
        }
        let changes = write.changes();
        let began = Instant::now();
        // One look a group: cheap beside its sync.
        let committed = write.commit().and_then(|()| self.shared.is_in_place());
        self.sync.record(began.elapsed().as_nanos().try_into().unwrap_or(u64::MAX));
        self.shared.note_commit(&committed);
        match &committed {
            Ok(()) => {
                self.commits.increment();
                self.changes.add(changes);
                self.group.record(changes);
                self.reserve.renew();
            }
            Err(error) => {
                self.sync_errors.increment();
                let harmless = matches!(
                    error,
                    Error::DiskFull
                        | Error::MapFull { .. }
                        | Error::NotAppended { .. }
                        | Error::NotConfirmed { .. }
                        | Error::TooLargeToAppend { .. }
                );
                if !harmless || self.shared.is_given_up() {
                    self.shared.fail(error);
                }
            }
        }
        committed
    }
}

/// Waits for a job unless some wait already, and takes what else has come, up to a full group.
/// False at the queue's end: `Close`, or no handle left.
fn gather(queue: &Receiver<Message>, waiting: &mut Vec<Member>) -> bool {
    while waiting.len() < GROUP_JOBS_MAX {
        let next = match waiting.is_empty() {
            true => queue.recv().ok(),
            false => queue.try_recv().ok(),
        };
        match next {
            Some(Message::Job(task)) => waiting.push(Member { task, shrinks: false }),
            Some(Message::Close) => return false,
            None => return !waiting.is_empty(),
        }
    }
    true
}
