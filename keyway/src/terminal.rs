//! The events at a terminal, and that it has gone.

use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, IsTerminal, stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The terminal that keys come from: standard input, or, where that is something else, the one that the
/// process belongs to.
pub struct Keys(Option<File>);

impl Keys {
    /// Those of this process.
    ///
    /// # Errors
    /// The system's, if there is no terminal.
    pub fn open() -> io::Result<Keys> {
        match stdin().is_terminal() {
            true => Ok(Keys(None)),
            false => File::open("/dev/tty").map(|terminal| Keys(Some(terminal))),
        }
    }

    /// The next event, if it comes within this time.
    ///
    /// # Errors
    /// The terminal's; that it has gone. Crossterm, asked for a key of a terminal that was closed,
    /// looks for it for ever, with all of a processor.
    pub fn next(&self, within: Duration) -> io::Result<Option<Event>> {
        let input = stdin();
        let terminal: BorrowedFd<'_> = match &self.0 {
            None => input.as_fd(),
            Some(terminal) => terminal.as_fd(),
        };
        let mut asked = [PollFd::new(&terminal, PollFlags::IN)];
        let time = Timespec::try_from(within).map_err(io::Error::other)?;
        match poll(&mut asked, Some(&time)) {
            // A signal: the size may be another.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
        let [seen] = asked;
        if seen.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::other("it was closed"));
        }
        match event::poll(Duration::ZERO)? {
            true => event::read().map(Some),
            false => Ok(None),
        }
    }
}
