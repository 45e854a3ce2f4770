//! Whom to ask, and how.

use super::value::{time, users};
use crate::generate::{constant, count};
use clap::Args;
use keyway_load::{Adds, Options, Users};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Whom to ask, and how.
#[derive(Debug, Args)]
pub struct Target {
    /// The server; of several, connections go to one after the other
    #[arg(value_name = "URL", required = true)]
    pub urls: Vec<String>,
    /// The certificate authority to trust, PEM [default: those of this system]
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
    /// Bind each connection as whom --cert or the socket (ldapi://) shows: SASL EXTERNAL
    #[arg(long, conflicts_with = "bind_dn")]
    pub external: bool,
    /// Begin TLS on ldap:// with StartTLS
    #[arg(long)]
    pub start_tls: bool,
    /// Resume TLS sessions where the server lets us; each handshake is a full one otherwise
    #[arg(long)]
    pub resume: bool,
    /// What all entries are below
    #[arg(long, value_name = "DN", default_value = "dc=example,dc=com")]
    pub base: String,
    /// Who binds on each connection; needed for what not everybody may do
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Option<String>,
    /// The file with the password of --bind-dn; a line end at its end does not count
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// The users: FIRST-LAST for {user}, or a file, a line each, whose columns (tabs) are {user.1}, {user.2}
    #[arg(long, value_name = "FIRST-LAST|FILE", default_value = "0-9999", value_parser = users)]
    pub users: Users,
    /// How a user is found [default: (uid=user.{user}), or (uid={user.1}) with a file]
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// A user's name [default: uid=user.{user},ou=People,BASE, or with {user.1} for a file]
    #[arg(long, value_name = "DN")]
    pub user_dn: Option<String>,
    /// Everybody's password, or {user.2} for the second column of the file
    #[arg(long, value_name = "TEXT", default_value = "password")]
    pub user_password: String,
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub clients: Option<u64>,
    /// Operations in flight on each connection [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub in_flight: Option<u64>,
    /// Open each connection anew after so many sequences; 1 for each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reconnect_after: Option<u64>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub timeout: Duration,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
    /// What all that is random follows from
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

impl Target {
    /// What samples are filled in with. Entries that are added get numbers that no earlier run had.
    pub fn options(&self) -> Options {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Options {
            urls: self.urls.clone(),
            ca: self.ca.clone(),
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
            user_password: self.user_password.clone(),
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
            ..Options::default()
        }
    }
}
