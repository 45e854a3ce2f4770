//! A pump: the thread that takes requests out of clients' rings, has the engine do them, and answers.
//!
//! It goes round the pairs that were used lately, and takes from each what its client has
//! [credit](crate::fair) for. What it took from all of them goes to the engine as one batch, which is
//! where requests of many processes meet in one pass of a driver. A pair that was idle for about as long
//! as a wake-up takes is *parked*: its client has to ring from then on, and it costs nothing. When all are
//! parked the pump sleeps.
//!
//! Slow requests go to the engine's slow pool, as many of one client as it may have there, and are
//! answered when they are done. Nothing here waits for a client: one that takes no completions loses
//! them, and one that stops or dies holds up nobody.
//!
//! All tables are this thread's. The control thread changes them by [`Command`]s, which are carried out
//! between two turns, and before a handle is said to be unknown.

use crate::fair::{self, Credit};
use crate::keys::KeySession;
use crate::limits::{
    BATCH_MAX, ClientLimits, PUMP_DEPTH, QUANTUM_NS, SPARE_BYTES_MAX, SPARE_TASKS_MAX,
};
use crate::request;
use crate::server::makes_nonces;
use keyway_engine::{Algorithm, Class, Engine, Operation, Queue, Session, Task};
use keyway_meter::{Counter, Histogram, counter, histogram};
use keyway_ring::descriptor::{Descriptor, Opcode, RegionHandle, SessionHandle, Status};
use keyway_ring::{Armed, DaemonEnd, Doorbell, SharedMemory};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A client, by the number it was admitted under; no number is given twice.
pub type ClientId = u64;

/// What the control thread has a pump do.
pub enum Command {
    /// A client was admitted.
    Admit {
        /// Its number.
        client: ClientId,
        /// The user it runs as.
        owner: u32,
        /// What it may have.
        limits: ClientLimits,
        /// How many times the time of others it gets.
        weight: u32,
        /// What it does, for those who watch.
        usage: Arc<Usage>,
    },
    /// A client is gone, and all that was its.
    Remove(ClientId),
    /// A client has another queue pair.
    Pair {
        /// Whose.
        client: ClientId,
        /// Its number among the client's.
        number: u32,
        /// Its end.
        end: DaemonEnd,
        /// What the client rings.
        bell: Doorbell,
        /// Entries of each ring.
        entries: u32,
    },
    /// A queue pair is no longer used.
    ClosePair(ClientId, u32),
    /// A client has opened a session.
    Session {
        /// Whose.
        client: ClientId,
        /// What it is called by.
        handle: SessionHandle,
        /// The engine's.
        session: Session,
        /// The daemon's own key that it has, if it has one.
        key: Option<KeySession>,
    },
    /// A client has closed one.
    CloseSession(ClientId, SessionHandle),
    /// A client has registered memory.
    Region {
        /// Whose.
        client: ClientId,
        /// What it is called by.
        handle: RegionHandle,
        /// The memory.
        memory: Arc<SharedMemory>,
    },
    /// A client has given one up.
    Forget(ClientId, RegionHandle),
    /// Takes no more requests, finishes those that were taken, and says how far it is.
    Freeze(Sender<Vec<Position>>),
    /// Goes on after all.
    Thaw,
}

/// How far a queue pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Whose it is.
    pub client: ClientId,
    /// Its number among the client's.
    pub queue: u32,
    /// Requests that were taken since it was made.
    pub taken: u64,
    /// Requests that were answered since it was made. In a frozen pump these are as many.
    pub answered: u64,
}

/// What one client does. The pump alone writes it.
#[derive(Debug, Default)]
pub struct Usage {
    /// Requests that were answered.
    pub requests: AtomicU64,
    /// Bytes that they named.
    pub bytes: AtomicU64,
    /// Requests that were refused before the engine saw them.
    pub refused: AtomicU64,
    /// Times that it rang.
    pub doorbells: AtomicU64,
    /// Times that it was woken.
    pub wakeups: AtomicU64,
}

/// Adds to a counter that one thread writes.
fn add(to: &AtomicU64, n: u64) {
    to.store(to.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// The control thread's hold on a pump. When it is dropped, the pump ends.
pub struct Pump {
    mailbox: Arc<Mailbox>,
    commands: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

/// How a sleeping pump learns of commands and of slow work that is done.
struct Mailbox {
    bell: Doorbell,
    asleep: AtomicU32,
    any: AtomicBool,
    ended: AtomicBool,
    /// Whether another daemon serves the clients from now on.
    handed_over: AtomicBool,
}

impl Mailbox {
    fn wake(&self) {
        if Armed(&self.asleep).take() {
            self.bell.ring();
        }
    }
}

impl Pump {
    /// Starts one, which polls a pair for so long before it parks it.
    ///
    /// # Errors
    /// The system's.
    pub fn start(engine: &Engine, index: usize, spin: Duration) -> io::Result<Pump> {
        let mailbox = Arc::new(Mailbox {
            bell: Doorbell::new()?,
            asleep: AtomicU32::new(0),
            any: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            handed_over: AtomicBool::new(false),
        });
        let (commands, received) = channel();
        let mut work = Work::new(engine, &mailbox, received, spin)?;
        let thread = thread::Builder::new().name(format!("pump-{index}"));
        let thread = Some(thread.spawn(move || work.run())?);
        Ok(Pump { mailbox, commands, thread })
    }

    /// Has it do something, in order, before it says that it knows no such session or region.
    pub fn command(&self, command: Command) {
        // It fails only if the pump has ended, and then there is nobody left to serve.
        let _ = self.commands.send(command);
        self.mailbox.any.store(true, Ordering::Release);
        self.mailbox.wake();
    }

    /// Says whether the clients are another daemon's. Then the end of this pump is not told to them.
    pub fn hand_over(&self, to_another: bool) {
        self.mailbox.handed_over.store(to_another, Ordering::Release);
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.mailbox.ended.store(true, Ordering::Release);
        self.mailbox.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client, as its pump knows it.
struct Client {
    number: ClientId,
    /// The user it runs as.
    owner: u32,
    limits: ClientLimits,
    weight: u32,
    credit: Credit,
    /// The turn that it got credit for last.
    turn: u64,
    sessions: Vec<Option<Entry>>,
    regions: Vec<Option<(u16, Arc<SharedMemory>)>>,
    bytes_in_flight: usize,
    slow_in_flight: usize,
    /// Doorbells of the second that began then.
    rung: (Instant, u32),
    usage: Arc<Usage>,
}

impl Client {
    /// What a request takes, or what it takes to refuse it: nonsense is no cheaper than what makes sense.
    fn cost(&self, descriptor: &Descriptor) -> u32 {
        match self.sessions.get(usize::from(descriptor.session.index)) {
            Some(Some(entry)) if entry.generation == descriptor.session.generation => {
                let bytes = request::bytes(descriptor).min(self.limits.request_bytes);
                fair::cost(entry.algorithm, bytes)
            }
            _ => REFUSAL_COST_NS,
        }
    }
}

/// A session of a client.
struct Entry {
    generation: u64,
    session: Session,
    algorithm: Algorithm,
    /// The daemon's own key, which says what it may be used for.
    key: Option<KeySession>,
    makes_nonces: bool,
    /// Tasks that are done, with their buffers.
    spare: Vec<Box<Task>>,
}

/// A queue pair.
struct Pair {
    client: usize,
    number: u32,
    end: DaemonEnd,
    bell: Doorbell,
    entries: u32,
    /// Requests that were taken and not answered.
    in_flight: u32,
    /// Since when it was looked at and nothing was found.
    idle_since: Option<Instant>,
    /// Whether its client has to ring, and it is not polled.
    parked: bool,
    /// Whether something was answered since its client was last looked after.
    answered: bool,
    /// Tells it from those that have its place later.
    generation: u32,
    /// It is not looked at before then, since its client rings too often.
    muted_until: Option<Instant>,
}

/// A request that was taken in this turn, and not looked at.
struct Taken {
    pair: usize,
    /// The pair's.
    generation: u32,
    descriptor: Descriptor,
}

/// A request that was taken and not answered.
struct InFlight {
    pair: usize,
    pair_generation: u32,
    client: usize,
    client_number: ClientId,
    descriptor: Descriptor,
    memory: Arc<SharedMemory>,
    bytes: usize,
    slow: bool,
    makes_nonces: bool,
}

/// What a pump counts for all its clients together.
struct Meters {
    requests: Counter,
    bytes: Counter,
    refused: Counter,
    busy: Counter,
    batches: Counter,
    doorbells: Counter,
    wakeups: Counter,
    sleeps: Counter,
    batch: Histogram,
}

impl Meters {
    fn new() -> Self {
        Meters {
            requests: counter("cryptod.requests"),
            bytes: counter("cryptod.bytes"),
            refused: counter("cryptod.refused"),
            busy: counter("cryptod.busy"),
            batches: counter("cryptod.batches"),
            doorbells: counter("cryptod.doorbells"),
            wakeups: counter("cryptod.wakeups"),
            sleeps: counter("cryptod.sleeps"),
            batch: histogram("cryptod.batch"),
        }
    }
}

/// Marks the pump's own bell among those that it waits for.
const MAILBOX: u64 = u64::MAX;
/// Work by its [`cost`](fair::cost) after which parked clients are looked after, in nanoseconds.
const LOOK_AFTER_NS: u32 = 20_000;
/// Turns without work after which the clock is looked at, which takes longer than a turn.
const IDLE_TURNS: u32 = 16;
/// One batch in so many is recorded.
const RECORD_EVERY: u64 = 64;

struct Work {
    queue: Queue,
    mailbox: Arc<Mailbox>,
    commands: Receiver<Command>,
    spin: Duration,
    epoll: OwnedFd,
    clients: Vec<Option<Client>>,
    numbers: HashMap<ClientId, usize>,
    pairs: Vec<Option<Pair>>,
    /// How many there are.
    pairs_open: usize,
    generations: u32,
    /// Pairs that are polled.
    active: Vec<usize>,
    /// Where the next turn begins.
    first: usize,
    turn: u64,
    in_flight: Vec<Option<InFlight>>,
    free: Vec<usize>,
    taken: Vec<Taken>,
    batch: Vec<Box<Task>>,
    done: Vec<Box<Task>>,
    /// Pairs with answers that their clients may sleep over.
    answered: Vec<usize>,
    /// What was done since parked clients were looked after, in nanoseconds by its cost.
    since_look: u32,
    muted: usize,
    /// Who waits for it to have finished what it has taken. It takes nothing more meanwhile.
    frozen: Option<Option<Sender<Vec<Position>>>>,
    meters: Meters,
}

impl Work {
    fn new(
        engine: &Engine,
        mailbox: &Arc<Mailbox>,
        commands: Receiver<Command>,
        spin: Duration,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &mailbox.bell, EventData::new_u64(MAILBOX), EventFlags::IN)?;
        let waking = mailbox.clone();
        Ok(Work {
            queue: engine.queue_calling(PUMP_DEPTH, move || waking.wake()),
            mailbox: mailbox.clone(),
            commands,
            spin,
            epoll,
            clients: Vec::new(),
            numbers: HashMap::new(),
            pairs: Vec::new(),
            pairs_open: 0,
            generations: 0,
            active: Vec::new(),
            first: 0,
            turn: 0,
            in_flight: Vec::new(),
            free: Vec::new(),
            taken: Vec::with_capacity(BATCH_MAX),
            batch: Vec::with_capacity(BATCH_MAX),
            done: Vec::with_capacity(BATCH_MAX),
            answered: Vec::new(),
            since_look: 0,
            muted: 0,
            frozen: None,
            meters: Meters::new(),
        })
    }

    fn run(&mut self) {
        let mut idle_turns = 0;
        while !self.mailbox.ended.load(Ordering::Acquire) {
            if self.mailbox.any.load(Ordering::Acquire) {
                self.obey();
            }
            if self.frozen.is_some() {
                self.finish_frozen();
                continue;
            }
            let worked = self.turn();
            idle_turns = if worked { 0 } else { idle_turns + 1 };
            if self.since_look >= LOOK_AFTER_NS || idle_turns == IDLE_TURNS {
                self.since_look = 0;
                // Where all are polled, nobody rings.
                if self.active.len() < self.pairs_open || self.muted > 0 {
                    self.look(false);
                }
            }
            if worked {
                continue;
            }
            if idle_turns == IDLE_TURNS {
                idle_turns = 0;
                self.park_the_idle();
            }
            if self.active.is_empty() {
                self.sleep();
            } else if self.queue.in_flight() > 0 {
                // What is under way may wait for this processor.
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        if !self.mailbox.handed_over.load(Ordering::Acquire) {
            for pair in self.pairs.iter().flatten() {
                pair.end.close();
            }
        }
    }

    /// Finishes what was taken, says how far it is, and waits for another command.
    fn finish_frozen(&mut self) {
        self.submit();
        self.collect();
        self.wake_clients();
        if self.batch.is_empty()
            && self.queue.in_flight() == 0
            && let Some(tell) = self.frozen.as_mut().and_then(Option::take)
        {
            let position = |pair: &Pair| {
                let client = self.clients.get(pair.client)?.as_ref()?.number;
                let (taken, answered) = pair.end.positions();
                Some(Position { client, queue: pair.number, taken, answered })
            };
            let positions = self.pairs.iter().flatten().filter_map(position).collect();
            // From now on another daemon may be waiting for the clients' bells.
            for pair in self.pairs.iter().flatten() {
                let _ = epoll::delete(&self.epoll, &pair.bell);
            }
            // Who asked may have given up, and then says so.
            let _ = tell.send(positions);
        }
        self.sleep();
    }

    /// Listens to the clients again, who may have rung meanwhile.
    fn thaw(&mut self) {
        self.frozen = None;
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            let Some(pair) = pair else { continue };
            let _ = epoll::add(&self.epoll, &pair.bell, data(index, pair), EventFlags::IN);
            pair.idle_since = None;
            if pair.parked {
                pair.parked = false;
                self.active.push(index);
            }
        }
    }

    /// One turn: takes, does and answers. Says whether there was anything.
    fn turn(&mut self) -> bool {
        self.turn += 1;
        let count = self.active.len();
        let mut any = false;
        for step in 0..count {
            let Some(&index) = self.active.get((self.first + step) % count) else { break };
            any |= self.take_from(index);
            if self.batch.len() + self.taken.len() >= BATCH_MAX {
                // The next turn begins behind it.
                self.first = (self.first + step + 1) % count;
                break;
            }
        }
        let mut taken = std::mem::take(&mut self.taken);
        for request in taken.drain(..) {
            if let Err(status) = self.begin(&request) {
                self.refuse(&request, status);
            }
        }
        self.taken = taken;
        self.submit();
        self.collect();
        any |= !self.answered.is_empty();
        self.wake_clients();
        any
    }

    /// Takes as many requests of this pair as its client has credit for, and says whether there were
    /// any. Those for nothing are answered at once.
    fn take_from(&mut self, index: usize) -> bool {
        let Some(Some(pair)) = self.pairs.get_mut(index) else { return false };
        let Some(Some(client)) = self.clients.get_mut(pair.client) else { return false };
        if client.turn != self.turn {
            client.turn = self.turn;
            client.credit.turn(QUANTUM_NS.saturating_mul(client.weight));
        }
        let (mut any, mut nulls, mut costs) = (false, 0, 0_u32);
        while self.batch.len() + self.taken.len() < BATCH_MAX
            && client.credit.has_any()
            && pair.in_flight < pair.entries
            && let Some(descriptor) = pair.end.take()
        {
            any = true;
            let cost = if descriptor.opcode == Opcode::Null as u8 {
                nulls += 1;
                pair.end.answer(&request::refused(descriptor.cookie, Status::Done));
                NULL_COST_NS
            } else {
                pair.in_flight += 1;
                let generation = pair.generation;
                self.taken.push(Taken { pair: index, generation, descriptor });
                client.cost(&descriptor)
            };
            client.credit.spend(cost);
            costs = costs.saturating_add(cost);
        }
        if any {
            pair.idle_since = None;
            self.since_look = self.since_look.saturating_add(costs);
        }
        if nulls > 0 {
            note_answer(pair, index, &mut self.answered);
            add(&client.usage.requests, nulls);
            self.meters.requests.add(nulls);
        }
        any
    }

    /// Puts a request into the batch.
    #[inline]
    fn begin(&mut self, taken: &Taken) -> Result<(), Status> {
        let Taken { pair: index, generation: pair_generation, ref descriptor } = *taken;
        let opcode = Opcode::new(descriptor.opcode).ok_or(Status::InvalidRequest)?;
        if !self.knows(index, descriptor) {
            // The control thread has said so before it told the client of the handle.
            self.obey();
        }
        let pair = self.pairs.get(index).and_then(Option::as_ref).ok_or(Status::Gone)?;
        if pair.generation != pair_generation {
            return Err(Status::Gone);
        }
        let slot = pair.client;
        let client = self.clients.get_mut(slot).and_then(Option::as_mut).ok_or(Status::Gone)?;
        let bytes = request::bytes(descriptor);
        if bytes > client.limits.request_bytes {
            return Err(Status::InvalidRequest);
        }
        if client.bytes_in_flight + bytes > client.limits.bytes_in_flight {
            return Err(Status::Busy);
        }
        let RegionHandle { index: region, generation } = descriptor.region;
        let memory = match client.regions.get(usize::from(region)) {
            Some(Some((known, memory))) if *known == generation => memory,
            _ => return Err(Status::BadSegment),
        };
        let SessionHandle { index: session, generation } = descriptor.session;
        let owner = client.owner;
        let entry = match client.sessions.get_mut(usize::from(session)) {
            Some(Some(entry)) if entry.generation == generation => entry,
            _ => return Err(Status::NoSession),
        };
        let mut task = match entry.spare.pop() {
            Some(task) => task,
            None => {
                let operation = request::empty(opcode).ok_or(Status::InvalidRequest)?;
                Task::new(&entry.session, operation)
            }
        };
        if let Err(status) = request::load(descriptor, opcode, memory, owner, &mut task.operation) {
            entry.spare.push(task);
            return Err(status);
        }
        if let Some(key) = &entry.key {
            if !task.operation.with(|request| key.permits(request)) {
                let ended = key.is_ended();
                entry.spare.push(task);
                return Err(if ended { Status::Gone } else { Status::Unsupported });
            }
            key.count(1);
        }
        let slow = task.operation.class(entry.algorithm) == Class::Slow;
        if slow && client.slow_in_flight >= client.limits.slow_in_flight {
            entry.spare.push(task);
            return Err(Status::Busy);
        }
        client.bytes_in_flight += bytes;
        client.slow_in_flight += usize::from(slow);
        let in_flight = InFlight {
            pair: index,
            pair_generation,
            client: slot,
            client_number: client.number,
            descriptor: *descriptor,
            memory: memory.clone(),
            bytes,
            slow,
            makes_nonces: entry.makes_nonces,
        };
        task.user = match self.free.pop() {
            Some(place) => {
                self.in_flight[place] = Some(in_flight);
                place as u64
            }
            None => {
                self.in_flight.push(Some(in_flight));
                self.in_flight.len() as u64 - 1
            }
        };
        self.batch.push(task);
        Ok(())
    }

    /// Whether a request's handles are in its client's tables.
    fn knows(&self, index: usize, descriptor: &Descriptor) -> bool {
        let Some(Some(pair)) = self.pairs.get(index) else { return false };
        let Some(Some(client)) = self.clients.get(pair.client) else { return false };
        let Descriptor { session, region, .. } = descriptor;
        let knows_session = matches!(
            client.sessions.get(usize::from(session.index)),
            Some(Some(entry)) if entry.generation == session.generation
        );
        let knows_region = matches!(
            client.regions.get(usize::from(region.index)),
            Some(Some((generation, _))) if *generation == region.generation
        );
        knows_session && knows_region
    }

    fn refuse(&mut self, taken: &Taken, status: Status) {
        match status {
            Status::Busy => self.meters.busy.increment(),
            _ => self.meters.refused.increment(),
        }
        let Some(Some(pair)) = self.pairs.get_mut(taken.pair) else { return };
        if pair.generation != taken.generation {
            return;
        }
        pair.in_flight -= 1;
        pair.end.answer(&request::refused(taken.descriptor.cookie, status));
        note_answer(pair, taken.pair, &mut self.answered);
        if let Some(Some(client)) = self.clients.get(pair.client) {
            add(&client.usage.refused, 1);
        }
    }

    /// Hands the batch to the engine.
    fn submit(&mut self) {
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
        let request = place.and_then(|place| self.in_flight.get(place)?.as_ref());
        request.is_some_and(|request| !request.slow && !request.makes_nonces)
    }

    /// Answers what is done.
    fn collect(&mut self) {
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

    /// Answers a request, if whoever made it is still there.
    #[inline]
    fn finish(&mut self, mut task: Box<Task>, result: Result<usize, keyway_engine::Error>) {
        let place = task.user as usize;
        let Some(request) = self.in_flight.get_mut(place).and_then(Option::take) else { return };
        self.free.push(place);
        let client = match self.clients.get_mut(request.client) {
            Some(Some(client)) if client.number == request.client_number => client,
            _ => return,
        };
        client.bytes_in_flight -= request.bytes;
        client.slow_in_flight -= usize::from(request.slow);
        if let Some(Some(pair)) = self.pairs.get_mut(request.pair)
            && pair.generation == request.pair_generation
        {
            let InFlight { descriptor, memory, makes_nonces, .. } = &request;
            let answer = request::store(descriptor, memory, &task.operation, result, *makes_nonces);
            pair.end.answer(&answer);
            pair.in_flight -= 1;
            note_answer(pair, request.pair, &mut self.answered);
            if pair.parked && pair.end.is_ready() {
                // It came when the pair had as much in flight as it may, and nobody rings again.
                pair.parked = false;
                self.active.push(request.pair);
            }
        }
        add(&client.usage.requests, 1);
        add(&client.usage.bytes, request.bytes as u64);
        self.meters.requests.increment();
        self.meters.bytes.add(request.bytes as u64);
        let session = request.descriptor.session;
        if let Some(Some(entry)) = client.sessions.get_mut(usize::from(session.index))
            && entry.generation == session.generation
            && entry.spare.len() < SPARE_TASKS_MAX
            && request.bytes <= SPARE_BYTES_MAX
            && !holds_secrets(&task.operation)
        {
            task.user = 0;
            entry.spare.push(task);
        }
    }

    /// Wakes clients that sleep over answers.
    fn wake_clients(&mut self) {
        while let Some(index) = self.answered.pop() {
            let Some(Some(pair)) = self.pairs.get_mut(index) else { continue };
            pair.answered = false;
            if pair.end.wake() {
                self.meters.wakeups.increment();
                if let Some(Some(client)) = self.clients.get(pair.client) {
                    add(&client.usage.wakeups, 1);
                }
            }
        }
    }

    /// Parks pairs in which nothing was found for as long as a wake-up takes.
    fn park_the_idle(&mut self) {
        let now = Instant::now();
        let (pairs, spin) = (&mut self.pairs, self.spin);
        self.active.retain(|index| {
            let Some(Some(pair)) = pairs.get_mut(*index) else { return false };
            let since = *pair.idle_since.get_or_insert(now);
            if now.duration_since(since) < spin {
                return true;
            }
            let Some(armed) = pair.end.armed() else { return false };
            armed.set();
            // Not one that came meanwhile. One with all its requests in flight is looked at when some
            // are done.
            let came = pair.end.is_ready() && pair.in_flight < pair.entries;
            if came {
                armed.clear();
                pair.idle_since = None;
            }
            pair.parked = !came;
            came
        });
        if self.first >= self.active.len() {
            self.first = 0;
        }
    }

    /// Sleeps until a client rings, slow work is done, or a command comes.
    fn sleep(&mut self) {
        let asleep = Armed(&self.mailbox.asleep);
        asleep.set();
        let found = self.queue.arm();
        let nothing = !found
            && !self.mailbox.any.load(Ordering::Acquire)
            && !self.mailbox.ended.load(Ordering::Acquire);
        if nothing {
            self.meters.sleeps.increment();
            self.look(true);
        }
        Armed(&self.mailbox.asleep).clear();
        self.collect();
        self.wake_clients();
    }

    /// Looks after parked clients that have rung, and waits for one if it is told to.
    fn look(&mut self, wait: bool) {
        let timeout = match (wait, self.muted) {
            (false, _) => Some(Duration::ZERO),
            (true, 0) => None,
            (true, _) => Some(Duration::from_millis(100)),
        };
        let timeout = timeout.map(|time| rustix::time::Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 64];
        // A signal may have ended it.
        if let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            for event in events {
                match event.data.u64() {
                    MAILBOX => drop(self.mailbox.bell.take()),
                    data => self.rung(data as u32 as usize, (data >> 32) as u32),
                }
            }
        }
        if self.muted > 0 {
            self.unmute();
        }
    }

    fn rung(&mut self, index: usize, generation: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(index) else { return };
        if pair.generation != generation {
            return;
        }
        let times = pair.bell.take();
        self.meters.doorbells.add(times);
        pair.idle_since = None;
        let Some(Some(client)) = self.clients.get_mut(pair.client) else { return };
        add(&client.usage.doorbells, times);
        let now = Instant::now();
        let (since, count) = &mut client.rung;
        if now.duration_since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX).max(1));
        if *count > client.limits.doorbells {
            if pair.muted_until.is_none() {
                self.muted += 1;
                let _ =
                    epoll::modify(&self.epoll, &pair.bell, data(index, pair), EventFlags::empty());
            }
            pair.muted_until = Some(*since + Duration::from_secs(1));
            return;
        }
        if let Some(armed) = pair.end.armed() {
            armed.clear();
        }
        if pair.parked {
            pair.parked = false;
            self.active.push(index);
        }
    }

    /// Listens again to those who have been quiet long enough.
    fn unmute(&mut self) {
        let now = Instant::now();
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            let Some(pair) = pair else { continue };
            if pair.muted_until.is_some_and(|until| until <= now) {
                pair.muted_until = None;
                self.muted -= 1;
                if pair.parked {
                    // What it rang for is still there.
                    pair.parked = false;
                    self.active.push(index);
                }
                let _ = epoll::modify(&self.epoll, &pair.bell, data(index, pair), EventFlags::IN);
            }
        }
    }

    /// Carries out what the control thread has asked for.
    fn obey(&mut self) {
        self.mailbox.any.store(false, Ordering::Release);
        while let Ok(command) = self.commands.try_recv() {
            self.carry_out(command);
        }
    }

    fn client(&mut self, number: ClientId) -> Option<(usize, &mut Client)> {
        let slot = *self.numbers.get(&number)?;
        Some((slot, self.clients.get_mut(slot)?.as_mut()?))
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Admit { client: number, owner, limits, weight, usage } => {
                let client = Client {
                    number,
                    owner,
                    limits,
                    weight: weight.max(1),
                    credit: Credit::default(),
                    turn: 0,
                    sessions: Vec::new(),
                    regions: Vec::new(),
                    bytes_in_flight: 0,
                    slow_in_flight: 0,
                    rung: (Instant::now(), 0),
                    usage,
                };
                self.numbers.insert(number, put(&mut self.clients, client));
            }
            Command::Remove(number) => {
                let Some(slot) = self.numbers.remove(&number) else { return };
                for index in 0..self.pairs.len() {
                    if self.pairs[index].as_ref().is_some_and(|pair| pair.client == slot) {
                        self.drop_pair(index);
                    }
                }
                self.clients[slot] = None;
            }
            Command::Pair { client, number, end, bell, entries } => {
                let Some((slot, _)) = self.client(client) else { return };
                self.generations = self.generations.wrapping_add(1);
                let pair = Pair {
                    client: slot,
                    number,
                    end,
                    bell,
                    entries,
                    in_flight: 0,
                    idle_since: None,
                    parked: false,
                    answered: false,
                    generation: self.generations,
                    muted_until: None,
                };
                let index = put(&mut self.pairs, pair);
                self.pairs_open += 1;
                let Some(Some(pair)) = self.pairs.get(index) else { return };
                // Another daemon may have slept before.
                if let Some(armed) = pair.end.armed() {
                    armed.clear();
                }
                if self.frozen.is_none() {
                    let _ = epoll::add(&self.epoll, &pair.bell, data(index, pair), EventFlags::IN);
                }
                self.active.push(index);
            }
            Command::ClosePair(client, number) => {
                let Some((slot, _)) = self.client(client) else { return };
                let is_it = |pair: &Option<Pair>| {
                    pair.as_ref().is_some_and(|pair| pair.client == slot && pair.number == number)
                };
                if let Some(index) = self.pairs.iter().position(is_it) {
                    self.drop_pair(index);
                }
            }
            Command::Session { client, handle, session, key } => {
                let Some((_, client)) = self.client(client) else { return };
                let algorithm = session.algorithm();
                let SessionHandle { index, generation } = handle;
                let spare = Vec::new();
                let makes_nonces = makes_nonces(key.as_ref());
                let entry = Entry { generation, session, algorithm, key, makes_nonces, spare };
                put_at(&mut client.sessions, usize::from(index), entry);
            }
            Command::CloseSession(client, handle) => {
                let Some((_, client)) = self.client(client) else { return };
                let place = client.sessions.get_mut(usize::from(handle.index));
                if let Some(place) = place
                    && place.as_ref().is_some_and(|entry| entry.generation == handle.generation)
                {
                    *place = None;
                }
            }
            Command::Region { client, handle, memory } => {
                let Some((_, client)) = self.client(client) else { return };
                let RegionHandle { index, generation } = handle;
                put_at(&mut client.regions, usize::from(index), (generation, memory));
            }
            Command::Forget(client, handle) => {
                let Some((_, client)) = self.client(client) else { return };
                let place = client.regions.get_mut(usize::from(handle.index));
                if let Some(place) = place
                    && place.as_ref().is_some_and(|(known, _)| *known == handle.generation)
                {
                    *place = None;
                }
            }
            Command::Freeze(tell) => self.frozen = Some(Some(tell)),
            Command::Thaw => self.thaw(),
        }
    }

    fn drop_pair(&mut self, index: usize) {
        let Some(pair) = self.pairs.get_mut(index).and_then(Option::take) else { return };
        let _ = epoll::delete(&self.epoll, &pair.bell);
        self.pairs_open -= 1;
        self.muted -= usize::from(pair.muted_until.is_some());
        self.active.retain(|active| *active != index);
        pair.end.close();
    }
}

/// About what it takes to answer nothing, and to refuse, in nanoseconds.
const NULL_COST_NS: u32 = 10;
const REFUSAL_COST_NS: u32 = 200;

fn data(index: usize, pair: &Pair) -> EventData {
    EventData::new_u64(u64::from(pair.generation) << 32 | index as u64)
}

fn note_answer(pair: &mut Pair, index: usize, answered: &mut Vec<usize>) {
    if !pair.answered {
        pair.answered = true;
        answered.push(index);
    }
}

/// Puts it where there is a place.
fn put<T>(into: &mut Vec<Option<T>>, it: T) -> usize {
    match into.iter().position(Option::is_none) {
        Some(index) => {
            into[index] = Some(it);
            index
        }
        None => {
            into.push(Some(it));
            into.len() - 1
        }
    }
}

fn put_at<T>(into: &mut Vec<Option<T>>, index: usize, it: T) {
    if into.len() <= index {
        into.resize_with(index + 1, || None);
    }
    into[index] = Some(it);
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
