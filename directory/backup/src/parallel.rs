//! Work on many things at a time.

use crate::limits::THREADS;
use std::panic::resume_unwind;
use std::thread;

/// Has threads work on parts of `items`, does `meanwhile`, and returns what each part gave, in the order of the
/// items.
pub(crate) fn parts<T: Sync, R: Send, M>(
    items: &[T],
    work: impl Fn(&[T]) -> R + Sync,
    meanwhile: impl FnOnce() -> M,
) -> (Vec<R>, M) {
    // A thread costs more than a few of them.
    const FEW: usize = 2;
    if items.len() <= FEW {
        let done = if items.is_empty() { Vec::new() } else { vec![work(items)] };
        return (done, meanwhile());
    }
    let work = &work;
    thread::scope(|scope| {
        let spawn = |part| thread::Builder::new().spawn_scoped(scope, move || work(part));
        let parts = items.chunks(items.len().div_ceil(THREADS));
        let threads: Vec<_> = parts.map(|part| (part, spawn(part))).collect();
        let meanwhile = meanwhile();
        let done = threads.into_iter().map(|(part, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|why| resume_unwind(why)),
            // The system may allow no more threads.
            Err(_) => work(part),
        });
        (done.collect(), meanwhile)
    })
}
