//! How connections of LDAPS begin: with a handshake, by which members of a cluster are told from clients.

use crate::handshake::{handshaken, note_handshake};
use crate::limits::FIRST_REQUEST_MAX;
use crate::proxied::begins_with_tls;
use crate::registry::Leave;
use crate::request_log::Origin;
use crate::state::ServerState;
use crate::stream::Stream;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_rustls::rustls::ServerConfig;

/// Takes a connection of LDAPS through its handshake. `None` if it failed, or was a member's and is served.
pub async fn begin(
    tcp: TcpStream,
    tls: Arc<ServerConfig>,
    shared: &ServerState,
    origin: &Origin,
    stop: &mut oneshot::Receiver<Leave>,
) -> Option<Stream> {
    let began = Instant::now();
    let members = shared.members();
    let result = {
        let mut handshake = pin!(timeout(shared.settings().limits.handshake_max, async {
            begins_with_tls(&tcp).await?;
            match &members {
                None => Stream::accept_tls(tcp, tls).await,
                Some(members) => members.accept(tcp, tls).await,
            }
        }));
        let leave = tokio::select! {
            result = &mut handshake => Ok(result),
            leave = &mut *stop => Err(leave),
        };
        match leave {
            Ok(result) => result,
            Err(Ok(Leave::Shutdown)) => {
                // The first request of one that has just come is answered still.
                let (say, again) = oneshot::channel();
                let _ = say.send(Leave::Shutdown);
                *stop = again;
                timeout(FIRST_REQUEST_MAX, handshake).await.ok()?
            }
            Err(_) => return None,
        }
    };
    let stream = handshaken(result, shared, origin)?;
    note_handshake(&stream, shared, origin, began);
    match members {
        None => Some(stream),
        Some(members) => members.take(stream, origin, stop).await,
    }
}
