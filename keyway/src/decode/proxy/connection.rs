//! One connection after another: both its directions, each for itself.

use super::header::header;
use super::now_ns;
use super::starttls::{Seen, Watch};
use super::trust;
use crate::decode::arguments::{Proxy, Target};
use crate::limits::{PROXY_BUFFER_BYTES, PROXY_CONNECTIONS_MAX, PROXY_WAIT};
use keyway_decode::{Side, Tap};
use keyway_engine::Engine;
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use rustls_pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Where octets are sent on to.
pub struct Upstream {
    target: Target,
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl Upstream {
    /// # Errors
    /// If it cannot be spoken to over TLS.
    pub fn new(proxy: &Proxy, engine: &Engine) -> Result<Upstream, Failure> {
        let target = proxy.to.clone();
        let name = ServerName::try_from(target.host.clone());
        let name = name.map_err(|_| Failure::usage(format!("{} is no host", target.host)))?;
        Ok(Upstream { target, name, connector: trust::connector(proxy, engine)? })
    }
}

/// What all connections have in common.
pub struct Shared {
    upstream: Upstream,
    acceptor: Option<TlsAcceptor>,
    /// Whether TLS begins at once.
    tls: bool,
    header: Option<super::header::Version>,
    tap: Arc<Tap>,
    places: Arc<Semaphore>,
}

impl Shared {
    pub fn new(
        proxy: &Proxy,
        upstream: Upstream,
        acceptor: Option<TlsAcceptor>,
        tap: Arc<Tap>,
    ) -> Shared {
        let places = Arc::new(Semaphore::new(PROXY_CONNECTIONS_MAX));
        let (tls, header) = (proxy.tls, proxy.proxy_protocol);
        Shared { upstream, acceptor, tls, header, tap, places }
    }

    /// Whether clients begin with TLS.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// What whoever starts it should know.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self.acceptor {
            Some(_) => {
                "TLS ends here: clients have to trust this certificate; certificates of clients, and \
                 so SASL EXTERNAL, do not get to the server"
            }
            None if !self.upstream.target.tls => {
                "what follows a StartTLS is passed on and not read; with --certificate and --key, or \
                 --data, the proxy takes part in it"
            }
            None => return None,
        })
    }
}

/// Takes connections for as long as the system gives them.
///
/// # Errors
/// If the socket cannot be used.
pub async fn accept(listener: std::net::TcpListener, shared: &Arc<Shared>) -> Result<(), Failure> {
    let wrong = |why: io::Error| Failure::new(format!("cannot listen: {}", plain(&why)));
    listener.set_nonblocking(true).map_err(wrong)?;
    let listener = TcpListener::from_std(listener).map_err(wrong)?;
    let mut number = 0;
    loop {
        let place = shared.places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((client, from)) => {
                number += 1;
                let (shared, number) = (shared.clone(), number);
                tokio::spawn(async move {
                    serve(client, from, number, &shared).await;
                    drop(place);
                });
            }
            // No file left, most likely: it is the next one's turn when one is closed.
            Err(why) => {
                output::note(format_args!("a connection was not taken: {}", plain(&why)));
                tokio::time::sleep(PROXY_WAIT / 100).await;
            }
        }
    }
}

async fn serve(client: TcpStream, from: SocketAddr, number: u64, shared: &Shared) {
    let tap = &shared.tap;
    let own = client.local_addr().unwrap_or(from);
    tap.opened(number, now_ns(), from, own);
    if let Err(why) = forward(client, from, own, number, shared).await {
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
    shared: &Shared,
) -> io::Result<()> {
    let Upstream { target, name, connector } = &shared.upstream;
    let address = (target.host.as_str(), target.port);
    let mut server = soon("cannot connect to the server", TcpStream::connect(address)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    if let Some(version) = shared.header {
        server.write_all(&header(version, from, own)).await?;
    }
    let accepted = |client| async {
        let Some(acceptor) = &shared.acceptor else {
            return Err(io::Error::other("there is no certificate for TLS"));
        };
        soon("TLS with the client failed", acceptor.accept(client)).await
    };
    let connected =
        |server| soon("TLS with the server failed", connector.connect(name.clone(), server));
    let pass = Pass { tap: &shared.tap, number };
    match (shared.tls, target.tls) {
        (true, true) => {
            let (client, server) = (accepted(client).await?, connected(server).await?);
            shared.tap.protected(number, now_ns());
            pass.both(split(client), split(server)).await
        }
        (true, false) => {
            let client = accepted(client).await?;
            shared.tap.protected(number, now_ns());
            pass.both(split(client), server.into_split()).await
        }
        (false, true) => {
            let server = connected(server).await?;
            pass.both(client.into_split(), split(server)).await
        }
        (false, false) if shared.acceptor.is_none() => {
            pass.both(client.into_split(), server.into_split()).await
        }
        (false, false) => {
            if !pass.until_tls(&mut client, &mut server).await? {
                return Ok(());
            }
            let (client, server) = (accepted(client).await?, connected(server).await?);
            shared.tap.protected(number, now_ns());
            pass.both(split(client), split(server)).await
        }
    }
}

/// What is being passed on.
struct Pass<'p> {
    tap: &'p Tap,
    number: u64,
}

/// Between the two directions: a StartTLS that is under way.
#[derive(Default)]
struct StartTls {
    /// The request's message id; ids begin with 1.
    asked: AtomicU32,
    granted: AtomicBool,
    answered: Notify,
}

/// What is to be done when octets were passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    /// Nothing is passed on until StartTLS was answered.
    Wait,
    /// TLS begins.
    Tls,
}

impl StartTls {
    /// Looks at what a client sends. After a request for StartTLS it is silent until that is answered
    /// (RFC 4511 § 4.14.1).
    fn requested(&self, watch: &mut Watch, octets: &[u8]) -> Then {
        let (used, seen) = watch.look(octets);
        let asked = match seen {
            // More than that is against the rules, and none of our business.
            Some(Seen::Request(id)) if used == octets.len() => id,
            _ => 0,
        };
        self.asked.store(asked, Ordering::Relaxed);
        if asked > 0 { Then::Wait } else { Then::GoOn }
    }

    /// Looks at what a server sends.
    fn answered(&self, watch: &mut Watch, octets: &[u8]) -> io::Result<Then> {
        let mut rest = octets;
        while !rest.is_empty() {
            let (used, seen) = watch.look(rest);
            rest = rest.get(used..).unwrap_or_default();
            let Some(Seen::Answer(id, granted)) = seen else { continue };
            if id != self.asked.load(Ordering::Relaxed) {
                continue;
            }
            self.granted.store(granted, Ordering::Relaxed);
            self.answered.notify_one();
            if granted && !rest.is_empty() {
                let what = "the server sent more than its answer before TLS began";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if granted {
                return Ok(Then::Tls);
            }
        }
        Ok(Then::GoOn)
    }
}

impl Pass<'_> {
    /// Passes both directions on until both have ended.
    async fn both(
        &self,
        (mut from_client, mut to_client): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
        (mut from_server, mut to_server): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let start = StartTls::default();
        let go_on = |_: &[u8]| Ok(Then::GoOn);
        let requests = self.one(&mut from_client, &mut to_server, Side::First, &start, go_on);
        let responses = self.one(&mut from_server, &mut to_client, Side::Second, &start, go_on);
        tokio::try_join!(requests, responses).map(|_| ())
    }

    /// The same until StartTLS was granted: whether it was, and the connection did not end.
    async fn until_tls(&self, client: &mut TcpStream, server: &mut TcpStream) -> io::Result<bool> {
        let start = StartTls::default();
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let (mut of_client, mut of_server) = (Watch::default(), Watch::default());
        let asks = |octets: &[u8]| Ok(start.requested(&mut of_client, octets));
        let requests = self.one(&mut from_client, &mut to_server, Side::First, &start, asks);
        let answers = |octets: &[u8]| start.answered(&mut of_server, octets);
        let responses = self.one(&mut from_server, &mut to_client, Side::Second, &start, answers);
        tokio::try_join!(requests, responses)?;
        Ok(start.granted.load(Ordering::Relaxed))
    }

    /// Passes one direction on, until it ends or TLS begins. `look` sees octets before they are sent, and
    /// says what is to be done afterwards.
    async fn one(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        side: Side,
        start: &StartTls,
        mut look: impl FnMut(&[u8]) -> io::Result<Then>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; PROXY_BUFFER_BYTES];
        loop {
            let count = from.read(&mut buffer).await?;
            let octets = buffer.get(..count).unwrap_or_default();
            if octets.is_empty() {
                // Whoever waits for an answer waits in vain.
                start.answered.notify_one();
                return to.shutdown().await;
            }
            let then = look(octets)?;
            self.tap.octets(self.number, now_ns(), side, octets);
            to.write_all(octets).await?;
            to.flush().await?;
            if then == Then::Wait {
                start.answered.notified().await;
            }
            if then == Then::Tls || then == Then::Wait && start.granted.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
}
