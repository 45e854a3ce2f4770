//! Who is connected, so that there are not too many and a shutdown can reach them all.

use super::seen::Seen;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

#[derive(Default)]
pub(super) struct Registry {
    state: Mutex<State>,
    emptied: Notify,
}

#[derive(Default)]
struct State {
    last: u64,
    open: HashMap<u64, Entry>,
}

struct Entry {
    stop: Option<oneshot::Sender<()>>,
    task: Option<AbortHandle>,
    seen: Arc<Seen>,
}

/// A connection's place; dropping it gives the place back.
pub(super) struct Place {
    registry: Arc<Registry>,
    id: u64,
}

impl Registry {
    /// A place, and what will ask its holder to stop; `None` if `connections_max` are taken.
    pub fn enter(
        self: &Arc<Self>,
        connections_max: usize,
        seen: Arc<Seen>,
    ) -> Option<(Place, oneshot::Receiver<()>)> {
        let mut state = self.lock();
        if state.open.len() >= connections_max {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        state.last += 1;
        let id = state.last;
        state.open.insert(id, Entry { stop: Some(sender), task: None, seen });
        Some((Place { registry: self.clone(), id }, receiver))
    }

    /// Notes the task that holds a place, if it still does.
    pub fn set_task(&self, id: u64, task: AbortHandle) {
        if let Some(entry) = self.lock().open.get_mut(&id) {
            entry.task = Some(task);
        }
    }

    /// Asks everybody to finish and go.
    pub fn stop_all(&self) {
        for entry in self.lock().open.values_mut() {
            // A missing receiver means that it is going already.
            let _ = entry.stop.take().map(|stop| stop.send(()));
        }
    }

    /// Ends the tasks of those who have not gone.
    pub fn abort_all(&self) {
        for entry in self.lock().open.values() {
            entry.task.iter().for_each(AbortHandle::abort);
        }
    }

    /// How many are open, and how many there ever were.
    pub fn counts(&self) -> (usize, u64) {
        let state = self.lock();
        (state.open.len(), state.last)
    }

    /// What is seen of those that are open, by their numbers, and how many there ever were.
    pub fn seen(&self) -> (Vec<(u64, Arc<Seen>)>, u64) {
        let state = self.lock();
        let mut open: Vec<_> =
            state.open.iter().map(|(id, entry)| (*id, entry.seen.clone())).collect();
        let total = state.last;
        drop(state);
        open.sort_unstable_by_key(|(id, _)| *id);
        (open, total)
    }

    /// Waits until nobody is left.
    pub async fn emptied(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.lock().open.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        state.open.remove(&self.id);
        if state.open.is_empty() {
            self.registry.emptied.notify_waiters();
        }
    }
}
