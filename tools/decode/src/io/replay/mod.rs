//! A [`Script`] sent to a server: its connections opened again, each request sent when it is due, and its answer
//! compared.

mod destination;
mod exchange;
mod replayed;
mod telling;
mod timetable;

pub use destination::{Destination, DestinationOptions, ReplayAccount, ReplayTls};
pub use replayed::Replayed;
pub use telling::ReplayListener;

use crate::limits::REPLAY_CONNECTIONS_MAX;
use crate::replay::{Script, Speed};
use exchange::replay;
use keyway_host::failure::Failure;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use telling::Telling;
use timetable::Timetable;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

/// Sends each connection's requests when they are due, until all are answered or `stop` ends; what came of that.
/// The listener is told of so many differences at most.
///
/// # Errors
/// If the server does not take the account that binds, or the listener cannot tell a difference.
pub async fn send(
    script: Script,
    speed: Speed,
    server: Destination,
    (listener, differences_max): (Box<dyn ReplayListener>, u64),
    stop: impl Future<Output = ()>,
) -> Result<Replayed, Failure> {
    let telling = Telling::new(listener, differences_max);
    let tasks = LocalSet::new();
    let sent_all = tasks.run_until(async {
        tokio::select! {
            () = send_all(script, speed, server, &telling) => true,
            () = stop => false,
            // The results have no listener any more.
            () = telling.unheard() => false,
        }
    });
    let sent_all = sent_all.await;
    telling.end(sent_all)
}

async fn send_all(script: Script, speed: Speed, server: Destination, telling: &Telling) {
    let first_ns = script.conversations.first().map_or(0, |one| one.start_ns);
    let places = match speed {
        Speed::Max => script.open_max.clamp(1, REPLAY_CONNECTIONS_MAX),
        Speed::Times(_) => REPLAY_CONNECTIONS_MAX,
    };
    let (places, server) = (Arc::new(Semaphore::new(places)), Rc::new(server));
    let timetable = Timetable { begin: Instant::now(), first_ns, speed };
    let mut running = JoinSet::new();
    for conversation in script.conversations {
        timetable.wait_until(conversation.start_ns).await;
        // It is never closed.
        let place = places.clone().acquire_owned().await;
        let (server, telling) = (server.clone(), telling.clone());
        running.spawn_local(async move {
            replay(&conversation, &timetable, &server, &telling).await;
            drop(place);
        });
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}
