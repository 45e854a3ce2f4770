//! Read transactions that have ended and are used again.
//!
//! Beginning one costs as much as a look-up: a lock of LMDB's, memory, and the head of each table read anew.
//! So one that has ended is kept here and given to the next reader, while it sees the last state.
//!
//! All that are kept see one state, the latest that a reader or the committer has met. A reader that begins a
//! transaction of its own meets the state of that one before it looks at it, and the committer meets its own
//! state before it answers. Both end what sees an earlier one, and from then on no such transaction comes back.
//! So a reader never sees less than a reader before it or than what was acknowledged, and when the next change
//! begins no page is held for what is kept.

use heed::{RoTxn, WithoutTls};
use keyway_lock::Unpoisoned;
use std::sync::Mutex;

/// A read transaction that may move between threads.
pub(crate) type ReadTxn = RoTxn<'static, WithoutTls>;

/// Those that are kept.
pub(crate) struct IdleReads {
    kept_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The latest state of the store that was met, by the number of its transaction.
    met: usize,
    /// All of them see that state.
    kept: Vec<ReadTxn>,
}

impl IdleReads {
    /// Keeps so many at most.
    pub fn new(kept_max: usize) -> IdleReads {
        IdleReads { kept_max, state: Mutex::default() }
    }

    /// One that is kept.
    pub fn take(&self) -> Option<ReadTxn> {
        self.state.lock().unpoisoned().kept.pop()
    }

    /// Notes that there is this state, by the number of its transaction. Those that see an earlier one end.
    pub fn meet(&self, version: usize) {
        let mut state = self.state.lock().unpoisoned();
        if version <= state.met {
            return;
        }
        state.met = version;
        let earlier = std::mem::take(&mut state.kept);
        drop(state);
        drop(earlier);
    }

    /// Keeps one that a reader has no more use for, or ends it.
    pub fn give(&self, txn: ReadTxn) {
        let mut state = self.state.lock().unpoisoned();
        if txn.id() == state.met && state.kept.len() < self.kept_max {
            return state.kept.push(txn);
        }
        drop(state);
        drop(txn);
    }

    /// Calls with how many are kept; none comes or goes meanwhile.
    pub fn beside<R>(&self, look: impl FnOnce(usize) -> R) -> R {
        look(self.state.lock().unpoisoned().kept.len())
    }
}
