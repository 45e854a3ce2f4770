//! A server of this machine: its pages of counters, and its lists over LDAP.

use crate::ldap::{ConnectOptions, Login, ServerUrl};
use crate::ldap_source::LdapSource;
use crate::limits::LISTS_AGAIN;
use crate::snapshot::{ServerLists, ServerSnapshot};
use keyway_folder::data::{name, read_password};
use keyway_host::failure::Failure;
use keyway_meter::{Reader, Snapshot};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// A data folder on which a server may run.
#[derive(Clone, Debug)]
pub struct ServerFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Says where the server that runs on a folder listens for LDAPS.
    pub ldaps: fn(&Path) -> Option<SocketAddr>,
    /// The name of its administrator, whose password is in the folder.
    pub administrator: &'static str,
}

impl ServerFolder {
    /// Where its server is reached over TLS, if one runs there.
    #[must_use]
    pub fn ldaps_url(&self) -> Option<ServerUrl> {
        (self.ldaps)(&self.path).map(ServerUrl::of_own)
    }
}

/// The processes on a data folder: their pages of counters, and lists over LDAP.
pub struct FolderSource {
    folder: ServerFolder,
    directory: Option<Reader>,
    cryptod: Option<Reader>,
    /// For the lists, which are in no page.
    lists: LdapSource,
    /// Why there are none, and for how many looks that is believed.
    refused: Option<(String, u32)>,
    /// A login was given; else it is the administrator's, whose password is in a file.
    has_login: bool,
}

impl FolderSource {
    /// Lists come from its own LDAPS port, as its administrator or by the login.
    pub(crate) fn new(
        folder: ServerFolder,
        mut options: ConnectOptions,
        login: Login,
    ) -> FolderSource {
        options.trust.own_ca = Some(folder.path.join(name::CA_CERTIFICATE));
        FolderSource {
            folder,
            directory: None,
            cryptod: None,
            has_login: login.is_some(),
            lists: LdapSource::new(None, options, login),
            refused: None,
        }
    }

    /// See [`SnapshotSource::look`](crate::SnapshotSource::look).
    pub(crate) fn look(&mut self, connections: bool) -> Result<ServerSnapshot, Failure> {
        let mut snapshot = self.pages()?;
        if snapshot.directory.is_some() {
            snapshot.lists = self.lists(connections);
        }
        Ok(snapshot)
    }

    /// See [`SnapshotSource::counters`](crate::SnapshotSource::counters).
    pub(crate) fn pages(&mut self) -> Result<ServerSnapshot, Failure> {
        let directory = page(&mut self.directory, &self.folder.path.join(name::METER));
        let cryptod = page(&mut self.cryptod, &name::meter_at(&self.folder.path));
        if directory.is_none() && cryptod.is_none() {
            self.lists.connection = None;
            let shown = self.folder.path.display();
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
            let url = self.folder.ldaps_url().ok_or_else(|| {
                Failure::new("lists are told over LDAPS, and it is off (listen_tls)")
            })?;
            self.lists.url = Some(url);
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
        let path = self.folder.path.join(name::ADMIN_PASSWORD);
        let password = read_password(&path).map_err(|_| {
            Failure::new(format!(
                "{} is not there: say who asks with --bind-dn DN --password-file FILE",
                path.display()
            ))
        })?;
        Ok((self.folder.administrator.to_owned(), password))
    }
}

/// The present state of a page that a process counts into; opened again when it is another process's.
fn page(reader: &mut Option<Reader>, path: &Path) -> Option<Snapshot> {
    if reader.as_ref().is_none_or(|reader| !reader.alive()) {
        *reader = Reader::open(path).ok().filter(Reader::alive);
    }
    reader.as_ref()?.snapshot().ok()
}
