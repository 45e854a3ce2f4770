//! Connections that a proxy forwards: they begin with a header that says whose they are.

use crate::peer::Peer;
use crate::state::ServerState;
use crate::stream::Stream;
use keyway_codec::limits::PROXY_HEADER_BYTES_MAX;
use keyway_codec::proxy::{Read, looks_like, read};
use keyway_server::log::{Access, Value};
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The error for a client that begins like a proxy and is not asked to.
pub(crate) const NOT_ASKED: &str = "it begins like a proxy (PROXY protocol), and this listener takes that from the \
    addresses in [proxy] of keyway.toml only";

/// Reads the header of a connection from a proxy, and says whose it is then. A connection that the proxy
/// opens for itself, or of which it names no client, has its address, and is not trusted as near. One without
/// a header is written down and closed.
pub(crate) async fn admit(
    shared: Arc<ServerState>,
    tcp: TcpStream,
    proxy: SocketAddr,
) -> Option<(Stream, Peer)> {
    let mut tcp = tcp;
    let wait_max = shared.settings().limits.handshake_max;
    let why: &(dyn Display + Sync) = &match timeout(wait_max, header(&mut tcp)).await {
        Ok(Ok(client)) => {
            // A client that the proxy does not name is somewhere, and not where the proxy is.
            let peer = Peer::Proxied { client: client.unwrap_or(proxy), proxy };
            return Some((Stream::Plain(tcp), peer));
        }
        Ok(Err(why)) => why.to_string(),
        Err(_) => "the header of the PROXY protocol takes too long".to_owned(),
    };
    refuse(&shared, Peer::Tcp(proxy), why);
    None
}

/// Writes down that a connection from a proxy is closed.
pub(crate) fn refuse(shared: &Arc<ServerState>, proxy: Peer, why: &(dyn Display + Sync)) {
    let origin = shared.origin(0, shared.seen(proxy));
    origin.connection(Access::Refused, "proxy-header", &[("text", Value::Shown(why))]);
}

/// Reads a header to its end, and nothing of what follows.
async fn header(tcp: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut buffer = [0; PROXY_HEADER_BYTES_MAX];
    let mut have = 0;
    loop {
        let so_far = buffer.get(..have).unwrap_or_default();
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        match read(so_far).map_err(invalid)? {
            Read::Header { client, .. } => return Ok(client),
            Read::More(more) => {
                let place = buffer.get_mut(have..have + more).ok_or(io::ErrorKind::InvalidData)?;
                tcp.read_exact(place).await?;
                have += more;
            }
        }
    }
}

/// Fails if a connection that is to begin with TLS begins with a header instead.
pub(crate) async fn begins_with_tls(tcp: &TcpStream) -> io::Result<()> {
    let mut begin = [0; 6];
    let bytes = tcp.peek(&mut begin).await?;
    match begin.get(..bytes).is_some_and(looks_like) {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, NOT_ASKED)),
        false => Ok(()),
    }
}
