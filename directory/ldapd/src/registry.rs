//! Who is connected, so that there are not too many and a shutdown can reach them all.
//!
//! When all places are taken, connections that have not said who they are make room for newcomers
//! (`strangers`); where there are none, the user with the most connections does for users with
//! fewer. Some places more are for the administrator only, and for newcomers as long as they have
//! not said who they are.

use crate::limits::{LEAVING_MAX, Limits};
use crate::seen::Seen;
use crate::strangers::{Listed, Since, Source, Strangers};
use keyway_lock::Unpoisoned;
use keyway_server::ADMINISTRATOR_DN;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
    /// Connections that are to stay, for those who need not know exactly.
    staying: AtomicUsize,
    /// A connection has gone.
    left: Notify,
}

#[derive(Default)]
struct State {
    last: u64,
    open: HashMap<u64, Entry>,
    /// How many of these have been asked to make room.
    leaving: usize,
    strangers: Strangers,
}

struct Entry {
    /// Until it was told to go.
    stop: Option<oneshot::Sender<Leave>>,
    task: Option<AbortHandle>,
    seen: Arc<Seen>,
    /// Its place among the strangers, and how often it had asked for something then.
    listed: Option<(Listed, u64)>,
    leaving: bool,
    /// It is another member's of the cluster.
    leaves_last: bool,
}

/// Why a connection is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The server goes down: it answers what it accepted.
    Shutdown,
    /// Others need its place, now.
    MakeRoom,
}

/// Asks a connection to go that was asked before, as the server goes down: its state is made anew with TLS.
pub(crate) fn asked_to_go() -> oneshot::Receiver<Leave> {
    let (say, asked) = oneshot::channel();
    let _ = say.send(Leave::Shutdown);
    asked
}

/// A connection's place; dropping it gives the place back.
pub(crate) struct Place {
    registry: Arc<Registry>,
    id: u64,
    /// From where the connection came that made room for it, and how many strangers were from there.
    pub made_room: Option<(Source, usize)>,
}

impl Registry {
    /// A place, and what will ask its holder to go; `None` if all are taken by those who are known.
    pub fn enter(
        self: &Arc<Self>,
        limits: &Limits,
        seen: Arc<Seen>,
    ) -> Option<(Place, oneshot::Receiver<Leave>)> {
        let mut state = self.lock();
        let staying = state.open.len() - state.leaving;
        let mut made_room = None;
        if staying >= limits.connections_max {
            made_room = state.turn_a_stranger_out();
            // Newcomers find half of the reserve, so that they can say that they are the administrator.
            let reserve = match seen.is_at_home {
                true => limits.connections_reserved,
                false => limits.connections_reserved.div_ceil(2),
            };
            if made_room.is_none() && staying >= limits.connections_max.saturating_add(reserve) {
                return None;
            }
        }
        let (sender, receiver) = oneshot::channel();
        state.last += 1;
        let id = state.last;
        let entry = Entry {
            stop: Some(sender),
            task: None,
            seen,
            listed: None,
            leaving: false,
            leaves_last: false,
        };
        state.open.insert(id, entry);
        state.list(id);
        self.note(&state);
        Some((Place { registry: self.clone(), id, made_room }, receiver))
    }

    /// Asks so many strangers to go, because the system has no room for more.
    pub fn make_room(&self, connections: usize) -> Option<(Source, usize)> {
        let mut state = self.lock();
        let free = LEAVING_MAX.saturating_sub(state.leaving).min(connections);
        let first = (0..free).map_while(|_| state.turn_a_stranger_out()).next();
        (1..free).map_while(|_| state.turn_a_stranger_out()).for_each(drop);
        self.note(&state);
        first
    }

    /// The connection is a stranger's again.
    pub fn forgets(&self, id: u64) {
        self.lock().list(id);
    }

    /// Whether the connection may stay now that it is known whose it is. Where all places are taken the
    /// longest idle one of the user with the most connections goes, unless this one's user has as many.
    pub fn may_stay(&self, connections_max: usize, id: u64, now: Instant) -> bool {
        if self.staying.load(Ordering::Relaxed) <= connections_max {
            return true;
        }
        let mut state = self.lock();
        let Some(user) = state.open.get(&id).and_then(|entry| entry.seen.who().dn) else {
            return true;
        };
        if user == ADMINISTRATOR_DN || state.open.len() - state.leaving <= connections_max {
            return true;
        }
        let may_stay = state.turn_a_user_out(&user, now);
        self.note(&state);
        may_stay
    }

    /// Waits until not too many are going who are not gone yet.
    pub async fn few_leave(&self) {
        loop {
            let left = self.left.notified();
            if self.lock().leaving < LEAVING_MAX {
                return;
            }
            left.await;
        }
    }

    /// Notes the task that holds a place, if it still does.
    pub fn set_task(&self, id: u64, task: AbortHandle) {
        if let Some(entry) = self.lock().open.get_mut(&id) {
            entry.task = Some(task);
        }
    }

    /// Lets a connection stay at a shutdown until all others have gone.
    pub fn leaves_last(&self, id: u64) {
        if let Some(entry) = self.lock().open.get_mut(&id) {
            entry.leaves_last = true;
        }
    }

    /// Asks all but those who leave last to finish and go. Returns when they have gone; those who have not within this time
    /// are ended.
    pub async fn empty_but_last(&self, max: Duration) {
        self.empty_of(|entry| !entry.leaves_last, max).await;
    }

    /// Asks all to finish and go, as [`Registry::empty_but_last`].
    pub async fn empty(&self, max: Duration) {
        self.empty_of(|_| true, max).await;
    }

    async fn empty_of(&self, goes: impl Fn(&Entry) -> bool, max: Duration) {
        for entry in self.lock().open.values_mut().filter(|entry| goes(entry)) {
            // A missing receiver means that it is going already.
            let _ = entry.stop.take().map(|stop| stop.send(Leave::Shutdown));
        }
        if timeout(max, self.emptied(&goes)).await.is_err() {
            for entry in self.lock().open.values().filter(|entry| goes(entry)) {
                entry.task.iter().for_each(AbortHandle::abort);
            }
            self.emptied(&goes).await;
        }
    }

    /// How many are open, and how many there ever were.
    pub fn counts(&self) -> (usize, u64) {
        let state = self.lock();
        (state.open.len(), state.last)
    }

    /// The visible state of those that are open, by their numbers, and how many there ever were.
    pub fn seen(&self) -> (Vec<(u64, Arc<Seen>)>, u64) {
        let state = self.lock();
        let mut open: Vec<_> =
            state.open.iter().map(|(id, entry)| (*id, entry.seen.clone())).collect();
        let total = state.last;
        drop(state);
        open.sort_unstable_by_key(|(id, _)| *id);
        (open, total)
    }

    async fn emptied(&self, goes: &impl Fn(&Entry) -> bool) {
        loop {
            let left = self.left.notified();
            if !self.lock().open.values().any(goes) {
                return;
            }
            left.await;
        }
    }

    fn note(&self, state: &State) {
        self.staying.store(state.open.len() - state.leaving, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

impl State {
    /// Puts a connection among the strangers, unless it is there or not a stranger's.
    fn list(&mut self, id: u64) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        if entry.listed.is_none() && !entry.leaving && !entry.seen.is_known() {
            let listed = self.strangers.enter(Source::of(&entry.seen.peer), id);
            entry.list(Some(listed));
        }
    }

    /// Asks a stranger to go. From where he came, and how many strangers are from there.
    fn turn_a_stranger_out(&mut self) -> Option<(Source, usize)> {
        let State { open, strangers, .. } = self;
        let id = strangers.first(|id, again| {
            let Some(entry) = open.get_mut(&id) else { return Since::Known };
            match entry.list(again) {
                _ if entry.seen.is_known() => Since::Known,
                Some((_, before)) if before != entry.seen.asked() => Since::Active,
                _ => Since::Silent,
            }
        })?;
        let source = self.open.get(&id).map(|entry| Source::of(&entry.seen.peer))?;
        self.turn_out(id);
        Some((source, self.strangers.count(source) + 1))
    }

    /// Asks the longest idle connection of the user with the most to go, if a user with one more than he
    /// has now would still have fewer.
    fn turn_a_user_out(&mut self, user: &str, now: Instant) -> bool {
        let mut users: HashMap<String, usize> = HashMap::new();
        let open = self.open.values().filter(|entry| !entry.leaving);
        open.filter_map(|entry| entry.seen.who().dn)
            .for_each(|dn| *users.entry(dn).or_default() += 1);
        let own = users.get(user).copied().unwrap_or_default();
        users.remove(ADMINISTRATOR_DN);
        let Some((most, _)) =
            users.into_iter().filter(|(_, count)| *count > own).max_by_key(|it| it.1)
        else {
            return false;
        };
        let his = self
            .open
            .iter()
            .filter(|(_, entry)| !entry.leaving && entry.seen.who().dn.as_deref() == Some(&*most));
        let waits = |entry: &Entry| entry.seen.waiting().is_empty();
        let idlest = his.max_by_key(|(_, entry)| (waits(entry), entry.seen.idle(now)));
        let Some(id) = idlest.map(|(id, _)| *id) else { return false };
        self.turn_out(id);
        true
    }

    fn turn_out(&mut self, id: u64) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        if let Some((listed, _)) = entry.list(None) {
            self.strangers.leave(listed, id);
        }
        entry.leaving = true;
        self.leaving += 1;
        // A missing receiver means that it is going already.
        let _ = entry.stop.take().map(|stop| stop.send(Leave::MakeRoom));
    }
}

impl Entry {
    /// Notes where it is listed now, and says where it was.
    fn list(&mut self, listed: Option<Listed>) -> Option<(Listed, u64)> {
        self.seen.is_listed(listed.is_some());
        let listed = listed.map(|listed| (listed, self.seen.asked()));
        std::mem::replace(&mut self.listed, listed)
    }
}

impl Place {
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        if let Some(entry) = state.open.remove(&self.id) {
            if let Some((listed, _)) = entry.listed {
                state.strangers.leave(listed, self.id);
            }
            state.leaving -= usize::from(entry.leaving);
        }
        self.registry.note(&state);
        self.registry.left.notify_waiters();
    }
}
