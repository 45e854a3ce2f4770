//! How long a daemon may say nothing.

use super::connection::Connection;
use crate::limits::SILENCE;
use std::time::Instant;

/// Since when requests wait and none is answered, as far as the waiting thread has looked.
#[derive(Default)]
pub(super) struct Watchdog(Option<Instant>);

impl Watchdog {
    /// One was answered.
    #[inline]
    pub fn answered(&mut self) {
        self.0 = None;
    }

    /// Called now and then while nothing is answered: has the daemon asked whether it is alive, as
    /// often as that takes too long.
    pub fn look(&mut self, connection: &Connection) {
        if self.0.get_or_insert_with(Instant::now).elapsed() >= SILENCE {
            connection.ping();
            self.0 = None;
        }
    }
}
