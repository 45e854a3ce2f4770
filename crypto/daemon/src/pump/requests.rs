//! A request on its way: loaded and checked, handed to the engine, answered.

use super::command::add;
use super::mailbox::Finished;
use super::pair::{InFlight, Taken};
use super::state::PumpState;
use crate::fair;
use crate::slow::{self, Job};
use keyway_engine::{Class, Error, Operation, Task};
use keyway_ring::descriptor::{Completion, Descriptor, Opcode, Status};
use keyway_wire as wire;

/// One batch in so many is recorded.
const RECORD_EVERY: u64 = 64;

impl PumpState {
    /// Puts a request into the batch, or hands it to the slow class.
    ///
    /// # Errors
    /// The status that its client is told if it is refused.
    #[inline]
    pub fn begin(&mut self, taken: &Taken) -> Result<(), Status> {
        if taken.large {
            return self.begin_large(taken);
        }
        let Taken { pair: index, generation: pair_generation, ref descriptor, .. } = *taken;
        let opcode = Opcode::new(descriptor.opcode).ok_or(Status::InvalidRequest)?;
        if !self.knows(index, descriptor) {
            // The control thread has said so before it told the client of the handle.
            self.apply_commands();
        }
        let pair = self.pairs.get(index).filter(|pair| pair.generation == pair_generation);
        let slot = pair.ok_or(Status::Gone)?.client;
        let client = self.clients.get_mut(slot).ok_or(Status::Gone)?;
        let bytes = wire::named_bytes(descriptor);
        client.admit(bytes)?;
        let memory = client.region(descriptor.region).ok_or(Status::BadSegment)?.clone();
        let owner = client.owner;
        let takes_slow = client.slow_in_flight.map(|slow| slow < client.limits.slow_in_flight);
        let (before, mut task) = client.task(descriptor.session, opcode)?;
        let task_bytes = before.max(size_of::<Task>() + bytes);
        let entry = client.session_mut(descriptor.session).ok_or(Status::NoSession)?;
        let loaded = wire::load(descriptor, opcode, &memory, owner, &mut task.operation);
        let class = match loaded.and_then(|()| entry.admit(&mut task, takes_slow)) {
            Ok(class) => class,
            Err(status) => {
                client.keep(descriptor.session, task, task_bytes);
                return Err(status);
            }
        };
        if class == Class::Slow {
            return self.begin_slow(taken, opcode, slot, (task_bytes, task));
        }
        let makes_nonces = entry.makes_nonces;
        client.bytes_in_flight += bytes;
        let in_flight = InFlight {
            pair: index,
            pair_generation,
            client: slot,
            client_number: client.number,
            descriptor: *descriptor,
            memory,
            bytes,
            task_bytes,
            slow: None,
            makes_nonces,
        };
        task.user = self.in_flight.insert(in_flight) as u64;
        self.batch.push(task);
        Ok(())
    }

    /// Hands a request that was loaded and admitted to the slow class.
    fn begin_slow(
        &mut self,
        taken: &Taken,
        opcode: Opcode,
        slot: usize,
        (task_bytes, task): (usize, Box<Task>),
    ) -> Result<(), Status> {
        let client = self.clients.get_mut(slot).ok_or(Status::Gone)?;
        let entry = client.session(taken.descriptor.session).ok_or(Status::NoSession)?;
        let signature_bytes = entry.session.signature_bytes_max();
        let cost = fair::slow_cost(entry.algorithm, &task.operation, signature_bytes);
        if !cost.is_within(&client.limits) {
            self.meters.too_costly.increment();
            return Err(Status::InvalidRequest);
        }
        self.put_slow(taken, opcode, slot, cost.nanoseconds, Some((task_bytes, task)))
    }

    /// Hands a request that is too much for a pump to the slow class, unseen.
    #[cold]
    fn begin_large(&mut self, taken: &Taken) -> Result<(), Status> {
        let Taken { pair: index, generation, ref descriptor, .. } = *taken;
        let opcode = Opcode::new(descriptor.opcode).ok_or(Status::InvalidRequest)?;
        if !self.knows(index, descriptor) {
            self.apply_commands();
        }
        let pair = self.pairs.get(index).filter(|pair| pair.generation == generation);
        let slot = pair.ok_or(Status::Gone)?.client;
        let client = self.clients.get(slot).ok_or(Status::Gone)?;
        let bytes = wire::named_bytes(descriptor);
        client.admit(bytes)?;
        let entry = client.session(descriptor.session).ok_or(Status::NoSession)?;
        if client.slow_in_flight[entry.slow_kind()] >= client.limits.slow_in_flight {
            return Err(Status::Busy);
        }
        let cost = fair::cost(entry.costliest, bytes).into();
        self.put_slow(taken, opcode, slot, cost, None)
    }

    /// Puts a request among those that wait for the slow class.
    fn put_slow(
        &mut self,
        taken: &Taken,
        opcode: Opcode,
        slot: usize,
        cost_ns: u64,
        task: Option<(usize, Box<Task>)>,
    ) -> Result<(), Status> {
        let descriptor = taken.descriptor;
        let (task_bytes, task) = task.unzip();
        let client = self.clients.get_mut(slot).ok_or(Status::Gone)?;
        let memory = client.region(descriptor.region).ok_or(Status::BadSegment)?.clone();
        let entry = client.session(descriptor.session).ok_or(Status::NoSession)?;
        let (makes_nonces, weight, kind) = (entry.makes_nonces, entry.weight, entry.slow_kind());
        let work = slow::Work {
            descriptor,
            opcode,
            memory: memory.clone(),
            owner: client.owner,
            session: entry.session.clone(),
            key: entry.key.clone(),
            makes_nonces,
            limits: client.limits,
            task,
        };
        let bytes = wire::named_bytes(&descriptor);
        let in_flight = InFlight {
            pair: taken.pair,
            pair_generation: taken.generation,
            client: slot,
            client_number: client.number,
            descriptor,
            memory,
            bytes,
            task_bytes: task_bytes.unwrap_or(0),
            slow: Some(kind),
            makes_nonces,
        };
        let place = self.in_flight.insert(in_flight);
        let job = Job { place, work, mailbox: self.mailbox.clone() };
        if !self.slow.put(client.tag(weight), cost_ns, job) {
            self.in_flight.remove(place);
            return Err(Status::Busy);
        }
        client.bytes_in_flight += bytes;
        client.slow_in_flight[kind] += 1;
        self.meters.slow.increment();
        Ok(())
    }

    /// Whether a request's handles are in its client's tables.
    fn knows(&self, index: usize, descriptor: &Descriptor) -> bool {
        let Some(pair) = self.pairs.get(index) else { return false };
        let Some(client) = self.clients.get(pair.client) else { return false };
        client.session(descriptor.session).is_some() && client.region(descriptor.region).is_some()
    }

    /// Answers a request that was not begun.
    pub fn refuse(&mut self, taken: &Taken, status: Status) {
        match status {
            Status::Busy => self.meters.busy.increment(),
            _ => self.meters.refused.increment(),
        }
        let Some(pair) = self.pairs.get_mut(taken.pair) else { return };
        if pair.generation != taken.generation {
            return;
        }
        pair.in_flight -= 1;
        pair.end.answer(&wire::refused(taken.descriptor.cookie, status));
        pair.note_answer(taken.pair, &mut self.answered);
        if let Some(client) = self.clients.get(pair.client) {
            add(&client.usage.refused, 1);
        }
    }

    /// Hands the batch to the engine.
    pub fn submit(&mut self) {
        let size = self.batch.len() as u64;
        if size == 0 {
            return;
        }
        self.meters.batches.increment();
        if self.turn.is_multiple_of(RECORD_EVERY) {
            self.meters.batch.record(size);
        }
        if size == 1
            && self.is_plain(0)
            && let Some(mut task) = self.batch.pop()
        {
            // By itself it needs no queue.
            let session = task.session().clone();
            let result = task.operation.with(|request| session.run(request));
            self.finish(task, result);
            return;
        }
        // The queue has room for all that can be in flight; if not, they wait here, in order.
        self.queue.submit(&mut self.batch, false);
    }

    /// Whether a task of the batch may run here and now, under a nonce that came with it.
    fn is_plain(&self, index: usize) -> bool {
        let place = self.batch.get(index).map(|task| task.user as usize);
        let request = place.and_then(|place| self.in_flight.get(place));
        request.is_some_and(|request| !request.makes_nonces)
    }

    /// Answers what is done.
    pub fn collect(&mut self) {
        if self.mailbox.has_finished() {
            self.collect_slow();
        }
        if self.queue.in_flight() == 0 {
            return;
        }
        let mut done = std::mem::take(&mut self.done);
        self.queue.poll(&mut done);
        for task in done.drain(..) {
            let result = task.result();
            self.finish(task, result);
        }
        self.done = done;
    }

    #[cold]
    fn collect_slow(&mut self) {
        for Finished { place, answer, task } in self.mailbox.take_finished() {
            let Some(request) = self.in_flight.remove(place) else { continue };
            self.answer(&request, |_, _| answer, task);
        }
    }

    /// Answers a request of the fast class.
    #[inline]
    fn finish(&mut self, task: Box<Task>, result: Result<usize, Error>) {
        let Some(request) = self.in_flight.remove(task.user as usize) else { return };
        let store = |request: &InFlight, task: Option<&Task>| match task {
            Some(task) => {
                let InFlight { descriptor, memory, makes_nonces, .. } = request;
                wire::store(descriptor, memory, &task.operation, result, *makes_nonces)
            }
            None => wire::refused(request.descriptor.cookie, Status::Driver),
        };
        self.answer(&request, store, Some(task));
    }

    /// Answers a request, if its client is still there.
    #[inline]
    pub fn answer(
        &mut self,
        request: &InFlight,
        answer: impl FnOnce(&InFlight, Option<&Task>) -> Completion,
        task: Option<Box<Task>>,
    ) {
        let client = match self.clients.get_mut(request.client) {
            Some(client) if client.number == request.client_number => client,
            _ => return,
        };
        client.bytes_in_flight -= request.bytes;
        if let Some(kind) = request.slow {
            client.slow_in_flight[kind] -= 1;
        }
        add(&client.usage.requests, 1);
        add(&client.usage.bytes, request.bytes as u64);
        self.meters.requests.increment();
        self.meters.bytes.add(request.bytes as u64);
        if let Some(pair) = self.pairs.get_mut(request.pair)
            && pair.generation == request.pair_generation
        {
            pair.end.answer(&answer(request, task.as_deref()));
            pair.in_flight -= 1;
            pair.note_answer(request.pair, &mut self.answered);
            if pair.parked && pair.end.is_ready() {
                // It came when the pair had as much in flight as it may, and the client does not
                // ring again.
                pair.parked = false;
                self.active.push(request.pair);
            }
        }
        if let Some(task) = task
            && !holds_secrets(&task.operation)
        {
            client.keep(request.descriptor.session, task, request.task_bytes);
        }
    }
}

/// Whether a task's buffers are not kept, since they are secret for longer than a message is.
fn holds_secrets(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Derive { .. }
            | Operation::VerifyPassword { .. }
            | Operation::Agree { .. }
            | Operation::Encapsulate { .. }
            | Operation::Decapsulate { .. }
            | Operation::PrivateDecrypt { .. }
            | Operation::Expand { .. }
    )
}
