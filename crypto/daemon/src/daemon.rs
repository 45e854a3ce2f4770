//! A daemon, as the program that it runs in has it.

use crate::options::{HandedOver, Options};
use crate::server::{Before, Server};
use crate::vital::vital;
use keyway_engine::Engine;
use keyway_ring::Alarm;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A daemon that serves. Dropping it ends its threads and, unless another one has taken over, tells
/// its clients.
pub struct Daemon {
    ended: Arc<(AtomicBool, Alarm)>,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Serves the clients that connect to a [listening](crate::listen) socket, with this engine.
    /// When another daemon has taken over, `handed_over` is called.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        engine: &Engine,
        listener: OwnedFd,
        options: Options,
        handed_over: HandedOver,
    ) -> io::Result<Daemon> {
        let ended = Arc::new((AtomicBool::new(false), Alarm::new()?));
        let mut server = Server::new(engine, listener, options, &ended, handed_over)?;
        server.start_machines(Before::default())?;
        Self::run(server, ended)
    }

    /// Takes the place of the daemon that listens at a path: its clients, with all they have, and
    /// its socket. They notice nothing but a pause.
    ///
    /// # Errors
    /// The system's; `PermissionDenied` if the other daemon does not let this process, and
    /// `InvalidData` if it hands over something that makes no sense. It then goes on.
    ///
    /// `options` is called when the other daemon has given up its key store, so that this one can
    /// open it.
    pub fn take_over(
        engine: &Engine,
        path: &Path,
        options: impl FnOnce() -> io::Result<Options>,
        handed_over: HandedOver,
    ) -> io::Result<Daemon> {
        let ended = Arc::new((AtomicBool::new(false), Alarm::new()?));
        let server = Server::take_over(engine, path, options, &ended, handed_over)?;
        Self::run(server, ended)
    }

    fn run(mut server: Server, ended: Arc<(AtomicBool, Alarm)>) -> io::Result<Daemon> {
        let thread = thread::Builder::new().name("control".to_owned());
        let thread = Some(thread.spawn(move || vital(|| server.run()))?);
        Ok(Daemon { ended, thread })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.ended.0.store(true, Ordering::Release);
        self.ended.1.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
