//! SIGHUP: what can change while a server runs is read again, all of it or nothing.

use crate::cli::Serve;
use crate::configuration::Configuration;
use crate::data::Folder;
use crate::failure::Failure;
use crate::index;
use crate::instance::Instance;
use crate::log::Logs;
use crate::output;
use crate::timestamp::Timestamp;
use crate::tls::Tls;
use keyway_drivers::Verifier;
use keyway_server::log::{Severity, Value};
use keyway_server::network::{CurrentTls, Server};
use serde_json::json;
use std::net::SocketAddr;

/// A running server, and where what it runs with comes from.
pub struct Reload<'a> {
    pub arguments: &'a Serve,
    pub folder: &'a Folder,
    pub instance: &'a Instance,
    pub verifier: &'a Verifier,
    pub logs: &'a Logs,
    pub server: &'a Server,
    /// Where it listens.
    pub listen: &'a [SocketAddr],
    pub tls: Tls,
    pub current_tls: CurrentTls,
    /// What is in force.
    pub configuration: Configuration,
}

impl Reload<'_> {
    /// Reads it all again, and says what came of it. Connections that are open stay as they are.
    pub fn run(&mut self) {
        match self.take() {
            Ok(later) => self.say(&later),
            Err(why) => self.refuse(&why),
        }
        self.take_asked();
    }

    /// Begins with what it is asked for through the folder.
    pub fn take_asked(&self) {
        if let Err(why) = index::take_asked(self.folder.path(), self.instance) {
            let text = format!("cannot make indexes anew: {why}");
            self.logs.say(Severity::Error, "index", &[("text", Value::Text(&text))]);
            output::note(&text);
        }
    }

    /// Takes what is there now; says what of it has to wait for the next start.
    fn take(&mut self) -> Result<Vec<&'static str>, Failure> {
        let new = Configuration::load(self.folder)?.with_flags(self.arguments);
        let made = self.tls.make(self.folder, &new.tls, self.listen, Timestamp::now())?;
        self.logs.reopen(&new.log)?;
        let taken = self.instance.directory.reconfigure(&new.directory);
        taken.map_err(|why| new.explain(&why, self.folder))?;
        self.verifier.remember(new.remember);
        self.server.reconfigure(new.network.clone());
        self.current_tls.replace(made.config);
        let old = &self.configuration;
        let differs = [
            ("listen", old.listen != new.listen),
            ("listen_tls", old.listen_tls != new.listen_tls),
            ("listen_unix", old.unix != new.unix),
            ("naming_contexts", old.naming_contexts != new.naming_contexts),
            ("cryptod", old.cryptod != new.cryptod),
            ("groups, integrity", old.directory.integrity != new.directory.integrity),
            ("store_bytes_max", old.store_bytes_max != new.store_bytes_max),
        ];
        // What waits is compared with what is in force, also the next time.
        self.configuration = Configuration {
            remember: new.remember,
            log: new.log,
            tls: new.tls,
            network: new.network,
            directory: keyway_server::Settings {
                integrity: std::mem::take(&mut self.configuration.directory.integrity),
                ..new.directory
            },
            naming_contexts: std::mem::take(&mut self.configuration.naming_contexts),
            cryptod: self.configuration.cryptod.take(),
            unknown: new.unknown,
            unix: self.configuration.unix.clone(),
            ..self.configuration
        };
        Ok(differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect())
    }

    fn say(&self, later: &[&str]) {
        self.logs.say(Severity::Info, "reload", &[]);
        for name in later {
            let text = format!("{name} takes effect at the next start");
            self.logs.say(Severity::Warning, "reload", &[("text", Value::Text(&text))]);
        }
        // Whoever read the output may have gone; the log has it too.
        let _ = if self.arguments.json {
            output::json(&json!({ "event": "reloaded", "at_next_start": later }))
        } else if later.is_empty() {
            output::text("reloaded")
        } else {
            output::text(format_args!("reloaded; at the next start: {}", later.join(", ")))
        };
    }

    /// Nothing changes, but that files which were renamed are left alone.
    fn refuse(&self, why: &Failure) {
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
