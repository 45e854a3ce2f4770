//! The text that a started server prints: where it is, what is in it, what to try.

use crate::admin::PasswordFile;
use crate::instance::Instance;
use crate::sample::Sample;
use keyway_codec::certificate::Name;
use keyway_folder::data::{Folder, name};
use keyway_folder::host_names;
use keyway_folder::tls::Made;
use keyway_folder::unix_socket;
use keyway_host::failure::Failure;
use keyway_host::listeners::{self, Sockets};
use keyway_host::output::{self, grouped, shell};
use keyway_host::timestamp::Timestamp;
use keyway_log::Logs;
use keyway_server::ADMINISTRATOR_DN;
use keyway_server::log::{Severity, Value};
use serde_json::json;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

const FORGOTTEN: &str = "forgotten: keyway admin password --help";

/// Everything worth saying once.
pub struct Banner {
    data: PathBuf,
    made: String,
    first_start: bool,
    entries: u64,
    naming_contexts: Vec<String>,
    plain: Option<SocketAddr>,
    tls: Option<SocketAddr>,
    unix: Option<PathBuf>,
    /// The file that makes a client trust the server's certificate, and the names in that.
    trust: Option<PathBuf>,
    names: Vec<Name>,
    password: PasswordFile,
    has_sample: bool,
    /// The `keyway up` that this process is of.
    up: Option<u32>,
    ca_key: Option<String>,
    /// Certificates that end soon.
    warnings: Vec<String>,
}

/// Where it listens.
pub struct Listening<'a> {
    pub sockets: &'a Sockets,
    /// The file of its Unix socket.
    pub unix: Option<PathBuf>,
}

impl Banner {
    /// Gathers it.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn new(
        folder: &Folder,
        instance: &Instance,
        listening: Listening<'_>,
        made: &Made,
        password: PasswordFile,
        first_start: bool,
        up: Option<u32>,
    ) -> Result<Banner, Failure> {
        let Listening { sockets, unix } = listening;
        let now = Timestamp::now();
        let address =
            |socket: &Option<TcpListener>| socket.as_ref().map(listeners::address).transpose();
        Ok(Banner {
            data: folder.path().to_owned(),
            made: folder.made().to_owned(),
            first_start,
            entries: instance.entry_count()?,
            naming_contexts: instance.directory.naming_contexts(),
            plain: address(&sockets.plain)?,
            tls: address(&sockets.tls)?,
            unix,
            trust: made.trust.clone(),
            names: made.names.clone(),
            password,
            has_sample: folder.has(name::SAMPLE_PASSWORD),
            up,
            ca_key: made.ca_key.clone(),
            warnings: made.ends.iter().filter_map(|ends| ends.warning(now)).collect(),
        })
    }

    /// Says it.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn say(&self, json: bool) -> Result<(), Failure> {
        if json { output::json(&self.json()) } else { output::text(self.text()) }
    }

    /// Writes it down.
    pub fn log(&self, logs: &Logs) {
        let url = |scheme, at: Option<_>| at.map(|at| url(scheme, at)).unwrap_or_default();
        let unix = self.unix.as_deref().map(unix_socket::url).unwrap_or_default();
        let (ldap, ldaps) = (url("ldap", self.plain), url("ldaps", self.tls));
        let fields = [
            ("version", Value::Text(env!("CARGO_PKG_VERSION"))),
            ("pid", Value::Number(std::process::id().into())),
            ("data", Value::Shown(&self.data.display())),
            ("ldap", Value::filled(&ldap)),
            ("ldaps", Value::filled(&ldaps)),
            ("ldapi", Value::filled(&unix)),
            ("entries", Value::Number(self.entries)),
        ];
        logs.say(Severity::Info, "start", &fields);
    }

    fn file(&self, name: &str) -> String {
        self.data.join(name).display().to_string()
    }

    /// The file of the data folder, if it is there.
    fn file_if_there(&self, name: &str) -> Option<String> {
        self.data.join(name).exists().then(|| self.file(name))
    }

    fn json(&self) -> serde_json::Value {
        let all = |scheme, socket: Option<SocketAddr>| {
            socket.map(|address| urls(scheme, address)).unwrap_or_default()
        };
        let password = || self.file(name::ADMIN_PASSWORD);
        json!({
            "event": "ready",
            "version": env!("CARGO_PKG_VERSION"),
            "pid": self.up.unwrap_or_else(std::process::id),
            "ldapd_pid": std::process::id(),
            "ldap": self.plain.map(|address| url("ldap", listeners::at_home(address))),
            "ldaps": self.tls.map(|address| url("ldaps", listeners::at_home(address))),
            "ldapi": self.unix.as_deref().map(unix_socket::url),
            "ldap_urls": all("ldap", self.plain),
            "ldaps_urls": all("ldaps", self.tls),
            "data": self.data.display().to_string(),
            "made": self.made,
            "first_start": self.first_start,
            "entries": self.entries,
            "naming_contexts": self.naming_contexts,
            "administrator": ADMINISTRATOR_DN,
            "administrator_password_file":
                (self.password == PasswordFile::Right).then(password),
            "sample_password_file": self.has_sample.then(|| self.file(name::SAMPLE_PASSWORD)),
            "ca_certificate": self.trust.as_ref().map(|file| file.display().to_string()),
            "ca_key": self.ca_key,
            "warnings": self.warnings,
            "configuration": self.file(name::CONFIGURATION),
            "meter": self.file_if_there(name::METER),
            "try": self.commands(),
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut line = |what: &str, value: &str| {
            let _ = writeln!(text, "  {what:<9} {value}");
        };
        for (what, scheme, socket) in [("LDAP", "ldap", self.plain), ("LDAPS", "ldaps", self.tls)] {
            let urls = socket.map(|address| urls(scheme, address)).unwrap_or_default();
            for (index, url) in urls.iter().enumerate() {
                let start_tls = if scheme == "ldap" { " (with StartTLS)" } else { "" };
                line(if index == 0 { what } else { "" }, &format!("{url}{start_tls}"));
            }
        }
        if let Some(file) = &self.unix {
            line("LDAPI", &unix_socket::url(file));
        }
        let state = if self.first_start { "made now" } else { "opened" };
        line("data", &format!("{} ({state})", self.data.display()));
        match &self.trust {
            Some(file) => line("CA", &file.display().to_string()),
            None => line("CA", "not Keyway's: clients need that of the server's certificate"),
        }
        let file = self.file(name::ADMIN_PASSWORD);
        let password = match self.password {
            PasswordFile::Right => format!("password in {file}"),
            PasswordFile::Stale => {
                format!("password changed since {file} was written ({FORGOTTEN})")
            }
            PasswordFile::Gone => format!("password not in a file ({FORGOTTEN})"),
        };
        line("admin", &format!("{ADMINISTRATOR_DN}, {password}"));
        if self.has_sample {
            let password = self.file(name::SAMPLE_PASSWORD);
            line("sample", &format!("the users' password is in {}", password));
        }
        for warning in &self.warnings {
            line("warning", warning);
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
        // Without a file of ours they trust the authorities of this machine's LDAP clients.
        let trust = self
            .trust
            .as_ref()
            .map(|file| format!("LDAPTLS_CACERT={} ", shell(&file.to_string_lossy())));
        let trust = trust.unwrap_or_default();
        // -W asks for it.
        let admin_password = match self.password {
            PasswordFile::Right => format!("-y {}", path(name::ADMIN_PASSWORD)),
            PasswordFile::Stale | PasswordFile::Gone => "-W".to_owned(),
        };
        let (sample_dn, sample_name) = Sample::first_person();
        let (dn, password) = if self.has_sample {
            (sample_dn.as_str(), format!("-y {}", path(name::SAMPLE_PASSWORD)))
        } else {
            (ADMINISTRATOR_DN, admin_password.clone())
        };
        let filter = if self.has_sample {
            format!("'(sn={sample_name})' cn mail title")
        } else {
            "'(objectClass=*)'".into()
        };
        let base = self.naming_contexts.first().map_or("cn=keyway", String::as_str);
        // LDAPS to search and StartTLS to ask who one is, where there are both.
        let tls = self.tls.map(|address| format!("-H {}", shell(&self.url("ldaps", address))));
        let start_tls =
            self.plain.map(|address| format!("-ZZ -H {}", shell(&self.url("ldap", address))));
        let search = tls.clone().or(start_tls.clone()).unwrap_or_default();
        let whoami = start_tls.or(tls).unwrap_or_default();
        let (base, data) = (shell(base), shell(&self.data.to_string_lossy()));
        vec![
            format!(
                "{trust}ldapsearch -x {search} -D {ADMINISTRATOR_DN} {admin_password} -b {base} \
                 {filter}"
            ),
            format!("{trust}ldapwhoami -x {whoami} -D {dn} {password}"),
            format!("{} top --data {data}", program()),
        ]
    }

    /// Where a client on this machine finds it under a name that the certificate has.
    fn url(&self, scheme: &str, address: SocketAddr) -> String {
        let home = listeners::at_home(address);
        let host = self.names.iter().find_map(|name| match name {
            Name::Dns(host) if !host.starts_with('*') => Some(host),
            _ => None,
        });
        match host {
            Some(host) if !self.names.contains(&Name::Ip(home.ip())) => {
                format!("{scheme}://{host}:{}", home.port())
            }
            _ => url(scheme, home),
        }
    }
}

/// Where a server that listens there is found: on other machines first, then on this one.
fn urls(scheme: &str, address: SocketAddr) -> Vec<String> {
    let mut urls = Vec::new();
    if address.ip().is_unspecified() {
        let name = host_names::host_names().into_iter().next();
        urls.extend(name.map(|name| format!("{scheme}://{name}:{}", address.port())));
        let others = host_names::addresses(&[address]);
        urls.extend(others.iter().map(|ip| url(scheme, SocketAddr::new(*ip, address.port()))));
    }
    urls.push(url(scheme, listeners::at_home(address)));
    urls
}

fn url(scheme: &str, address: SocketAddr) -> String {
    format!("{scheme}://{address}")
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
