//! Messages of a virtual machine's processes, carried to the control thread one at a time, and what each process has.
//!
//! The control thread knows the machine as one client. A process that ends says so, or the next one that takes its slot
//! does: then what it had is closed. A process can name what another one has, since all of them are the machine; it cannot
//! close it by mistake.

use keyway_ring::Socket;
use keyway_ring::control::{self, Answer, Ask, VERSION};
use keyway_ring::descriptor::{RegionHandle, SessionHandle, Status};
use keyway_ring::limits::MAILBOX_SLOTS;
use keyway_ring::mailbox::{Asked, MailboxEnd};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use zeroize::Zeroizing;

/// What a process of the machine has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SlotState {
    is_known: bool,
    queues: BTreeSet<u32>,
    regions: BTreeSet<(u8, u16)>,
    sessions: BTreeSet<(u16, u64)>,
}

/// Who waits for the control thread's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waiting {
    /// The machine itself, which has said hello.
    Machine,
    /// A process, by its slot.
    Slot(usize),
}

/// Between the mailbox and the control thread.
pub struct Relay {
    mailbox: MailboxEnd,
    /// The machine's end of its connection to the control thread.
    socket: Socket,
    /// The control thread's greeting, for all processes.
    greeting: Option<Zeroizing<Vec<u8>>>,
    pub slots: Vec<SlotState>,
    waiting: Option<Waiting>,
    /// Messages that did not fit into the socket.
    unsent: VecDeque<Zeroizing<Vec<u8>>>,
    /// The slot that is looked at first.
    first: usize,
}

/// All of a relay but what its processes have, as it is handed over.
#[derive(Debug, Serialize, Deserialize)]
pub struct Position {
    taken: Vec<u64>,
    greeting: Option<Vec<u8>>,
    waiting: Option<Waiting>,
}

/// The connection to the control thread is over, with the reason if it gave one.
#[derive(Debug)]
pub struct Over(pub Option<String>);

impl Relay {
    /// One that says hello for the machine first.
    ///
    /// # Errors
    /// If there is no control thread.
    pub fn begin(mailbox: MailboxEnd, socket: Socket, name: &str) -> Result<Relay, Over> {
        let position = Position { taken: Vec::new(), greeting: None, waiting: None };
        let mut relay = Relay::with(mailbox, socket, position);
        relay.say(&Ask::Hello { version: VERSION, name: format!("vm:{name}") })?;
        relay.waiting = Some(Waiting::Machine);
        Ok(relay)
    }

    fn with(mailbox: MailboxEnd, socket: Socket, position: Position) -> Relay {
        Relay {
            mailbox,
            socket,
            greeting: position.greeting.map(Zeroizing::new),
            slots: vec![SlotState::default(); MAILBOX_SLOTS],
            waiting: position.waiting,
            unsent: VecDeque::new(),
            first: 0,
        }
    }

    /// One that goes on where another daemon's was; its processes' [states](SlotState) come after it.
    pub fn resume(
        memory: &std::sync::Arc<keyway_ring::SharedMemory>,
        socket: Socket,
        position: Position,
    ) -> Option<Relay> {
        let mailbox = MailboxEnd::resume(memory, &position.taken)?;
        Some(Relay::with(mailbox, socket, position))
    }

    /// How far it is. Messages that were not sent yet are lost with it: there are none unless the control thread is far
    /// behind, and then its clients wait for longer.
    pub fn position(&self) -> Position {
        Position {
            taken: self.mailbox.taken(),
            greeting: self.greeting.as_ref().map(|bytes| bytes.to_vec()),
            waiting: self.waiting,
        }
    }

    /// The connection to the control thread, to be waited for.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Tells the machine that the daemon serves it no more.
    pub fn close(&self) {
        self.mailbox.close();
    }

    /// Carries what can be carried, both ways, and says whether there may be more: a machine can write messages as fast
    /// as they are taken.
    ///
    /// # Errors
    /// If the connection to the control thread is over.
    pub fn work(&mut self) -> Result<bool, Over> {
        self.flush()?;
        for _ in 0..2 * MAILBOX_SLOTS {
            // A process that ends meanwhile is seen afterwards, with what it has got.
            let has_moved = if self.waiting.is_some() { self.hear()? } else { self.take()? };
            if !has_moved {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the answer that is waited for, if it is there.
    fn hear(&mut self) -> Result<bool, Over> {
        let bytes = match self.socket.try_receive() {
            Ok(Some(received)) => received.bytes,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Ok(None) | Err(_) => return Err(Over(None)),
        };
        let answer = control::decode_answer(&bytes).map_err(|_| Over(None))?;
        match self.waiting.take() {
            Some(Waiting::Machine) => match answer {
                Answer::Hello { .. } => self.greeting = Some(bytes),
                Answer::Refused { why, .. } => return Err(Over(Some(why))),
                _ => return Err(Over(None)),
            },
            Some(Waiting::Slot(slot)) => {
                if let Some(state) = self.slots.get_mut(slot) {
                    state.gets(&answer);
                }
                self.mailbox.answer(slot, &bytes);
            }
            None => {}
        }
        Ok(true)
    }

    /// Takes one message out of the mailbox, if there is one. Says whether there was anything.
    fn take(&mut self) -> Result<bool, Over> {
        if self.greeting.is_none() {
            return Ok(false);
        }
        for step in 0..MAILBOX_SLOTS {
            let slot = (self.first + step) % MAILBOX_SLOTS;
            let Some(Asked { is_over, message }) = self.mailbox.take(slot) else { continue };
            self.first = (slot + 1) % MAILBOX_SLOTS;
            if is_over {
                let state = std::mem::take(&mut self.slots[slot]);
                self.close_all(state)?;
            }
            if let Some(message) = message {
                self.asked(slot, &message)?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn asked(&mut self, slot: usize, message: &[u8]) -> Result<(), Over> {
        let Ok(ask) = control::decode_ask(message) else {
            self.refuse(slot, Status::InvalidRequest, "the message cannot be read");
            return Ok(());
        };
        let Some(state) = self.slots.get_mut(slot) else { return Ok(()) };
        match ask {
            Ask::Hello { version: VERSION, .. } => {
                state.is_known = true;
                if let Some(greeting) = &self.greeting {
                    self.mailbox.answer(slot, greeting);
                }
                Ok(())
            }
            Ask::Hello { version, .. } => {
                let why = format!("the daemon speaks version {VERSION} and not {version}");
                self.refuse(slot, Status::Unsupported, &why);
                Ok(())
            }
            _ if !state.is_known => {
                self.refuse(slot, Status::InvalidRequest, "it has not said hello");
                Ok(())
            }
            Ask::CloseQueue { queue } => {
                let has = state.queues.remove(&queue);
                self.close_one(slot, has, &ask)
            }
            Ask::Forget { region } => {
                let has = state.regions.remove(&(region.index, region.generation));
                self.close_one(slot, has, &ask)
            }
            Ask::Close { session } => {
                let has = state.sessions.remove(&(session.index, session.generation));
                self.close_one(slot, has, &ask)
            }
            Ask::Queue { .. }
            | Ask::Region { .. }
            | Ask::Open { .. }
            | Ask::Export { .. }
            | Ask::Import { .. }
            | Ask::Ping
            | Ask::Usable { .. }
            | Ask::Granted { .. }
            | Ask::Certificates { .. }
            | Ask::NameSpaces => {
                self.say(&ask)?;
                self.waiting = Some(Waiting::Slot(slot));
                Ok(())
            }
            Ask::Keys(_) | Ask::Status | Ask::TakeOver => {
                let why = "a virtual machine uses keys, and does not look after them";
                self.refuse(slot, Status::Unsupported, why);
                Ok(())
            }
        }
    }

    fn close_one(&mut self, slot: usize, has: bool, ask: &Ask) -> Result<(), Over> {
        self.mailbox.answer(slot, &[]);
        if has { self.say(ask) } else { Ok(()) }
    }

    fn close_all(&mut self, state: SlotState) -> Result<(), Over> {
        for queue in state.queues {
            self.say(&Ask::CloseQueue { queue })?;
        }
        for (index, generation) in state.regions {
            self.say(&Ask::Forget { region: RegionHandle { index, generation } })?;
        }
        for (index, generation) in state.sessions {
            self.say(&Ask::Close { session: SessionHandle { index, generation } })?;
        }
        Ok(())
    }

    fn refuse(&self, slot: usize, status: Status, why: &str) {
        if let Ok(bytes) = control::encode(&Answer::refused(status, why)) {
            self.mailbox.answer(slot, &bytes);
        }
    }

    fn say(&mut self, ask: &Ask) -> Result<(), Over> {
        let bytes = control::encode(ask).map_err(|_| Over(None))?;
        self.unsent.push_back(bytes);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Over> {
        while let Some(bytes) = self.unsent.front() {
            match self.socket.try_send(bytes, &[]) {
                Ok(()) => drop(self.unsent.pop_front()),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // It has said why before it hung up.
                Err(why) if why.kind() == io::ErrorKind::BrokenPipe => self.unsent.clear(),
                Err(_) => return Err(Over(None)),
            }
        }
        Ok(())
    }
}

impl SlotState {
    /// Whether it is of no process, or of one that has nothing.
    pub fn is_empty(&self) -> bool {
        !self.is_known
    }

    /// It in pieces that go into a message each.
    pub fn pieces(&self) -> Vec<SlotState> {
        const SESSIONS: usize = 1024;
        let sessions: Vec<_> = self.sessions.iter().copied().collect();
        let mut pieces = vec![SlotState { sessions: BTreeSet::new(), ..self.clone() }];
        pieces.extend(sessions.chunks(SESSIONS).map(|some| SlotState {
            is_known: self.is_known,
            sessions: some.iter().copied().collect(),
            ..SlotState::default()
        }));
        pieces
    }

    /// Adds a piece.
    pub fn add(&mut self, piece: SlotState) {
        self.is_known |= piece.is_known;
        self.queues.extend(piece.queues);
        self.regions.extend(piece.regions);
        self.sessions.extend(piece.sessions);
    }

    fn gets(&mut self, answer: &Answer) {
        match answer {
            Answer::QueueAt { queue, .. } => drop(self.queues.insert(*queue)),
            Answer::RegionAt { region, .. } => {
                self.regions.insert((region.index, region.generation));
            }
            Answer::Session { session, .. } => {
                self.sessions.insert((session.index, session.generation));
            }
            _ => {}
        }
    }
}
