//! The state of a pump.

use super::client::Client;
use super::command::{ClientId, Command, Position};
use super::mailbox::Mailbox;
use super::meters::Meters;
use super::pair::{InFlight, Pair, Taken};
use crate::limits::{BATCH_MAX, PUMP_DEPTH};
use crate::slab::Slab;
use crate::slow::Slow;
use keyway_engine::{Engine, Queue, Task};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// Marks the pump's own bell among those that it waits for.
pub const MAILBOX: u64 = u64::MAX;

pub struct PumpState {
    pub queue: Queue,
    pub slow: Arc<Slow>,
    pub mailbox: Arc<Mailbox>,
    pub commands: Receiver<Command>,
    pub spin: Duration,
    pub epoll: OwnedFd,
    pub clients: Slab<Client>,
    pub numbers: HashMap<ClientId, usize>,
    pub pairs: Slab<Pair>,
    pub generations: u32,
    /// Pairs that are polled.
    pub active: Vec<usize>,
    /// Where the next turn begins.
    pub first: usize,
    pub turn: u64,
    /// The work that was taken in this turn, in nanoseconds by its cost.
    pub turn_ns: u32,
    pub in_flight: Slab<InFlight>,
    pub taken: Vec<Taken>,
    pub batch: Vec<Box<Task>>,
    pub done: Vec<Box<Task>>,
    /// Pairs with answers that their clients may sleep over.
    pub answered: Vec<usize>,
    /// The work done since parked clients were looked after, in nanoseconds by its cost.
    pub since_look: u32,
    pub muted: usize,
    /// The receiver that waits for it to have finished what it has taken. It takes nothing more
    /// meanwhile.
    pub frozen: Option<Option<Sender<Vec<Position>>>>,
    pub meters: Meters,
}

impl PumpState {
    pub fn new(
        engine: &Engine,
        slow: &Arc<Slow>,
        mailbox: &Arc<Mailbox>,
        commands: Receiver<Command>,
        spin: Duration,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &mailbox.bell, EventData::new_u64(MAILBOX), EventFlags::IN)?;
        let waking = mailbox.clone();
        Ok(PumpState {
            queue: engine.queue_calling(PUMP_DEPTH, move || waking.wake()),
            slow: slow.clone(),
            mailbox: mailbox.clone(),
            commands,
            spin,
            epoll,
            clients: Slab::new(),
            numbers: HashMap::new(),
            pairs: Slab::new(),
            generations: 0,
            active: Vec::new(),
            first: 0,
            turn: 0,
            turn_ns: 0,
            in_flight: Slab::new(),
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
}
