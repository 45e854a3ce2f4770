//! The running server: it accepts connections until it is shut down.

use crate::connection;
use crate::crowd::Crowd;
use crate::listen::{Listener, ListenerKind, Urls};
use crate::listener::{self, Accepting};
use crate::members::Members;
use crate::meters::Meters;
use crate::monitor::{self, Beside, Monitor};
use crate::settings::ConnectionSettings;
use crate::slow::Slowest;
use crate::state::ServerState;
use crate::writes::{Elsewhere, Writes};
use crate::written::Written;
use keyway_lock::Unpoisoned;
use keyway_server::{Directory, Provider, VirtualEntry, VirtualTree, Wanted};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, RwLock};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

/// A running server. Dropping it without [`LdapServer::shutdown`] stops accepting and leaves the
/// connections to their own end.
pub struct LdapServer {
    accepting: Mutex<Vec<(ListenerKind, Accepting)>>,
    urls: Urls,
    shared: Arc<ServerState>,
    beside: Arc<Beside>,
}

impl LdapServer {
    /// Starts to accept. Connections are tasks of the tokio runtime this is called in, which must
    /// be of the kind with several threads: long work runs beside the rest.
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
        settings: ConnectionSettings,
    ) -> io::Result<LdapServer> {
        let waiting_max = settings.limits.password_checks_waiting_max;
        directory.passwords().set_waiting_max(waiting_max);
        let settings = RwLock::new(Arc::new(settings));
        let unfinished = Arc::default();
        let clock = directory.clock();
        let slowest = Arc::new(Slowest::new((clock.monotonic)()));
        let shared = ServerState {
            directory,
            settings,
            meters: Meters::new(),
            unfinished,
            slowest: slowest.clone(),
            registry: Arc::default(),
            crowd: Crowd::default(),
            elsewhere: Elsewhere::default(),
            written: Written::default(),
            members: RwLock::default(),
            end_on_behalf: watch::Sender::default(),
        };
        let shared = Arc::new(shared);
        let urls = Urls::default();
        let monitor = Monitor {
            directory: Arc::downgrade(&shared.directory),
            registry: shared.registry.clone(),
            slowest,
            started: (clock.monotonic)(),
            started_at: (clock.wall)(),
            listeners: urls.clone(),
            beside: Arc::default(),
        };
        let beside = monitor.beside.clone();
        shared
            .directory
            .publish(VirtualTree::Monitor, Provider::new(move |wanted| monitor.entries(wanted)));
        let server = LdapServer { accepting: Mutex::default(), urls, shared, beside };
        for listener in listeners {
            server.listen(listener.kind(), Some(listener))?;
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
    /// As [`LdapServer::start`].
    pub fn listen(&self, kind: ListenerKind, listener: Option<Listener>) -> io::Result<()> {
        let url = listener.as_ref().and_then(|it| monitor::url(&it.socket, &it.mode));
        let ready = match listener {
            Some(Listener { socket, mode }) => {
                let connections_max = self.shared.settings().limits.connections_max;
                Some((listener::prepare(socket, connections_max)?, mode))
            }
            None => None,
        };
        let mut accepting = self.accepting.lock().unpoisoned();
        // Dropping it ends it.
        accepting.retain(|(other, _)| *other != kind);
        if let Some((socket, mode)) = ready {
            accepting.push((kind, Accepting::begin(self.shared.clone(), socket, mode)));
        }
        let mut urls = self.urls.write().unpoisoned();
        urls.retain(|(other, _)| *other != kind);
        urls.extend(url.map(|url| (kind, url)));
        Ok(())
    }

    /// Shows these entries below `cn=monitor` too, each after the one above it. They are made by the thread of
    /// a connection, which must not wait, and may be left out if they are not wanted.
    pub fn show_beside(
        &self,
        entries: impl Fn(&Wanted<'_>) -> Vec<VirtualEntry> + Send + Sync + 'static,
    ) {
        *self.beside.write().unpoisoned() = Some(Box::new(entries));
    }

    /// The parts of it that a member of a cluster works with.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle { shared: self.shared.clone() }
    }

    /// Hands connections of LDAPS that ask for [`MEMBER_PROTOCOL`](crate::MEMBER_PROTOCOL) over to this service from now on;
    /// without one they are clients' as all others. They count as these do.
    pub fn take_members(&self, members: Option<Members>) {
        *self.shared.members.write().unpoisoned() = members;
    }

    /// Takes other settings, for connections to come; those that are open take them with their next bind.
    pub fn reconfigure(&self, settings: ConnectionSettings) {
        let waiting_max = settings.limits.password_checks_waiting_max;
        self.shared.directory.passwords().set_waiting_max(waiting_max);
        *self.shared.settings.write().unpoisoned() = Arc::new(settings);
    }

    /// Stops: accepts no connection more, answers what was asked before and the logins that are under way, tells every
    /// peer, and closes. Clients go first, for [`Limits::drain_max`](crate::Limits::drain_max) at the latest; then members
    /// of the cluster, whose connections stay until `followed`, which begins when no more changes come.
    pub async fn shutdown(self, followed: impl Future<Output = ()>) {
        let accepting = self.accepting.lock().unpoisoned().split_off(0);
        for (_, accepting) in accepting {
            accepting.end().await;
        }
        let drain_max = self.shared.settings().limits.drain_max;
        self.shared.end_on_behalf.send_replace(true);
        self.shared.registry.empty_but_last(drain_max).await;
        // Those who are late are cut off with their connections.
        let _ = timeout(drain_max, self.shared.end_on_behalf.closed()).await;
        // It waits for the disk.
        let directory = self.shared.directory.clone();
        let _ = tokio::task::spawn_blocking(move || directory.write_pending()).await;
        followed.await;
        self.shared.registry.empty(drain_max).await;
    }
}

/// The parts of a running server that a member of a cluster works with.
#[derive(Clone)]
pub struct ServerHandle {
    shared: Arc<ServerState>,
}

impl ServerHandle {
    /// Makes changes there from now on. Those that are under way go on.
    pub fn write(&self, writes: Writes) {
        self.shared.elsewhere.set(writes);
    }

    /// Serves the requests that another member of the cluster sends for its clients, until its connection ends. It has
    /// shown that it is one: it is believed on whose behalf it asks.
    pub async fn serve_member(&self, stream: TlsStream<TcpStream>, from: SocketAddr) {
        connection::serve_member(self.shared.clone(), stream, from).await;
    }
}
