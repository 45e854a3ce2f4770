//! How an error of `keyway crypto` is told.

use keyway_cryptotest::Error;
use keyway_host::failure::{Failure, plain};
use keyway_host::output::grouped;

/// An error as a failure of the program, with the flag that would help.
pub fn failed(error: Error) -> Failure {
    match error {
        Error::Driver { name, why } => {
            Failure::new(format!("cannot make the driver {name}: {}", plain(&why)))
        }
        Error::Register { .. } => Failure::usage(format!("{error}; leave out a --with")),
        Error::NoSuchDriver { .. } => Failure::usage(format!("{error}, and --with registers more")),
        Error::Memory { threads, in_flight, operation_bytes, needed_mib, allowed_mib } => {
            Failure::usage(format!(
                "{threads} threads with {in_flight} operations in flight of {} bytes each take \
                     {} MiB of memory, more than {}; take less of one",
                grouped(operation_bytes as u64),
                grouped(needed_mib as u64),
                grouped(allowed_mib as u64),
            ))
        }
        Error::Interrupted { done, total } => {
            let (done, total) = (grouped(done as u64), grouped(total as u64));
            Failure::new(format!("interrupted after {done} of {total} checks"))
        }
        error => Failure::new(error),
    }
}
