//! Having the server that runs on a data folder read its configuration.

use crate::limits::{RELOAD_LOOK_EVERY, RELOAD_WAIT};
use keyway_config::Running;
use keyway_folder::data;
use keyway_host::failure::{Failure, plain};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Has the running server read the file, which was written, and waits for what it says; `None` if none runs.
///
/// # Errors
/// If it cannot be told, or says nothing.
pub fn have_read(folder: &Path, file: &Path) -> Result<Option<Running>, Failure> {
    let file = file.display();
    let Some(before) = Running::look(folder) else {
        return match data::user(folder) {
            None => Ok(None),
            Some(user) => Err(Failure::new(format!(
                "{file} is written; {user} uses the folder and does not say what it has read"
            ))),
        };
    };
    let pid = i32::try_from(before.holder).ok().and_then(Pid::from_raw);
    let told = pid.map(|pid| kill_process(pid, Signal::HUP));
    if let Some(Err(why)) = told {
        let why = plain(&why.into());
        return Err(Failure::new(format!(
            "{file} is written, but process {} cannot be told: {why}; send it SIGHUP",
            before.holder
        )));
    }
    let begun = Instant::now();
    while begun.elapsed() < RELOAD_WAIT {
        match Running::look(folder) {
            Some(now) if (now.process, now.reads) != (before.process, before.reads) => {
                return Ok(Some(now));
            }
            _ => thread::sleep(RELOAD_LOOK_EVERY),
        }
    }
    Err(Failure::new(format!(
        "{file} is written, but the server has not said within {} s whether it takes it; its error.log may",
        RELOAD_WAIT.as_secs()
    )))
}
