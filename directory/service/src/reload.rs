//! SIGHUP: what can change while a server runs is read again, all of it or nothing.

use crate::certificates::{Certificates, Sources};
use crate::cluster::{Node, node_settings};
use crate::instance::Instance;
use crate::limits::fit_open_files;
use crate::options::ServeOptions;
use crate::reindex;
use keyway_config::Given;
use keyway_config::Running;
use keyway_config::applied;
use keyway_config::changes;
use keyway_config::tree::ConfigTree;
use keyway_config::{Configuration, Metrics, Settings, catalogue};
use keyway_drivers::Verifier;
use keyway_engine::Engine;
use keyway_folder::data::{self, Folder, name};
use keyway_host::failure::Failure;
use keyway_host::listeners;
use keyway_host::output;
use keyway_host::supervised::{self, MOVED, Moved};
use keyway_host::timestamp::Timestamp;
use keyway_ldapd::{LdapServer, Listener, ListenerKind, Mode};
use keyway_log::Logs;
use keyway_server::Modification;
use keyway_server::log::{Log, Severity, Value};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Has metrics pushed from now on as it is told, and no more as it was told before.
pub type PushMetrics = Box<dyn FnMut(Pushing<'_>)>;

/// The source of pushed metrics, and their collector.
pub struct Pushing<'a> {
    /// The data folder.
    pub folder: &'a Folder,
    /// The engine for the connection's TLS.
    pub engine: &'a Engine,
    /// Where it is said how that goes.
    pub log: &'a Log,
    /// `[metrics]`; `None`: they are not pushed.
    pub metrics: Option<&'a Metrics>,
}

/// A running server, and where what it runs with comes from.
pub struct Reload<'a> {
    pub arguments: &'a ServeOptions,
    pub folder: &'a Folder,
    pub instance: &'a Instance,
    pub engine: &'a Engine,
    pub verifier: &'a Verifier,
    pub logs: &'a Logs,
    pub server: &'a LdapServer,
    /// Its part in a cluster.
    pub node: Option<Arc<Node>>,
    /// Where it listens for LDAP and for LDAPS.
    pub addresses: [Option<SocketAddr>; 2],
    /// The supervisor, if there is one: it binds other addresses and wants to know when they are in use.
    pub supervisor: Option<&'a UnixStream>,
    pub certificates: Certificates,
    pub push: PushMetrics,
    /// The configuration in force.
    pub configuration: Configuration,
    /// Keys of settings that have other values in the file.
    pub waiting: Vec<String>,
    /// The data that `cn=config` shows.
    pub tree: ConfigTree,
    /// The process that has the folder's lock.
    pub holder: u32,
    /// How often it has said what it reads.
    pub reads: u64,
    /// The report that could not be written.
    pub untold: Option<Running>,
}

impl Reload<'_> {
    /// Reads it all again, and says what came of it. Connections that are open stay as they are.
    pub fn run(&mut self, moved: Moved) {
        let read =
            Configuration::load(self.folder).map(|it| it.with_flags(&self.arguments.overrides));
        let taken = read.and_then(|new| {
            let moved = self.moved(&new, moved)?;
            self.take(new, moved)
        });
        match taken {
            Ok(()) => self.say(),
            Err(why) => self.refuse(&why),
        }
        self.take_asked();
    }

    /// Begins with what it is asked for through the folder.
    pub fn take_asked(&self) {
        if let Err(why) = reindex::take_asked(self.folder.path(), self.instance) {
            let text = format!("cannot make indexes anew: {why}");
            self.logs.say(Severity::Error, "index", &[("text", Value::Text(&text))]);
            output::note(&text);
        }
    }

    /// The listeners that are to be elsewhere; none, if that has to wait for the next start.
    fn moved(&self, new: &Configuration, moved: Moved) -> Result<Moved, Failure> {
        if self.supervisor.is_none() {
            return Ok(Moved::default());
        }
        let old = &self.configuration;
        for (key, old, new, moved) in [
            ("listen", old.listen, new.listen, &moved.plain),
            ("listen_tls", old.listen_tls, new.listen_tls, &moved.tls),
        ] {
            if old != new && moved.is_none() {
                let address = new.map_or("off".to_owned(), |it| it.to_string());
                return Err(Failure::new(format!(
                    "{key}: keyway up does not listen on {address}; error.log says why"
                )));
            }
        }
        if new.listen.is_none() && new.listen_tls.is_none() && new.unix.path.is_none() {
            return Err(listeners::nothing_to_listen_on());
        }
        Ok(moved)
    }

    /// Takes what can change while it runs; notes what of it has to wait for the next start.
    fn take(&mut self, new: Configuration, moved: Moved) -> Result<(), Failure> {
        let mut addresses = self.addresses;
        for (address, moved) in addresses.iter_mut().zip([&moved.plain, &moved.tls]) {
            if let Some(socket) = moved {
                *address = socket.as_ref().map(listeners::address).transpose()?;
            }
        }
        let listen: Vec<SocketAddr> = addresses.into_iter().flatten().collect();
        applied::refuse_loss(self.folder.path(), &self.configuration.text, &new.text)?;
        let sources = Sources { folder: self.folder, settings: &new.tls, listen: &listen };
        let fresh = self.certificates.read(sources)?;
        self.logs.reopen(&new.log)?;
        let taken = self.instance.directory.reconfigure(&new.directory);
        let takes_integrity =
            taken.map_err(|why| new.explain(&why, &self.folder.file(name::CONFIGURATION)))?;
        self.verifier.remember(new.remember);
        let mut network = new.network.clone();
        fit_open_files(&mut network.limits);
        self.server.reconfigure(network);
        self.certificates.put(fresh);
        let has_moved = self.listen(moved)?;
        self.addresses = addresses;
        self.keep(new, takes_integrity, has_moved);
        Ok(())
    }

    /// Listens elsewhere. Says which listeners do.
    fn listen(&self, moved: Moved) -> Result<Vec<&'static str>, Failure> {
        let tls = || self.certificates.current.clone();
        let mut keys = Vec::new();
        for (key, way, moved, mode) in [
            ("listen", ListenerKind::Plain, moved.plain, Mode::StartTls(tls())),
            ("listen_tls", ListenerKind::Tls, moved.tls, Mode::Tls(tls())),
        ] {
            let Some(socket) = moved else { continue };
            let listener = socket.map(|socket| Listener { socket: socket.into(), mode });
            self.server
                .listen(way, listener)
                .map_err(|why| Failure::new(format!("{key}: {why}")))?;
            keys.push(key);
        }
        if let Some(supervisor) = self.supervisor.filter(|_| !keys.is_empty()) {
            // It lets go of the old ones now, or at the next time.
            let _ = supervised::say(supervisor, MOVED, None);
        }
        Ok(keys)
    }

    /// Changes settings in the file as a client wants, and takes them; or neither.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn change(&mut self, modification: &Modification) -> Result<(), String> {
        let words = |why: Failure| why.to_string();
        let file = self.folder.file(name::CONFIGURATION);
        let _lock = data::lock_edits(self.folder.path()).map_err(words)?;
        let old = data::read(&file).map_err(words)?;
        applied::refuse_loss(self.folder.path(), &self.configuration.text, &old).map_err(words)?;
        let new = changes::apply(&old, modification)?;
        if new == old {
            return Ok(());
        }
        let read = Configuration::of_text(self.folder.path(), &new, &Given::none());
        let configuration = read.map_err(words)?.with_flags(&self.arguments.overrides);
        data::replace(&file, &new).map_err(words)?;
        // Another address is bound when the file is read the next time.
        if let Err(why) = self.take(configuration, Moved::default()) {
            let undone = data::replace(&file, &old);
            self.refuse(&why);
            return Err(match undone {
                Ok(()) => why.to_string(),
                Err(also) => format!("{why}; and the file cannot be put back: {also}"),
            });
        }
        self.say();
        Ok(())
    }

    /// Waiting settings are compared with those in force, also the next time.
    fn keep(&mut self, new: Configuration, takes_integrity: bool, moved: Vec<&'static str>) {
        let old = &mut self.configuration;
        let read = new.settings.clone();
        self.waiting = merge(&mut old.settings, new.settings, takes_integrity, &moved);
        self.tree.show(read, self.waiting.clone());
        let integrity = match takes_integrity {
            true => new.directory.integrity,
            false => std::mem::take(&mut old.directory.integrity),
        };
        old.directory = keyway_server::Settings { integrity, ..new.directory };
        if moved.contains(&"listen") {
            old.listen = new.listen;
        }
        if moved.contains(&"listen_tls") {
            old.listen_tls = new.listen_tls;
        }
        (old.remember, old.log, old.metrics) = (new.remember, new.log, new.metrics);
        (old.tls, old.network, old.unknown) = (new.tls, new.network, new.unknown);
        (old.text, old.cluster) = (new.text, new.cluster);
        if let Some(node) = &self.node {
            node.reconfigure(node_settings(&self.configuration));
        }
        self.remember();
        self.push_metrics();
    }

    /// Has the store remember the configuration that is in force.
    pub fn remember(&self) {
        let noted = applied::note(self.folder, &self.instance.store, &self.configuration.text);
        if let Err(why) = noted {
            let text = format!("the configuration in force is not remembered: {why}");
            self.logs.say(Severity::Warning, "reload", &[("text", Value::Text(&text))]);
        }
    }

    /// Pushes metrics as it is configured.
    pub fn push_metrics(&mut self) {
        let metrics = self.configuration.metrics.as_ref();
        (self.push)(Pushing {
            folder: self.folder,
            engine: self.engine,
            log: &self.logs.log,
            metrics,
        });
    }

    /// Takes certificates that have changed, and says which end soon.
    pub fn look_at_certificates(&mut self) {
        let settings = &self.configuration.tls;
        let listen: Vec<SocketAddr> = self.addresses.into_iter().flatten().collect();
        let sources = Sources { folder: self.folder, settings, listen: &listen };
        self.certificates.look(sources, self.logs, Timestamp::now());
    }

    fn say(&mut self) {
        self.publish(None);
        let later = &self.waiting;
        self.logs.say(Severity::Info, "reload", &[]);
        for key in later {
            let text = format!("{key} takes effect at the next start");
            self.logs.say(Severity::Warning, "reload", &[("text", Value::Text(&text))]);
        }
        // The reader of the output may be gone; the log has it too.
        let _ = if self.arguments.json {
            output::json(&json!({ "event": "reloaded", "at_next_start": later }))
        } else if later.is_empty() {
            output::text("reloaded")
        } else {
            output::text(format_args!("reloaded; at the next start: {}", later.join(", ")))
        };
    }

    /// Writes the settings in force to the folder's file.
    pub fn publish(&mut self, refused: Option<String>) {
        self.reads += 1;
        let running = Running {
            holder: self.holder,
            process: std::process::id(),
            ldap: self.addresses[0],
            ldaps: self.addresses[1],
            reads: self.reads,
            settings: self.configuration.settings.clone(),
            waiting: self.waiting.clone(),
            refused,
        };
        self.untold = None;
        if let Err(why) = running.publish(self.folder) {
            let text = format!(
                "no command for this data folder sees that it runs, or with which settings, until this works: {why}"
            );
            self.logs.say(Severity::Warning, "reload", &[("text", Value::Text(&text))]);
            output::note(text);
            self.untold = Some(running);
        }
    }

    /// Writes the report that could not be written before: the disk was full, perhaps.
    pub fn publish_again(&mut self) {
        self.untold.take_if(|running| running.publish(self.folder).is_ok());
    }

    /// Nothing changes, but that files which were renamed are left alone.
    fn refuse(&mut self, why: &Failure) {
        self.publish(Some(why.to_string()));
        let text = format!("not reloaded, all stays as it was: {why}");
        if let Err(why) = self.logs.reopen(&self.configuration.log) {
            output::note(why);
        }
        self.logs.say(Severity::Error, "reload", &[("text", Value::Text(&text))]);
        output::note(&text);
        if self.arguments.json {
            let _ = output::json(&json!({ "event": "not-reloaded", "error": why.to_string() }));
        }
    }
}

/// Takes new settings but those that wait, and says which these are.
fn merge(
    old: &mut Settings,
    new: Settings,
    takes_integrity: bool,
    moved: &[&'static str],
) -> Vec<String> {
    let waits = |key: &str| {
        let is_integrity = key.starts_with("groups.") || key.starts_with("integrity.");
        (catalogue::waits(key) && !moved.contains(&key)) || (is_integrity && !takes_integrity)
    };
    let keys: BTreeSet<String> = old.keys().chain(new.keys()).cloned().collect();
    let mut waiting = Vec::new();
    for key in keys {
        let now = new.get(&key);
        let differs = old.get(&key).map(|it| &it.value) != now.map(|it| &it.value);
        match now {
            _ if differs && waits(&key) => waiting.push(key),
            Some(now) => drop(old.insert(key, now.clone())),
            None => drop(old.remove(&key)),
        }
    }
    waiting
}
