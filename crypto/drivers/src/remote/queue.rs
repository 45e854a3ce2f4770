//! A consumer's queue at the daemon: a channel of its own.

use super::channel::{Channel, Placed};
use super::error::failed;
use super::lent::Lent;
use super::link::Link;
use super::session::RemoteSession;
use super::watchdog::Watchdog;
use crate::limits::BUSY;
use keyway_engine::{DriverQueue, Error, Flow, Operation, Task};
use keyway_ring::descriptor::{Completion, Status};
use keyway_wire as wire;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Nanoseconds after which a poll may find something, while its thread waits for other things too:
/// the daemon wakes only who sleeps on the ring.
const DUE_NS: u64 = 50_000;
/// Polls without an answer after which the clock is looked at, which takes longer than a poll.
const POLLS: u32 = 256;
/// How long a daemon that is busy is left alone.
const PAUSE: Duration = Duration::from_micros(100);

pub(super) struct RemoteQueue {
    link: Arc<Link>,
    /// `None` only when it is dropped.
    channel: Option<Channel>,
    /// One for each slot.
    entries: Vec<Option<(Box<Task>, Placed)>>,
    free: Vec<u16>,
    /// The daemon was busy, or had no room for their bytes: they are offered again, in order.
    waiting: VecDeque<Box<Task>>,
    /// When something was refused last.
    refused: Instant,
    /// Since when nothing but refusals has come.
    stuck: Option<Instant>,
    /// Over without having been under way, and not yet polled.
    finished: Vec<Box<Task>>,
    watchdog: Watchdog,
    /// Polls since something was answered.
    idle_polls: u32,
}

const NOT_OURS: Error = Error::invalid_request("its session is another driver's");
const UNKNOWN: Error =
    failed("the connection broke while the daemon worked on the request's own memory");

impl RemoteQueue {
    /// `None` if the connection has as many channels as it may have.
    pub fn new(link: &Arc<Link>) -> Option<RemoteQueue> {
        let channel = link.channel().ok()??;
        Some(RemoteQueue {
            link: link.clone(),
            entries: (0..channel.slots).map(|_| None).collect(),
            free: (0..channel.slots).rev().collect(),
            channel: Some(channel),
            waiting: VecDeque::new(),
            refused: Instant::now(),
            stuck: None,
            finished: Vec::new(),
            watchdog: Watchdog::default(),
            idle_polls: 0,
        })
    }

    fn in_flight(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn is_gone(&self) -> bool {
        self.link.connection.is_dead() || self.channel.as_ref().is_none_or(|it| it.end.is_closed())
    }

    /// Puts a task into a slot, which is there. One that there is no room for waits.
    #[inline]
    fn begin(&mut self, mut task: Box<Task>) {
        let (Some(channel), Some(slot)) = (&mut self.channel, self.free.pop()) else {
            return self.waiting.push_back(task);
        };
        let placed = match task.parts_as::<RemoteSession>() {
            Some((session, operation)) if Arc::ptr_eq(&session.link, &self.link) => {
                let lent = Lent::of(operation, &self.link.connection);
                let session = session.handle;
                operation
                    .with(|request| channel.begin(&self.link.large, slot, session, request, lent))
            }
            _ => Err(NOT_OURS),
        };
        match placed {
            Ok(placed) => {
                if let Some(entry) = self.entries.get_mut(usize::from(slot)) {
                    *entry = Some((task, placed));
                }
            }
            Err(error) => {
                self.free.push(slot);
                self.not_begun(task, error);
            }
        }
    }

    #[cold]
    fn not_begun(&mut self, mut task: Box<Task>, error: Error) {
        if error == Error::Busy {
            self.refused = Instant::now();
            self.stuck.get_or_insert(self.refused);
            return self.waiting.push_back(task);
        }
        task.complete(Err(error));
        self.finished.push(task);
    }

    /// Ends a request as its completion says.
    #[inline]
    fn settle(&mut self, completion: &Completion, done: &mut Vec<Box<Task>>) {
        let slot = completion.cookie as u16;
        let (Some(channel), Some(entry)) = (&self.channel, self.entries.get_mut(usize::from(slot)))
        else {
            return;
        };
        let Some((mut task, placed)) = entry.take() else { return };
        self.free.push(slot);
        let Some((session, operation)) = task.parts_as::<RemoteSession>() else {
            // It was, when it began.
            task.complete(Err(NOT_OURS));
            return done.push(task);
        };
        let algorithm = session.algorithm;
        let makes_nonces = session.makes_nonces;
        let mut result = match completion.status {
            Status::Done => operation.with(|request| channel.take(&placed, completion, request)),
            status => Err(wire::error(status, algorithm)),
        };
        if makes_nonces
            && result.is_ok()
            && let Operation::Seal { nonce, .. } = operation
        {
            match channel.nonce(&placed) {
                Some(made) => *nonce = made,
                None => result = Err(UNKNOWN),
            }
        }
        let lent = placed.is_lent() && changes_in_place(operation);
        let waits =
            result == Err(Error::Busy) && !matches!(operation, Operation::VerifyPassword { .. });
        operation.with(|request| channel.finish(&self.link.large, placed, request));
        if waits {
            return self.not_begun(task, Error::Busy);
        }
        if result == Err(Error::Gone) {
            // The daemon is about to end, and this is how the engine hears of it.
            self.link.die();
            if lent {
                result = Err(UNKNOWN);
            }
        }
        task.complete(result);
        done.push(task);
    }

    /// Offers again what there was no room for, since something has come back or after a pause.
    #[cold]
    fn retry(&mut self, progress: bool) {
        if progress {
            self.stuck = None;
        } else if self.in_flight() > 0 || self.refused.elapsed() < PAUSE {
            return;
        }
        if self.stuck.is_some_and(|since| since.elapsed() > BUSY) {
            // So long that its consumer should know.
            self.stuck = None;
            if let Some(mut task) = self.waiting.pop_front() {
                task.complete(Err(Error::Busy));
                self.finished.push(task);
            }
        }
        for _ in 0..self.waiting.len() {
            let before = self.in_flight();
            let Some(task) = self.waiting.pop_front() else { break };
            self.begin(task);
            if self.in_flight() == before {
                // It went to the end, and is still the first.
                self.waiting.rotate_right(1);
                break;
            }
        }
        if let Some(channel) = &self.channel {
            channel.ring();
        }
    }

    /// The daemon is gone: a request that it has not answered goes back to the engine as it was.
    #[cold]
    fn abandon(&mut self, done: &mut Vec<Box<Task>>) {
        // In a forked child these are copies of the parent's tasks, and their lent memory is not there.
        let inherited = self.link.connection.is_inherited();
        if inherited {
            self.link.connection.follow();
        }
        let closed = self.channel.as_ref().is_some_and(|channel| channel.end.is_closed());
        // Else the daemon is still there, and may not know yet that this is over.
        let ended = closed || self.link.connection.has_hung_up();
        self.link.die();
        for entry in &mut self.entries {
            let Some((mut task, placed)) = entry.take() else { continue };
            let lent = placed.is_lent() && (inherited || changes_in_place(&task.operation));
            if lent && (inherited || !ended) {
                placed.give_up(&self.link.large, &mut task.operation);
            }
            match lent {
                true => task.complete(Err(UNKNOWN)),
                false => task.give_back(),
            }
            done.push(task);
        }
        for mut task in self.waiting.drain(..) {
            task.give_back();
            done.push(task);
        }
        // No slot is free any more: the daemon may still write to them.
    }
}

/// Whether the result takes the data's place.
fn changes_in_place(operation: &Operation) -> bool {
    !matches!(operation, Operation::Digest { .. } | Operation::Mac { .. })
}

impl DriverQueue for RemoteQueue {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, _more: bool) -> Flow {
        if self.is_gone() {
            if self.link.connection.is_inherited() {
                self.link.connection.follow();
            }
            return Flow::Gone;
        }
        if self.waiting.is_empty() {
            let taken = tasks.len().min(self.free.len());
            for task in tasks.drain(..taken) {
                self.begin(task);
            }
            if let Some(channel) = &self.channel {
                channel.ring();
            }
        }
        if tasks.is_empty() { Flow::Open } else { Flow::Busy }
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        done.append(&mut self.finished);
        let before = done.len();
        let gone = self.is_gone();
        while let Some(completion) = self.channel.as_mut().and_then(|channel| channel.end.poll()) {
            self.settle(&completion, done);
        }
        if done.len() > before {
            self.idle_polls = 0;
            self.watchdog.answered();
        } else {
            self.idle_polls = self.idle_polls.wrapping_add(1);
            if self.idle_polls.is_multiple_of(POLLS) && self.in_flight() > 0 {
                self.watchdog.look(&self.link.connection);
            }
        }
        if gone {
            self.abandon(done);
        } else if !self.waiting.is_empty() {
            self.retry(done.len() > before);
        }
    }

    fn due(&self) -> Option<u64> {
        Some(DUE_NS)
    }

    fn sleep(&mut self, most: Duration) -> bool {
        if self.finished.is_empty()
            && let Some(channel) = &self.channel
        {
            channel.sleep(if self.waiting.is_empty() { most } else { most.min(PAUSE) });
            self.watchdog.look(&self.link.connection);
        }
        true
    }
}

impl Drop for RemoteQueue {
    fn drop(&mut self) {
        let idle = self.in_flight() == 0;
        match self.channel.take() {
            Some(channel) if idle => self.link.return_channel(channel),
            Some(channel) => {
                for (mut task, placed) in self.entries.drain(..).flatten() {
                    placed.give_up(&self.link.large, &mut task.operation);
                }
                self.link.close_channel(channel);
            }
            None => {}
        }
    }
}
