//! Whom we look at: a server of this machine, or another over LDAP; each by a thread of its own.

use keyway_config::Running;
use keyway_folder::data::{name, read_password};
use keyway_host::failure::Failure;
use keyway_meter::{Reader, Snapshot};
use keyway_server::ADMINISTRATOR_DN;
use keyway_watch::MonitorClient;
use keyway_watch::ldap::{ConnectOptions, Login, ServerUrl};
use keyway_watch::{ServerLists, ServerSnapshot};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// Looks that pass before a server of this machine that did not let us in is asked again.
const LISTS_AGAIN: u32 = 60;

/// A server, and how to look at it.
pub enum Source {
    /// Whatever runs on a data folder.
    Folder(Folder),
    /// One that is reached over LDAP.
    Server(Server),
}

pub struct Folder {
    path: PathBuf,
    directory: Option<Reader>,
    cryptod: Option<Reader>,
    /// For the lists, which are in no page.
    lists: Server,
    /// Why there are none, and for how many looks that is believed.
    refused: Option<(String, u32)>,
    /// A flag has said who asks; else it is the administrator, whose password is in a file.
    has_login: bool,
}

pub struct Server {
    url: Option<ServerUrl>,
    options: ConnectOptions,
    login: Login,
    connection: Option<MonitorClient>,
    /// Why the login is not taken: it is not tried again.
    refused: Option<String>,
}

impl Source {
    /// What runs on a data folder. ServerLists come from its own LDAPS port, as its administrator or as
    /// somebody else.
    pub fn folder(path: &Path, options: ConnectOptions, login: Login) -> Source {
        let mut options = options;
        options.trust.own_ca = Some(path.join(name::CA_CERTIFICATE));
        Source::Folder(Folder {
            path: path.to_owned(),
            directory: None,
            cryptod: None,
            has_login: login.is_some(),
            lists: Server { url: None, options, login, connection: None, refused: None },
            refused: None,
        })
    }

    /// A server by its address.
    pub fn server(url: ServerUrl, options: ConnectOptions, login: Login) -> Source {
        Source::Server(Server { url: Some(url), options, login, connection: None, refused: None })
    }

    /// Looks at it.
    ///
    /// # Errors
    /// Why nothing is seen.
    pub fn look(&mut self, connections: bool) -> Result<ServerSnapshot, Failure> {
        match self {
            Source::Folder(folder) => folder.look(connections),
            Source::Server(server) => server.with(|remote| remote.look(connections)),
        }
    }

    /// Looks at its counters only, which costs a server of this machine nothing.
    ///
    /// # Errors
    /// As [`Source::look`].
    pub fn counters(&mut self) -> Result<ServerSnapshot, Failure> {
        match self {
            Source::Folder(folder) => folder.pages(),
            Source::Server(server) => server.with(|remote| remote.look(false)),
        }
    }

    /// Looks again and again, and tells; ends when nobody listens.
    pub fn watch(
        mut self,
        number: usize,
        interval: Duration,
        connections: &Arc<AtomicBool>,
        tell: &Sender<(usize, Result<ServerSnapshot, String>)>,
    ) {
        let mut next = Instant::now();
        loop {
            let snapshot = self.look(connections.load(Ordering::Relaxed));
            if tell.send((number, snapshot.map_err(|why| why.to_string()))).is_err() {
                return;
            }
            next = (next + interval).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
}

impl Folder {
    fn look(&mut self, connections: bool) -> Result<ServerSnapshot, Failure> {
        let mut snapshot = self.pages()?;
        if snapshot.directory.is_some() {
            snapshot.lists = self.lists(connections);
        }
        Ok(snapshot)
    }

    fn pages(&mut self) -> Result<ServerSnapshot, Failure> {
        let directory = page(&mut self.directory, &self.path.join(name::METER));
        let cryptod = page(&mut self.cryptod, &name::meter_at(&self.path));
        if directory.is_none() && cryptod.is_none() {
            self.lists.connection = None;
            let shown = self.path.display();
            return Err(Failure::new(format!(
                "no server runs on {shown}; start one with keyway up, or name its folder with --data DIR"
            )));
        }
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let started = directory.as_ref().or(cryptod.as_ref()).map(|page| page.started_unix_ms);
        let up = started.map(|started| (now_ms as u64).saturating_sub(started) / 1_000);
        let kind = concat!("Keyway ", env!("CARGO_PKG_VERSION")).to_owned();
        let lists = ServerLists::default();
        Ok(ServerSnapshot { at: Instant::now(), uptime_s: up, kind, directory, cryptod, lists })
    }

    fn lists(&mut self, connections: bool) -> ServerLists {
        if let Some((why, looks @ 1..)) = &mut self.refused {
            *looks -= 1;
            return ServerLists { missing: Some(why.clone()), ..ServerLists::default() };
        }
        match self.ask(connections) {
            Ok(lists) => {
                self.refused = None;
                lists
            }
            Err(why) => {
                let why = why.to_string();
                self.refused = Some((why.clone(), LISTS_AGAIN));
                ServerLists { missing: Some(why), ..ServerLists::default() }
            }
        }
    }

    fn ask(&mut self, connections: bool) -> Result<ServerLists, Failure> {
        if self.lists.connection.is_none() {
            let address = Running::look(&self.path).and_then(|running| running.ldaps);
            let address = address.ok_or_else(|| {
                Failure::new("lists are told over LDAPS, and it is off (listen_tls)")
            })?;
            let host = match address.ip() {
                ip if ip.is_unspecified() => "localhost".to_owned(),
                ip => ip.to_string(),
            };
            self.lists.url = Some(ServerUrl { host, port: address.port(), tls: true });
            if !self.has_login {
                // The file may have another one than the last time; only then is it tried again.
                let login = Some(self.administrator()?);
                if login != self.lists.login {
                    (self.lists.login, self.lists.refused) = (login, None);
                }
            }
        }
        self.lists.with(|remote| remote.lists(connections))
    }

    fn administrator(&self) -> Result<(String, Zeroizing<Vec<u8>>), Failure> {
        let path = self.path.join(name::ADMIN_PASSWORD);
        let password = read_password(&path).map_err(|_| {
            Failure::new(format!(
                "{} is not there: say who asks with --bind-dn DN --password-file FILE",
                path.display()
            ))
        })?;
        Ok((ADMINISTRATOR_DN.to_owned(), password))
    }
}

/// What a page shows, if somebody counts into it; opened again when it is another process's.
fn page(reader: &mut Option<Reader>, path: &Path) -> Option<Snapshot> {
    if reader.as_ref().is_none_or(|reader| !reader.alive()) {
        *reader = Reader::open(path).ok().filter(Reader::alive);
    }
    reader.as_ref()?.snapshot().ok()
}

impl Server {
    /// Asks over the connection that there is, or a new one. One that broke is not used again.
    fn with<T>(
        &mut self,
        ask: impl FnOnce(&mut MonitorClient) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut remote = match (self.connection.take(), &self.url, &self.refused) {
            (Some(remote), ..) => remote,
            (None, _, Some(why)) => return Err(Failure::refused(why)),
            (None, Some(url), None) => {
                let connected = MonitorClient::connect(url, &self.options, &self.login);
                connected.inspect_err(|why| {
                    self.refused = why.is_refused().then(|| why.to_string());
                })?
            }
            (None, None, None) => return Err(Failure::new("there is no address")),
        };
        let answer = ask(&mut remote)?;
        self.connection = Some(remote);
        Ok(answer)
    }
}
