//! The memory of devices that may go while a process has it mapped.
//!
//! When a virtual machine's device is taken out, an access to its memory is a `SIGBUS`. The handler here puts zeros in
//! the place of that memory and notes it, so that the access ends and its thread sees later that all is over. Signals
//! for other places go on to the handler that was there before. A program that sets a handler of its own afterwards has
//! it.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// Most mappings at a time: two of each connection.
const PLACES: usize = 256;

/// A mapping, as the handler finds it.
struct Place {
    /// The process that has it; 0 for none.
    process: AtomicI32,
    start: AtomicUsize,
    bytes: AtomicUsize,
    lost: AtomicBool,
}

impl Place {
    const fn none() -> Place {
        Place {
            process: AtomicI32::new(0),
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
        }
    }
}

static ALL: [Place; PLACES] = [const { Place::none() }; PLACES];
/// What was done about the signal before.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();
/// A process number that none has: the place is being filled in.
const TAKEN: i32 = -1;

/// A mapping that is watched.
pub struct Watched(&'static Place);

impl Watched {
    /// Watches a mapping of this process.
    ///
    /// # Errors
    /// `QuotaExceeded` if too many are watched; the system's, if it takes no handler.
    pub fn new(start: usize, bytes: usize) -> io::Result<Watched> {
        if !has_handler() {
            return Err(io::Error::other("the system takes no handler of SIGBUS"));
        }
        let free = |place: &&Place| {
            place.process.compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let place = ALL.iter().find(free).ok_or(io::ErrorKind::QuotaExceeded)?;
        place.start.store(start, Ordering::Relaxed);
        place.bytes.store(bytes, Ordering::Relaxed);
        place.lost.store(false, Ordering::Relaxed);
        place.process.store(std::process::id() as i32, Ordering::Release);
        Ok(Watched(place))
    }

    /// Whether zeros have taken its place.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }

    /// The mapping is about to be gone.
    pub fn end(&self) {
        self.0.process.store(0, Ordering::Release);
    }
}

fn has_handler() -> bool {
    let before = BEFORE.get_or_init(|| {
        let mut before = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: there is room for the answer, and nothing is changed.
        let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) };
        // SAFETY: the system has filled it in.
        (asked == 0).then(|| unsafe { before.assume_init() })
    });
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    before.is_some() && *INSTALLED.get_or_init(install)
}

fn install() -> bool {
    // SAFETY: zeros are an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the handler does only what a handler of signals may.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) == 0 }
}

/// Makes system calls and uses atomics, and neither allocates nor locks.
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the system hands a valid one to a handler with SA_SIGINFO.
    let told = unsafe { &*info };
    // SAFETY: that of a bus error has an address.
    let at = unsafe { told.si_addr() }.addr();
    // SAFETY: it only asks for a number.
    let process = unsafe { libc::getpid() };
    for place in &ALL {
        let (start, bytes) =
            (place.start.load(Ordering::Relaxed), place.bytes.load(Ordering::Relaxed));
        if place.process.load(Ordering::Acquire) != process || at < start || at - start >= bytes {
            continue;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let here = ptr::without_provenance_mut(start);
        // SAFETY: the place is a mapping of this process, whose owner takes any bytes there, and ends the watch before it
        // unmaps it.
        let mapped = unsafe { libc::mmap(here, bytes, access, flags, -1, 0) };
        if mapped != libc::MAP_FAILED {
            place.lost.store(true, Ordering::Release);
            return;
        }
    }
    hand_on(signal, info, context);
}

/// Has another handler do it, or the system, when the instruction is tried again.
fn hand_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(Some(before)) = BEFORE.get() else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: it is the action that the system gave.
            unsafe { libc::sigaction(signal, &raw const *before, ptr::null_mut()) };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: an action with SA_SIGINFO has a handler of that kind.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: an action without SA_SIGINFO has a handler of this kind.
            let handler =
                unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::SharedMemory;
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    #[test]
    fn a_device_that_goes_leaves_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 << 10).unwrap();
        let cut = |file: &File| file.set_len(0).unwrap();
        let device: OwnedFd = file.try_clone().unwrap().into();
        let memory = Arc::new(SharedMemory::of_device(&device, 16 << 10).unwrap());
        let part = memory.part(4096..8192, None).unwrap();
        part.write(0, b"there").unwrap();
        let mut seen = [0; 5];
        memory.read(4096, &mut seen).unwrap();
        assert_eq!((&seen, part.is_lost(), part.has_futexes()), (b"there", false, false));
        cut(&file);
        part.read(0, &mut seen).unwrap();
        assert_eq!((seen, part.is_lost(), memory.is_lost()), ([0; 5], true, true));
        part.write(0, b"still").unwrap();
        drop((part, memory));
        // The place is free for another.
        file.set_len(4096).unwrap();
        assert!(!SharedMemory::of_device(&device, 4096).unwrap().is_lost());
    }
}
