//! The state that a worker keeps: connections, virtual users, starts that wait, and timers.

use super::stream::Stream;
use crate::limits::{RETRY_FIRST, RETRY_MAX};
use crate::scenario::Scenario;
use crate::trust::tls_closed;
use fastrand::Rng;
use std::ops::Range;

/// The message id of what a connection begins with; those of virtual users stay below.
pub(super) const SETUP_ID: u32 = i32::MAX as u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Connecting,
    StartTls,
    Handshaking,
    Binding,
    Ready,
}

pub(super) struct Connection {
    pub(super) group: usize,
    pub(super) server: usize,
    pub(super) is_second: bool,
    /// The virtual users whose operations go over it.
    pub(super) virtual_users: Range<usize>,
    pub(super) state: State,
    pub(super) stream: Option<Stream>,
    /// The number of this socket, so that events of an earlier one are known.
    pub(super) generation: u32,
    /// The beginning of a message of which more is to come.
    pub(super) partial: Vec<u8>,
    pub(super) out: Vec<u8>,
    pub(super) sent: usize,
    pub(super) is_dirty: bool,
    /// Virtual users that wait until it is ready.
    pub(super) waiting: Vec<usize>,
    pub(super) in_flight: usize,
    /// Sequences that were done over it.
    pub(super) sequences: u64,
    /// Something has been answered since it was opened.
    pub(super) is_answered: bool,
    pub(super) opening_ns: u64,
    pub(super) tls_ns: u64,
    /// When it may be opened again, and the pause before that.
    pub(super) retry_ns: u64,
    pub(super) pause_ns: u64,
}

impl Connection {
    pub(super) fn new(
        group: usize,
        server: usize,
        is_second: bool,
        virtual_users: Range<usize>,
    ) -> Self {
        Connection {
            group,
            server,
            is_second,
            virtual_users,
            state: State::Closed,
            stream: None,
            generation: 0,
            partial: Vec::new(),
            out: Vec::new(),
            sent: 0,
            is_dirty: false,
            waiting: Vec::new(),
            in_flight: 0,
            sequences: 0,
            is_answered: false,
            opening_ns: 0,
            tls_ns: 0,
            retry_ns: 0,
            pause_ns: 0,
        }
    }

    /// That the server has closed it, and what that may mean.
    pub(super) fn closed_words(&self) -> String {
        match self.state {
            State::Handshaking => tls_closed(),
            State::Ready | State::Binding if !self.is_answered => {
                "the server closed the connection before it had answered anything; if its port \
                 speaks TLS, write ldaps://"
                    .to_owned()
            }
            _ => "the server closed the connection".to_owned(),
        }
    }

    pub(super) fn is_opening(&self) -> bool {
        !matches!(self.state, State::Closed | State::Ready)
    }

    pub(super) fn close(&mut self) {
        self.stream = None;
        self.state = State::Closed;
        self.partial.clear();
        self.out.clear();
        (self.sent, self.in_flight, self.sequences) = (0, 0, 0);
    }

    /// One that came to nothing is not opened again at once.
    pub(super) fn pause(&mut self, now: u64) {
        let (first, longest) = (RETRY_FIRST.as_nanos() as u64, RETRY_MAX.as_nanos() as u64);
        self.pause_ns = (2 * self.pause_ns).clamp(first, longest);
        self.retry_ns = now + self.pause_ns;
    }
}

pub(super) struct VirtualUser {
    pub(super) group: usize,
    /// Its connection, and the second one, if a job needs that.
    pub(super) first: usize,
    pub(super) second: Option<usize>,
    /// Its place among the virtual users of the first.
    pub(super) slot: u32,
    /// Ids that were given.
    pub(super) ids: u32,
    pub(super) is_busy: bool,
    /// The position in its sequence.
    pub(super) job: usize,
    pub(super) phase: usize,
    pub(super) step: usize,
    pub(super) intended_ns: u64,
    /// The operation under way: its id (0: none), its connection, when it was sent.
    pub(super) message_id: u32,
    pub(super) on: usize,
    pub(super) sent_ns: u64,
    pub(super) entries: u32,
    pub(super) values_seen: u64,
    pub(super) drawn: Vec<u64>,
    pub(super) taken: Vec<Vec<u8>>,
    pub(super) random: Rng,
}

impl VirtualUser {
    pub(super) fn new(scenario: &Scenario, group: usize, first: usize, slot: u32) -> VirtualUser {
        let taken = scenario.jobs.iter().map(|job| job.taken).max().unwrap_or_default();
        VirtualUser {
            group,
            first,
            second: None,
            slot,
            ids: 0,
            is_busy: false,
            job: 0,
            phase: 0,
            step: 0,
            intended_ns: 0,
            message_id: 0,
            on: 0,
            sent_ns: 0,
            entries: 0,
            values_seen: 0,
            drawn: vec![0; scenario.sources.len()],
            taken: vec![Vec::new(); taken],
            random: Rng::with_seed(0),
        }
    }

    /// Whether it waits for an answer from this connection.
    pub(super) fn is_sent_on(&self, connection: usize) -> bool {
        self.message_id != 0 && self.on == connection
    }

    /// The next id on a connection with so many virtual users. Its remainder says whose it is.
    pub(super) fn next_id(&mut self, virtual_users: usize, slot: u32) -> u32 {
        let virtual_users = virtual_users as u32;
        // Far from the end, where what connections begin with has its ids.
        self.ids = if self.ids >= (SETUP_ID - 2) / virtual_users - 2 { 1 } else { self.ids + 1 };
        self.ids * virtual_users + slot
    }
}

/// A start that waits for a virtual user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) at_ns: u64,
    pub(super) phase: usize,
    pub(super) job: usize,
    pub(super) seed: u64,
}

/// A timer's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wake {
    /// A virtual user may be used again.
    Free(usize),
    /// The wait of a virtual user's step is over.
    Step(usize),
}
