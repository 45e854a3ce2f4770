//! Accepting connections, each into a task of its own.

use crate::answer::Outbox;
use crate::limits::{
    ACCEPT_PAUSE, GRACE_MAX, LAST_ACCEPTED_MAX, LEAVING_MAX, OTHER_DESCRIPTORS,
    PROXY_HEADERS_WAITING_MAX, SEND_BUFFER_BYTES,
};
use crate::listen::{Mode, Socket};
use crate::peer::{Peer, PeerCredentials};
use crate::state::ServerState;
use crate::stream::Stream;
use crate::{connection, proxied};
use keyway_codec::message::ResultCode;
use keyway_server::log::{Access, Value};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::sockopt;
use std::convert::Infallible;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::timeout;

/// A listener that is ready.
pub(crate) enum Ready {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Makes a bound listener of a server with so many connections ready. Its options hold for the connections it accepts.
pub(crate) fn prepare(socket: Socket, connections_max: usize) -> io::Result<Ready> {
    match socket {
        Socket::Tcp(listener) => {
            let listener = above_connections(listener, connections_max);
            listener.set_nonblocking(true)?;
            sockopt::set_tcp_nodelay(&listener, true)?;
            sockopt::set_socket_keepalive(&listener, true)?;
            sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER_BYTES)?;
            Ok(Ready::Tcp(TcpListener::from_std(listener)?))
        }
        Socket::Unix(listener) => {
            let listener = above_connections(listener, connections_max);
            listener.set_nonblocking(true)?;
            Ok(Ready::Unix(UnixListener::from_std(listener)?))
        }
    }
}

/// Gives a listener a higher descriptor than connections get. Linux closes the files of a process that is killed from the
/// highest to the lowest: those who are cut off and come again at once are to be refused, and not to be cut off twice.
fn above_connections<S: AsFd + From<OwnedFd>>(listener: S, connections_max: usize) -> S {
    let least = RawFd::try_from(connections_max.saturating_add(OTHER_DESCRIPTORS));
    let above = least.map(|least| fcntl_dupfd_cloexec(&listener, least));
    // Where there is none so high, it keeps its own.
    match above {
        Ok(Ok(above)) => S::from(above),
        _ => listener,
    }
}

impl Ready {
    async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Ready::Tcp(listener) => {
                let (tcp, address) = listener.accept().await?;
                Ok((Stream::Plain(tcp), Peer::Tcp(address)))
            }
            Ready::Unix(listener) => {
                let (unix, _) = listener.accept().await?;
                Ready::unix(unix)
            }
        }
    }

    fn unix(unix: UnixStream) -> io::Result<(Stream, Peer)> {
        let credentials = PeerCredentials::from(unix.peer_cred()?);
        Ok((Stream::Unix(unix), Peer::Unix(credentials)))
    }

    /// The connections that wait now, also those of which the runtime has not heard. Later ones are refused.
    fn last(self) -> Vec<(Stream, Peer)> {
        match self {
            Ready::Tcp(listener) => {
                let Ok(listener) = listener.into_std() else { return Vec::new() };
                let all = waiting(|| {
                    let (tcp, address) = listener.accept()?;
                    tcp.set_nonblocking(true)?;
                    Ok((Stream::Plain(TcpStream::from_std(tcp)?), Peer::Tcp(address)))
                });
                all.collect()
            }
            Ready::Unix(listener) => {
                let Ok(listener) = listener.into_std() else { return Vec::new() };
                let all = waiting(|| {
                    let (unix, _) = listener.accept()?;
                    unix.set_nonblocking(true)?;
                    Ready::unix(UnixStream::from_std(unix)?)
                });
                all.collect()
            }
        }
    }
}

/// Accepts without waiting, until none waits any more.
fn waiting<R>(mut accept: impl FnMut() -> io::Result<R>) -> impl Iterator<Item = R> {
    let accepted = (0..LAST_ACCEPTED_MAX).map_while(move |_| match accept() {
        Ok(accepted) => Some(Some(accepted)),
        Err(error) if concerns_one_peer(&error) => Some(None),
        Err(_) => None,
    });
    accepted.flatten()
}

/// A listener whose connections are accepted, until this is dropped.
pub(crate) struct Accepting {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Accepting {
    pub fn begin(shared: Arc<ServerState>, listener: Ready, mode: Mode) -> Accepting {
        let (end, mut ends) = oneshot::channel();
        let task = tokio::spawn(async move {
            // Those of proxies, whose header is read first.
            let mut headers = JoinSet::new();
            tokio::select! {
                never = accept(&shared, &listener, &mode, &mut headers) => match never {},
                _ = &mut ends => {}
            }
            // For their programs these are connected already, and what they ask for is not tried elsewhere.
            for accepted in listener.last() {
                take(&shared, Ok(accepted), &mode, &mut headers);
            }
            let rest = async {
                while let Some(read) = headers.join_next().await {
                    admit_proxied(&shared, read, &mode);
                }
            };
            let _ = timeout(GRACE_MAX, rest).await;
        });
        Accepting { end, task }
    }

    /// Ends it, and returns when all that had connected by now are served.
    pub async fn end(self) {
        drop(self.end);
        // A panic of its own was said by it.
        let _ = self.task.await;
    }
}

type Headers = JoinSet<Option<(Stream, Peer)>>;

async fn accept(
    shared: &Arc<ServerState>,
    listener: &Ready,
    mode: &Mode,
    headers: &mut Headers,
) -> Infallible {
    loop {
        shared.registry.few_leave().await;
        tokio::select! {
            accepted = listener.accept() => {
                let failed = accepted.as_ref().is_err_and(|error| !concerns_one_peer(error));
                take(shared, accepted, mode, headers);
                if failed {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
            Some(read) = headers.join_next() => admit_proxied(shared, read, mode),
        }
    }
}

fn take(
    shared: &Arc<ServerState>,
    accepted: io::Result<(Stream, Peer)>,
    mode: &Mode,
    headers: &mut Headers,
) {
    match accepted {
        Ok((Stream::Plain(tcp), Peer::Tcp(proxy)))
            if shared.settings().proxies.are_at(mode, &Peer::Tcp(proxy)) =>
        {
            if headers.len() < PROXY_HEADERS_WAITING_MAX {
                headers.spawn(proxied::admit(shared.clone(), tcp, proxy));
            } else {
                let why = "too many connections of proxies wait for their header";
                proxied::refuse(shared, Peer::Tcp(proxy), &why);
            }
        }
        Ok((stream, peer)) => admit(shared, stream, peer, mode),
        Err(error) if concerns_one_peer(&error) => {}
        // Out of descriptors or memory: those who are connected leave some.
        Err(error) => {
            let made_room = shared.registry.make_room(LEAVING_MAX / 2);
            shared.note_crowd(made_room, Some(&error));
        }
    }
}

fn admit_proxied(
    shared: &Arc<ServerState>,
    read: Result<Option<(Stream, Peer)>, JoinError>,
    mode: &Mode,
) {
    if let Ok(Some((stream, peer))) = read {
        admit(shared, stream, peer, mode);
    }
}

fn concerns_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(error.kind(), ConnectionAborted | ConnectionReset | ConnectionRefused | Interrupted)
}

fn admit(shared: &Arc<ServerState>, stream: Stream, peer: Peer, mode: &Mode) {
    let seen = shared.seen(peer);
    let registry = &shared.registry;
    let Some((place, stop)) = registry.enter(&shared.settings().limits, seen.clone()) else {
        shared.meters.refuse(ResultCode::Busy);
        shared.note_crowd(None, None);
        let why = Value::Text("connections_max are open");
        shared.origin(0, seen).connection(Access::Refused, "refused-connection", &[("text", why)]);
        return turn_away(stream, mode);
    };
    if place.made_room.is_some() {
        shared.note_crowd(place.made_room, None);
    }
    let (id, shared, mode) = (place.id(), shared.clone(), mode.clone());
    let origin = shared.origin(id, seen);
    let task = tokio::spawn(async move {
        shared.meters.opened.increment();
        let proxy = origin.peer.proxy();
        let via = proxy.as_ref().map_or(Value::None, |proxy| Value::Shown(proxy));
        origin.connection(Access::Everything, "open", &[("via", via)]);
        connection::serve(shared.clone(), stream, origin.clone(), mode, stop).await;
        origin.connection(Access::Everything, "close", &[]);
        shared.meters.closed.increment();
        drop(place);
    });
    registry.set_task(id, task.abort_handle());
}

/// Says why, where that can be said in the clear and at once.
fn turn_away(stream: Stream, mode: &Mode) {
    let mut outbox = Outbox::default();
    outbox.notice(ResultCode::Busy, "too many connections; try again later");
    // It goes away in any case.
    let _ = match (stream, mode) {
        (Stream::Unix(unix), _) => unix.into_std().and_then(|mut unix| unix.write(outbox.unsent())),
        (Stream::Plain(tcp), Mode::Plain | Mode::StartTls(_)) => {
            tcp.into_std().and_then(|mut tcp| tcp.write(outbox.unsent()))
        }
        _ => Ok(0),
    };
}
