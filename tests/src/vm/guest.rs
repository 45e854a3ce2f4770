//! Commands in the guest, and their answers: a virtio-serial port, whose other end is `init.sh`.

use crate::Finished;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command that has been started; [`wait`](super::Vm::wait) takes its end.
#[derive(Debug)]
pub struct Job(u64);

/// The answers so far. A guest that has moved to another QEMU goes on with them.
#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_ready: bool,
    /// There will be no more answers.
    is_closed: bool,
    last: u64,
    /// A line that has not come to its end.
    partial: Vec<u8>,
    done: HashMap<u64, Finished>,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread has panicked with it")
    }
}

/// The host's end of the port.
pub struct Guest {
    port: Mutex<UnixStream>,
    reader: JoinHandle<()>,
    inbox: Arc<Inbox>,
}

impl Guest {
    pub fn new(port: UnixStream, inbox: Arc<Inbox>) -> Guest {
        let reader = {
            let (port, inbox) = (port.try_clone().expect("a socket"), Arc::clone(&inbox));
            std::thread::spawn(move || read(port, &inbox))
        };
        Guest { port: Mutex::new(port), reader, inbox }
    }

    /// Waits until it takes commands.
    pub fn wait_ready(&self, limit: Duration) -> Result<(), String> {
        self.when(limit, |state| state.is_ready.then_some(()))
    }

    pub fn start(&self, command: &str) -> Result<Job, String> {
        let number = {
            let mut state = self.inbox.state();
            state.last += 1;
            state.last
        };
        let line = format!("{number} {}\n", STANDARD.encode(command));
        let mut port = self.port.lock().expect("no thread has panicked with it");
        port.write_all(line.as_bytes()).map_err(|why| format!("the guest's port: {why}"))?;
        Ok(Job(number))
    }

    pub fn wait(&self, job: &Job, limit: Duration) -> Result<Finished, String> {
        self.when(limit, |state| state.done.remove(&job.0))
    }

    /// Where its answers come in, for a second QEMU.
    pub fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Waits until QEMU has closed its end, so that all that it had sent comes before what another one sends.
    pub fn end(self) {
        self.reader.join().expect("the reader");
        self.inbox.state().is_closed = false;
    }

    fn when<T>(
        &self,
        limit: Duration,
        mut is_there: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, String> {
        let end = Instant::now() + limit;
        let mut state = self.inbox.state();
        loop {
            if let Some(it) = is_there(&mut state) {
                return Ok(it);
            }
            let left = end.saturating_duration_since(Instant::now());
            if state.is_closed || left.is_zero() {
                let why = if state.is_closed { "the guest has gone" } else { "the guest is late" };
                return Err(why.to_owned());
            }
            let waited = self.inbox.changed.wait_timeout(state, left);
            state = waited.expect("no thread has panicked with it").0;
        }
    }
}

/// Takes answers until QEMU has gone.
fn read(mut port: UnixStream, inbox: &Inbox) {
    let mut buffer = [0; 65536];
    loop {
        let read = port.read(&mut buffer).unwrap_or(0);
        let mut state = inbox.state();
        state.is_closed = read == 0;
        state.partial.extend(&buffer[..read]);
        while let Some(end) = state.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = state.partial.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if line.trim() == "ready" {
                state.is_ready = true;
            } else if let Some((number, done)) = answer(&line) {
                state.done.insert(number, done);
            }
        }
        inbox.changed.notify_all();
        if read == 0 {
            return;
        }
    }
}

/// `NUMBER STATUS =OUTPUT =ERRORS`
fn answer(line: &str) -> Option<(u64, Finished)> {
    let mut words = line.split_whitespace();
    let (number, code) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mut text = || {
        let bytes = STANDARD.decode(words.next()?.strip_prefix('=')?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    Some((number, Finished { code, out: text()?, err: text()? }))
}
