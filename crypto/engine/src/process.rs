//! Values with threads of their own, which a forked child has to make again.

use keyway_fork::Generation;
use std::mem;
use std::sync::{Arc, OnceLock};

/// A value for each process that has it: the one that was made first, and one for each forked child that
/// asks for it.
///
/// `fork` copies a value and none of its threads: a child that used it would wait for them for ever, or
/// for a lock that one of them held. So the child never looks at the copy, and does not drop it.
pub(crate) struct PerProcess<T> {
    process: Generation,
    value: Arc<T>,
    of_child: OnceLock<Box<PerProcess<T>>>,
}

impl<T> PerProcess<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        let process = Generation::current();
        PerProcess { process, value: Arc::new(value), of_child: OnceLock::new() }
    }

    /// That of this process. `make` makes one in a child that has none.
    #[inline]
    pub fn get(&self, make: impl Fn() -> T) -> &T {
        let mut own = self;
        while !own.process.is_current() {
            own = own.of_child.get().unwrap_or_else(|| {
                // Made before the cell is written, so that a `fork` by another thread meanwhile finds it free.
                let made = Box::new(PerProcess::new(make()));
                own.of_child.get_or_init(|| made)
            });
        }
        &own.value
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // A count that is never given back: the copy is not dropped.
            mem::forget(self.value.clone());
        }
    }
}
