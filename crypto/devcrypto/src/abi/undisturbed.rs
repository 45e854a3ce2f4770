//! What may not come between this library's steps: the end of the thread by another (`pthread_cancel`), which unwinds
//! it, and the program's handlers of signals, which may use the device too, or leave by `siglongjmp` and never come
//! back. Both wait for the end of the call, as for that of a call which the kernel does not interrupt.

use rustix::io::Errno;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// `PTHREAD_CANCEL_DISABLE` of glibc and musl.
const CANCEL_DISABLE: c_int = 1;
/// Signals that the thread itself causes. They come at once or, blocked, end the process.
const OWN: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

// Where a program lets its threads be cancelled at any instruction, the call that allows it again unwinds.
unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Runs the body of a function that a program calls: no panic goes on there, and neither the end of the thread nor a
/// handler of signals comes between.
pub fn guard<T>(body: impl FnOnce() -> T) -> Result<T, Errno> {
    let before = Undisturbed::begin();
    let done = catch_unwind(AssertUnwindSafe(body)).map_err(|_| Errno::IO);
    before.end();
    done
}

/// The thread's state before.
struct Undisturbed {
    cancel: c_int,
    /// `None` if it could not be changed.
    signals: Option<libc::sigset_t>,
}

impl Undisturbed {
    /// From here on.
    fn begin() -> Undisturbed {
        let mut cancel = 0;
        // SAFETY: it writes the number that it is given room for.
        unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut cancel) };
        let blocked = all_but_own();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: one is a set, and for the other there is room. Those that libc needs itself it leaves open.
        let status = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, before.as_mut_ptr())
        };
        // SAFETY: it has written all of it, as it says.
        let signals = (status == 0).then(|| unsafe { before.assume_init() });
        Undisturbed { cancel, signals }
    }

    /// Until here. Handlers run now, which may leave by a jump: nothing is left to be done then.
    fn end(self) {
        // SAFETY: the state is one that this thread had; the system need not say what it was meanwhile.
        unsafe { pthread_setcancelstate(self.cancel, ptr::null_mut()) };
        if let Some(signals) = &self.signals {
            // SAFETY: it is a set, and the system need not say what it was meanwhile.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, signals, ptr::null_mut()) };
        }
    }
}

fn all_but_own() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: there is room for what it writes, which is all of it.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: as above.
    let mut set = unsafe { set.assume_init() };
    for signal in OWN {
        // SAFETY: it is a set, and a number of a signal.
        unsafe { libc::sigdelset(&raw mut set, signal) };
    }
    set
}
