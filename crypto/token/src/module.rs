//! A PKCS#11 module: its library, loaded and started once for all its tokens, and started anew when it has lost one.
//!
//! Many modules look for tokens only when they start (`C_Initialize`): one that was away is back for them after
//! another start. That ends the sessions of all tokens of the module, and gives their handles to others. So a thread
//! enters the module for each of its calls, none is inside during a start, and a session is used and closed only in
//! the *generation* of the module, counted by its starts, that has opened it.

use crate::error::{Error, reason};
use crate::limits::{RESTART, RESTART_PAUSE, RESTART_PAUSE_MAX};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error as ModuleError, RvError};
use cryptoki::slot::{Slot, TokenInfo};
use keyway_lock::Unpoisoned;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

pub(crate) struct Module {
    path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Loaded when it is first needed: after the process has given up its rights.
    loaded: Option<Pkcs11>,
    is_started: bool,
    generation: u64,
    /// Threads that are inside.
    inside: usize,
    /// None may enter.
    is_shut: bool,
}

impl State {
    fn is_in(&self, generation: u64) -> bool {
        self.is_started && self.generation == generation
    }

    fn stop(&mut self) {
        if let Some(loaded) = &self.loaded
            && self.is_started
        {
            // If it fails, the module says at the next start that it runs already.
            let _ = loaded.clone().finalize();
        }
        self.is_started = false;
    }
}

/// A thread's stay in a module.
pub(crate) struct Inside<'a> {
    module: &'a Module,
    pub pkcs11: Pkcs11,
    pub generation: u64,
}

/// When a token that its module does not show is reason for another start of the module.
pub(crate) struct Restarts {
    next: Option<Instant>,
    pause: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Restarts { next: None, pause: RESTART_PAUSE }
    }
}

impl Restarts {
    /// Whether it is time for one. Each comes later than the one before it: other tokens of the module are disturbed.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + self.pause);
        self.pause = (self.pause * 2).min(RESTART_PAUSE_MAX);
        true
    }
}

impl Module {
    pub fn new(path: &Path) -> Self {
        Module { path: path.to_owned(), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Its library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Enters the module, which is loaded and started if it is not. It may take as long as the module likes.
    ///
    /// # Errors
    /// [`Error::Module`] if it is none, [`Error::Start`] if it does not start.
    pub fn enter(&self) -> Result<Inside<'_>, Error> {
        let state = self.state.lock().unpoisoned();
        let mut state = self.changed.wait_while(state, |state| state.is_shut).unpoisoned();
        let pkcs11 = match &state.loaded {
            Some(loaded) => loaded.clone(),
            None => {
                let loaded = Pkcs11::new(&self.path).map_err(|why| self.unloaded(&why))?;
                // It is never unloaded: it may have threads of its own, and functions that run when the process ends.
                std::mem::forget(loaded.clone());
                state.loaded.insert(loaded).clone()
            }
        };
        if !state.is_started {
            match pkcs11.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
                Ok(()) | Err(ModuleError::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
                // The device behind it may be away.
                Err(why) => return Err(self.stopped(&why)),
            }
            state.is_started = true;
            state.generation += 1;
        }
        state.inside += 1;
        Ok(Inside { module: self, pkcs11, generation: state.generation })
    }

    /// Enters the module if it still is in this generation.
    pub fn enter_again(&self, generation: u64) -> Option<Inside<'_>> {
        let mut state = self.state.lock().unpoisoned();
        let is_there = !state.is_shut && state.is_in(generation);
        let pkcs11 = state.loaded.clone().filter(|_| is_there)?;
        state.inside += 1;
        Some(Inside { module: self, pkcs11, generation })
    }

    /// Whether it still is in this generation.
    pub fn is_in(&self, generation: u64) -> bool {
        self.state.lock().unpoisoned().is_in(generation)
    }

    /// Has the module started anew at the next entry, unless it is in another generation already or threads stay
    /// inside. Says whether it is in another one then.
    pub fn restart(&self, generation: u64) -> bool {
        let mut state = self.state.lock().unpoisoned();
        if state.is_shut || !state.is_in(generation) {
            return !state.is_shut;
        }
        state.is_shut = true;
        let waited = self.changed.wait_timeout_while(state, RESTART, |state| state.inside > 0);
        let (mut state, _) = waited.unpoisoned();
        let is_empty = state.inside == 0;
        if is_empty {
            state.stop();
        }
        state.is_shut = false;
        self.changed.notify_all();
        is_empty
    }

    /// Ends the module's work, if no thread is inside.
    pub fn finish(&self) {
        let mut state = self.state.lock().unpoisoned();
        if state.inside == 0 {
            state.stop();
        }
    }

    fn stopped(&self, why: &ModuleError) -> Error {
        Error::Start { path: self.path.clone(), why: reason(why) }
    }

    fn unloaded(&self, why: &ModuleError) -> Error {
        Error::Module { path: self.path.clone(), why: reason(why) }
    }
}

impl Inside<'_> {
    /// The slot that has the token of this label now.
    pub fn find(&self, label: &str) -> Result<(Slot, TokenInfo), Error> {
        let slots = self.pkcs11.get_slots_with_token();
        let slots = slots.map_err(|why| self.module.stopped(&why))?;
        let info = |slot: Slot| Some((slot, self.pkcs11.get_token_info(slot).ok()?));
        let tokens: Vec<_> = slots.into_iter().filter_map(info).collect();
        let mut its = tokens.iter().filter(|(_, info)| info.label() == label);
        match (its.next(), its.next()) {
            (Some(found), None) => Ok(found.clone()),
            _ => {
                let there = tokens.iter().filter(|(_, info)| info.token_initialized());
                Err(Error::NotThere {
                    label: label.to_owned(),
                    path: self.module.path.clone(),
                    there: there.map(|(_, info)| info.label().to_owned()).collect(),
                })
            }
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.module.state.lock().unpoisoned().inside -= 1;
        self.module.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_come_later_and_later() {
        let (mut restarts, begin) = (Restarts::default(), Instant::now());
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let due = [0, 0, 1, 2, 3, 6, 7].map(|seconds| restarts.is_due(at(seconds)));
        assert_eq!(due, [true, false, true, false, true, false, true]);
        assert!((0..20).all(|round| restarts.is_due(at(100 + 60 * round))));
    }
}
