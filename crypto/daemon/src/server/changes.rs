//! The threads that change keys, for the control thread, which has others to answer meanwhile.
//!
//! ```text
//! revoke, forbid, allow, ... ──▶ quick ─────────── each waits for the disk
//! generate, rotate ────────────▶ making ────────── to make a large RSA key takes seconds
//! those in name spaces ────────▶ name-spaces ───── so that no client holds up an administrator
//! what is in a token ──────────▶ token-0, ... ──── it may not answer
//! ```

use crate::closing::Line;
use crate::keys::{Caller, KeyStore};
use crate::limits::{KEY_CHANGES_WAITING_MAX, NAME_SPACE_CHANGES_MAX, Waiting};
use crate::managing;
use crate::name_spaces::NameSpace;
use crate::vital::vital;
use crate::witness::Sight;
use keyway_lock::Unpoisoned;
use keyway_ring::control::{self, Answer, KeyAsk};
use keyway_ring::descriptor::Status;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// The control thread's hold on them. When it is dropped, what was asked for is done first, but for keys that are to be
/// made here.
pub struct Changes {
    shared: Arc<Shared>,
    quick: Lane,
    making: Lane,
    in_name_spaces: Lane,
    tokens: Vec<Lane>,
    next: u64,
}

/// A thread, and what waits for it.
struct Lane {
    work: Option<SyncSender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// How much waits or is being done.
    pending: Arc<AtomicUsize>,
}

enum Work {
    Change(Box<Change>),
    SaveUsage,
}

struct Change {
    number: u64,
    caller: Caller,
    ask: KeyAsk,
    /// The caller's, if it is no administrator.
    space: Option<NameSpace>,
}

struct Shared {
    keys: Arc<KeyStore>,
    sight: Sight,
    /// The sockets of the clients that wait for an answer, by the number of the change. Taking one out is the right to
    /// answer.
    unanswered: Mutex<BTreeMap<u64, Arc<Line>>>,
    /// How many changes in name spaces there are, by user.
    in_name_spaces: Mutex<BTreeMap<u32, usize>>,
}

impl Changes {
    /// # Errors
    /// The system's.
    pub fn start(keys: &Arc<KeyStore>, sight: Sight) -> io::Result<Changes> {
        let shared = Arc::new(Shared {
            keys: keys.clone(),
            sight,
            unanswered: Mutex::default(),
            in_name_spaces: Mutex::default(),
        });
        let tokens = 0..keys.tokens_count();
        Ok(Changes {
            quick: Lane::start("keys", &shared)?,
            making: Lane::start("keys-making", &shared)?,
            in_name_spaces: Lane::start("keys-spaces", &shared)?,
            tokens: tokens
                .map(|index| Lane::start(&format!("keys-token-{index}"), &shared))
                .collect::<io::Result<_>>()?,
            shared,
            next: 0,
        })
    }

    /// Has a change made and answered on this socket; `false` if too many wait.
    pub fn ask(&mut self, caller: Caller, ask: KeyAsk, answer: Arc<Line>) -> bool {
        self.put(caller, ask, None, answer)
    }

    /// As [`Changes::ask`], for a client in a name space: fewer of those wait.
    pub fn ask_in(
        &mut self,
        space: NameSpace,
        caller: Caller,
        ask: KeyAsk,
        answer: Arc<Line>,
    ) -> bool {
        let user = caller.uid;
        {
            let mut waiting = self.shared.in_name_spaces.lock().unpoisoned();
            let Waiting { of_user, of_all } = NAME_SPACE_CHANGES_MAX;
            let its = waiting.get(&user).copied().unwrap_or(0);
            if its >= of_user || waiting.values().sum::<usize>() >= of_all {
                return false;
            }
            waiting.insert(user, its + 1);
        }
        let put = self.put(caller, ask, Some(space), answer);
        if !put {
            self.shared.one_less(user);
        }
        put
    }

    fn put(
        &mut self,
        caller: Caller,
        ask: KeyAsk,
        space: Option<NameSpace>,
        answer: Arc<Line>,
    ) -> bool {
        let number = self.next;
        self.next += 1;
        self.shared.unanswered.lock().unpoisoned().insert(number, answer);
        let lane = self.lane(&ask, space.is_some());
        let put = lane.put(Work::Change(Box::new(Change { number, caller, ask, space })));
        if !put {
            self.shared.unanswered.lock().unpoisoned().remove(&number);
        }
        put
    }

    fn lane(&self, ask: &KeyAsk, is_in_space: bool) -> &Lane {
        let keys = &self.shared.keys;
        let token = match ask {
            KeyAsk::GenerateIn { token, .. } => keys.token(token),
            KeyAsk::Adopt { tokens, .. } => tokens.iter().find_map(|label| keys.token(label)),
            KeyAsk::Rotate { name } | KeyAsk::Delete { name } => keys.token_of_key(name),
            _ => None,
        };
        if let Some(lane) = token.and_then(|index| self.tokens.get(index)) {
            return lane;
        }
        match ask {
            // Its keys are counted before one is made: one after the other.
            KeyAsk::Generate { .. } | KeyAsk::Import { .. } | KeyAsk::Rotate { .. }
                if is_in_space =>
            {
                &self.in_name_spaces
            }
            KeyAsk::Generate { .. } | KeyAsk::Rotate { .. } => &self.making,
            _ => &self.quick,
        }
    }

    /// Has it save how often keys were used.
    pub fn save_usage(&self) {
        // Where too much waits, it is saved the next time.
        self.quick.put(Work::SaveUsage);
    }

    /// Whether all that is under way is left undone if another daemon has the keys from now on.
    pub fn is_idle(&self) -> bool {
        self.quick.pending.load(Ordering::Acquire) == 0
    }

    /// Leaves what is under way undone, and says so: another daemon has the keys.
    pub fn abandon(mut self) {
        self.shared.turn_away("another daemon has taken over; ask it again");
        for lane in [&mut self.making, &mut self.in_name_spaces].into_iter().chain(&mut self.tokens)
        {
            lane.leave();
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.quick.end();
        self.tokens.iter_mut().for_each(Lane::end);
        // A key that is being made is in no use yet.
        self.shared.turn_away("the daemon ends; ask again when it is back");
        self.making.leave();
        self.in_name_spaces.leave();
        // A thread that was left has the keys yet, and does not drop them.
        let _ = self.shared.keys.save_usage();
    }
}

impl Lane {
    fn start(name: &str, shared: &Arc<Shared>) -> io::Result<Lane> {
        let (work, waiting) = sync_channel(KEY_CHANGES_WAITING_MAX);
        let pending: Arc<AtomicUsize> = Arc::default();
        let (shared, done) = (shared.clone(), pending.clone());
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || vital(|| shared.all(&waiting, &done)))?;
        Ok(Lane { work: Some(work), thread: Some(thread), pending })
    }

    fn put(&self, work: Work) -> bool {
        self.pending.fetch_add(1, Ordering::AcqRel);
        let put = self.work.as_ref().is_some_and(|to| to.try_send(work).is_ok());
        if !put {
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
        put
    }

    /// Takes no more, and waits until all is done.
    fn end(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Takes no more, and waits for nothing.
    fn leave(&mut self) {
        self.work = None;
        drop(self.thread.take());
    }
}

impl Shared {
    fn all(&self, waiting: &Receiver<Work>, pending: &AtomicUsize) {
        for work in waiting {
            match work {
                Work::Change(change) => self.change(*change),
                // Counts that cannot be saved now are saved the next time.
                Work::SaveUsage => drop(self.keys.save_usage()),
            }
            pending.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn change(&self, Change { number, caller, ask, space }: Change) {
        // One that was turned away is not begun.
        if self.unanswered.lock().unpoisoned().contains_key(&number) {
            let (keys, now) = (&self.keys, SystemTime::now());
            let answer = managing::answer(keys, self.sight, space.as_ref(), &caller, ask, now);
            self.answer(number, &answer);
        }
        if space.is_some() {
            self.one_less(caller.uid);
        }
    }

    fn answer(&self, number: u64, answer: &Answer) {
        let socket = self.unanswered.lock().unpoisoned().remove(&number);
        // A client that has gone meanwhile, or takes no answers, gets none.
        if let (Some(socket), Ok(bytes)) = (socket, control::encode(answer)) {
            let _ = socket.try_send(&bytes, &[]);
        }
    }

    fn turn_away(&self, why: &str) {
        let numbers: Vec<u64> = self.unanswered.lock().unpoisoned().keys().copied().collect();
        for number in numbers {
            self.answer(number, &Answer::refused(Status::Busy, why));
        }
    }

    fn one_less(&self, user: u32) {
        let mut waiting = self.in_name_spaces.lock().unpoisoned();
        match waiting.get_mut(&user) {
            Some(its) if *its > 1 => *its -= 1,
            _ => drop(waiting.remove(&user)),
        }
    }
}
