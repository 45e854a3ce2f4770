//! A wish that work ends, a signal's or another thread's, heard by work that looks now and then.

use crate::failure::Failure;
use crate::signals::{STATUS_AT_ONCE, Second, at_end};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an end was asked for.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Catches signals from now on. The first one is seen by the code that checks.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(second: Second) -> Result<Stop, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let told = asked.clone();
        at_end(second, move || told.store(true, Ordering::Relaxed))?;
        Ok(Stop(asked))
    }

    /// One that no signal asks for.
    pub fn by_hand() -> Stop {
        Stop(Arc::new(AtomicBool::new(false)))
    }

    /// Asks the work to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The text to print then.
    pub fn failure(line: &str) -> Failure {
        Failure::with_status(line, STATUS_AT_ONCE as u8)
    }
}

/// Input or output that fails once an end is asked for.
pub struct Stoppable<'a, T> {
    inner: T,
    stop: Option<&'a Stop>,
}

impl<'a, T> Stoppable<'a, T> {
    /// Goes through to `inner`; without `stop` always.
    pub fn new(inner: T, stop: Option<&'a Stop>) -> Stoppable<'a, T> {
        Stoppable { inner, stop }
    }

    fn goes_on(&self) -> io::Result<()> {
        match self.stop.is_some_and(Stop::is_asked) {
            true => Err(io::Error::other("it was stopped")),
            false => Ok(()),
        }
    }
}

impl<T: Read> Read for Stoppable<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.goes_on()?;
        self.inner.read(buffer)
    }
}

impl<T: Write> Write for Stoppable<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.goes_on()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
