//! How a sleeping pump learns of commands and of slow work that is done.

use keyway_ring::{Alarm, Armed};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32};

pub struct Mailbox {
    pub bell: Alarm,
    pub asleep: AtomicU32,
    /// Whether there are commands.
    pub any: AtomicBool,
    pub ended: AtomicBool,
    /// Whether another daemon serves the clients from now on.
    pub handed_over: AtomicBool,
}

impl Mailbox {
    pub fn new() -> io::Result<Self> {
        Ok(Mailbox {
            bell: Alarm::new()?,
            asleep: AtomicU32::new(0),
            any: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            handed_over: AtomicBool::new(false),
        })
    }

    pub fn wake(&self) {
        if Armed(&self.asleep).take() {
            self.bell.ring();
        }
    }
}
