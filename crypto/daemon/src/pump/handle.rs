//! The control thread's end of a pump.

use super::command::Command;
use super::mailbox::Mailbox;
use super::state::PumpState;
use crate::slow::Slow;
use crate::vital::vital;
use keyway_engine::Engine;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The control thread's handle on a pump. When it is dropped, the pump ends.
pub struct Pump {
    mailbox: Arc<Mailbox>,
    commands: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    /// Starts one, which polls a pair for so long before it parks it.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        engine: &Engine,
        slow: &Arc<Slow>,
        index: usize,
        spin: Duration,
    ) -> io::Result<Pump> {
        let mailbox = Arc::new(Mailbox::new()?);
        let (commands, received) = channel();
        let mut state = PumpState::new(engine, slow, &mailbox, received, spin)?;
        let thread = thread::Builder::new().name(format!("pump-{index}"));
        let thread = Some(thread.spawn(move || vital(|| state.run()))?);
        Ok(Pump { mailbox, commands, thread })
    }

    /// Has it do something, in order, before it says that it knows no such session or region.
    pub fn command(&self, command: Command) {
        // It fails only if the pump has ended, and then there is no client left to serve.
        let _ = self.commands.send(command);
        self.mailbox.any.store(true, Ordering::Release);
        self.mailbox.wake();
    }

    /// Says whether the clients are another daemon's. Then the end of this pump is not told to
    /// them.
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
        self.mailbox.leave_memory();
    }
}
