//! The thread that changes keys, for the control thread, which has others to answer meanwhile: to make a
//! large RSA key takes seconds, and each change waits for the disk.

use crate::closing::Line;
use crate::keys::{Caller, KeyStore};
use crate::limits::KEY_CHANGES_WAITING_MAX;
use crate::managing;
use crate::vital::vital;
use crate::witness::Sight;
use keyway_ring::control::{self, KeyAsk};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// The control thread's hold on it. When it is dropped, what was asked for is done first.
pub struct Changes {
    work: Option<SyncSender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// How much work waits or is being done.
    pending: Arc<AtomicUsize>,
}

enum Work {
    Change { caller: Caller, ask: KeyAsk, answer: Arc<Line> },
    SaveUsage,
}

impl Changes {
    /// # Errors
    /// The system's.
    pub fn start(keys: &Arc<KeyStore>, sight: Sight) -> io::Result<Changes> {
        let (work, waiting) = sync_channel(KEY_CHANGES_WAITING_MAX);
        let (keys, pending) = (keys.clone(), Arc::new(AtomicUsize::new(0)));
        let thread = thread::Builder::new().name("keys".to_owned());
        let thread = thread.spawn({
            let pending = pending.clone();
            move || vital(|| run(&keys, sight, &waiting, &pending))
        })?;
        Ok(Changes { work: Some(work), thread: Some(thread), pending })
    }

    /// Has it make a change and answer on this socket; `false` if too many wait.
    pub fn ask(&self, caller: Caller, ask: KeyAsk, answer: Arc<Line>) -> bool {
        self.put(Work::Change { caller, ask, answer })
    }

    /// Has it save how often keys were used.
    pub fn save_usage(&self) {
        // Where too much waits, it is saved the next time.
        self.put(Work::SaveUsage);
    }

    /// Whether nothing waits and nothing is being done, so that to drop it takes no time.
    pub fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    fn put(&self, work: Work) -> bool {
        self.pending.fetch_add(1, Ordering::AcqRel);
        let put = self.work.as_ref().is_some_and(|to| to.try_send(work).is_ok());
        if !put {
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
        put
    }
}

fn run(keys: &KeyStore, sight: Sight, waiting: &Receiver<Work>, pending: &AtomicUsize) {
    for work in waiting {
        match work {
            Work::Change { caller, ask, answer: socket } => {
                let answer = managing::answer(keys, sight, &caller, ask, SystemTime::now());
                // A client that has gone meanwhile, or takes no answers, gets none.
                if let Ok(bytes) = control::encode(&answer) {
                    let _ = socket.try_send(&bytes, &[]);
                }
            }
            // Counts that cannot be saved now are saved the next time.
            Work::SaveUsage => drop(keys.save_usage()),
        }
        pending.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
