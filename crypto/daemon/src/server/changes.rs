//! The thread that changes keys, for the control thread, which has others to answer meanwhile: to make a
//! large RSA key takes seconds, and each change waits for the disk.

use crate::closing::Line;
use crate::keys::{Caller, KeyStore};
use crate::limits::{KEY_CHANGES_WAITING_MAX, NAME_SPACE_CHANGES_MAX, Waiting};
use crate::managing;
use crate::name_spaces::NameSpace;
use crate::vital::vital;
use crate::witness::Sight;
use keyway_lock::Unpoisoned;
use keyway_ring::control::{self, KeyAsk};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// The control thread's hold on it. When it is dropped, what was asked for is done first.
pub struct Changes {
    work: Option<SyncSender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// How much work waits or is being done.
    pending: Arc<AtomicUsize>,
    /// How much of that is in name spaces, by user.
    in_name_spaces: Arc<Mutex<BTreeMap<u32, usize>>>,
}

enum Work {
    Change(Box<Change>),
    SaveUsage,
}

struct Change {
    caller: Caller,
    ask: KeyAsk,
    /// The caller's, if it is no administrator.
    space: Option<NameSpace>,
    answer: Arc<Line>,
}

impl Changes {
    /// # Errors
    /// The system's.
    pub fn start(keys: &Arc<KeyStore>, sight: Sight) -> io::Result<Changes> {
        let (work, waiting) = sync_channel(KEY_CHANGES_WAITING_MAX);
        let run = Run {
            keys: keys.clone(),
            sight,
            pending: Arc::default(),
            in_name_spaces: Arc::default(),
        };
        let (pending, in_name_spaces) = (run.pending.clone(), run.in_name_spaces.clone());
        let thread = thread::Builder::new().name("keys".to_owned());
        let thread = thread.spawn(move || vital(|| run.all(&waiting)))?;
        Ok(Changes { work: Some(work), thread: Some(thread), pending, in_name_spaces })
    }

    /// Has it make a change and answer on this socket; `false` if too many wait.
    pub fn ask(&self, caller: Caller, ask: KeyAsk, answer: Arc<Line>) -> bool {
        self.put(Work::Change(Box::new(Change { caller, ask, space: None, answer })))
    }

    /// As [`Changes::ask`], for a client in a name space: fewer of those wait.
    pub fn ask_in(&self, space: NameSpace, caller: Caller, ask: KeyAsk, answer: Arc<Line>) -> bool {
        let user = caller.uid;
        {
            let mut waiting = self.in_name_spaces.lock().unpoisoned();
            let Waiting { of_user, of_all } = NAME_SPACE_CHANGES_MAX;
            let its = waiting.get(&user).copied().unwrap_or(0);
            if its >= of_user || waiting.values().sum::<usize>() >= of_all {
                return false;
            }
            waiting.insert(user, its + 1);
        }
        let put =
            self.put(Work::Change(Box::new(Change { caller, ask, space: Some(space), answer })));
        if !put {
            one_less(&self.in_name_spaces, user);
        }
        put
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

/// The thread's part.
struct Run {
    keys: Arc<KeyStore>,
    sight: Sight,
    pending: Arc<AtomicUsize>,
    in_name_spaces: Arc<Mutex<BTreeMap<u32, usize>>>,
}

impl Run {
    fn all(&self, waiting: &Receiver<Work>) {
        for work in waiting {
            match work {
                Work::Change(change) => self.change(*change),
                // Counts that cannot be saved now are saved the next time.
                Work::SaveUsage => drop(self.keys.save_usage()),
            }
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn change(&self, Change { caller, ask, space, answer: socket }: Change) {
        let (keys, now) = (&self.keys, SystemTime::now());
        let answer = managing::answer(keys, self.sight, space.as_ref(), &caller, ask, now);
        if space.is_some() {
            one_less(&self.in_name_spaces, caller.uid);
        }
        // A client that has gone meanwhile, or takes no answers, gets none.
        if let Ok(bytes) = control::encode(&answer) {
            let _ = socket.try_send(&bytes, &[]);
        }
    }
}

fn one_less(waiting: &Mutex<BTreeMap<u32, usize>>, user: u32) {
    let mut waiting = waiting.lock().unpoisoned();
    match waiting.get_mut(&user) {
        Some(its) if *its > 1 => *its -= 1,
        _ => drop(waiting.remove(&user)),
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
