//! What the process may use of the system.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets the process have as many open files, and so connections, as the system allows it at all.
///
/// A refusal is no reason not to start: fewer connections fit then.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}
