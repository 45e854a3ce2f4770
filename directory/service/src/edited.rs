//! A configuration file that was changed, and how the running server takes it.

use crate::told;
use keyway_config::{From, Running};
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use std::path::Path;

/// The configuration file of a data folder, which was changed.
pub struct Edited<'a> {
    /// The data folder.
    pub folder: &'a Path,
    /// The text before.
    pub old: &'a str,
    /// The text that is in the file.
    pub new: &'a str,
}

impl Edited<'_> {
    /// Has the running server read it, and waits for what it says; `None` if none runs. A change that it refuses is
    /// undone.
    ///
    /// # Errors
    /// If it is refused, or cannot be undone then.
    pub fn have_taken(&self) -> Result<Option<Running>, Failure> {
        let running = told::have_read(self.folder, &self.folder.join(name::CONFIGURATION))?;
        match running.as_ref().and_then(|running| running.refused.as_ref()) {
            Some(why) => Err(self.undo(why)),
            None => Ok(running),
        }
    }

    fn undo(&self, why: &str) -> Failure {
        let file = self.folder.join(name::CONFIGURATION);
        let undone = data::lock_edits(self.folder).and_then(|_lock| {
            match data::read(&file)? == self.new {
                true => data::replace(&file, self.old),
                // Another process has changed it since.
                false => Ok(()),
            }
        });
        match undone {
            Ok(()) => Failure::new(format!("not changed: the server does not take it: {why}")),
            Err(also) => Failure::new(format!(
                "the server does not take it ({why}), and the file cannot be put back: {also}"
            )),
        }
    }
}

/// How a setting that was written is taken.
#[derive(Clone, Copy, Debug)]
pub enum Taken<'r> {
    /// No server runs.
    NotRunning,
    /// It has taken it.
    Now,
    /// It waits for the next start.
    Later,
    /// This flag of the running server wins.
    Flag(&'r str),
}

impl<'r> Taken<'r> {
    /// How the running server has taken a setting.
    pub fn of(running: Option<&'r Running>, key: &str) -> Taken<'r> {
        let Some(running) = running else { return Taken::NotRunning };
        match running.settings.get(key).map(|setting| &setting.from) {
            Some(From::Flag(flag)) => Taken::Flag(flag),
            _ if running.waiting.iter().any(|waiting| waiting == key) => Taken::Later,
            _ => Taken::Now,
        }
    }
}
