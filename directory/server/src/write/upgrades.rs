//! How many passwords are being stored anew.

use crate::limits::PASSWORD_UPGRADES_MAX;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many are under way.
#[derive(Default)]
pub(crate) struct Upgrades(AtomicUsize);

impl Upgrades {
    /// Takes a place; whether there was one.
    pub fn take(&self) -> bool {
        let one_more = |now: usize| (now < PASSWORD_UPGRADES_MAX).then_some(now + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Gives a place back.
    pub fn give_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
