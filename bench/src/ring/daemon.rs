//! The daemon under measurement: `keyway cryptod` as a user starts it, with one thread that polls,
//! on the second processor.

use super::{CLIENT, DAEMON, run_on, text};
use crate::process::{Process, processor_time};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::Engine;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Ended when it is dropped.
pub struct Daemon {
    process: Process,
    socket: PathBuf,
}

impl Daemon {
    /// Starts it on this data folder, and waits until it serves.
    pub fn start(folder: &Path, arguments: &[&str]) -> Result<Daemon, String> {
        // A child stays on the processor of who starts it.
        run_on(DAEMON)?;
        let daemon = Daemon::start_anywhere(folder, arguments);
        run_on(CLIENT)?;
        daemon
    }

    /// As [`Daemon::start`], on the processors that this thread has.
    pub fn start_anywhere(folder: &Path, arguments: &[&str]) -> Result<Daemon, String> {
        let mut command = Command::new(keyway_tests::keyway());
        command.args(["cryptod", "--json", "--pumps", "1", "--data"]).arg(folder).args(arguments);
        let mut process = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::null()))?;
        let output = process.child().stdout.take().ok_or("cryptod has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(text)?;
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let socket = ready["socket"].as_str().ok_or("cryptod does not say that it is ready")?;
        Ok(Daemon { process, socket: socket.into() })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Processor time that it has spent so far.
    pub fn time(&self) -> Duration {
        processor_time(&[self.process.id()])
    }

    /// An engine with the usual drivers that is a client of it by this name; its driver is
    /// `remote`.
    pub fn client(&self, name: &str) -> Result<(Engine, Remote), String> {
        let engine = keyway_drivers::engine();
        let options = RemoteOptions::new(&self.socket, name);
        let remote = Remote::connect(&engine, options).map_err(text)?;
        Ok((engine, remote))
    }

    /// Ends it without a warning.
    pub fn kill(mut self) -> Result<(), String> {
        self.process.child().kill().map_err(text)
    }
}
