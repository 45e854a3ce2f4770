//! A queue: one thread submits many requests and collects them as they are done.
//!
//! A task takes no lock and touches no counter of another thread, until it goes to a driver that
//! works beside the caller. A task is *accepted* while fewer than `depth` are in flight. An
//! accepted task comes back exactly once, whatever becomes of its driver. If its driver is full, it
//! stays here, in order, and is offered again. If its driver dies before it began, it is placed
//! anew. In a forked child, slow tasks that were under way do not come back: the parent gets them.
//!
//! [`Queue::submit`] admits tasks, places each in the batch of a [`DriverEnd`], and pushes the
//! batches to their drivers. [`Queue::poll`] gathers what the drivers have done, settles it, and
//! hands it back. Tasks that go where the last one of their session went take its
//! [`CachedRoute`], and skip most of this.

use crate::costs::{self, Mode};
use crate::metrics::Stage;
use crate::order::Orders;
use crate::placement::Binding;
use crate::registered::RegisteredDriver;
use crate::registry::Registry;
use crate::route::{CachedRoute, Routes};
use crate::slow::SlowPool;
use crate::task::{Stamps, mark};
use crate::{
    Class, DriverQueue, Error, Flow, Operation, Task, Waker, clock, driver, limits, sampling,
};
use keyway_fork::Generation;
use keyway_lock::Unpoisoned;
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::slice;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longest sleep without a poll, in nanoseconds, in case a driver forgets the waker.
const SLEEP_NS_MAX: u64 = 50_000_000;

/// At least so many requests that are submitted at once count as a batch.
const BATCH_MIN: usize = 4;

/// Submits and collects. It belongs to one thread at a time.
pub struct Queue {
    registry: Arc<Registry>,
    slow: Arc<SlowPool>,
    depth: usize,
    /// Accepted and not handed back.
    in_flight: usize,
    ends: Vec<DriverEnd>,
    /// Slow tasks that found the pool full.
    slow_waiting: VecDeque<Box<Task>>,
    slow_in_flight: usize,
    slow_done: Arc<Mutex<Vec<Box<Task>>>>,
    /// The process that these slow tasks are of.
    process: Generation,
    /// Finished, and not yet collected.
    done: Vec<Box<Task>>,
    /// The tasks that a driver handed back last. Empty between calls, kept for its capacity.
    found: Vec<Box<Task>>,
    orders: Orders,
    each: Option<Each>,
    /// Nanoseconds of work placed on this thread and not yet done.
    ahead: f64,
    waker: Waker,
    routes: Routes,
    /// The epoch at which the drivers of all ends were last seen to be alive.
    epoch: u64,
}

type Each = Box<dyn FnMut(Box<Task>) + Send>;

/// This queue's end of one driver.
struct DriverEnd {
    driver: Arc<RegisteredDriver>,
    /// `None` where the tasks run as they are pushed.
    queue: Option<Box<dyn DriverQueue>>,
    /// Placed there and not yet taken.
    batch: Vec<Box<Task>>,
    /// Taken and not yet back.
    in_flight: usize,
    /// Nanoseconds of the driver's backlog that are tasks of this end.
    load: u64,
    /// Tasks that were placed here and are not back, and how many the registry counts.
    pending: u64,
    counted: u64,
}

impl DriverEnd {
    fn load(&mut self, nanoseconds: u32) {
        self.load += u64::from(nanoseconds);
        self.pending += 1;
        self.driver.load(u64::from(nanoseconds));
    }

    fn unload(&mut self, nanoseconds: u32) {
        self.load -= u64::from(nanoseconds);
        self.pending -= 1;
        self.driver.unload(u64::from(nanoseconds));
    }

    /// Nothing of it is pending any more.
    fn leave(mut self, registry: &Registry) {
        self.pending = 0;
        self.count(registry);
    }

    /// Has the registry count the most that was pending here since this end was last empty. A queue
    /// that is kept full touches no counter of others.
    fn count(&mut self, registry: &Registry) {
        if self.pending > self.counted {
            registry.begin(&self.driver, self.pending - self.counted);
            self.counted = self.pending;
        } else if self.pending == 0 && self.counted > 0 {
            registry.finish(&self.driver, self.counted);
            self.counted = 0;
        }
    }
}

impl Drop for DriverEnd {
    /// Tasks that are never collected do not stay in the backlog for ever.
    fn drop(&mut self) {
        self.driver.unload(self.load);
    }
}

const NOT_PLACED: &str = "a task in a queue is bound to a driver";

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Queue");
        shown.field("depth", &self.depth).field("in_flight", &self.in_flight);
        shown.finish_non_exhaustive()
    }
}

impl Queue {
    pub(crate) fn on(
        registry: &Arc<Registry>,
        slow: &Arc<SlowPool>,
        depth: usize,
        waker: Waker,
    ) -> Self {
        Queue {
            registry: registry.clone(),
            slow: slow.clone(),
            depth,
            in_flight: 0,
            ends: Vec::new(),
            slow_waiting: VecDeque::new(),
            slow_in_flight: 0,
            slow_done: Arc::default(),
            process: Generation::current(),
            done: Vec::new(),
            found: Vec::new(),
            orders: Orders::default(),
            each: None,
            ahead: 0.0,
            waker,
            routes: Routes::none(),
            epoch: 0,
        }
    }

    /// From now on, every finished task goes to `each` at once, within `submit`, `poll` or `wait`,
    /// rather than being collected.
    pub fn on_completion(&mut self, each: impl FnMut(Box<Task>) + Send + 'static) {
        self.each = Some(Box::new(each));
        for task in mem::take(&mut self.done) {
            self.hand_over(task);
        }
    }

    /// Accepts tasks from the front of `tasks`, as many as there is room for, and returns their
    /// number; the others stay where they are, the caller's. `more` says that the caller will
    /// submit again at once, so that a batch may wait for its rest.
    ///
    /// An accepted task that cannot be done comes back with its error like any other.
    pub fn submit(&mut self, tasks: &mut Vec<Box<Task>>, more: bool) -> usize {
        let accepted = tasks.len().min(self.depth - self.in_flight);
        if accepted == 0 {
            return 0;
        }
        self.in_flight += accepted;
        let sampled = sampling::due(self.registry.sample(), accepted);
        let mode = if more || accepted >= BATCH_MIN { Mode::Batched } else { Mode::Single };
        if sampled == 0
            && accepted == tasks.len()
            && let Some(end) = self.routes.last().admit(tasks, mode, self.registry.epoch())
        {
            if self.push_all(end, tasks, more) {
                return accepted;
            }
        } else {
            self.submit_mixed(tasks.drain(..accepted), mode, sampled);
        }
        self.push(more);
        accepted
    }

    /// Hands tasks that take the cached route to its driver. Returns whether the driver took them
    /// all.
    #[inline]
    fn push_all(&mut self, end: usize, tasks: &mut Vec<Box<Task>>, more: bool) -> bool {
        let end = &mut self.ends[end];
        if let Some(queue) = &mut end.queue
            && end.batch.is_empty()
        {
            let offered = tasks.len();
            let flow = queue.submit(tasks, more);
            end.in_flight += offered - tasks.len();
            if flow == Flow::Open && tasks.is_empty() {
                return true;
            }
        }
        end.batch.append(tasks);
        false
    }

    fn submit_mixed(
        &mut self,
        tasks: impl Iterator<Item = Box<Task>>,
        mode: Mode,
        mut sampled: usize,
    ) {
        for mut task in tasks {
            let route = self.routes.of(task.session.inner().id);
            if sampled == 0
                && let Some(end) =
                    route.admit(slice::from_mut(&mut task), mode, self.registry.epoch())
            {
                self.ends[end].batch.push(task);
                continue;
            }
            if task.session.inner().ordered {
                self.orders.enter(&mut task);
            }
            let admitted = task.admit();
            if sampled > 0 {
                sampled -= 1;
                task.marks |= mark::SAMPLED;
                task.stamps = Stamps { submitted: clock::now(), ..Stamps::default() };
            }
            match admitted {
                Ok(()) => self.place(task, mode),
                Err(error) => self.refuse(task, error),
            }
        }
    }

    /// Hands back a task that no driver has seen.
    fn refuse(&mut self, mut task: Box<Task>, error: Error) {
        task.session.inner().count_refusal(task.bytes, error);
        task.result = Err(error);
        self.deliver(task);
    }

    /// Submits one task, which comes back if there is no room.
    ///
    /// # Errors
    /// The task, if as many are in flight as the queue takes.
    pub fn submit_one(&mut self, task: Box<Task>, more: bool) -> Result<(), Box<Task>> {
        if self.in_flight >= self.depth {
            return Err(task);
        }
        let mut one = mem::take(&mut self.found);
        one.push(task);
        self.submit(&mut one, more);
        self.found = one;
        Ok(())
    }

    /// Moves what is finished to the end of `done` and returns how many that were. Never waits.
    pub fn poll(&mut self, done: &mut Vec<Box<Task>>) -> usize {
        let before = done.len();
        self.gather_into(done);
        let found = done.len() - before;
        self.in_flight -= found;
        found
    }

    /// Like [`Queue::poll`], but waits until something is finished or the time is over. It polls
    /// for [`SPIN`](limits::SPIN) and then sleeps. Returns how many were handed back, by
    /// [`Queue::on_completion`] too.
    pub fn wait(&mut self, done: &mut Vec<Box<Task>>, most: Duration) -> usize {
        self.wait_while_idle(done, most, None)
    }

    /// As [`Queue::wait`], ended also by `news`, which is asked again after each wake-up; with
    /// nothing in flight it waits for `news` only.
    pub(crate) fn wait_or(
        &mut self,
        done: &mut Vec<Box<Task>>,
        most: Duration,
        news: impl Fn() -> bool,
    ) {
        if self.in_flight > 0 {
            self.wait_while_idle(done, most, Some(&news));
        } else if !news() {
            let waker = self.waker.clone();
            waker.sleep(most, news);
        }
    }

    fn wait_while_idle(
        &mut self,
        done: &mut Vec<Box<Task>>,
        most: Duration,
        news: Option<&dyn Fn() -> bool>,
    ) -> usize {
        self.leave_slow_to_the_parent();
        let before = self.in_flight;
        let begun = clock::now();
        let most = most.as_nanos().min(u128::from(u64::MAX / 2)) as u64;
        let spin = limits::SPIN.as_nanos() as u64;
        let has_news = || news.is_some_and(|news| news());
        loop {
            self.poll(done);
            let passed = clock::now() - begun;
            if self.in_flight < before || self.in_flight == 0 || passed >= most || has_news() {
                return before - self.in_flight;
            }
            if passed < spin {
                std::hint::spin_loop();
                continue;
            }
            if news.is_none() && self.sleep_in_driver(SLEEP_NS_MAX.min(most - passed)) {
                continue;
            }
            let dues = self.ends.iter().filter(|end| end.in_flight > 0 || !end.batch.is_empty());
            let due = dues.filter_map(|end| end.queue.as_ref()?.due()).min().unwrap_or(u64::MAX);
            // To wake up takes a while: that time is spent polling, so that nothing is done late.
            let sleep = due.min(SLEEP_NS_MAX).saturating_sub(spin).min(most - passed);
            if sleep == 0 {
                std::hint::spin_loop();
                continue;
            }
            let waker = self.waker.clone();
            waker.sleep(Duration::from_nanos(sleep), || {
                self.gather();
                !self.done.is_empty() || self.in_flight < before || has_news()
            });
        }
    }

    /// Sleeps where the driver of all that is under way can wake this thread. `false` if it cannot,
    /// or there are several.
    fn sleep_in_driver(&mut self, most: u64) -> bool {
        let slow = self.slow_in_flight > 0 || !self.slow_waiting.is_empty();
        let awaited = |end: &&mut DriverEnd| end.in_flight > 0 || !end.batch.is_empty();
        let mut ends = self.ends.iter_mut().filter(awaited);
        match (ends.next(), ends.next()) {
            (Some(DriverEnd { queue: Some(queue), in_flight: 1.., .. }), None) if !slow => {
                queue.sleep(Duration::from_nanos(most))
            }
            _ => false,
        }
    }

    /// Says that the owner of a queue with a [wake-up call](crate::Engine::queue_calling) is about
    /// to sleep: from now on one call will come when there may be something to poll. Returns
    /// whether there is something already, so that it must not sleep.
    pub fn arm(&mut self) -> bool {
        self.waker.arm();
        self.gather();
        !self.done.is_empty()
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Accepted tasks that have not been handed back.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many more tasks it accepts.
    pub fn capacity(&self) -> usize {
        self.depth - self.in_flight
    }

    /// Puts an admitted task where it will be finished first.
    fn place(&mut self, mut task: Box<Task>, mode: Mode) {
        let Task { session, operation, bytes, marks, .. } = &mut *task;
        let (inner, algorithm) = (session.inner(), session.algorithm());
        if operation.class(algorithm) == Class::Slow {
            self.slow_waiting.push_back(task);
            return;
        }
        let epoch = self.registry.epoch();
        let timed = *marks & mark::SAMPLED != 0;
        let picked = inner.placement.pick(*bytes, mode, self.ahead, timed).and_then(|picked| {
            let binding = inner.placement.binding(picked.binding).ok_or(Error::Gone)?;
            Ok((picked, binding.driver.clone()))
        });
        let (picked, driver) = match picked {
            Ok(picked) => picked,
            Err(error) => return self.refuse(task, error),
        };
        let plain = picked.local && inner.is_plain() && algorithm.kind().is_fast();
        let sizes = costs::sizes(costs::class(*bytes));
        let (session, numbered, limits) =
            (inner.id, inner.usage.is_numbered(), inner.placement.fast_path.limits);
        task.binding = picked.binding;
        task.predicted = picked.service;
        let end = self.end(&driver);
        if plain {
            let binding = picked.binding;
            let (limits, mode) = match picked.sole {
                true => (limits, None),
                false => (limits.within(sizes), Some(mode)),
            };
            let route = CachedRoute { session, epoch, end, limits, binding, mode, numbered };
            self.routes.put(route);
        } else if driver.on_caller {
            self.ahead += f64::from(picked.service);
        } else {
            self.ends[end].load(picked.service);
        }
        self.ends[end].batch.push(task);
    }

    /// The index of this queue's end of that driver.
    fn end(&mut self, driver: &Arc<RegisteredDriver>) -> usize {
        if let Some(end) = self.ends.iter().position(|end| Arc::ptr_eq(&end.driver, driver)) {
            return end;
        }
        let queue = driver::queue(driver, &self.waker);
        let driver = driver.clone();
        self.ends.push(DriverEnd {
            driver,
            queue,
            batch: Vec::new(),
            in_flight: 0,
            load: 0,
            pending: 0,
            counted: 0,
        });
        self.ends.len() - 1
    }

    /// Hands what was placed to the drivers. Those that work beside this thread come first, so that
    /// they work while it does.
    fn push(&mut self, more: bool) {
        self.ahead = 0.0;
        for beside in [true, false] {
            for index in 0..self.ends.len() {
                if self.ends[index].driver.on_caller != beside && !self.ends[index].batch.is_empty()
                {
                    self.push_end(index, more);
                }
            }
        }
        if !self.slow_waiting.is_empty() {
            self.push_slow();
        }
    }

    fn push_end(&mut self, index: usize, more: bool) {
        let end = &mut self.ends[index];
        end.count(&self.registry);
        let Some(queue) = &mut end.queue else {
            let mut batch = mem::take(&mut end.batch);
            for task in &mut batch {
                task.run();
            }
            self.settle(&mut batch);
            self.ends[index].batch = batch;
            return;
        };
        let offered = end.batch.len();
        let flow = queue.submit(&mut end.batch, more);
        end.in_flight += offered - end.batch.len();
        match flow {
            Flow::Open => {}
            Flow::Busy => {
                for task in end.batch.iter_mut().filter(|task| !task.is_marked(mark::WAITED)) {
                    task.marks |= mark::WAITED;
                    let placement = &task.session.inner().placement;
                    placement.binding(task.binding).expect(NOT_PLACED).work.busy.increment();
                }
            }
            Flow::Gone => {
                let mut batch = mem::take(&mut end.batch);
                for task in &mut batch {
                    task.give_back();
                }
                self.settle(&mut batch);
            }
        }
    }

    fn push_slow(&mut self) {
        self.leave_slow_to_the_parent();
        while let Some(task) = self.slow_waiting.pop_front() {
            let (finished, waker) = (self.slow_done.clone(), self.waker.clone());
            let deliver = Box::new(move |task| {
                finished.lock().unpoisoned().push(task);
                waker.wake();
            });
            match self.slow.submit(task, deliver) {
                Ok(()) => self.slow_in_flight += 1,
                Err((mut task, Error::Busy)) if self.slow.may_empty() => {
                    if !task.is_marked(mark::WAITED) {
                        task.marks |= mark::WAITED;
                        task.session.inner().count_busy();
                    }
                    self.slow_waiting.push_front(task);
                    return;
                }
                Err((task, error)) => self.refuse(task, error),
            }
        }
    }

    /// In a forked child: the slow tasks under way are on threads of the parent's, which gets them back.
    fn leave_slow_to_the_parent(&mut self) {
        if !self.process.is_current() {
            self.process = Generation::current();
            self.in_flight -= mem::take(&mut self.slow_in_flight);
            // A thread of the parent's may have had the lock.
            self.slow_done = Arc::default();
        }
    }

    /// Collects from all drivers, for a later poll.
    fn gather(&mut self) {
        let mut done = mem::take(&mut self.done);
        self.gather_into(&mut done);
        self.done = done;
    }

    /// Collects from all drivers, and offers again what had to wait.
    #[inline]
    fn gather_into(&mut self, done: &mut Vec<Box<Task>>) {
        for index in 0..self.ends.len() {
            let end = &mut self.ends[index];
            let Some(queue) = &mut end.queue else { continue };
            if end.in_flight == 0 && end.batch.is_empty() {
                continue;
            }
            let before = done.len();
            queue.poll(done);
            end.in_flight -= done.len() - before;
            let settled = match self.each {
                None => count_settled(&done[before..]),
                Some(_) => 0,
            };
            if done.len() > before + settled {
                let mut found = mem::take(&mut self.found);
                found.extend(done.drain(before + settled..));
                self.settle(&mut found);
                self.found = found;
                self.ends[index].count(&self.registry);
            }
        }
        self.gather_rest();
        if !self.done.is_empty() {
            done.append(&mut self.done);
        }
    }

    /// Gathers tasks that do not come from drivers' queues, and those that had to wait.
    #[inline]
    fn gather_rest(&mut self) {
        if self.slow_in_flight > 0 {
            self.leave_slow_to_the_parent();
            let finished = mem::take(&mut *lock(&self.slow_done));
            self.slow_in_flight -= finished.len();
            for task in finished {
                self.deliver(task);
            }
        }
        if !self.slow_waiting.is_empty() || self.ends.iter().any(|end| !end.batch.is_empty()) {
            self.push(false);
        }
        if self.epoch != self.registry.epoch() {
            self.forget_the_dead();
        }
    }

    /// Takes tasks out of the ends of drivers that were unregistered, and drops the ends that are
    /// empty.
    #[cold]
    fn forget_the_dead(&mut self) {
        self.epoch = self.registry.epoch();
        // The epoch changes under the registry's lock, and so does what is alive. To take the lock
        // is to wait for both.
        self.registry.drivers();
        for index in (0..self.ends.len()).rev() {
            if self.ends[index].driver.is_alive() {
                continue;
            }
            let mut batch = mem::take(&mut self.ends[index].batch);
            if self.ends[index].in_flight == 0 {
                self.ends.swap_remove(index).leave(&self.registry);
                self.routes = Routes::none();
            } else {
                // It is looked at again when its driver has finished what it has.
                self.epoch = 0;
            }
            for task in &mut batch {
                task.give_back();
            }
            self.settle(&mut batch);
        }
    }

    /// Settles the tasks that a driver handed over.
    fn settle(&mut self, tasks: &mut Vec<Box<Task>>) {
        count_routed(tasks);
        let mut again = Vec::new();
        for mut task in tasks.drain(..) {
            let inner = task.session.inner();
            // A task that is dropped here would never come back to its consumer.
            let binding = inner.placement.binding(task.binding).expect(NOT_PLACED);
            // An end that is gone has taken its load with it.
            let is_its = |end: &&mut DriverEnd| Arc::ptr_eq(&end.driver, &binding.driver);
            if !binding.driver.on_caller
                && let Some(end) = self.ends.iter_mut().find(is_its)
            {
                end.unload(task.predicted);
            }
            if task.is_marked(mark::GIVEN_BACK) {
                // The session may be of another engine than this queue.
                inner.placement.registry.mark_dead(&binding.driver);
                task.bytes = task.operation.bytes();
                again.push(task);
                continue;
            }
            let recall = task.operation.is_recall();
            if recall {
                binding.work.count_recall(&task.result);
            } else if !task.is_marked(mark::ROUTED) {
                binding.work.count(task.bytes, &task.result);
            } else if let Err(error) = &task.result {
                binding.work.count_error(error);
            }
            if task.is_marked(mark::SAMPLED) && !recall {
                record(binding, &task);
            }
            if !inner.is_plain() {
                let opening =
                    matches!(task.operation, Operation::Open { .. } | Operation::Unprotect { .. });
                inner.settle(task.bytes, opening, &task.result);
            }
            self.deliver(task);
        }
        if !again.is_empty() {
            for mut task in again {
                task.marks &= !(mark::GIVEN_BACK | mark::ROUTED);
                self.place(task, Mode::Single);
            }
            self.push(false);
        }
    }

    /// Hands a finished task over, when its session's order allows.
    #[inline]
    fn deliver(&mut self, task: Box<Task>) {
        if task.session.inner().ordered {
            for task in self.orders.leave(task) {
                self.hand_over(task);
            }
        } else {
            self.hand_over(task);
        }
    }

    #[inline]
    fn hand_over(&mut self, mut task: Box<Task>) {
        task.end_admission();
        match &mut self.each {
            Some(each) => {
                self.in_flight -= 1;
                each(task);
            }
            None => self.done.push(task),
        }
    }
}

/// Counts the first of these tasks, up to the first one that must be settled, and returns how many
/// that are. They took a cached route and were done, so to count them is all that is left. One look
/// at each task does both: it is a third of the engine's own cost of a task.
#[inline]
fn count_settled(tasks: &[Box<Task>]) -> usize {
    let mut rest = tasks;
    while let Some(first) = rest.first() {
        let (mut operations, mut bytes) = (0, 0);
        for task in rest {
            if task.marks != mark::ROUTED || !task.is_placed_as(first) {
                break;
            }
            operations += 1;
            bytes += task.bytes as u64;
        }
        if operations == 0 {
            break;
        }
        if let Some(binding) = first.session.inner().placement.binding(first.binding) {
            binding.work.count_many(operations as u64, bytes);
        }
        rest = &rest[operations..];
    }
    tasks.len() - rest.len()
}

/// Counts those of these tasks that took a cached route and were done, neighbours of one session together.
#[inline]
fn count_routed(tasks: &[Box<Task>]) {
    let is_done = |marks: u8| marks & (mark::ROUTED | mark::GIVEN_BACK) == mark::ROUTED;
    for neighbours in tasks.chunk_by(|one, next| one.is_placed_as(next)) {
        let (mut operations, mut bytes) = (0, 0);
        for task in neighbours.iter().filter(|task| is_done(task.marks)) {
            operations += 1;
            bytes += task.bytes as u64;
        }
        if operations > 0
            && let Some(task) = neighbours.first()
            && let Some(binding) = task.session.inner().placement.binding(task.binding)
        {
            binding.work.count_many(operations, bytes);
        }
    }
}

/// Takes a timed task's stages into the histograms, and its cost into the averages.
#[cold]
fn record(binding: &Binding, task: &Task) {
    let Stamps { submitted, started, finished } = task.stamps;
    let work = &binding.work;
    // A driver that does several at a time in the caller's own time does not know what each took.
    let several = binding.driver.on_caller && binding.driver.queued;
    if started != 0 && finished != 0 && !several {
        work.record(Stage::Queue, started.saturating_sub(submitted));
        work.record(Stage::Run, finished.saturating_sub(started));
        if task.result.is_ok() {
            let took = finished.saturating_sub(started);
            work.costs.observe(Mode::Batched, task.bytes, took);
        }
    }
    if finished != 0 {
        work.record(Stage::Deliver, clock::now().saturating_sub(finished));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unpoisoned()
}

impl Drop for Queue {
    /// With [`Queue::on_completion`], every accepted task is still handed over: those that no
    /// driver has begun with [`Error::Closed`], the others when they are done or
    /// [`CLOSE`](limits::CLOSE) is over. Without, they are dropped: nothing can collect them any
    /// more.
    fn drop(&mut self) {
        self.close();
        for end in self.ends.drain(..) {
            end.leave(&self.registry);
        }
    }
}

impl Queue {
    /// Hands over what is accepted, where completions are handed over.
    fn close(&mut self) {
        if self.each.is_none() {
            return;
        }
        let mut waiting: Vec<_> = self.slow_waiting.drain(..).collect();
        for end in &mut self.ends {
            for task in mem::take(&mut end.batch) {
                if !end.driver.on_caller {
                    end.unload(task.predicted);
                }
                waiting.push(task);
            }
        }
        for mut task in waiting {
            task.result = Err(Error::Closed);
            self.deliver(task);
        }
        let begun = clock::now();
        let mut none = Vec::new();
        let most = limits::CLOSE.as_nanos() as u64;
        while self.in_flight > 0 && clock::now() - begun < most {
            self.wait(&mut none, limits::CLOSE);
        }
        // Tasks that are done, but come after one that is not.
        for task in self.orders.take_parked() {
            self.hand_over(task);
        }
    }
}
