//! The arguments of `keyway web`.

use crate::data_flag::Data;
use clap::Args;
use keyway_host::listeners::parse_address;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Show what servers are doing on a web page, and put load on them from there
///
/// The page shows what keyway top shows, live and with the last ten minutes: operations, latency, slow
/// operations with what their time went to, filters by cost and the index that would help, connections,
/// the store, drivers and keys; and it starts, stops and changes runs of keyway load, on one server or on
/// two that are raced. It needs nothing from elsewhere.
///
/// Without a URL it shows the server that runs on the data folder. It listens on 127.0.0.1 and prints a URL
/// with a token, which lets one browser in, once; then it prints the next one. On another address
/// there is TLS, with the data folder's certificate unless another is given, and the page asks for the
/// name and the password of an administrator of the directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway web
      the server on ./keyway-data; open the URL that it prints
  keyway web ldaps://ds1.example.com ldaps://ds2.example.com --ca ca.pem \\
      --bind-dn cn=admin,cn=keyway --password-file pw
      two servers, by what their cn=monitor says
  keyway web --data /srv/directory --listen 10.0.0.5:8389 --name ds1.example.com
      for other machines: https, and an administrator's login
  keyway web --target ldap://ds2.example.com:1389 --users 0-249999 --scenario mixed.toml
      what may be put under load from the page beside the server that it shows")]
pub struct Web {
    /// Servers to show instead of the one on the data folder
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    #[command(flatten)]
    pub data: Data,
    /// Where browsers find the page
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8389", value_parser = parse_address)]
    pub listen: SocketAddr,
    /// A host name that the page is called by, beside those of its address and its certificate
    /// (repeatable)
    #[arg(long = "name", value_name = "HOST")]
    pub names: Vec<String>,
    /// TLS and a login also on a loopback address
    #[arg(long)]
    pub tls: bool,
    /// The page's certificate, PEM, with those that lead to its authority [default: the data folder's]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// The directory whose administrators may log in [default: the first that is shown]
    #[arg(long, value_name = "URL")]
    pub login: Option<String>,
    /// The certificate authority of the servers, PEM [default: those of this system, and the data folder's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate of the servers: an attacker on the network path can then read and change everything
    #[arg(long)]
    pub insecure: bool,
    /// Begin TLS on ldap:// with StartTLS
    #[arg(long)]
    pub start_tls: bool,
    /// The DN that binds to the servers at URLs, to read cn=monitor; one for all, or one for each in their order
    /// (repeatable)
    #[arg(long, value_name = "DN", requires = "password_file")]
    pub bind_dn: Vec<String>,
    /// The file with the password of --bind-dn (0600; repeatable)
    #[arg(long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Vec<PathBuf>,
    /// A server that may be put under load, beside those that are shown (repeatable)
    #[arg(long = "target", value_name = "URL")]
    pub targets: Vec<String>,
    /// A scenario of a file that may be run (keyway load init writes some; repeatable)
    #[arg(long = "scenario", value_name = "FILE")]
    pub scenarios: Vec<PathBuf>,
    /// The DN that all entries are below which load asks for [default: the suffix that the server shows]
    #[arg(long, value_name = "DN")]
    pub base: Option<String>,
    /// The users that load speaks of, unless the page says others: FIRST-LAST, or a file [default: those that
    /// the server shows]
    #[arg(long, value_name = "FIRST-LAST|FILE", value_parser = crate::load::users)]
    pub users: Option<keyway_load::Users>,
    /// The DN that binds on load's connections; without one only operations open to anonymous clients can be run
    #[arg(long, value_name = "DN", requires = "load_password_file")]
    pub load_bind_dn: Option<String>,
    /// The file with the password of --load-bind-dn
    #[arg(long, value_name = "FILE", requires = "load_bind_dn")]
    pub load_password_file: Option<PathBuf>,
    /// Say where the page is as lines of JSON
    #[arg(long)]
    pub json: bool,
}
