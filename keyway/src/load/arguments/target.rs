//! The server to load, and how to connect to it.

use super::value::users;
use crate::generate::constant;
use crate::value::{count, count_within, some_time};
use clap::Args;
use keyway_config::Running;
use keyway_folder::data::{self, name};
use keyway_folder::trust;
use keyway_host::failure::Failure;
use keyway_load::{Adds, Endpoint, Options, Url, UserPassword, Users};
use keyway_server::ADMINISTRATOR_DN;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The server to load, and how to connect to it.
#[derive(Debug, Args)]
pub struct Target {
    /// The server; of several, connections go to one after the other [default: the one that runs on --data]
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// The data folder of a server on this machine: it is asked as its administrator, and of its sample's
    /// users, unless other flags say otherwise; its authority is trusted
    #[arg(long = "data", value_name = "DIR", default_value = name::DEFAULT)]
    pub folder: PathBuf,
    /// The certificate authority to trust, PEM; a server's own certificate, if that has signed itself
    /// [default: those of this system, and ca.pem of --data]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Take any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Our certificate, PEM, with those that lead to its authority's; shown to servers that ask for one
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of --cert, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Bind each connection by SASL EXTERNAL: as the user that --cert or the socket (ldapi://) shows
    #[arg(long, conflicts_with = "bind_dn")]
    pub external: bool,
    /// Begin TLS on ldap:// with StartTLS
    #[arg(long)]
    pub start_tls: bool,
    /// Resume TLS sessions where the server lets us; each handshake is a full one otherwise
    #[arg(long)]
    pub resume: bool,
    /// The DN that all entries are below [default: the suffix that the server shows]
    #[arg(long, value_name = "DN")]
    pub base: Option<String>,
    /// The DN that binds on each connection; needed for operations that take rights [default: the administrator, of
    /// the server on --data]
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Option<String>,
    /// The file with the password of --bind-dn (0600); a line end at its end does not count
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// The users: FIRST-LAST for {user}, or a file, a line each, whose columns (tabs) are {user.1}, {user.2}
    /// [default: up to 1,000 that the server shows; if it shows none, 0-9999]
    #[arg(long, value_name = "FIRST-LAST|FILE", value_parser = users)]
    pub users: Option<Users>,
    /// How a user is found [default: by the login name of those that the server shows;
    /// (uid=user.{user}) with numbers, (uid={user.1}) with a file]
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// A user's name [default: as the server shows it; uid=user.{user},ou=People,BASE with numbers, or with
    /// {user.1} for a file]
    #[arg(long, value_name = "DN")]
    pub user_dn: Option<String>,
    /// The password of all users, or {user.2} for the second column of the file [default: that of the sample, of the
    /// server on --data; else password]
    #[arg(long, value_name = "TEXT", conflicts_with = "user_password_file")]
    pub user_password: Option<String>,
    /// The file with the password of all users (0600)
    #[arg(long, value_name = "FILE")]
    pub user_password_file: Option<PathBuf>,
    /// Entries that are added are those of this template (MakeLDIF's; a file, or one that is built in)
    #[arg(long, value_name = "FILE")]
    pub template: Option<String>,
    /// Which of its templates [default: the one that has none below it]
    #[arg(long, value_name = "NAME", requires = "template")]
    pub template_of: Option<String>,
    /// The number of the first, among those of the template
    /// [default: the first that keyway data does not make of it]
    #[arg(long, value_name = "N", requires = "template", value_parser = count)]
    pub template_from: Option<u64>,
    /// Give a constant of the template another value (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "template", value_parser = constant)]
    pub define: Vec<(String, String)>,
    /// Connections [default: 8]
    #[arg(long, value_name = "N", value_parser = count_within::<1, 100_000>)]
    pub clients: Option<u64>,
    /// Operations in flight on each connection [default: 1]
    #[arg(long, value_name = "N", value_parser = count_within::<1, 4096>)]
    pub in_flight: Option<u64>,
    /// Open each connection anew after so many sequences; 1 for each
    #[arg(long, value_name = "N", value_parser = count_within::<1, { u64::MAX }>)]
    pub reconnect_after: Option<u64>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub timeout: Duration,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = count_within::<1, 1024>)]
    pub threads: Option<u64>,
    /// The seed of all that is random
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub seed: u64,
}

impl Target {
    /// The options that samples are filled in with. Entries that are added get numbers that no earlier run had.
    ///
    /// # Errors
    /// If no server is named, and none runs on the data folder.
    pub fn options(&self) -> Result<Options, Failure> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if self.urls.is_empty() {
            data::may_look(&self.folder)?;
        }
        let running = Running::look(&self.folder);
        let own = running.as_ref().map(own_urls).unwrap_or_default();
        let urls = match self.urls.is_empty() {
            false => self.urls.clone(),
            true => vec![own.first().cloned().ok_or_else(|| {
                Failure::new(format!(
                    "no server is named, and none runs on {}: start one (keyway up), name its folder \
                     (--data DIR), or a server (keyway load search ldap://HOST); keyway load --help \
                     explains",
                    self.folder.display()
                ))
            })?],
        };
        let mut options = Options {
            ca: self.ca.clone(),
            own_ca: Some(self.folder.join(name::CA_CERTIFICATE)),
            own: self.cert.clone().zip(self.key.clone()),
            external: self.external,
            insecure: self.insecure,
            start_tls: self.start_tls,
            resume: self.resume,
            base: self.base.clone(),
            admin: self.bind_dn.clone().zip(self.password_file.clone()),
            users: self.users.clone(),
            filter: self.filter.clone(),
            user_dn: self.user_dn.clone(),
            connections: self.clients,
            in_flight: self.in_flight,
            reconnect_after: self.reconnect_after,
            seed: self.seed,
            fresh: since.as_millis() as u64 * 1_000,
            timeout: self.timeout,
            threads: self.threads,
            template: self.template.clone().map(|template| Adds {
                template,
                of: self.template_of.clone(),
                from: self.template_from,
                define: self.define.clone(),
            }),
            urls,
            ..Options::default()
        };
        if let Some(text) = &self.user_password {
            options.user_password = UserPassword::Text(text.clone());
        } else if let Some(file) = &self.user_password_file {
            options.user_password = UserPassword::File(file.clone());
        }
        let is_own = |url: &String| own.iter().any(|own| is_same_place(own, url));
        if options.urls.iter().all(is_own) {
            let has_password = self.user_password.is_some() || self.user_password_file.is_some();
            as_at_home(&self.folder, &mut options, has_password);
        }
        trust::warn(self.insecure);
        Ok(options)
    }
}

/// Who asks the server of a data folder, and what its sample's users' password is, where no flag says that.
pub fn as_at_home(folder: &Path, options: &mut Options, has_password: bool) {
    let admin = folder.join(name::ADMIN_PASSWORD);
    if options.admin.is_none() && !options.external && options.own.is_none() && admin.exists() {
        options.admin = Some((ADMINISTRATOR_DN.to_owned(), admin));
    }
    let sample = folder.join(name::SAMPLE_PASSWORD);
    if !has_password && options.users.is_none() && sample.exists() {
        options.user_password = UserPassword::File(sample);
    }
}

/// Where the server on a data folder is found from here, over TLS first.
pub fn own_urls(running: &Running) -> Vec<String> {
    let each = [("ldaps", running.ldaps), ("ldap", running.ldap)];
    let url = |(scheme, address): (&str, Option<_>)| {
        Some(format!("{scheme}://{}", keyway_host::listeners::at_home(address?)))
    };
    each.into_iter().filter_map(url).collect()
}

/// Whether both are one port of this machine.
fn is_same_place(own: &str, url: &str) -> bool {
    let place = |text: &str| match Url::parse(text) {
        Ok(Url { endpoint: Endpoint::Host { host, port }, .. }) => Some((host, port)),
        _ => None,
    };
    let (Some((own, own_port)), Some((host, port))) = (place(own), place(url)) else {
        return false;
    };
    let is_here = |host: &str| {
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    port == own_port && (host == own || is_here(&host) && is_here(&own))
}
