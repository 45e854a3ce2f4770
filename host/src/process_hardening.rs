//! Protection of a process that holds keys and passwords: it gives nothing to others of its user, nothing
//! to a core file or to swap, and no rights that it could gain.

use crate::output;
use rustix::fs::Mode;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::param::page_size;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit, umask,
};
use rustix::thread::set_no_new_privs;
use std::fs;

/// Hardens this process; to be called before it starts a thread or reads a secret. With
/// `debugging` it can still be traced, and leaves a core file where the system says so.
///
/// A refusal is no reason not to start: what is asked for is only ever less than there was.
pub fn process(debugging: bool) {
    // Files without an explicit mode are for their owner.
    umask(Mode::RWXG | Mode::RWXO);
    let _ = set_no_new_privs(true);
    if debugging {
        return;
    }
    // Before Linux 6.4 the system library asks a file of /proc for it, which a process that gives nothing to others of its
    // user may not open itself, and panics.
    let _ = page_size();
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Locks this process's memory, that of now and of later, so that the system never writes keys and
/// passwords to swap: also those that libraries keep, but not the store's pages. Pages are locked
/// when they are first used, and go back when the allocator is rid of them.
///
/// Returns whether it is so. If not, and the system has swap, it warns, if it is to.
pub fn lock_memory(warn: bool) -> bool {
    lift_lock_limit();
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    let mut locked = mlockall(all).is_ok();
    if locked && !may_lock_more() {
        let _ = munlockall();
        locked = false;
    }
    if !locked && warn && has_swap() {
        output::note(
            "warning: the system may write keys to swap: let the process lock its memory (ulimit \
             -Hl unlimited, LimitMEMLOCK=infinity of a systemd unit), or keep it from swap \
             (MemorySwapMax=0)",
        );
    }
    locked
}

/// Lifts the limit on locked memory, also for the programs that this process starts. Root may; others have
/// what they were given.
pub fn lift_lock_limit() {
    let _ = setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None });
}

/// Whether no limit will end what was begun: at a limit, allocations would fail. Who could lock
/// more than the limit has the right to (`CAP_IPC_LOCK`), and needs none.
fn may_lock_more() -> bool {
    let Some(limit) = getrlimit(Resource::Memlock).current else { return true };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib: Option<u64> = size.and_then(|size| size.trim().strip_suffix(" kB")?.parse().ok());
    kib.is_some_and(|kib| kib.saturating_mul(1024) > limit)
}

fn has_swap() -> bool {
    // The first line is a header.
    fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().nth(1).is_some())
}
