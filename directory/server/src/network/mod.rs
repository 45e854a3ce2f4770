//! The network half: listeners, TLS, connections, binds, extended operations.
//!
//! ```text
//! listener ── connection (bytes, turns) ── conversation (requests, answers) ── Directory
//!                  │                            └─ bind, extended
//!                  └─ stream (plain or TLS)
//! ```
//!
//! Each connection is one task. It never waits for a single request: reads are answered on the
//! spot, searches are cursors, the rest are futures. Peers share nothing but the processor.

mod administrator;
mod answer;
mod asks;
mod bind;
mod budget;
mod claim;
mod connection;
mod conversation;
mod crowd;
mod extended;
mod journal;
mod limits;
mod listener;
mod meters;
mod monitor;
mod peer;
mod proxied;
mod registry;
mod seen;
mod slow;
mod strangers;
mod stream;
mod tls;

use crate::Directory;
use crate::access::Network;
use crate::made::{MadeEntry, MadeTree, Maker, Wanted};
pub use administrator::Administrator;
use budget::Budget;
use crowd::Crowd;
use journal::Origin;
pub use limits::Limits;
use meters::Meters;
pub use monitor::branch as monitor_branch;
use monitor::{Beside, Monitor};
pub(crate) use peer::Peer;
use registry::Registry;
use seen::Seen;
use slow::Slowest;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
pub use tls::CurrentTls;
use tokio::task::JoinHandle;

/// How the network half behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bounds on connections, bytes and time.
    pub limits: Limits,
    /// Take passwords on any connection without TLS. Off unless somebody has a reason.
    pub allow_plain_password: bool,
    /// Take passwords without TLS from peers on this machine's loopback addresses. To be switched
    /// off where a proxy on this machine forwards connections of others.
    pub trust_loopback: bool,
    /// Which certificates of clients are the administrator's.
    pub administrators: Vec<Administrator>,
    /// Who says in front of a connection whose it is.
    pub proxies: Proxies,
    /// Who is what over a Unix socket.
    pub local: Local,
}

/// Proxies whose connections begin with a header that says whose they are
/// ([`keyway_codec::proxy`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Whether that is so on listeners that begin in the clear.
    pub plain: bool,
    /// Whether that is so on listeners that begin with TLS.
    pub tls: bool,
    /// Where they connect from. No other client is asked for a header, nor believed.
    pub from: Vec<Network>,
}

impl Proxies {
    /// Whether a connection from this address to a listener of this kind begins with a header.
    fn are_at(&self, mode: &Mode, peer: &Peer) -> bool {
        let is_wanted = match mode {
            Mode::Plain | Mode::StartTls(_) => self.plain,
            Mode::Tls(_) => self.tls,
        };
        match peer {
            Peer::Tcp(address) => {
                is_wanted && self.from.iter().any(|network| network.holds(address.ip()))
            }
            Peer::Proxied { .. } | Peer::Unix(_) => false,
        }
    }
}

/// Whom SASL EXTERNAL over a Unix socket makes of the users of this machine. All others have the name
/// `gidNumber=...+uidNumber=...,cn=peercred,cn=external,cn=auth` and no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// Whose processes are the administrator, by user ids.
    pub administrators: Vec<u32>,
    /// Whether somebody is the one entry whose `uidNumber` is his user id.
    pub by_uid_number: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            limits: Limits::default(),
            allow_plain_password: false,
            trust_loopback: true,
            administrators: Vec::new(),
            proxies: Proxies::default(),
            local: Local::default(),
        }
    }
}

impl Settings {
    /// Whether a password may cross a connection with this peer without TLS.
    fn is_private(&self, peer: &Peer) -> bool {
        let is_near = match peer {
            Peer::Tcp(peer) => self.trust_loopback && peer.ip().to_canonical().is_loopback(),
            // It has come over a network, whatever the client's address is where the proxy is.
            Peer::Proxied { .. } => false,
            // It never leaves the system.
            Peer::Unix(_) => true,
        };
        self.allow_plain_password || is_near
    }
}

/// How connections of a listener begin.
#[derive(Clone)]
pub enum Mode {
    /// In the clear, and so they stay.
    Plain,
    /// In the clear, until the peer asks for StartTLS.
    StartTls(CurrentTls),
    /// With a TLS handshake.
    Tls(CurrentTls),
}

/// Where to accept connections.
pub struct Listener {
    /// A socket that is bound and listens.
    pub socket: Socket,
    /// How its connections begin; those of a Unix socket are in the clear in any case.
    pub mode: Mode,
}

/// The kind of a listener's connections, for callers that name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They come over a network and begin in the clear.
    Plain,
    /// They come over a network and begin with TLS.
    Tls,
    /// They come from processes of this machine.
    Unix,
}

impl Listener {
    fn way(&self) -> Way {
        match (&self.socket, &self.mode) {
            (Socket::Unix(_), _) => Way::Unix,
            (Socket::Tcp(_), Mode::Tls(_)) => Way::Tls,
            (Socket::Tcp(_), Mode::Plain | Mode::StartTls(_)) => Way::Plain,
        }
    }
}

/// Listeners, and what clients call them.
type Urls = Arc<RwLock<Vec<(Way, String)>>>;

/// A socket that is bound and listens.
pub enum Socket {
    /// On an address.
    Tcp(std::net::TcpListener),
    /// On a file.
    Unix(std::os::unix::net::UnixListener),
}

impl From<std::net::TcpListener> for Socket {
    fn from(socket: std::net::TcpListener) -> Self {
        Socket::Tcp(socket)
    }
}

impl From<std::os::unix::net::UnixListener> for Socket {
    fn from(socket: std::os::unix::net::UnixListener) -> Self {
        Socket::Unix(socket)
    }
}

/// What all connections share.
struct Shared {
    directory: Arc<Directory>,
    settings: RwLock<Arc<Settings>>,
    meters: Meters,
    unfinished: Arc<Budget>,
    slowest: Arc<Slowest>,
    registry: Arc<Registry>,
    crowd: Crowd,
}

impl Shared {
    /// The settings as they are now.
    fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn origin(&self, connection: u64, seen: Arc<Seen>) -> Origin {
        let (shared, peer) = (&self.directory.shared, seen.peer);
        let slowest = self.slowest.clone();
        Origin { log: shared.log.clone(), clock: shared.clock, connection, peer, seen, slowest }
    }

    /// What will be seen of a connection that is opened now.
    fn seen(&self, peer: Peer) -> Arc<Seen> {
        let administrators = &self.settings().local.administrators;
        let is_at_home = peer.credentials().is_some_and(|it| administrators.contains(&it.uid));
        Arc::new(Seen::new(peer, is_at_home, self.directory.shared.now()))
    }
}

/// A running server. Dropping it without [`Server::shutdown`] stops accepting and leaves the
/// connections to their own end.
pub struct Server {
    accepting: Mutex<Vec<(Way, JoinHandle<()>)>>,
    urls: Urls,
    shared: Arc<Shared>,
    beside: Arc<Beside>,
}

impl Server {
    /// Starts to accept. Connections are tasks of the tokio runtime this is called in, which must
    /// be of the kind with several threads: what takes long runs beside the rest.
    ///
    /// # Errors
    /// If the system does not let a listener be set up.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled. A runtime of one thread only is not
    /// enough: a connection's long requests hand the thread's others over to another.
    pub fn start(
        directory: Arc<Directory>,
        listeners: Vec<Listener>,
        settings: Settings,
    ) -> io::Result<Server> {
        let waiting_max = settings.limits.password_checks_waiting_max;
        directory.shared.passwords.set_waiting_max(waiting_max);
        let settings = RwLock::new(Arc::new(settings));
        let unfinished = Arc::default();
        let slowest = Arc::<Slowest>::default();
        let shared = Shared {
            directory,
            settings,
            meters: Meters::new(),
            unfinished,
            slowest: slowest.clone(),
            registry: Arc::default(),
            crowd: Crowd::default(),
        };
        let shared = Arc::new(shared);
        let urls = Urls::default();
        let monitor = Monitor {
            directory: Arc::downgrade(&shared.directory.shared),
            registry: shared.registry.clone(),
            slowest,
            started: shared.directory.shared.now(),
            listeners: urls.clone(),
            beside: Arc::default(),
        };
        let beside = monitor.beside.clone();
        shared
            .directory
            .publish(MadeTree::Monitor, Maker::new(move |wanted| monitor.entries(wanted)));
        let server = Server { accepting: Mutex::default(), urls, shared, beside };
        for listener in listeners {
            server.listen(listener.way(), Some(listener))?;
        }
        Ok(server)
    }

    /// Accepts connections of this kind from this listener on, and from no other; from none, if there is none.
    /// Those that are open go on.
    ///
    /// # Errors
    /// If the system does not let it be set up; then all stays as it was.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn listen(&self, way: Way, listener: Option<Listener>) -> io::Result<()> {
        let url = listener.as_ref().and_then(|it| monitor::url(&it.socket, &it.mode));
        let ready = match listener {
            Some(Listener { socket, mode }) => Some((listener::prepare(socket)?, mode)),
            None => None,
        };
        let mut accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner);
        accepting.retain(|(other, task)| {
            if *other == way {
                task.abort();
            }
            *other != way
        });
        if let Some((socket, mode)) = ready {
            let accept = listener::accept(self.shared.clone(), socket, mode);
            accepting.push((way, tokio::spawn(accept)));
        }
        let mut urls = self.urls.write().unwrap_or_else(PoisonError::into_inner);
        urls.retain(|(other, _)| *other != way);
        urls.extend(url.map(|url| (way, url)));
        Ok(())
    }

    /// Shows these entries below `cn=monitor` too, each after the one above it. They are made by the thread of
    /// a connection, which must not wait, and may be left out if they are not wanted.
    pub fn show_beside(
        &self,
        entries: impl Fn(&Wanted<'_>) -> Vec<MadeEntry> + Send + Sync + 'static,
    ) {
        *self.beside.write().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(entries));
    }

    /// Takes other settings, for connections to come; those that are open keep theirs.
    pub fn reconfigure(&self, settings: Settings) {
        let waiting_max = settings.limits.password_checks_waiting_max;
        self.shared.directory.shared.passwords.set_waiting_max(waiting_max);
        *self.shared.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// Stops: accepts nobody and nothing more, answers the writes that were accepted, tells every
    /// peer, and closes. Returns after [`Limits::drain_max`] at the latest, or a little later.
    pub async fn shutdown(self) {
        let accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).split_off(0);
        for (_, task) in accepting {
            task.abort();
            // It ends by being aborted, which is an error in name only.
            let _ = task.await;
        }
        self.shared.registry.stop_all();
        let drain_max = self.shared.settings().limits.drain_max;
        if tokio::time::timeout(drain_max, self.shared.registry.emptied()).await.is_err() {
            self.shared.registry.abort_all();
            self.shared.registry.emptied().await;
        }
        // It waits for the disk.
        let directory = self.shared.directory.clone();
        let _ = tokio::task::spawn_blocking(move || directory.write_pending()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner);
        accepting.iter().for_each(|(_, task)| task.abort());
    }
}
