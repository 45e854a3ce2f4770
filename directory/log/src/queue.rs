//! Lines on their way to the thread that writes them: bounded, in bytes.

use crate::format;
use crate::limits::{LOG_BATCH_BYTES_MAX, LOG_GATHER_MAX, LOG_QUEUE_BYTES_MAX};
use crate::settings::{Form, WhenFull, place};
use crate::writer::{Counts, Lines, Writer};
use keyway_lock::Unpoisoned;
use keyway_server::log::{LogKind, Record};
use std::cell::RefCell;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

thread_local! {
    /// The buffer that a line is made in, so that it is made beside the others' and without allocation.
    static LINE: RefCell<Line> = const { RefCell::new(Line { form: Form::Text, bytes: Vec::new() }) };
}

/// A line in the making.
struct Line {
    /// The form that was wanted the last time.
    form: Form,
    bytes: Vec<u8>,
}

pub struct Queue {
    state: Mutex<State>,
    /// There is something for the writer to do.
    filled: Condvar,
    /// The writer has done something.
    done: Condvar,
}

#[derive(Default)]
struct State {
    form: Form,
    when_full: WhenFull,
    lines: Lines,
    /// Lines that found no room.
    lost: Counts,
    /// Something is not to wait until more has come together.
    urgent: bool,
    /// The writer waits to be woken.
    idle: bool,
    /// It was told to hurry since it last took something.
    told: bool,
    /// The state that the writer goes on with.
    successor: Option<Writer>,
    closed: bool,
    /// How often a thread has asked for all to be written, and the last time it was.
    asked: u64,
    answered: u64,
    /// A caller wants the audit log on the disk, too.
    sync: bool,
    /// Up to which time of asking that is so.
    synced: u64,
}

/// The writer's tasks.
pub struct Work {
    pub lines: Lines,
    pub lost: Counts,
    pub form: Form,
    pub successor: Option<Writer>,
    /// There will be no more.
    pub last: bool,
    /// The audit log is wanted on the disk.
    pub sync: bool,
    asked: u64,
}

impl State {
    fn bytes(&self) -> usize {
        self.lines.iter().map(Vec::len).sum()
    }

    fn has_work(&self) -> bool {
        self.must_hurry() || self.lost.iter().any(|lost| *lost > 0) || self.bytes() > 0
    }

    fn must_hurry(&self) -> bool {
        self.urgent
            || self.closed
            || self.successor.is_some()
            || self.asked > self.answered
            || self.bytes() > LOG_BATCH_BYTES_MAX
    }
}

impl Queue {
    pub fn new(form: Form, when_full: WhenFull) -> Queue {
        let state = State { form, when_full, ..State::default() };
        Queue { state: Mutex::new(state), filled: Condvar::new(), done: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    /// Puts a line in its place.
    pub fn put(&self, record: &Record<'_>) {
        LINE.with_borrow_mut(|Line { form, bytes }| {
            loop {
                bytes.clear();
                format::line(bytes, record, *form);
                match self.append(record.kind, bytes, *form) {
                    Ok(()) => return,
                    // It was set anew since this thread's last line.
                    Err(wanted) => *form = wanted,
                }
            }
        });
    }

    /// Appends a line, unless another form is wanted by now.
    fn append(&self, kind: LogKind, line: &[u8], form: Form) -> Result<(), Form> {
        let mut state = self.lock();
        while state.bytes() + line.len() > LOG_QUEUE_BYTES_MAX {
            if state.when_full == WhenFull::Drop || state.closed {
                state.lost[place(kind)] += 1;
                return Ok(());
            }
            state = self.done.wait(state).unpoisoned();
        }
        if state.form != form {
            return Err(state.form);
        }
        state.lines[place(kind)].extend_from_slice(line);
        // A search can wait to be written; who looks into the others looks for what is there now.
        state.urgent |= kind != LogKind::Access;
        self.wake(state);
        Ok(())
    }

    /// Wakes the writer if it sleeps, or once if it is to hurry: no other thread pays for it.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let hurries = state.must_hurry() && !mem::replace(&mut state.told, true);
        if mem::take(&mut state.idle) || hurries {
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Another writer goes on when what is there is written.
    pub fn replace(&self, successor: Writer, form: Form, when_full: WhenFull) {
        let mut state = self.lock();
        state.successor = Some(successor);
        (state.form, state.when_full) = (form, when_full);
        self.wake(state);
    }

    /// There will be no more lines.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake(state);
        self.done.notify_all();
    }

    /// Waits until all is written, but not for longer than this; says whether it is.
    pub fn flush(&self, max: Duration) -> bool {
        self.wait(max, false)
    }

    /// Waits for that, and until the audit log is on the disk; says whether it is.
    pub fn sync(&self, max: Duration) -> bool {
        self.wait(max, true)
    }

    fn wait(&self, max: Duration, sync: bool) -> bool {
        let mut state = self.lock();
        state.sync |= sync;
        state.asked += 1;
        let asked = state.asked;
        self.wake(state);
        let late = Instant::now() + max;
        let mut state = self.lock();
        while state.answered < asked {
            let left = late.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unpoisoned().0;
        }
        !sync || state.synced >= asked
    }

    /// Waits for something to do; `used` are the buffers of the last work.
    pub fn next(&self, used: Lines) -> Work {
        let mut state = self.lock();
        while !state.has_work() {
            state.idle = true;
            state = self.filled.wait(state).unpoisoned();
        }
        state.idle = false;
        let late = Instant::now() + LOG_GATHER_MAX;
        while !state.must_hurry() {
            let left = late.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.filled.wait_timeout(state, left);
            state = waited.unpoisoned().0;
        }
        (state.urgent, state.told) = (false, false);
        let work = Work {
            lines: mem::replace(&mut state.lines, used),
            lost: mem::take(&mut state.lost),
            form: state.form,
            successor: state.successor.take(),
            last: state.closed,
            sync: mem::take(&mut state.sync),
            asked: state.asked,
        };
        self.done.notify_all();
        work
    }

    /// Says that this much is done, and whether the audit log is on the disk.
    pub fn finish(&self, work: &Work, synced: bool) {
        let mut state = self.lock();
        // A thread that asks after its end finds all written, and no writer to answer.
        state.answered = if work.last { u64::MAX } else { work.asked };
        if synced {
            state.synced = state.answered;
        }
        drop(state);
        self.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_waits_for_a_writer_that_has_ended() {
        let queue = Queue::new(Form::Text, WhenFull::Drop);
        assert!(!queue.flush(Duration::ZERO));
        queue.close();
        let work = queue.next(Lines::default());
        assert!(work.last);
        queue.finish(&work, true);
        assert!(queue.flush(Duration::ZERO));
    }
}
