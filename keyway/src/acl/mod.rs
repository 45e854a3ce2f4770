//! `keyway acl`: who may do what, why, and what another file would change.

mod arguments;
mod diff;
mod explain;
pub mod look;
mod rules;
mod who_can;

pub use arguments::Acl;
use keyway_host::failure::Failure;

/// Does what the arguments ask for.
///
/// # Errors
/// If a file or the data folder cannot be read, or what is asked for is not there.
pub fn run(command: &Acl) -> Result<(), Failure> {
    match command {
        Acl::Explain(arguments) => explain::run(arguments),
        Acl::WhoCan(arguments) => who_can::run(arguments),
        Acl::Diff(arguments) => diff::run(arguments),
    }
}
