//! The error log's lines when there are more connections than places: at once and then now and
//! again, however many there are.

use crate::limits::CROWD_SAID_EVERY;
use crate::strangers::Source;
use keyway_lock::Unpoisoned;
use keyway_server::Clock;
use keyway_server::log::{Log, Severity, Value};
use std::io;
use std::sync::Mutex;
use std::time::Instant;

/// The events since the last such line.
#[derive(Default)]
pub(crate) struct Crowd(Mutex<State>);

#[derive(Default)]
struct State {
    said: Option<Instant>,
    made_room: u64,
    refused: u64,
    /// The source from which most strangers came.
    most: Option<(Source, usize)>,
}

impl Crowd {
    /// Notes that a stranger has made room for a newcomer, with where he came from and how many are from
    /// there; or that there was none, and the newcomer was refused. `error` is what the system said, if
    /// it was the system that had no room.
    pub fn note(
        &self,
        log: &Log,
        clock: Clock,
        made_room: Option<(Source, usize)>,
        error: Option<&io::Error>,
    ) {
        let now = (clock.monotonic)();
        let mut state = self.0.lock().unpoisoned();
        match made_room {
            Some(most) => {
                state.made_room += 1;
                if state.most.is_none_or(|(_, count)| count < most.1) {
                    state.most = Some(most);
                }
            }
            None => state.refused += 1,
        }
        let since = state.said.map(|said| now.saturating_duration_since(said));
        if since.is_some_and(|since| since < CROWD_SAID_EVERY) {
            return;
        }
        let State { made_room, refused, most, .. } =
            std::mem::replace(&mut *state, State { said: Some(now), ..State::default() });
        drop(state);
        let (source, count) = most.unzip();
        let source = source.map(|source| source.to_string()).unwrap_or_default();
        let error = error.map(io::Error::to_string).unwrap_or_default();
        let text = match (error.is_empty(), made_room) {
            (false, _) => {
                "the system has no room for more connections; raise its limit of open files"
            }
            (true, 0) => "all connections are taken by users who have logged in (connections_max)",
            (true, _) => {
                "all connections are taken (connections_max); those over which no user has logged in make \
                 room, first those of the address with the most"
            }
        };
        let count = count.map_or(Value::None, |count| Value::Number(count as u64));
        let fields = [
            ("text", Value::Text(text)),
            ("made_room", Value::Number(made_room)),
            ("refused", Value::Number(refused)),
            ("most_from", Value::filled(&source)),
            ("connections", count),
            ("system", Value::filled(&error)),
        ];
        log.say((clock.wall)(), Severity::Warning, "crowd", &fields);
    }
}
