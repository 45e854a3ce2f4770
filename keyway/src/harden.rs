//! What a process that holds keys and passwords gives away: nothing to others of its user, nothing
//! to a core file or to swap, and no rights that it could gain.

use rustix::fs::Mode;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit, umask,
};
use rustix::thread::set_no_new_privs;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether memory is locked, which the system does not tell.
static LOCKED: AtomicBool = AtomicBool::new(false);

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

/// Locks this process's memory, that of now and of later, so that the system never writes keys and
/// passwords to swap: also those that libraries keep. Pages count from their first use. They stay
/// with the process then, since an allocator cannot hand back parts of what is locked.
///
/// Returns a warning if that is forbidden and the system has swap.
pub fn lock_memory() -> Option<String> {
    let unlimited = Rlimit { current: None, maximum: None };
    // Root may lift the limit; others have what they were given.
    let _ = setrlimit(Resource::Memlock, unlimited);
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    let locked = mlockall(all).is_ok();
    if locked && !may_lock_more() {
        let _ = munlockall();
    } else {
        LOCKED.store(locked, Ordering::Relaxed);
    }
    (!LOCKED.load(Ordering::Relaxed) && has_swap()).then(|| {
        "warning: the system may write keys to swap: let the process lock its memory (ulimit -Hl \
         unlimited, LimitMEMLOCK=infinity of a systemd unit), or keep it from swap (MemorySwapMax=0)"
            .to_owned()
    })
}

/// Whether no limit will end what was begun: at a limit, allocations would fail. Who could lock more
/// than the limit has the right to (`CAP_IPC_LOCK`), and needs none.
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

/// Calls what maps a store, whose pages are to be the system's to keep or to drop.
pub fn beside_locked_memory<R>(map: impl FnOnce() -> R) -> R {
    let locked = LOCKED.load(Ordering::Relaxed);
    if locked {
        // What is locked stays so; what comes is not.
        let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT);
    }
    let result = map();
    if locked {
        let _ = mlockall(MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    }
    result
}
