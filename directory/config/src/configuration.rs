//! The configuration: what the file says, checked into what other crates take.

use crate::cluster_section::{Cluster, cluster};
use crate::collector::CollectorUrl;
use crate::definitions::{self, Given};
use crate::raw::{self, DEFAULT, Raw};
use crate::settings::{From, Setting, Settings, settings};
use crate::wrong::{NO_KEY_NAME, Wrong, choice, line_of, wrong};
use crate::{integrity, ldap, tls_section};
use keyway_codec::certificate::Name;
use keyway_codec::dn::Dn;
use keyway_codec::standard::{SETS, Set};
use keyway_drivers::Remember;
use keyway_drivers::limits::REMEMBERED_MAX;
use keyway_engine::is_key_name;
use keyway_folder::data::{self, Folder, name};
use keyway_folder::tls::{self, ServerKey};
use keyway_folder::unix_socket;
use keyway_folder::user::Account;
use keyway_host::failure::Failure;
use keyway_host::listeners::{self, Listen};
use keyway_host::output::shell;
use keyway_host::who;
use keyway_ldapd::{Administrator, ConnectionSettings, Local, Proxies};
use keyway_log::limits::{LOG_FILE_BYTES_MIN, LOG_FILES_KEPT_MAX, LOG_ONE_IN_MAX};
use keyway_log::{Form, To, WhenFull};
use keyway_password::limits::{
    ARGON2_LANES_MAX, ARGON2_MEMORY_KIB_MAX, ARGON2_PASSES_MAX, ARGON2_WORK_KIB_MAX,
    PASSWORD_BYTES_MAX,
};
use keyway_password::{Argon2Cost, Scheme};
use keyway_schema::{Changes, Composed, Schema, SchemaError, SourceFile, Sources};
use keyway_server::access::{Fault, Network, Origin, Rule, Written};
use keyway_server::log::Access;
use keyway_server::{FeedRetention, IndexKind, IndexSetting, OpenError, check_context};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Where to take LDAP.
    pub listen: Listen,
    /// Where to take LDAPS.
    pub listen_tls: Listen,
    /// Where to take LDAP of this machine's own processes.
    pub unix: unix_socket::Settings,
    /// The user that the server runs as, if it names one.
    pub user: Option<Account>,
    /// Suffixes to hold even while they are empty.
    pub naming_contexts: Vec<String>,
    /// Where the cryptod listens whose keys are used.
    pub cryptod: Option<PathBuf>,
    /// The settings of TLS.
    pub tls: tls::Settings,
    /// The settings of the directory.
    pub directory: keyway_server::Settings,
    /// The settings of its network half.
    pub network: ConnectionSettings,
    /// How many right passwords are remembered, and for how long.
    pub remember: Remember,
    /// The settings of the logs.
    pub log: keyway_log::Settings,
    /// Whether changes go into the feed.
    pub feed: bool,
    /// How it works with other servers.
    pub cluster: Cluster,
    /// The places of what clients have the server do.
    pub tasks: Tasks,
    /// Whether metrics are pushed, and where to.
    pub metrics: Option<Metrics>,
    /// Address space for the store.
    pub store_bytes_max: usize,
    /// The text that it was read from.
    pub text: String,
    /// All settings, one by one.
    pub settings: Settings,
    /// Attributes that it names and neither the sets nor the files define, and what to say if the
    /// store does not know them either.
    pub unknown: Vec<(String, String)>,
}

/// `[tasks]`: the places of work that clients have the server do. A path that does not begin with / begins at the data
/// folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// The folder of exports.
    pub exports: PathBuf,
    /// The mode of exports, as in `chmod`.
    pub mode: u32,
    /// The repository of backups.
    pub repository: Option<PathBuf>,
    /// The file that has its key or passphrase; a key of the server's cryptod opens it if there is none.
    pub secret: Option<TaskSecret>,
}

/// The file that opens a repository of backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskSecret {
    /// It has a key.
    KeyFile(PathBuf),
    /// It has a passphrase.
    PassphraseFile(PathBuf),
}

/// `[metrics]`: where metrics are pushed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The collector.
    pub otlp: CollectorUrl,
    /// How often.
    pub every: Duration,
    /// The certificate authority to trust; a path that does not begin with / begins at the data folder.
    pub ca: Option<PathBuf>,
}

/// Settings from flags of a command, which win.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Where to take LDAP.
    pub listen: Option<Listen>,
    /// Where to take LDAPS.
    pub listen_tls: Option<Listen>,
    /// Where to take LDAP of this machine's own processes.
    pub listen_unix: Option<unix_socket::Wanted>,
    /// Further names of the server's certificate.
    pub names: Vec<Name>,
}

/// Facts about a data folder when its configuration is read.
struct Found {
    /// The files of its schema.
    files: Vec<SourceFile>,
    /// Whether there is a store, which may know definitions of its own.
    has_store: bool,
}

/// Why a configuration is invalid.
enum Error {
    /// Its own text, in words.
    Text(String),
    /// The schema.
    Schema(SchemaError),
}

impl Configuration {
    /// The configuration of a data folder, which is given the default one if it is new and has none.
    ///
    /// # Errors
    /// If it cannot be read or written, or says what is not understood: file, line, key, why. If it is
    /// gone.
    pub fn load(folder: &Folder) -> Result<Configuration, Failure> {
        Configuration::load_with(folder, &Given::none())
    }

    /// As [`Configuration::load`], with files of definitions that are to be put into the folder.
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub fn load_with(folder: &Folder, given: &Given) -> Result<Configuration, Failure> {
        if !folder.has(name::CONFIGURATION) {
            may_be_new(folder.path())?;
            folder.write(name::CONFIGURATION, DEFAULT.as_bytes())?;
        }
        let text = folder.read(name::CONFIGURATION)?;
        Configuration::of_text(folder.path(), &text, given)
    }

    /// Parses a text as the configuration of a data folder.
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub fn of_text(folder: &Path, text: &str, given: &Given) -> Result<Configuration, Failure> {
        Configuration::of_text_in(folder, &folder.join(name::CONFIGURATION), text, given)
    }

    /// Parses the text of another file.
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub fn of_text_in(
        folder: &Path,
        file: &Path,
        text: &str,
        given: &Given,
    ) -> Result<Configuration, Failure> {
        let has_store = folder.join(name::STORE).exists();
        let found = Found { files: given.among(definitions::files(folder)?), has_store };
        parse(text, found).map_err(|why| why.of(file))
    }

    /// The configuration of a data folder that is yet to be made: a file that was put there for it, or
    /// the default one.
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub fn ahead(folder: &Path, given: &Given) -> Result<Configuration, Failure> {
        let file = folder.join(name::CONFIGURATION);
        let text = match file.exists() {
            true => data::read(&file)?,
            false => {
                may_be_new(folder)?;
                DEFAULT.to_owned()
            }
        };
        Configuration::of_text(folder, &text, given)
    }

    /// The error when a directory does not accept it, which was read from this file.
    pub fn explain(&self, why: &OpenError, file: &Path) -> Failure {
        let text = match why {
            OpenError::UnknownAttribute(name) => {
                let said = self.unknown.iter().find(|(unknown, _)| unknown == name);
                said.map_or(why.to_string(), |(_, text)| text.clone())
            }
            OpenError::Schema(why) => return Failure::new(why),
            why => why.to_string(),
        };
        Failure::new(format!("{}: {text}", file.display()))
    }

    /// The settings of a file that is not, or not yet, a data folder's.
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub fn of_file(file: &Path) -> Result<Configuration, Failure> {
        let found = Found { files: Vec::new(), has_store: true };
        parse(&data::read(file)?, found).map_err(|why| why.of(file))
    }

    /// Whether it names keys that a cryptod holds.
    pub fn names_held_keys(&self) -> bool {
        let mut pairs = self.tls.files.iter().chain(&self.tls.additional);
        pairs.any(|pair| matches!(pair.key, ServerKey::Held(_)))
            || self.directory.password_pepper.is_some()
    }

    /// This with what flags of a command say, which win.
    pub fn with_flags(mut self, arguments: &Overrides) -> Configuration {
        let either = |flag: Option<Listen>, file: Listen| flag.unwrap_or(file);
        self.listen = either(arguments.listen, self.listen);
        self.listen_tls = either(arguments.listen_tls, self.listen_tls);
        if let Some(path) = &arguments.listen_unix {
            self.unix.path.clone_from(path);
        }
        self.tls.names.extend(arguments.names.iter().cloned());
        self.note_flags(arguments);
        self
    }

    /// Settings from flags.
    fn note_flags(&mut self, arguments: &Overrides) {
        let address = |listen: Listen| listen.map_or("off".to_owned(), |at| at.to_string());
        let path = |path: &unix_socket::Wanted| {
            path.as_ref().map_or("off".to_owned(), |path| path.display().to_string())
        };
        for (key, flag, value) in [
            ("listen", "--listen", arguments.listen.map(address)),
            ("listen_tls", "--listen-tls", arguments.listen_tls.map(address)),
            ("listen_unix", "--listen-unix", arguments.listen_unix.as_ref().map(path)),
        ] {
            if let Some(value) = value {
                let from = From::Flag(flag.to_owned());
                self.settings.insert(key.to_owned(), Setting { value: value.into(), from });
            }
        }
    }
}

/// The text of a data folder's configuration.
///
/// # Errors
/// If it is not there, or cannot be read.
pub fn text_of(folder: &Path) -> Result<String, Failure> {
    let file = folder.join(name::CONFIGURATION);
    if !file.exists() {
        may_be_new(folder)?;
        let (folder, name) = (folder.display(), name::CONFIGURATION);
        return Err(Failure::new(format!(
            "{folder} has no {name}; name the data folder with --data DIR"
        )));
    }
    data::read(&file)
}

/// Refuses a folder that has had a configuration: the default one may let others in, or let them do more.
fn may_be_new(folder: &Path) -> Result<(), Failure> {
    if !data::has_had_store(folder)? {
        return Ok(());
    }
    let (file, data) = (folder.join(name::CONFIGURATION), shell(&folder.to_string_lossy()));
    Err(Failure::new(format!(
        "{} is gone, and with the default one others could have access; put it back, have the last one that \
         was in force written with `keyway config restore --data {data}`, or take the default one with \
         `keyway config accept --default --data {data}`",
        file.display()
    )))
}

impl Error {
    fn of(&self, file: &Path) -> Failure {
        match self {
            Error::Text(why) => Failure::new(format!("{}: {why}", file.display())),
            Error::Schema(why) => Failure::new(why),
        }
    }
}

fn parse(text: &str, found: Found) -> Result<Configuration, Error> {
    let say = |wrong: Wrong| Error::Text(explain(text, &wrong));
    let raw = Raw::read(text).map_err(|error| {
        say(Wrong { span: error.span().unwrap_or_default(), why: words(error.message()) })
    })?;
    let sets = raw.schema.sets.iter().map(set).collect::<Result<_, _>>().map_err(say)?;
    let sources = Sources { program: vec![ldap::definitions()], sets, files: found.files };
    let composed = Composed::new(&sources, &Changes::default()).map_err(Error::Schema)?;
    let schema = composed.schema().map_err(Error::Schema)?;
    let mut unknown = Vec::new();
    for wrong in unknown_names(&raw, &schema) {
        if !found.has_store {
            return Err(say(wrong.1));
        }
        unknown.push((wrong.0, explain(text, &wrong.1)));
    }
    let mut configuration = check(raw, text, sources, &schema).map_err(say)?;
    configuration.unknown = unknown;
    configuration.settings = settings(text).map_err(Error::Text)?;
    Ok(configuration)
}

/// The reader's words, with ranges in the place of its types.
fn words(message: &str) -> String {
    let ranges =
        [("u64", "0 or more"), ("u32", "from 0 to 4294967295"), ("u16", "from 0 to 65535")];
    ranges.iter().fold(message.to_owned(), |text, (name, range)| {
        text.replace(&format!("expected {name}"), &format!("expected a whole number, {range}"))
    })
}

/// A number that is checked to be small: one that is beyond all checks stays so.
fn small(number: &Spanned<u64>) -> u32 {
    u32::try_from(*number.get_ref()).unwrap_or(u32::MAX)
}

fn set(name: &Spanned<String>) -> Result<&'static Set, Wrong> {
    Set::from_name(name.get_ref()).ok_or_else(|| {
        let known: Vec<_> = SETS.iter().map(|set| set.name).collect();
        wrong(name, format!("\"{}\" is none of {}", name.get_ref(), known.join(", ")))
    })
}

/// `line 12: memory_kib: why`
fn explain(text: &str, wrong: &Wrong) -> String {
    let number = line_of(text, wrong.span.start);
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let key = match line.split_once('=') {
        Some((key, _)) => key.trim(),
        None => line,
    };
    if key.is_empty() {
        return format!("line {number}: {}", wrong.why);
    }
    format!("line {number}: {key}: {}", wrong.why)
}

fn check(raw: Raw, text: &str, sources: Sources, schema: &Schema) -> Result<Configuration, Wrong> {
    let Raw { listen, listen_tls, listen_unix, unix, naming_contexts: contexts, .. } = raw;
    let Raw { process, cryptod, tls, password, proxy, .. } = raw;
    let Raw { limits, log, indexes, groups, integrity, access: rules, has_rules, .. } = raw;
    let Raw { metrics: pushed, feed, tasks, cluster: members, .. } = raw;
    let defaults = keyway_server::Settings::default();
    Ok(Configuration {
        listen: address(&listen)?,
        listen_tls: apart(&listen, &listen_tls)?,
        unix: unix_settings(&listen_unix, &unix)?,
        user: account(&process.user)?,
        naming_contexts: naming_contexts(&contexts, schema)?,
        tls: tls_section::settings(&tls)?,
        cryptod: Some(PathBuf::from(cryptod.socket)).filter(|path| !path.as_os_str().is_empty()),
        directory: keyway_server::Settings {
            rules: rules
                .iter()
                .map(|rule| access_rule(rule, has_rules.then_some(text)))
                .collect::<Result<_, _>>()?,
            integrity: integrity::setting(&groups, &integrity)?,
            schema: sources,
            indexes: indexes.iter().map(index).collect::<Result<_, _>>()?,
            search_entries_max: limits.search_entries_max,
            search_time_max_s: limits.search_time_max_s,
            search_unindexed_max: limits.search_unindexed_max,
            search_unindexed_free: dns(&limits.search_unindexed_free)?,
            password_cost: password_cost(&password)?,
            password_accept: password.accept.iter().map(scheme).collect::<Result<_, _>>()?,
            password_pepper: pepper(&password.pepper)?,
            password_upgrade: password.upgrade,
            password_policy: policy(&password.policy)?,
            password_min_length: min_length(&password.min_length)?,
            feed: FeedRetention {
                keep: seconds(&feed.keep_s)?,
                bytes_max: positive(&feed.bytes_max)? as u64,
            },
            log: defaults.log,
            clock: defaults.clock,
        },
        network: ConnectionSettings {
            limits: network_limits(&limits)?,
            allow_plain_password: password.allow_plain,
            trust_loopback: password.trust_loopback,
            administrators: administrators(&tls.administrators, schema)?,
            proxies: proxies(&proxy)?,
            local: Local {
                administrators: local_administrators(&unix.administrators)?,
                by_uid_number: unix.by_uid_number,
            },
        },
        remember: remember(&password)?,
        log: log_settings(&log)?,
        tasks: task_places(&tasks)?,
        metrics: metrics(&pushed)?,
        cluster: cluster(&members)?,
        feed: feed.enabled,
        store_bytes_max: positive(&limits.store_bytes_max)?,
        text: text.to_owned(),
        settings: Settings::new(),
        unknown: Vec::new(),
    })
}

fn address(text: &Spanned<String>) -> Result<Listen, Wrong> {
    listeners::parse(text.get_ref()).map_err(|why| wrong(text, why))
}

/// The second address, which is not the first one again.
fn apart(first: &Spanned<String>, second: &Spanned<String>) -> Result<Listen, Wrong> {
    match (address(first)?, address(second)?) {
        (Some(one), Some(other)) if listeners::overlap(one, other) => {
            Err(wrong(second, "listen has this address already"))
        }
        (_, second) => Ok(second),
    }
}

fn naming_contexts(dns: &[Spanned<String>], schema: &Schema) -> Result<Vec<String>, Wrong> {
    let read = |dn: &Spanned<String>| match check_context(schema, dn.get_ref()) {
        Ok(()) => Ok(dn.get_ref().clone()),
        Err(why) => Err(wrong(dn, why)),
    };
    dns.iter().map(read).collect()
}

fn proxies(raw: &raw::Proxy) -> Result<Proxies, Wrong> {
    let network =
        |text: &Spanned<String>| Network::parse(text.get_ref()).map_err(|why| wrong(text, why));
    let from = raw.from.iter().map(network).collect::<Result<Vec<_>, _>>()?;
    let mut proxies = Proxies { plain: false, tls: false, from };
    for listener in &raw.listeners {
        match listener.get_ref().as_str() {
            "listen" => proxies.plain = true,
            "listen_tls" => proxies.tls = true,
            other => {
                let why = format!("\"{other}\" is not one of \"listen\", \"listen_tls\"");
                return Err(wrong(listener, why));
            }
        }
    }
    match raw.listeners.first() {
        Some(listener) if proxies.from.is_empty() => {
            Err(wrong(listener, "name the proxies' addresses too, in from"))
        }
        _ => Ok(proxies),
    }
}

fn unix_settings(path: &Spanned<String>, raw: &raw::Unix) -> Result<unix_socket::Settings, Wrong> {
    let path = unix_socket::path(path.get_ref()).map_err(|why| wrong(path, why))?;
    let mode = unix_socket::mode(raw.mode.get_ref()).map_err(|why| wrong(&raw.mode, why))?;
    Ok(unix_socket::Settings { path, mode })
}

fn account(text: &Spanned<String>) -> Result<Option<Account>, Wrong> {
    let named = Some(text.get_ref()).filter(|user| !user.is_empty());
    let read = |user: &String| Account::parse(user).map_err(|why| wrong(text, why));
    named.map(read).transpose()
}

fn local_administrators(texts: &[Spanned<String>]) -> Result<Vec<u32>, Wrong> {
    let uid = |text: &Spanned<String>| match text.get_ref().as_str() {
        "self" => Ok(rustix::process::geteuid().as_raw()),
        name => who::user(name).map_err(|why| wrong(text, why.to_string())),
    };
    texts.iter().map(uid).collect()
}

fn administrators(texts: &[Spanned<String>], schema: &Schema) -> Result<Vec<Administrator>, Wrong> {
    let read = |text: &Spanned<String>| {
        Administrator::parse(text.get_ref(), schema).map_err(|why| wrong(text, why))
    };
    texts.iter().map(read).collect()
}

/// A rule, and where it is if it is in the file; `text` is all of that.
fn access_rule(written: &Spanned<Written>, text: Option<&str>) -> Result<Rule, Wrong> {
    let line = text.map(|text| line_of(text, written.span().start));
    let origin = line.map_or(Origin::BuiltIn, Origin::Line);
    Written::check(written, origin).map_err(|Fault { span, why }| Wrong { span, why })
}

/// The attributes that are named and that a schema does not have.
fn unknown_names(raw: &Raw, schema: &Schema) -> Vec<(String, Wrong)> {
    let named = raw.access.iter().flat_map(|rule| rule.get_ref().attributes());
    let others = integrity::attributes(&raw.groups, &raw.integrity);
    let names = raw.indexes.keys().chain(named).chain(others);
    let unknown = names.filter(|name| schema.attribute(name.get_ref()).is_none());
    let said = |name: &Spanned<String>| {
        let why = format!("there is no attribute \"{}\"", name.get_ref());
        (name.get_ref().clone(), wrong(name, why))
    };
    unknown.map(said).collect()
}

fn scheme(name: &Spanned<String>) -> Result<Scheme, Wrong> {
    Scheme::from_name(name.get_ref()).ok_or_else(|| {
        let known: Vec<_> = Scheme::NAMES.iter().map(|(name, _)| *name).collect();
        let why = format!("\"{}\" is none of {}", name.get_ref(), known.join(", "));
        wrong(name, why)
    })
}

fn password_cost(raw: &raw::Password) -> Result<Argon2Cost, Wrong> {
    if raw.scheme.get_ref() != "argon2id" {
        return Err(wrong(&raw.scheme, "new passwords are stored as \"argon2id\" only"));
    }
    let cost = Argon2Cost {
        memory_kib: small(&raw.memory_kib),
        passes: small(&raw.passes),
        lanes: small(&raw.lanes),
    };
    if !(1..=ARGON2_LANES_MAX).contains(&cost.lanes) {
        return Err(wrong(&raw.lanes, format!("it must be from 1 to {ARGON2_LANES_MAX}")));
    }
    let least = 8 * cost.lanes;
    if !(least..=ARGON2_MEMORY_KIB_MAX).contains(&cost.memory_kib) {
        let why = format!("it must be from {least} to {ARGON2_MEMORY_KIB_MAX}");
        return Err(wrong(&raw.memory_kib, why));
    }
    let most = u64::from(ARGON2_PASSES_MAX).min(ARGON2_WORK_KIB_MAX / u64::from(cost.memory_kib));
    if !(1..=most).contains(&u64::from(cost.passes)) {
        let why = format!("it must be from 1 to {most} with this memory_kib");
        return Err(wrong(&raw.passes, why));
    }
    Ok(cost)
}

fn remember(raw: &raw::Password) -> Result<Remember, Wrong> {
    let most = positive(&raw.remember_max)?;
    if most > REMEMBERED_MAX {
        return Err(wrong(&raw.remember_max, format!("it must be {REMEMBERED_MAX} or less")));
    }
    let age = seconds(&raw.remember_s)?;
    Ok(if raw.remember { Remember { most, age } } else { Remember::NOTHING })
}

fn policy(dn: &Spanned<String>) -> Result<Option<String>, Wrong> {
    match dn.get_ref().as_str() {
        "" => Ok(None),
        text if Dn::parse(text).is_ok() => Ok(Some(text.to_owned())),
        text => Err(wrong(dn, format!("\"{text}\" is no DN of an entry of class pwdPolicy"))),
    }
}

fn dns(texts: &[Spanned<String>]) -> Result<Vec<String>, Wrong> {
    let read = |text: &Spanned<String>| match Dn::parse(text.get_ref()) {
        Ok(_) => Ok(text.get_ref().clone()),
        Err(_) => Err(wrong(text, format!("\"{}\" is no DN", text.get_ref()))),
    };
    texts.iter().map(read).collect()
}

fn min_length(characters: &Spanned<u64>) -> Result<u32, Wrong> {
    match *characters.get_ref() {
        least if least <= PASSWORD_BYTES_MAX as u64 => Ok(least as u32),
        _ => Err(wrong(characters, format!("it must be {PASSWORD_BYTES_MAX} or less"))),
    }
}

fn pepper(name: &Spanned<String>) -> Result<Option<String>, Wrong> {
    match name.get_ref().as_str() {
        "" => Ok(None),
        pepper if is_key_name(pepper) => Ok(Some(pepper.to_owned())),
        _ => Err(wrong(name, NO_KEY_NAME)),
    }
}

fn seconds(at: &Spanned<u64>) -> Result<Duration, Wrong> {
    match *at.get_ref() {
        seconds @ 1..=MOST_SECONDS => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong(at, format!("it must be from 1 to {MOST_SECONDS}"))),
    }
}

fn network_limits(raw: &raw::Limits) -> Result<keyway_ldapd::Limits, Wrong> {
    Ok(keyway_ldapd::Limits {
        connections_max: positive(&raw.connections_max)?,
        connections_reserved: positive(&raw.connections_reserved)?,
        message_bytes_max: positive(&raw.message_bytes_max)?,
        message_bytes_before_bind_max: positive(&raw.message_bytes_before_bind_max)?,
        requests_in_flight_max: positive(&raw.requests_in_flight_max)?,
        unread_answer_bytes_max: positive(&raw.unread_answer_bytes_max)?,
        unfinished_bytes_max: unfinished_bytes_max(raw)?,
        password_checks_waiting_max: positive(&raw.password_checks_waiting_max)?,
        idle_max: seconds(&raw.idle_max_s)?,
        // No connection may be idle for longer than idle_max_s.
        idle_before_bind_max: seconds(&raw.idle_before_bind_max_s)?.min(seconds(&raw.idle_max_s)?),
        handshake_max: seconds(&raw.handshake_max_s)?,
        drain_max: seconds(&raw.drain_max_s)?,
    })
}

fn task_places(raw: &raw::Tasks) -> Result<Tasks, Wrong> {
    let exports = raw.exports.get_ref();
    let folder = Path::new(exports);
    let is_plain = folder.components().all(|part| !matches!(part, Component::ParentDir));
    let first = folder.components().find_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let is_own = folder.is_relative() && first.is_none_or(|first| name::ALL.contains(&first));
    if !is_plain || is_own || exports.is_empty() {
        return Err(wrong(
            &raw.exports,
            "it must name a folder that is none of the data folder's own: one below it, or an absolute path",
        ));
    }
    let path =
        |text: &String| Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
    let secret = match (path(&raw.key_file), path(raw.passphrase_file.get_ref())) {
        (Some(_), Some(_)) => {
            return Err(wrong(
                &raw.passphrase_file,
                "there is a key_file: a repository has one of them",
            ));
        }
        (key, passphrase) => {
            key.map(TaskSecret::KeyFile).or(passphrase.map(TaskSecret::PassphraseFile))
        }
    };
    Ok(Tasks {
        exports: exports.into(),
        mode: keyway_log::mode(raw.mode.get_ref()).map_err(|why| wrong(&raw.mode, why))?,
        repository: path(&raw.repository),
        secret,
    })
}

fn log_settings(raw: &raw::Log) -> Result<keyway_log::Settings, Wrong> {
    let folder = raw.folder.get_ref();
    if folder.is_empty() {
        return Err(wrong(&raw.folder, "it must name a folder"));
    }
    let file_bytes_max = *raw.file_bytes_max.get_ref();
    if file_bytes_max < LOG_FILE_BYTES_MIN {
        let why = format!("it must be {LOG_FILE_BYTES_MIN} or more");
        return Err(wrong(&raw.file_bytes_max, why));
    }
    let files_kept = small(&raw.files_kept);
    if files_kept > LOG_FILES_KEPT_MAX {
        let why = format!("it must be {LOG_FILES_KEPT_MAX} or less");
        return Err(wrong(&raw.files_kept, why));
    }
    let access_one_in = small(&raw.access_one_in);
    if !(1..=LOG_ONE_IN_MAX).contains(&access_one_in) {
        let why = format!("it must be from 1 (all of them) to {LOG_ONE_IN_MAX}");
        return Err(wrong(&raw.access_one_in, why));
    }
    let to = [
        ("files", To::Files),
        ("journal", To::Journal),
        ("stderr", To::Stderr),
        ("off", To::Nowhere),
    ];
    let access =
        [("refused", Access::Refused), ("everything", Access::Everything), ("off", Access::Off)];
    Ok(keyway_log::Settings {
        to: choice(&raw.to, &to)?,
        folder: folder.into(),
        mode: keyway_log::mode(raw.mode.get_ref()).map_err(|why| wrong(&raw.mode, why))?,
        form: choice(&raw.format, &[("text", Form::Text), ("json", Form::Json)])?,
        journal: raw.journal_socket.get_ref().into(),
        access: choice(&raw.access, &access)?,
        access_one_in,
        audit: raw.audit,
        when_full: choice(&raw.when_full, &[("drop", WhenFull::Drop), ("wait", WhenFull::Wait)])?,
        file_bytes_max,
        files_kept,
    })
}

fn metrics(raw: &raw::Metrics) -> Result<Option<Metrics>, Wrong> {
    let every = seconds(&raw.interval_s)?;
    if raw.otlp.get_ref().is_empty() {
        return Ok(None);
    }
    let otlp = CollectorUrl::parse(raw.otlp.get_ref()).map_err(|why| wrong(&raw.otlp, why))?;
    let ca = Some(PathBuf::from(&raw.ca)).filter(|path| !path.as_os_str().is_empty());
    Ok(Some(Metrics { otlp, every, ca }))
}

fn unfinished_bytes_max(raw: &raw::Limits) -> Result<usize, Wrong> {
    let bytes = positive(&raw.unfinished_bytes_max)?;
    if bytes < positive(&raw.message_bytes_max)? {
        let why = "it must not be less than message_bytes_max, or no such request could come in";
        return Err(wrong(&raw.unfinished_bytes_max, why));
    }
    Ok(bytes)
}

/// A year: nothing here is meant to wait longer, and clocks can add it.
const MOST_SECONDS: u64 = 366 * 86_400;

fn positive(at: &Spanned<u64>) -> Result<usize, Wrong> {
    match usize::try_from(*at.get_ref()) {
        Ok(number @ 1..) => Ok(number),
        _ => Err(wrong(at, "it must be 1 or more")),
    }
}

fn index(
    (attribute, kinds): (&Spanned<String>, &Vec<Spanned<String>>),
) -> Result<IndexSetting, Wrong> {
    if kinds.is_empty() {
        return Err(wrong(attribute, "name a kind of index, or leave the line out"));
    }
    let kind = |name: &Spanned<String>| {
        IndexKind::from_name(name.get_ref()).ok_or_else(|| {
            let known = IndexKind::ALL.map(IndexKind::name).join(", ");
            wrong(name, format!("\"{}\" is no kind of index; there are {known}", name.get_ref()))
        })
    };
    let kinds = kinds.iter().map(kind).collect::<Result<_, _>>()?;
    Ok(IndexSetting { attribute: attribute.get_ref().clone(), kinds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_server::access::{Attributes, Rights};

    /// A configuration that needs no folder.
    fn parse(text: &str) -> Result<Configuration, String> {
        let found = Found { files: Vec::new(), has_store: false };
        super::parse(text, found).map_err(|why| match why {
            Error::Text(why) => why,
            Error::Schema(why) => why.to_string(),
        })
    }

    #[test]
    fn the_default_file_says_what_other_crates_start_with() {
        let configuration = parse(DEFAULT).unwrap();
        let directory = keyway_server::Settings::default();
        let mut rules = configuration.directory.rules;
        rules.iter_mut().for_each(|rule| rule.origin = Origin::BuiltIn);
        assert_eq!(rules, directory.rules);
        assert_eq!(configuration.directory.integrity, directory.integrity);
        assert_eq!(configuration.directory.schema.sets, directory.schema.sets);
        assert_eq!(configuration.directory.schema.program, [ldap::definitions()]);
        let by_name = |mut indexes: Vec<IndexSetting>| {
            indexes.sort_by(|one, other| one.attribute.cmp(&other.attribute));
            indexes
        };
        assert_eq!(by_name(configuration.directory.indexes), by_name(directory.indexes));
        assert_eq!(configuration.directory.password_cost, directory.password_cost);
        assert_eq!(configuration.directory.password_accept, directory.password_accept);
        assert_eq!(configuration.directory.password_upgrade, directory.password_upgrade);
        assert_eq!(configuration.directory.password_pepper, directory.password_pepper);
        assert_eq!(configuration.directory.password_policy, directory.password_policy);
        assert_eq!(configuration.directory.password_min_length, directory.password_min_length);
        assert_eq!(configuration.remember, Remember::default());
        assert_eq!(configuration.directory.search_entries_max, directory.search_entries_max);
        assert_eq!(configuration.directory.search_time_max_s, directory.search_time_max_s);
        let network = ConnectionSettings::default();
        assert_eq!(format!("{:?}", configuration.network), format!("{network:?}"));
        assert_eq!(configuration.log, keyway_log::Settings::default());
        assert_eq!(configuration.store_bytes_max, keyway_store::Options::default().map_bytes_max);
        assert_eq!(configuration.listen, Some("127.0.0.1:1389".parse().unwrap()));
        assert_eq!(configuration.listen_tls, Some("127.0.0.1:1636".parse().unwrap()));
    }

    #[test]
    fn what_is_left_out_is_as_in_the_default_file() {
        let (empty, mut default) = (parse("").unwrap(), parse(DEFAULT).unwrap());
        // Those of the file are on lines of it.
        default.directory.rules.iter_mut().for_each(|rule| {
            let in_file = std::mem::replace(&mut rule.origin, Origin::BuiltIn);
            assert!(matches!(in_file, Origin::Line(_)));
        });
        assert_eq!(empty.settings.len(), default.settings.len());
        default.settings.clone_from(&empty.settings);
        default.text.clone_from(&empty.text);
        assert_eq!(format!("{empty:?}"), format!("{default:?}"));
        let partly = parse("[limits]\nidle_max_s = 5\n").unwrap();
        assert_eq!(partly.network.limits.idle_max, Duration::from_secs(5));
        assert_eq!(partly.network.limits.connections_max, 10_000);
        assert_eq!(partly.network.limits.idle_before_bind_max, Duration::from_secs(5));
    }

    #[test]
    fn an_error_names_line_key_and_reason() {
        let cases = [
            ("\nlisten = \"here\"", "line 2: listen: it is not an address"),
            ("listen_unix = \"\"", "line 1: listen_unix: it must be a path"),
            ("[unix]\nmode = \"777\"", "line 2: mode: \"777\" is not one of"),
            ("[unix]\nmode = \"rw\"", "line 2: mode: \"rw\" is no mode"),
            ("[unix]\nadministrators = [\"no such\"]", "line 2: administrators: there is no user"),
            ("listen = \"[::]:389\"\nlisten_tls = \"[::]:389\"", "line 2: listen_tls: listen has"),
            (
                "naming_contexts = [\"notadn\"]",
                "line 1: naming_contexts: \"notadn\" is not a valid DN",
            ),
            ("naming_contexts = [\"shoe=1\"]", "line 1: naming_contexts: \"shoe=1\" cannot be"),
            ("naming_contexts = [\"cn=config\"]", "line 1: naming_contexts: \"cn=config\" is the"),
            ("[proxy]\nlisteners = [\"ldap\"]", "line 2: listeners: \"ldap\" is not one of"),
            ("[proxy]\nlisteners = [\"listen\"]", "line 2: listeners: name the proxies"),
            ("[proxy]\nfrom = [\"here\"]", "line 2: from: \"here\" is no address"),
            ("[log]\nmode = \"0666\"", "line 2: mode: \"0666\" is not one of"),
            ("listen = 389", "line 1: listen: invalid type: integer `389`, expected a string"),
            ("lisden = \"off\"", "line 1: lisden: unknown field `lisden`"),
            ("[limits]\nmore = 1", "line 2: more: unknown field `more`"),
            ("[limits]\nidle_max_s = 0", "line 2: idle_max_s: it must be from 1 to"),
            ("[limits]\nconnections_max = 0", "line 2: connections_max: it must be 1 or more"),
            ("[limits]\nconnections_max = -1", "line 2: connections_max: "),
            ("[password]\nscheme = \"md5\"", "line 2: scheme: new passwords are stored as"),
            ("[password]\naccept = [\"des\"]", "line 2: accept: \"des\" is none of pbkdf2, "),
            ("[password]\npasses = 0", "line 2: passes: it must be from 1"),
            ("[password]\nmemory_kib = 64\npasses = 65", "line 3: passes: it must be from 1 to 64"),
            ("[password]\nmemory_kib = 4", "line 2: memory_kib: it must be from 8"),
            (
                "[password]\nmemory_kib = 99999999999",
                "line 2: memory_kib: it must be from 8 to 262144",
            ),
            ("[log]\nfiles_kept = 99999999999", "line 2: files_kept: it must be 1000 or less"),
            (
                "[limits]\nsearch_entries_max = 99999999999",
                "line 2: search_entries_max: invalid value: integer `99999999999`, expected a whole number, from 0 to",
            ),
            (
                "[limits]\nconnections_max = -1",
                "line 2: connections_max: invalid value: integer `-1`, expected a whole number, 0 or more",
            ),
            ("[password]\nlanes = 99", "line 2: lanes: it must be from 1 to"),
            ("[password]\nremember_max = 0", "line 2: remember_max: it must be 1 or more"),
            ("[password]\nremember_max = 99999999", "line 2: remember_max: it must be 10000000 or"),
            ("[password]\nremember_s = 0", "line 2: remember_s: it must be from 1 to"),
            ("[password]\npolicy = \"best\"", "line 2: policy: \"best\" is no DN of an entry"),
            ("[password]\nmin_length = 1025", "line 2: min_length: it must be 1024 or less"),
            ("[password]\npepper = \"Cayenne\"", "line 2: pepper: a key's name has lower-case"),
            ("[log]\nto = \"disk\"", "line 2: to: \"disk\" is not one of \"files\", \"journal\""),
            ("[log]\nfile_bytes_max = 1", "line 2: file_bytes_max: it must be 4096 or more"),
            ("[log]\naccess_one_in = 0", "line 2: access_one_in: it must be from 1 (all of them)"),
            ("[log]\nfiles_kept = 1001", "line 2: files_kept: it must be 1000 or less"),
            (
                "[metrics]\notlp = \"collector:4317\"",
                "line 2: otlp: \"collector:4317\" is no URL of",
            ),
            ("[feed]\nkeep_s = 0", "line 2: keep_s: it must be from 1 to"),
            ("[feed]\nbytes_max = 0", "line 2: bytes_max: it must be 1 or more"),
            ("[tasks]\nexports = \"\"", "line 2: exports: it must name a folder"),
            ("[tasks]\nexports = \".\"", "line 2: exports: it must name a folder"),
            ("[tasks]\nexports = \"./store\"", "line 2: exports: it must name a folder"),
            ("[tasks]\nexports = \"../out\"", "line 2: exports: it must name a folder"),
            ("[tasks]\nmode = \"0666\"", "line 2: mode: \"0666\" is not one of"),
            (
                "[tasks]\nkey_file = \"a\"\npassphrase_file = \"b\"",
                "line 3: passphrase_file: there is a key_file",
            ),
            ("[cluster]\nown_writes = \"all\"", "line 2: own_writes: \"all\" is not one of"),
            (
                "[cluster]\nown_writes_wait_s = 61",
                "line 2: own_writes_wait_s: it must be from 0 to",
            ),
            ("[cluster]\nurl = \"ldap://a\"", "line 2: url: \"ldap://a\" is no URL like ldaps://"),
            ("[cluster]\netcd = [\"a:2379\"]", "line 2: etcd: \"a:2379\" is no URL like https://"),
            ("[cluster]\netcd_key = \"k\"", "line 2: etcd_key: etcd_certificate and etcd_key go"),
            ("[cluster]\nlease_s = 1", "line 2: lease_s: it must be from 2 to 300"),
            ("[cluster]\nmember_age_max_s = 0", "line 2: member_age_max_s: it must be from 1"),
            ("[metrics]\ninterval_s = 0", "line 2: interval_s: it must be from 1 to"),
            ("[schema]\nsets = [\"shoes\"]", "line 2: sets: \"shoes\" is none of 389, automount, "),
            ("[indexes]\nuid = [\"eq\"]", "line 2: uid: \"eq\" is no kind of index"),
            ("[indexes]\nuid = []", "line 2: uid: name a kind"),
            (
                "[[access]]\nwho = \"me\"\nwhat = \"data\"\nrights = []",
                "line 2: who: \"me\" is not",
            ),
            (
                "[[access]]\nwho = \"self\"\nwhat = \"it\"\nrights = []",
                "line 3: what: \"it\" is not",
            ),
            (
                "[[access]]\nwho = \"self\"\nwhat = \"data\"\nrights = [\"own\"]",
                "line 4: rights: \"own\"",
            ),
            (
                "[[access]]\nwho = \"self\"\nwhat = \"data\"",
                "line 1: [[access]]: missing field `rights`",
            ),
            ("[indexes]\nshoe = [\"presence\"]", "line 2: shoe: there is no attribute \"shoe\""),
            (
                "[[access]]\nwho = \"self\"\nwhat = \"data\"\nrights = []\nexcept = [\"shoe\"]",
                "line 5: except: there is no attribute \"shoe\"",
            ),
            (
                "[[access]]\nwho = \"self\"\nwhat = \"data\"\nrights = []\nexcept = [\"cn\"]\nattributes = []",
                "line 1: [[access]]: a rule has either",
            ),
            ("[tls]\nkey = \"k\"", "line 2: key: name the certificate's file too"),
            ("[tls]\ncertificate = \"c\"\nkey = \"cryptod:A\"", "line 3: key: a key's name has"),
            ("[tls]\nnames = [\"a b\"]", "line 2: names: \"a b\" is neither a host's name"),
            ("[tls]\nclient_certificates = \"on\"", "line 2: client_certificates: \"on\" is not"),
            ("[tls]\nadministrators = [\"sha256:12\"]", "line 2: administrators: "),
            ("[tls]\nadministrators = [\"me\"]", "line 2: administrators: "),
            ("listen = ", "line 1: listen: "),
            ("[indexes]\nuid = [\"equality\"]\nuid = [\"presence\"]", "line 3: uid: duplicate key"),
        ];
        for (text, expected) in cases {
            let why = parse(text).map(|_| ()).unwrap_err();
            assert!(why.starts_with(expected), "{text}\n  {why}\n  {expected}");
        }
    }

    #[test]
    fn rules_and_indexes_replace_the_default_ones() {
        let text = "[indexes]\nuid = [\"equality\"]\n\
            [[access]]\nwho = \"users\"\nwhat = \"data\"\nattributes = [\"cn\"]\nrights = [\"read\"]\n";
        let configuration = parse(text).unwrap();
        assert_eq!(configuration.directory.indexes.len(), 1);
        let [rule] = &configuration.directory.rules[..] else { panic!("one rule") };
        assert_eq!(rule.attributes, Attributes::Only(vec!["cn".to_owned()]));
        assert_eq!(rule.rights, Rights::READ);
    }
}
