//! What a process that holds keys and passwords gives away: nothing to others of its user, nothing
//! to a core file, and no rights that it could gain.

use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit, umask,
};
use rustix::thread::set_no_new_privs;

/// Hardens this process; to be called before it starts a thread or reads a secret. With
/// `debugging` it can still be traced, and leaves a core file where the system says so.
///
/// A refusal is no reason not to start: what is asked for is only ever less than there was.
pub fn process(debugging: bool) {
    // Files whose mode is nobody's care are for their owner.
    umask(Mode::RWXG | Mode::RWXO);
    let _ = set_no_new_privs(true);
    if debugging {
        return;
    }
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
