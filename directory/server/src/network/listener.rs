//! Accepting connections, each into a task of its own.

use super::answer::Outbox;
use super::limits::{ACCEPT_PAUSE, SEND_BUFFER_BYTES};
use super::registry::Registry;
use super::{Mode, Shared, connection};
use crate::log::{Access, Value};
use keyway_codec::message::ResultCode;
use rustix::net::sockopt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Makes a bound listener ready. What is set on it holds for the connections it accepts.
pub(super) fn prepare(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    sockopt::set_tcp_nodelay(&listener, true)?;
    sockopt::set_socket_keepalive(&listener, true)?;
    sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER_BYTES)?;
    TcpListener::from_std(listener)
}

/// Accepts until its task is aborted.
pub(super) async fn accept(
    shared: Arc<Shared>,
    registry: Arc<Registry>,
    listener: TcpListener,
    mode: Mode,
) {
    loop {
        match listener.accept().await {
            Ok((tcp, peer)) => admit(&shared, &registry, tcp, peer, &mode),
            Err(error) if concerns_one_peer(&error) => {}
            // Out of descriptors or memory: those who are connected may leave some.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn concerns_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(error.kind(), ConnectionAborted | ConnectionReset | ConnectionRefused | Interrupted)
}

fn admit(
    shared: &Arc<Shared>,
    registry: &Arc<Registry>,
    tcp: TcpStream,
    peer: SocketAddr,
    mode: &Mode,
) {
    let Some((place, stop)) = registry.enter(shared.settings().limits.connections_max) else {
        shared.meters.refused.increment();
        let why = Value::Text("connections_max are open");
        shared.origin(0, peer).connection(Access::Refused, "refused-connection", &[("text", why)]);
        return turn_away(tcp, mode);
    };
    let (id, shared, mode) = (place.id(), shared.clone(), mode.clone());
    let origin = shared.origin(id, peer);
    let task = tokio::spawn(async move {
        shared.meters.opened.increment();
        origin.connection(Access::Everything, "open", &[]);
        connection::serve(shared.clone(), tcp, origin.clone(), mode, stop).await;
        origin.connection(Access::Everything, "close", &[]);
        shared.meters.closed.increment();
        drop(place);
    });
    registry.set_task(id, task.abort_handle());
}

/// Says why, where that can be said in the clear and at once.
fn turn_away(tcp: TcpStream, mode: &Mode) {
    if let (Ok(mut tcp), Mode::Plain | Mode::StartTls(_)) = (tcp.into_std(), mode) {
        let mut outbox = Outbox::default();
        outbox.notice(ResultCode::Busy, "too many connections; try again later");
        // It goes away in any case.
        let _ = tcp.write(outbox.unsent());
    }
}
