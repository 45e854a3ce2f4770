//! The daemon that does the program's work.

use keyway_client::{ClientError, Fault, KeyClient, environment, socket_path};
use once_cell::race::OnceBox;
use rustix::io::Errno;
use std::fmt;

/// If it has a value, errors are printed to standard error: the device's requests have numbers only.
const DEBUG_VARIABLE: &str = "KEYWAY_DEVCRYPTO_DEBUG";

/// The client of the daemon that the environment names.
pub fn client() -> &'static KeyClient {
    static CLIENT: OnceBox<KeyClient> = OnceBox::new();
    CLIENT.get_or_init(|| Box::new(KeyClient::new(socket_path(None), "devcrypto")))
}

/// Why the device cannot be opened: without a daemon it is not there, as on a machine without the kernel's.
pub fn not_opened(why: &ClientError) -> Errno {
    match failed(why) {
        Errno::IO => Errno::NOENT,
        other => other,
    }
}

/// The number of a failure. The reason goes to standard error if it was asked for.
pub fn failed(why: &ClientError) -> Errno {
    say(format_args!("{why}"));
    match why.fault {
        Fault::Unreachable | Fault::Silent | Fault::Daemon => Errno::IO,
        Fault::Busy => Errno::BUSY,
        Fault::Refused => Errno::ACCESS,
        Fault::Key | Fault::Caller => Errno::INVAL,
    }
}

/// Says why something is not done, to standard error, if that was asked for. In one piece, between those of other
/// processes, and without a lock that a thread of a forked child's parent may hold.
pub fn say(why: fmt::Arguments<'_>) {
    if environment(DEBUG_VARIABLE).is_some() {
        let line = format!("keyway-devcrypto: {why}\n");
        // It says so as far as it can.
        let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    }
}
