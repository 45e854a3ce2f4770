//! The configuration as it is written: names and types are right, values are not checked yet.

use keyway_server::access::Written;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

/// The file that a first start writes.
pub const DEFAULT: &str = include_str!("default.toml");

/// The file, complete.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    pub listen: Spanned<String>,
    pub listen_tls: Spanned<String>,
    pub listen_unix: Spanned<String>,
    pub unix: Unix,
    pub proxy: Proxy,
    pub process: Process,
    pub naming_contexts: Vec<Spanned<String>>,
    pub cryptod: Cryptod,
    pub tls: Tls,
    pub password: Password,
    pub limits: Limits,
    pub log: Log,
    pub feed: Feed,
    pub tasks: Tasks,
    pub metrics: Metrics,
    pub cluster: Cluster,
    pub schema: Schema,
    pub indexes: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    pub groups: Groups,
    pub integrity: Integrity,
    pub access: Vec<Spanned<Written>>,
    /// The rules are the file's own, so that their places are places in it.
    #[serde(skip)]
    pub has_rules: bool,
}

/// `[cryptod]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cryptod {
    pub socket: String,
}

/// `[unix]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unix {
    pub mode: Spanned<String>,
    pub administrators: Vec<Spanned<String>>,
    pub by_uid_number: bool,
}

/// `[proxy]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    pub listeners: Vec<Spanned<String>>,
    pub from: Vec<Spanned<String>>,
}

/// `[process]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    pub user: Spanned<String>,
}

/// `[tls]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub versions: Vec<Spanned<String>>,
    pub ciphers: Vec<Spanned<String>>,
    pub certificate: Spanned<String>,
    pub key: Spanned<String>,
    #[serde(default)]
    pub additional: Vec<Spanned<Pair>>,
    pub names: Vec<Spanned<String>>,
    pub client_certificates: Spanned<String>,
    pub client_ca: Vec<String>,
    pub client_crls: Vec<String>,
    pub administrators: Vec<Spanned<String>>,
}

/// `[[tls.additional]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub certificate: Spanned<String>,
    pub key: Spanned<String>,
}

/// `[password]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Password {
    pub scheme: Spanned<String>,
    pub memory_kib: Spanned<u64>,
    pub passes: Spanned<u64>,
    pub lanes: Spanned<u64>,
    pub upgrade: bool,
    pub policy: Spanned<String>,
    pub min_length: Spanned<u64>,
    pub accept: Vec<Spanned<String>>,
    pub remember: bool,
    pub remember_max: Spanned<u64>,
    pub remember_s: Spanned<u64>,
    pub pepper: Spanned<String>,
    pub allow_plain: bool,
    pub trust_loopback: bool,
}

/// `[limits]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub connections_max: Spanned<u64>,
    pub connections_reserved: Spanned<u64>,
    pub message_bytes_max: Spanned<u64>,
    pub message_bytes_before_bind_max: Spanned<u64>,
    pub requests_in_flight_max: Spanned<u64>,
    pub unread_answer_bytes_max: Spanned<u64>,
    pub unfinished_bytes_max: Spanned<u64>,
    pub password_checks_waiting_max: Spanned<u64>,
    pub idle_max_s: Spanned<u64>,
    pub idle_before_bind_max_s: Spanned<u64>,
    pub handshake_max_s: Spanned<u64>,
    pub drain_max_s: Spanned<u64>,
    pub search_entries_max: u32,
    pub search_time_max_s: u32,
    pub search_unindexed_max: u32,
    pub search_unindexed_free: Vec<Spanned<String>>,
    pub store_bytes_max: Spanned<u64>,
}

/// `[schema]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    pub sets: Vec<Spanned<String>>,
}

/// `[log]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub to: Spanned<String>,
    pub folder: Spanned<String>,
    pub format: Spanned<String>,
    pub mode: Spanned<String>,
    pub journal_socket: Spanned<String>,
    pub access: Spanned<String>,
    pub access_one_in: Spanned<u64>,
    pub audit: bool,
    pub when_full: Spanned<String>,
    pub file_bytes_max: Spanned<u64>,
    pub files_kept: Spanned<u64>,
}

/// `[feed]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    pub enabled: bool,
    pub keep_s: Spanned<u64>,
    pub bytes_max: Spanned<u64>,
}

/// `[tasks]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tasks {
    pub exports: Spanned<String>,
    pub mode: Spanned<String>,
    pub repository: String,
    pub key_file: String,
    pub passphrase_file: Spanned<String>,
}

/// `[metrics]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    pub otlp: Spanned<String>,
    pub interval_s: Spanned<u64>,
    pub ca: String,
}

/// `[cluster]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    pub forward: bool,
    pub own_writes: Spanned<String>,
    pub own_writes_wait_s: Spanned<u64>,
    pub url: Spanned<String>,
    pub member_age_max_s: Spanned<u64>,
    pub etcd: Vec<Spanned<String>>,
    pub etcd_ca: String,
    pub etcd_certificate: String,
    pub etcd_key: Spanned<String>,
    pub lease_s: Spanned<u64>,
}

/// `[groups]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    pub members: Vec<Spanned<String>>,
    pub member_of: Spanned<String>,
}

/// `[integrity]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integrity {
    pub references: Vec<Spanned<String>>,
    #[serde(default)]
    pub unique: Vec<Unique>,
    #[serde(default)]
    pub allocate: Vec<Allocate>,
}

/// `[[integrity.unique]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unique {
    pub attributes: Vec<Spanned<String>>,
    pub below: Option<Spanned<String>>,
    pub filter: Option<Spanned<String>>,
}

/// `[[integrity.allocate]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocate {
    pub attribute: Spanned<String>,
    pub class: Spanned<String>,
    pub from: Spanned<u64>,
    pub to: Spanned<u64>,
    pub magic: Option<Spanned<String>>,
}

impl Raw {
    /// Reads the file's text. The settings that it leaves out are taken from the default file, so
    /// that there is one place for defaults.
    ///
    /// # Errors
    /// Text that is not TOML, of another type, or not known, with its place in the text.
    pub fn read(text: &str) -> Result<Raw, Error> {
        let mut file = DeTable::parse(text)?;
        let has_rules = file.get_ref().contains_key("access");
        complete(file.get_mut(), DeTable::parse(DEFAULT)?.into_inner());
        Ok(Raw { has_rules, ..Raw::deserialize(Deserializer::from(file))? })
    }
}

fn complete<'a>(table: &mut DeTable<'a>, defaults: DeTable<'a>) {
    for (key, default) in defaults {
        let Some(value) = table.get_mut(key.get_ref().as_ref()) else {
            table.insert(key, default);
            continue;
        };
        let whole = ["indexes", "access"].contains(&key.get_ref().as_ref());
        if let (false, DeValue::Table(table), DeValue::Table(defaults)) =
            (whole, value.get_mut(), default.into_inner())
        {
            complete(table, defaults);
        }
    }
}
