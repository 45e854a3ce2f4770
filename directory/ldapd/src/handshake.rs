//! TLS handshakes: how long a server that stops waits for one, and how it went: counted, and written down if it failed.

use crate::limits::GRACE_MAX;
use crate::registry::{Leave, asked_to_go};
use crate::request_log::Origin;
use crate::state::ServerState;
use crate::stream::Stream;
use keyway_server::log::{Access, Value};
use std::fmt::Display;
use std::io;
use std::pin::pin;
use tokio::sync::oneshot;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

/// The result of a handshake; `None` if its connection is asked to go meanwhile. A server that goes down gives it a grace:
/// there may be a login behind it.
pub(crate) async fn until_asked<T>(
    handshake: impl Future<Output = T>,
    stop: &mut oneshot::Receiver<Leave>,
) -> Option<T> {
    let mut handshake = pin!(handshake);
    let leave = tokio::select! {
        result = &mut handshake => return Some(result),
        leave = &mut *stop => leave,
    };
    if leave != Ok(Leave::Shutdown) {
        return None;
    }
    *stop = asked_to_go();
    timeout(GRACE_MAX, handshake).await.ok()
}

/// The outcome of a handshake; one that failed is written down.
pub(crate) fn handshaken<T>(
    result: Result<io::Result<T>, Elapsed>,
    shared: &ServerState,
    origin: &Origin,
) -> Option<T> {
    let why: &(dyn Display + Sync) = match &result {
        Ok(Ok(_)) => return result.ok()?.ok(),
        Ok(Err(why)) => why,
        Err(_) => &"it took too long",
    };
    shared.meters.failed.increment();
    origin.connection(Access::Refused, "tls-handshake", &[("text", Value::Shown(why))]);
    None
}

pub(crate) fn note_handshake(
    stream: &Stream,
    shared: &ServerState,
    origin: &Origin,
    began: Instant,
) {
    let Some(tls) = stream.handshake() else { return };
    let meters = &shared.meters;
    meters.handshakes.increment();
    meters.resumed.add(u64::from(tls.resumed));
    let time_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    meters.handshake.record(time_ns);
    // It has one at most.
    let _ = origin.seen.tls.set(tls);
}
