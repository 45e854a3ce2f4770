//! `keyway quic`: files and measurements over QUIC, protected by the engine. The work is that of
//! `keyway-quic`; here are its flags and its words.
//!
//! Results go to standard output, progress and remarks to standard error.

mod arguments;
mod get;
mod host;
mod perf;
mod serve;

pub use arguments::Quic;

use crate::failure::{Failure, plain};
use keyway_quic::Error;

/// Does what the arguments ask for. Says whether all of it could be done.
///
/// # Errors
/// If it could not be begun, or not be finished.
pub fn run(command: &Quic) -> Result<bool, Failure> {
    match command {
        Quic::Serve(arguments) => serve::run(arguments).map(|()| true),
        Quic::Get(arguments) => get::run(arguments),
        Quic::Perf(arguments) => perf::run(arguments).map(|()| true),
    }
}

/// What went wrong, and with which flag it would not.
impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        match error {
            Error::NoSuchGroup => Failure::usage(format!("{error} (--group)")),
            Error::Mtu(mtu, why) => Failure::new(format!("--mtu {mtu}: {why}")),
            Error::Socket(why) => Failure::new(format!("cannot open a socket: {}", plain(why))),
            Error::NobodyListens(_) => {
                Failure::new(format!("{error}; keyway quic serve starts a server"))
            }
            Error::File { path, why } => Failure::system("write", path, why),
            Error::Output(why) => Failure::output(why),
            _ if error.is_distrust() => Failure::new(format!(
                "{error}; name its certificate authority with --ca FILE, or take any certificate \
                 with --insecure"
            )),
            _ => Failure::new(error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::from(&error)
    }
}
