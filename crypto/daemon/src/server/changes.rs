//! The thread that changes keys, for the control thread, which has others to answer meanwhile: to make a
//! large RSA key takes seconds, and each change waits for the disk.

use crate::keys::{Caller, KeyStore};
use crate::limits::KEY_CHANGES_WAITING_MAX;
use crate::managing;
use keyway_ring::Socket;
use keyway_ring::control::{self, KeyAsk};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// The control thread's hold on it. When it is dropped, what was asked for is done first.
pub struct Changes {
    work: Option<SyncSender<Work>>,
    thread: Option<JoinHandle<()>>,
}

enum Work {
    Change { caller: Caller, ask: KeyAsk, answer: Socket },
    SaveUsage,
}

impl Changes {
    /// # Errors
    /// The system's.
    pub fn start(keys: &Arc<KeyStore>) -> io::Result<Changes> {
        let (work, waiting) = sync_channel(KEY_CHANGES_WAITING_MAX);
        let keys = keys.clone();
        let thread = thread::Builder::new().name("keys".to_owned());
        let thread = thread.spawn(move || run(&keys, &waiting))?;
        Ok(Changes { work: Some(work), thread: Some(thread) })
    }

    /// Has it make a change and answer on this socket; `false` if too many wait.
    pub fn ask(&self, caller: Caller, ask: KeyAsk, answer: OwnedFd) -> bool {
        self.put(Work::Change { caller, ask, answer: Socket::from_fd(answer) })
    }

    /// Has it save how often keys were used.
    pub fn save_usage(&self) {
        // Where too much waits, it is saved the next time.
        self.put(Work::SaveUsage);
    }

    fn put(&self, work: Work) -> bool {
        self.work.as_ref().is_some_and(|to| to.try_send(work).is_ok())
    }
}

fn run(keys: &KeyStore, waiting: &Receiver<Work>) {
    for work in waiting {
        match work {
            Work::Change { caller, ask, answer: socket } => {
                let answer = managing::answer(keys, &caller, ask, SystemTime::now());
                // Who has gone meanwhile, or takes no answers, gets none.
                if let Ok(bytes) = control::encode(&answer) {
                    let _ = socket.try_send(&bytes, &[]);
                }
            }
            // What cannot be saved now is saved the next time.
            Work::SaveUsage => drop(keys.save_usage()),
        }
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
