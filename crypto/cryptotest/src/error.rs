//! Why something could not be begun, or was left out.

use keyway_engine::Algorithm;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why something could not be begun. The remedy depends on how the caller was asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system gives no threads for a driver.
    Driver {
        /// Its name.
        name: &'static str,
        /// Why.
        why: io::Error,
    },
    /// A daemon does not let us in, or is not there.
    Remote {
        /// Where.
        socket: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The engine does not take a driver.
    Register {
        /// Its name.
        driver: String,
        /// Why.
        why: keyway_engine::Error,
    },
    /// There is no driver of this name.
    NoSuchDriver {
        /// The name.
        name: String,
        /// Those that are there.
        there: Vec<String>,
    },
    /// So many operations take too much memory.
    Memory {
        /// Threads.
        threads: usize,
        /// Operations under way of each.
        in_flight: usize,
        /// Length of the largest, in bytes.
        operation_bytes: usize,
        /// The memory they take, in MiB.
        needed_mib: usize,
        /// The memory they may take, in MiB.
        allowed_mib: usize,
    },
    /// The conformance suite was ended early.
    Interrupted {
        /// Checks that were done.
        done: usize,
        /// Checks in all.
        total: usize,
    },
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Driver { name, why } => write!(f, "cannot make the driver {name}: {why}"),
            Error::Remote { socket, why } => write!(
                f,
                "cannot use the cryptod at {}: {why}; keyway cryptod starts one",
                socket.display()
            ),
            Error::Register { driver, why } => write!(f, "driver {driver}: {why}"),
            Error::NoSuchDriver { name, there } => {
                write!(f, "there is no driver {name}; there are {}", there.join(", "))
            }
            Error::Memory { threads, in_flight, operation_bytes, needed_mib, allowed_mib } => {
                write!(
                    f,
                    "{threads} threads with {in_flight} operations in flight of {operation_bytes} bytes \
                 each take {needed_mib} MiB of memory, more than {allowed_mib}"
                )
            }
            Error::Interrupted { done, total } => {
                write!(f, "interrupted after {done} of {total} checks")
            }
        }
    }
}

/// Why some work is not done on some driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// The engine was not told to do legacy algorithms.
    Legacy(Algorithm),
    /// Only the caller can have its key.
    NeedsRsaKey,
    /// The engine or the driver refuses it.
    Engine(keyway_engine::Error),
    /// Operations failed while they were measured.
    Failed {
        /// Bytes that each worked on.
        bytes: usize,
        /// How many.
        operations: u64,
        /// With which error.
        name: &'static str,
    },
}

impl From<keyway_engine::Error> for LeftOut {
    fn from(why: keyway_engine::Error) -> LeftOut {
        match why {
            keyway_engine::Error::Disabled(algorithm) => LeftOut::Legacy(algorithm),
            why => LeftOut::Engine(why),
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOut::Legacy(algorithm) => write!(f, "{algorithm} is legacy"),
            LeftOut::NeedsRsaKey => f.write_str("it needs an RSA key"),
            LeftOut::Engine(why) => why.fmt(f),
            LeftOut::Failed { bytes, operations, name } => {
                write!(f, "{bytes} bytes: {operations} operations failed ({name})")
            }
        }
    }
}
