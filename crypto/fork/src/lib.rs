//! Tells a process from those that it was forked from, and whether its environment is to be believed.
//!
//! State that `fork` copies and two processes must not go on with (a connection, a counter of nonces) is
//! made with the [`Generation`] of its process, and looked at again before it is used:
//! [`Generation::is_current`] is two loads. No handler has to be called and no system call made, so it also
//! holds for a `fork` that a library or another language makes.
//!
//! A page that the system hands to a forked child as zeros (`MADV_WIPEONFORK`) has the generation.
//! A caller that finds zero there is the first to look in a child, and begins the child's
//! generation: one more than all before it, so no process has the generation of one that it was
//! forked from. Siblings may have equal generations, and have nothing of each other's.

use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A process, as those that are forked from it know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

/// Where the word is that has it: in the page, or one of these two.
static WORD: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NOT_LOOKED).cast_mut());
/// Stands for the page before the first look.
static NOT_LOOKED: AtomicU64 = AtomicU64::new(0);
/// Stands for the page where the system gives none: then the process is asked for its number each time.
static NO_PAGE: AtomicU64 = AtomicU64::new(0);
/// The highest generation that this process, or one that it was forked from, has had.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Whether this process has got rights from its file (setuid, setgid, capabilities), and was started by a user who has
/// not. Such a program believes nothing that its environment says (`AT_SECURE`, as `secure_getenv`).
pub fn is_privileged() -> bool {
    unsafe extern "C" {
        fn getauxval(kind: std::ffi::c_ulong) -> std::ffi::c_ulong;
    }
    const AT_SECURE: std::ffi::c_ulong = 23;
    // SAFETY: it only looks a number up in what the kernel has handed to the process.
    unsafe { getauxval(AT_SECURE) != 0 }
}

impl Generation {
    /// That of this process.
    #[inline]
    pub fn current() -> Generation {
        match word().load(Ordering::Acquire) {
            0 => first_look(),
            generation => Generation(generation),
        }
    }

    /// Whether it is that of this process: nothing was forked since.
    #[inline]
    pub fn is_current(self) -> bool {
        word().load(Ordering::Acquire) == self.0 || self == Generation::current()
    }
}

#[inline]
fn word() -> &'static AtomicU64 {
    // SAFETY: it is one of the two words above, or the first of the page that `new_page` has made, which stays
    // mapped for as long as the process lives and in those that are forked from it. None is ever written but
    // as an atomic.
    unsafe { &*WORD.load(Ordering::Acquire) }
}

#[cold]
fn first_look() -> Generation {
    let found = word();
    if ptr::eq(found, &NOT_LOOKED) {
        let page = new_page().unwrap_or((&raw const NO_PAGE).cast_mut());
        // Another thread may have been faster: its page is the one, and this one is a page lost.
        let unset = (&raw const NOT_LOOKED).cast_mut();
        let _ = WORD.compare_exchange(unset, page, Ordering::AcqRel, Ordering::Acquire);
        return Generation::current();
    }
    if ptr::eq(found, &NO_PAGE) {
        return Generation(u64::from(
            rustix::process::getpid().as_raw_nonzero().get().unsigned_abs(),
        ));
    }
    begin(found)
}

/// A page that is all zeros in every process that is forked from this one.
fn new_page() -> Option<*mut AtomicU64> {
    // The system makes whole pages of it.
    let bytes = size_of::<AtomicU64>();
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, at a place that the system chooses, has no other owner.
    let page = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, flags) }.ok()?;
    // SAFETY: the advice is on the whole of this mapping and changes no content of it in this process.
    let wiped = unsafe { rustix::mm::madvise(page, bytes, Advice::LinuxWipeOnFork) };
    wiped.is_ok().then_some(page.cast())
}

/// The first look in this process: its generation begins.
#[cold]
fn begin(word: &AtomicU64) -> Generation {
    // Before it is in the page: one that is forked in between must not take the same.
    let next = LAST.fetch_add(1, Ordering::AcqRel) + 1;
    match word.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Generation(next),
        // Another thread of this process has begun it.
        Err(begun) => Generation(begun),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_on_all_its_threads() {
        let here = Generation::current();
        assert!(here.is_current());
        let there = std::thread::spawn(Generation::current).join().unwrap();
        assert_eq!(here, there);
    }

    /// A child, its child, and the process itself afterwards; what they find is their exit status.
    #[test]
    fn a_forked_child_is_another() {
        let generations: Vec<Generation> = vec![Generation::current()];
        assert!(forked(&generations, 2));
        assert!(generations[0].is_current());
    }

    /// Whether a child, and so many generations below it, are others than all before them.
    fn forked(before: &[Generation], depth: u32) -> bool {
        // SAFETY: the child makes no use of locks or threads of its parent's, and ends by `_exit`.
        let child = unsafe { libc_fork() };
        if child == 0 {
            let mut all = before.to_vec();
            let own = Generation::current();
            let mut is_right = own.is_current() && !all.contains(&own);
            is_right &= !all.iter().any(|one| one.is_current());
            all.push(own);
            is_right &= depth == 0 || forked(&all, depth - 1);
            is_right &= own.is_current();
            // SAFETY: it ends this process and nothing else.
            unsafe { _exit(i32::from(!is_right)) };
        }
        let child = rustix::process::Pid::from_raw(child).expect("a child");
        let flags = rustix::process::WaitOptions::empty();
        let ended = rustix::process::waitpid(Some(child), flags).unwrap().unwrap();
        ended.1.exit_status() == Some(0)
    }

    unsafe extern "C" {
        #[link_name = "fork"]
        fn libc_fork() -> i32;
        fn _exit(status: i32) -> !;
    }
}
