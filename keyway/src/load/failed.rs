//! How an error of `keyway load` is told.

use keyway_host::failure::{Failure, plain};
use keyway_load::Error;

/// An error as a failure of the program, with the flag that would help.
pub fn failed(error: Error) -> Failure {
    match &error {
        Error::File { verb, path, why } => Failure::system(verb, path, why),
        Error::System(what, why) => Failure::new(format!("cannot {what}: {}", plain(why))),
        Error::Usage(_) | Error::Scenario { .. } | Error::Template(_) => Failure::usage(error),
        _ => Failure::new(error),
    }
}
