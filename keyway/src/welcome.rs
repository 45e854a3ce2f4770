//! What a started server says of itself: where it is, what is in it, what to try.

use crate::data::{Folder, name};
use crate::failure::Failure;
use crate::instance::Instance;
use crate::listeners;
use crate::log::Logs;
use crate::output::{self, grouped, shell};
use crate::sample::Sample;
use crate::up::Doors;
use keyway_server::ADMINISTRATOR_DN;
use keyway_server::log::{Severity, Value};
use serde_json::json;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Everything worth saying once.
pub struct Welcome {
    data: PathBuf,
    made: String,
    first_start: bool,
    entries: u64,
    naming_contexts: Vec<String>,
    plain: Option<SocketAddr>,
    tls: Option<SocketAddr>,
    has_sample: bool,
}

impl Welcome {
    /// Gathers it.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn new(
        folder: &Folder,
        instance: &Instance,
        doors: &Doors,
        first_start: bool,
    ) -> Result<Welcome, Failure> {
        let address =
            |door: &Option<TcpListener>| door.as_ref().map(listeners::address).transpose();
        Ok(Welcome {
            data: folder.path().to_owned(),
            made: folder.made().to_owned(),
            first_start,
            entries: instance.entry_count()?,
            naming_contexts: instance.directory.naming_contexts(),
            plain: address(&doors.plain)?,
            tls: address(&doors.tls)?,
            has_sample: folder.has(name::SAMPLE_PASSWORD),
        })
    }

    /// Says it.
    ///
    /// # Errors
    /// If nobody can hear.
    pub fn say(&self, json: bool) -> Result<(), Failure> {
        if json { output::json(&self.json()) } else { output::text(self.text()) }
    }

    /// Writes it down.
    pub fn log(&self, logs: &Logs) {
        let url = |scheme, at: Option<_>| at.map(|at| url(scheme, at)).unwrap_or_default();
        let (ldap, ldaps) = (url("ldap", self.plain), url("ldaps", self.tls));
        let fields = [
            ("version", Value::Text(env!("CARGO_PKG_VERSION"))),
            ("pid", Value::Number(std::process::id().into())),
            ("data", Value::Shown(&self.data.display())),
            ("ldap", Value::filled(&ldap)),
            ("ldaps", Value::filled(&ldaps)),
            ("entries", Value::Number(self.entries)),
        ];
        logs.say(Severity::Info, "start", &fields);
    }

    fn file(&self, name: &str) -> String {
        self.data.join(name).display().to_string()
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "event": "ready",
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "ldap": self.plain.map(|address| url("ldap", address)),
            "ldaps": self.tls.map(|address| url("ldaps", address)),
            "data": self.data.display().to_string(),
            "made": self.made,
            "first_start": self.first_start,
            "entries": self.entries,
            "naming_contexts": self.naming_contexts,
            "administrator": ADMINISTRATOR_DN,
            "administrator_password_file": self.file(name::ADMIN_PASSWORD),
            "sample_password_file": self.has_sample.then(|| self.file(name::SAMPLE_PASSWORD)),
            "ca_certificate": self.file(name::CA_CERTIFICATE),
            "ca_key": self.file(name::CA_KEY),
            "configuration": self.file(name::CONFIGURATION),
            "meter": self.file(name::METER),
            "try": self.commands(),
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut line = |what: &str, value: &str| {
            let _ = writeln!(text, "  {what:<9} {value}");
        };
        if let Some(address) = self.plain {
            line("LDAP", &format!("{} (with StartTLS)", url("ldap", address)));
        }
        if let Some(address) = self.tls {
            line("LDAPS", &url("ldaps", address));
        }
        let state = if self.first_start { "made now" } else { "opened" };
        line("data", &format!("{} ({state})", self.data.display()));
        line("CA", &self.file(name::CA_CERTIFICATE));
        let password = self.file(name::ADMIN_PASSWORD);
        line("admin", &format!("{ADMINISTRATOR_DN}, password in {}", password));
        if self.has_sample {
            let password = self.file(name::SAMPLE_PASSWORD);
            line("sample", &format!("everybody's password is in {}", password));
        }
        let commands = self.commands().join("\n\n  ");
        format!(
            "Keyway {} serves {}\n\n{text}\nTry, in another terminal:\n\n  {commands}\n\nCtrl-C stops it.",
            env!("CARGO_PKG_VERSION"),
            self.what()
        )
    }

    fn what(&self) -> String {
        let entries = match self.entries {
            1 => "1 entry".to_owned(),
            count => format!("{} entries", grouped(count)),
        };
        let below = match &self.naming_contexts[..] {
            [] => "no suffix yet".to_owned(),
            contexts => contexts.join(" and "),
        };
        let made = if self.first_start { String::new() } else { format!(", made {}", self.made) };
        format!("{entries} ({below}{made})")
    }

    /// Three commands that can be pasted.
    fn commands(&self) -> Vec<String> {
        let path = |name: &str| shell(&self.file(name));
        let trust = format!("LDAPTLS_CACERT={}", path(name::CA_CERTIFICATE));
        let (sample_dn, sample_name) = Sample::somebody();
        let (dn, password) = if self.has_sample {
            (sample_dn.as_str(), path(name::SAMPLE_PASSWORD))
        } else {
            (ADMINISTRATOR_DN, path(name::ADMIN_PASSWORD))
        };
        let filter = if self.has_sample {
            format!("'(sn={sample_name})' cn mail title")
        } else {
            "'(objectClass=*)'".into()
        };
        let base = self.naming_contexts.first().map_or("cn=keyway", String::as_str);
        // LDAPS to search and StartTLS to ask who one is, where there are both.
        let tls = self.tls.map(|address| format!("-H {}", shell(&url("ldaps", address))));
        let start_tls =
            self.plain.map(|address| format!("-ZZ -H {}", shell(&url("ldap", address))));
        let search = tls.clone().or(start_tls.clone()).unwrap_or_default();
        let whoami = start_tls.or(tls).unwrap_or_default();
        let (base, data) = (shell(base), shell(&self.data.to_string_lossy()));
        vec![
            format!(
                "{trust} ldapsearch -x {search} -D {ADMINISTRATOR_DN} -y {} -b {base} {filter}",
                path(name::ADMIN_PASSWORD)
            ),
            format!("{trust} ldapwhoami -x {whoami} -D {dn} -y {password}"),
            format!("{} top --data {data}", program()),
        ]
    }
}

fn url(scheme: &str, address: SocketAddr) -> String {
    format!("{scheme}://{}", listeners::at_home(address))
}

/// How this program can be called from anywhere.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let by_path = Path::new(&called).components().count() > 1;
    match std::env::current_exe() {
        Ok(path) if by_path => shell(&path.to_string_lossy()),
        _ => "keyway".to_owned(),
    }
}
