//! How an error of `keyway quic` is told.

use keyway_host::failure::{Failure, plain};
use keyway_quic::Error;

/// An error as a failure of the program, with the flag that would help.
pub fn failed(error: &Error) -> Failure {
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
