//! A connection: TLS with both sides where that is wanted, and what they say passed on.

use super::ends::Ends;
use super::pass::{Pass, now_ns};
use crate::limits::PROXY_WAIT;
use crate::proxy_protocol::header;
use keyway_host::failure::plain;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Serves a client that has connected, until both sides have ended.
pub(super) async fn serve(client: TcpStream, from: SocketAddr, number: u64, ends: &Ends) {
    let tap = &ends.tap;
    let own = client.local_addr().unwrap_or(from);
    tap.opened(number, now_ns(), from, own);
    if let Err(why) = forward(client, from, own, number, ends).await {
        let ended = matches!(
            why.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        );
        if !ended {
            tap.note(number, now_ns(), plain(&why));
        }
    }
    tap.closed(number, now_ns());
}

fn said(what: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |why| io::Error::new(why.kind(), format!("{what}: {}", plain(&why)))
}

/// Waits no longer than is sensible for something of the other side.
async fn soon<T>(what: &'static str, wait: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(PROXY_WAIT, wait).await {
        Ok(done) => done.map_err(said(what)),
        Err(_) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("{what}: it takes too long")))
        }
    }
}

async fn forward(
    mut client: TcpStream,
    from: SocketAddr,
    own: SocketAddr,
    number: u64,
    ends: &Ends,
) -> io::Result<()> {
    let Ends { to, name, connector, .. } = ends;
    let address = (to.host.as_str(), to.port);
    let mut server = soon("cannot connect to the server", TcpStream::connect(address)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    if let Some(version) = ends.header {
        server.write_all(&header(version, from, own)).await?;
    }
    let accepted = |client| async {
        let Some(acceptor) = &ends.acceptor else {
            return Err(io::Error::other("there is no certificate for TLS"));
        };
        soon("TLS with the client failed", acceptor.accept(client)).await
    };
    let connected =
        |server| soon("TLS with the server failed", connector.connect(name.clone(), server));
    let pass = Pass { tap: &ends.tap, number };
    match (ends.tls, to.tls) {
        (true, true) => {
            let (client, server) = (accepted(client).await?, connected(server).await?);
            ends.tap.protected(number, now_ns());
            pass.both(split(client), split(server)).await
        }
        (true, false) => {
            let client = accepted(client).await?;
            ends.tap.protected(number, now_ns());
            pass.both(split(client), server.into_split()).await
        }
        (false, true) => {
            let server = connected(server).await?;
            pass.both(client.into_split(), split(server)).await
        }
        (false, false) if ends.acceptor.is_none() => {
            pass.both(client.into_split(), server.into_split()).await
        }
        (false, false) => {
            if !pass.until_tls(&mut client, &mut server).await? {
                return Ok(());
            }
            let (client, server) = (accepted(client).await?, connected(server).await?);
            ends.tap.protected(number, now_ns());
            pass.both(split(client), split(server)).await
        }
    }
}
