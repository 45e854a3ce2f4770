//! Limits of a process on its machine.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// How often a process that serves says that it is alive.
pub const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// Lets the process have as many open files, and so connections, as the system allows it at all.
///
/// A refusal is no reason not to start: fewer connections fit then, and a server says so.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Lets all other processes of its session run first (nice(2)): this thread, and those that it starts.
///
/// A refusal is no reason not to work.
pub fn yield_to_others() {
    let _ = rustix::process::nice(19);
}
