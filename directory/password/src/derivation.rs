//! A derivation in its turn: it waits for a thread of the engine's slow class, and is timed.

use crate::admission::{Begun, Turn};
use crate::error::Error;
use keyway_engine::{Engine, Task};
use tokio::sync::oneshot;

/// The use of the time since the lap before, of a task that awaits a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lap {
    /// To waiting for its turn.
    Waiting,
    /// To the derivation.
    Working,
}

/// The call for when the turn for a derivation has come, and the outcome of the derivation.
pub(crate) fn in_turn(engine: Engine, lap: fn(Lap), task: Box<Task>) -> (Derive, Derived) {
    let ((started, start), (finished, end)) = (oneshot::channel(), oneshot::channel());
    let derive = move |turn: Result<Turn, Error>| {
        let submitted = turn.and_then(|Turn { begun, thread }| {
            let done = move |task| {
                // The one that waited may be gone with its connection.
                let _ = finished.send(Done { task, begun });
                drop(thread);
            };
            Ok(engine.submit_task(task, done)?)
        });
        let _ = started.send(submitted);
    };
    (Box::new(derive), Derived { start, end, lap })
}

/// The call for when the turn for a derivation has come, or it is known that it never will.
pub(crate) type Derive = Box<dyn FnOnce(Result<Turn, Error>) + Send>;

/// A derivation that waits for its turn or is under way.
pub(crate) struct Derived {
    start: oneshot::Receiver<Result<(), Error>>,
    end: oneshot::Receiver<Done>,
    lap: fn(Lap),
}

/// The outcome of a derivation.
pub(crate) struct Done {
    pub task: Box<Task>,
    /// The attempt that began with it.
    pub begun: Option<Begun>,
}

impl Derived {
    /// How it ended.
    pub async fn end(self) -> Result<Done, Error> {
        let closed = |_| Error::Engine(keyway_engine::Error::Closed);
        let submitted = self.start.await.map_err(closed)?;
        (self.lap)(Lap::Waiting);
        submitted?;
        let done = self.end.await.map_err(closed);
        (self.lap)(Lap::Working);
        done
    }
}
