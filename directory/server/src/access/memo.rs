//! Which rules were found to hold for an entry.

use crate::limits::{ACCESS_RULES_MAX, STORED_RULES_MAX};
use std::cell::Cell;

/// Which rules were found to hold for an entry, and which not.
#[derive(Default)]
pub(crate) struct Memo {
    words: [Cell<(u64, u64)>; WORDS],
}

/// One rule more than there may be: the administrator's is added.
const WORDS: usize = (ACCESS_RULES_MAX + STORED_RULES_MAX) / 64 + 1;

impl Memo {
    /// Whether the rule at this place holds, if that is known.
    pub fn get(&self, at: u16) -> Option<bool> {
        let (word, bit) = place(at);
        let (known, holds) = self.words.get(word)?.get();
        (known & bit != 0).then_some(holds & bit != 0)
    }

    /// Notes whether the rule at this place holds.
    pub fn set(&self, at: u16, value: bool) {
        let (word, bit) = place(at);
        let Some(cell) = self.words.get(word) else { return };
        let (known, holds) = cell.get();
        cell.set((known | bit, if value { holds | bit } else { holds }));
    }
}

fn place(at: u16) -> (usize, u64) {
    (usize::from(at / 64), 1 << (at % 64))
}
