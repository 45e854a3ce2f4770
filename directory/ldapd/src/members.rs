//! Connections of other servers of a cluster: they come to the listener of LDAPS, ask there for a protocol of their own,
//! and are handed over with their TLS.

use crate::registry::{Leave, Registry};
use crate::request_log::Origin;
use crate::stream::Stream;
use keyway_server::access::Strength;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// The protocol that a member asks for in its ClientHello (ALPN, RFC 7301).
pub const MEMBER_PROTOCOL: &[u8] = b"keyway-cluster/1";

/// The name of a member that has shown its certificate, where connections are listed.
const MEMBER_NAME: &str = "cn=cluster,cn=keyway";

/// The service of one connection, to its end.
pub type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The service of members' connections.
#[derive(Clone)]
pub struct Members {
    /// The TLS that such a connection is accepted with. It has to offer [`MEMBER_PROTOCOL`], and says whose certificate
    /// is taken.
    pub tls: Arc<ServerConfig>,
    /// Serves a connection whose handshake is done; the second argument is where its peer is. It is dropped when the
    /// server ends or needs the connection's place, and has to set limits of its own.
    pub serve: Arc<dyn Fn(TlsStream<TcpStream>, SocketAddr) -> Served + Send + Sync>,
}

impl Members {
    /// Takes a peer through the handshake that it asks for: a member's, or a client's with `tls`.
    pub(crate) async fn accept(
        &self,
        tcp: TcpStream,
        tls: Arc<ServerConfig>,
    ) -> io::Result<Stream> {
        let chosen = Stream::accept_tls_by(tcp, |hello| {
            let mut wanted = hello.alpn().into_iter().flatten();
            match wanted.any(|protocol| protocol == MEMBER_PROTOCOL) {
                true => self.tls.clone(),
                false => tls,
            }
        });
        chosen.await
    }

    /// Serves a member, or gives the connection back if it is a client's.
    pub(crate) async fn take(
        &self,
        stream: Stream,
        registry: &Registry,
        origin: &Origin,
        stop: &mut oneshot::Receiver<Leave>,
    ) -> Option<Stream> {
        let Stream::Tls(tls) = stream else { return Some(stream) };
        // That of clients has no such protocol to agree to.
        if tls.get_ref().1.alpn_protocol() != Some(MEMBER_PROTOCOL) {
            return Some(Stream::Tls(tls));
        }
        let address = origin.peer.address()?;
        if tls.get_ref().1.peer_certificates().is_some() {
            // It is no stranger, who would have to make room.
            origin.seen.speaks_for(Some(MEMBER_NAME), Strength::default());
            registry.leaves_last(origin.connection);
        }
        tokio::select! {
            () = (self.serve)(*tls, address) => {}
            _ = stop => {}
        }
        None
    }
}
