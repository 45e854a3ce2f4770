//! `keyway crypto`: the engine and its drivers, looked at from outside: what there is, whether it
//! is right, how fast it is. The work is that of `keyway-cryptotest`; here are its flags and its
//! words.
//!
//! Each command makes an engine of its own. Results go to standard output; that nobody reads them
//! any more is no failure. The first Ctrl-C ends the measuring and shows what there is by then.

mod arguments;
mod bench;
mod list;
mod shared;
mod test;

pub use arguments::Crypto;

use crate::failure::{Failure, plain};
use crate::output::grouped;
use keyway_cryptotest::Error;

/// Does what the arguments ask for. Says whether all was right.
///
/// # Errors
/// If it could not be done.
pub fn run(command: &Crypto) -> Result<bool, Failure> {
    match command {
        Crypto::List(arguments) => list::run(arguments),
        Crypto::Test(arguments) => test::run(arguments),
        Crypto::Bench(arguments) => bench::run(arguments),
    }
}

/// What went wrong, and with which flag it would not.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Driver { name, why } => {
                Failure::new(format!("cannot make the driver {name}: {}", plain(&why)))
            }
            Error::Register { .. } => Failure::usage(format!("{error}; leave out a --with")),
            Error::NoSuchDriver { .. } => {
                Failure::usage(format!("{error}, and --with registers more"))
            }
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
}
