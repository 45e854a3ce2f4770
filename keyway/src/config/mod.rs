//! `keyway config`: settings, shown, changed and compared.

mod accept;
mod arguments;
mod check;
mod diff;
mod get;
mod set;

pub use arguments::Config;
use arguments::{Accept, Diff, Get, Restore, Set};
use keyway_folder::data::{self};
use keyway_folder::user;
use keyway_host::failure::Failure;

/// Does what the arguments ask for.
///
/// # Errors
/// The action that could not be done, and why.
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
