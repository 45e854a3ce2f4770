//! `keyway config`: settings, shown, changed and compared.

mod accept;
mod arguments;
mod check;
mod diff;
mod get;
mod set;
mod start;
mod told;

pub use arguments::Config;
use arguments::{Accept, Diff, Get, Restore, Set};
use keyway_config::Running;
use keyway_config::{Settings, settings, text_of};
use keyway_folder::data::{self, name};
use keyway_folder::user;
use keyway_host::failure::Failure;
use std::path::Path;

/// Does what the arguments ask for.
///
/// # Errors
/// What could not be done, and why.
pub fn run(command: &Config) -> Result<(), Failure> {
    match command {
        Config::Get(Get { data, .. }) | Config::Diff(Diff { old: None, data, .. }) => {
            data::may_look(&data.folder)?;
        }
        Config::Set(Set { data, .. })
        | Config::Accept(Accept { data, .. })
        | Config::Restore(Restore { data, .. }) => user::become_owner(&data.folder)?,
        Config::Diff(_) | Config::Check(_) => {}
    }
    match command {
        Config::Get(arguments) => get::run(arguments),
        Config::Set(arguments) => set::run(arguments),
        Config::Diff(arguments) => diff::run(arguments),
        Config::Check(arguments) => check::run(arguments),
        Config::Accept(arguments) => accept::accept(arguments),
        Config::Restore(arguments) => accept::restore(arguments),
    }
}

/// The settings of a file.
fn of_file(file: &Path) -> Result<Settings, Failure> {
    of_text(file, &data::read(file)?)
}

/// The settings of a data folder's file.
fn of_folder(folder: &Path) -> Result<Settings, Failure> {
    of_text(&folder.join(name::CONFIGURATION), &text_of(folder)?)
}

fn of_text(file: &Path, text: &str) -> Result<Settings, Failure> {
    settings(text).map_err(|why| Failure::new(format!("{}: {why}", file.display())))
}

/// The settings in force, and those that wait for the next start.
struct InForce {
    settings: Settings,
    waiting: Settings,
    is_running: bool,
}

impl InForce {
    fn look(folder: &Path) -> Result<InForce, Failure> {
        let Some(running) = Running::look(folder) else {
            let settings = of_folder(folder)?;
            return Ok(InForce { settings, waiting: Settings::new(), is_running: false });
        };
        let mut waiting = of_folder(folder).unwrap_or_default();
        waiting.retain(|key, _| running.waiting.contains(key));
        Ok(InForce { settings: running.settings, waiting, is_running: true })
    }
}
