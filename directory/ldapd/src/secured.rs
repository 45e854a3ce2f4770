//! How connections of LDAPS begin: with a handshake, by which members of a cluster are told from clients.

use crate::handshake::{handshaken, note_handshake, until_asked};
use crate::proxied::begins_with_tls;
use crate::registry::Leave;
use crate::request_log::Origin;
use crate::state::ServerState;
use crate::stream::Stream;
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
    let handshake = timeout(shared.settings().limits.handshake_max, async {
        begins_with_tls(&tcp).await?;
        match &members {
            None => Stream::accept_tls(tcp, tls).await,
            Some(members) => members.accept(tcp, tls).await,
        }
    });
    let result = until_asked(handshake, stop).await?;
    let stream = handshaken(result, shared, origin)?;
    note_handshake(&stream, shared, origin, began);
    match members {
        None => Some(stream),
        Some(members) => members.take(stream, &shared.registry, origin, stop).await,
    }
}
