//! `keyway ldapd`: makes what is missing, opens what is there, serves until it is told to stop, by itself or
//! as a process of `keyway up`.

use crate::admin::{self, PasswordFile};
use crate::backups;
use crate::banner::{Banner, Listening};
use crate::certificates::{Certificates, Sources};
use crate::client;
use crate::cluster;
use crate::gauges;
use crate::instance::Instance;
use crate::instance::describe;
use crate::ldif_source::Source;
use crate::limits::{self, CERTIFICATES_LOOK_EVERY};
use crate::options::{LdapdOptions, ServeOptions};
use crate::places::places;
use crate::populate::{self, Manner, Populated};
use crate::reload::{PushMetrics, Reload};
use crate::sample::Sample;
use crate::tasks::{Runner, Tasks};
use keyway_config::Configuration;
use keyway_config::Given;
use keyway_config::TaskSecret;
use keyway_config::tree;
use keyway_drivers::{Verifier, software};
use keyway_engine::Engine;
use keyway_folder::data::{self, Folder, State, name};
use keyway_folder::tls::Tls;
use keyway_folder::unix_socket;
use keyway_folder::user::{self, Account, Half};
use keyway_host::failure::{self, Failure, is_disk_full, plain};
use keyway_host::listeners::Sockets;
use keyway_host::notify;
use keyway_host::output;
use keyway_host::process_hardening;
use keyway_host::sandbox;
use keyway_host::signals::{self, Asked, Signals};
use keyway_host::supervised::{self, Inherited, Supervised};
use keyway_host::timestamp::{Timestamp, time_since_boot};
use keyway_ldapd::{LdapServer, Listener, Mode};
use keyway_log::Logs;
use keyway_server::VirtualEntry;
use keyway_server::log::{Severity, Value};
use serde_json::json;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;
use tokio::signal::unix::Signal;
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::MissedTickBehavior;

/// The default number of people in a sample.
const SAMPLE_PEOPLE: u32 = 1_000;
/// How long the end of the store may go unnoticed.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Serves until it is told to stop.
///
/// # Errors
/// Whatever keeps it from serving; what was acknowledged before is on the disk.
pub fn run(arguments: &LdapdOptions, push_metrics: PushMetrics) -> Result<(), Failure> {
    let supervised = arguments.inherited.as_ref().map(Inherited::take).transpose()?;
    // One that comes before it is caught waits.
    let hold = signals::hold_hangup();
    let handed_over = Sockets::handed_over()?;
    let serve = &arguments.serve;
    let given = Given::read(&serve.schema, &serve.folder)?;
    let Start { supervision, source, folder, mut configuration, sockets } = match supervised {
        Some(supervised) => Start::supervised(serve, supervised, &given)?,
        None => Start::alone(serve, handed_over, &given)?,
    };
    // Threads that run by then would keep all that they have.
    if !serve.no_sandbox {
        sandbox::of_ldapd(places(&folder, &configuration)?).enter()?;
        failure::say_confined(format!(
            "the server runs as {} and opens files only in the folders that it was started with: start it \
             again if this one is new",
            Account::this()
        ));
    }
    let runtime = runtime()?;
    let hangup = runtime.block_on(async { signals::catch_hangup() })?;
    drop(hold);
    let again = supervision.as_ref().is_some_and(|it| it.again);
    // The logs count as well.
    open_meter(&folder);
    let logs = Logs::open(&folder, &configuration.log)?;
    configuration.directory.log = logs.log.clone();
    // The terminal may be closed by now, so the log has why it does not start again.
    let told = |why: Failure| {
        if again {
            logs.say(Severity::Error, "start", &[("text", Value::Text(&why.to_string()))]);
        }
        why
    };
    // The supervised cryptod warns for both.
    let locked_memory = process_hardening::lock_memory(supervision.is_none());
    let verifier = Verifier::new(software(), configuration.remember, Box::new(time_since_boot))
        .map_err(|why| Failure::new(format!("cannot make the password verifier: {why}")))?;
    let engine = keyway_drivers::engine_beside(verifier.clone());
    let daemon = client::daemon(&folder, &configuration, arguments.cryptod.as_deref())?;
    let cryptod = client::connect(&engine, daemon.as_ref(), tell_of_cryptod(&logs))?;
    let cryptod_socket = match &daemon {
        Some(daemon) => daemon.socket.clone(),
        None => name::socket_at(folder.path()),
    };
    let held_by = daemon.filter(|it| it.holds_own).map(|it| it.socket);
    let tls = Tls::new(&engine, held_by.clone())?;
    let listen = sockets.addresses()?;
    let sources = Sources { folder: &folder, settings: &configuration.tls, listen: &listen };
    let (certificates, made) = Certificates::open(tls, sources).map_err(told)?;
    let is_new = !data::has_had_store(folder.path())?;
    let instance = Instance::open_to_serve(&folder, &configuration, &engine, locked_memory);
    let instance = instance.map_err(told)?;
    let kept = instance.directory.kept_lines().map_err(|why| told(Failure::new(describe(&why))))?;
    logs.write_missing(&kept);
    // When the store has taken them, so that one that it refuses is not there at the next start.
    given.put(&folder)?;
    if !serve.schema.is_empty() {
        instance.say_schema_warnings();
    }
    say_schema_warnings(&logs, &instance);
    instance.directory.check_pepper(&configuration.directory).map_err(|why| {
        told(Failure::new(format!("{}: {why}", folder.file(name::CONFIGURATION).display())))
    })?;
    let passwords = instance.directory.passwords().clone();
    admin::ensure(&folder, &instance, &passwords, &runtime)?;
    let password = || admin::stored_password(&folder, name::SAMPLE_PASSWORD, &passwords, &runtime);
    let filled = !again && populate(serve, source, &folder, &instance, &password)?;
    let first_start = filled || is_new;
    add_naming_contexts(&folder, &configuration, &instance)?;
    let password = match again {
        // No process is told.
        true => PasswordFile::Gone,
        false => admin::password_file(&folder, &instance, &passwords, &runtime),
    };
    let up = supervision.as_ref().map(|it| it.up);
    let unix = unix_socket::file(&folder, &configuration.unix);
    let listening = Listening { sockets: &sockets, unix };
    let banner = Banner::new(&folder, &instance, listening, &made, password, first_start, up)?;
    let is_supervised = supervision.is_some();
    let serving = Serving {
        arguments: serve,
        folder: &folder,
        instance: &instance,
        engine: &engine,
        verifier: &verifier,
        logs: &logs,
        certificates,
        configuration,
        supervision,
        push_metrics,
        cryptod_socket,
        held_by,
    };
    let ended = runtime.block_on(serving.serve(sockets, &banner, hangup));
    drop(runtime);
    instance.close()?;
    drop(cryptod);
    drop(logs);
    ended?;
    if !is_supervised {
        say_stopped(serve.json);
    }
    Ok(())
}

/// Prints `stopped`; ignores a closed stdout.
pub fn say_stopped(json: bool) {
    let _ = match json {
        true => output::json(&json!({ "event": "stopped" })),
        false => output::text("stopped"),
    };
}

/// The contents that a server begins with.
struct Start {
    supervision: Option<Supervision>,
    source: Option<Source>,
    folder: Folder,
    configuration: Configuration,
    sockets: Sockets,
}

/// The process that started this one, if that is `keyway up`.
struct Supervision {
    up: u32,
    channel: UnixStream,
    /// Whether an earlier process was ready: nothing has to be said or made.
    again: bool,
    /// Whether the supervisor binds other addresses while it runs.
    moves: bool,
}

impl Start {
    fn alone(
        arguments: &ServeOptions,
        handed_over: Option<Sockets>,
        given: &Given,
    ) -> Result<Start, Failure> {
        // A file that is not there and a port that is taken are found before anything is made.
        let source = arguments.import.as_deref().map(Source::open).transpose()?;
        let (folder, configuration, sockets, _) =
            prepare(arguments, handed_over, given, Half::Ldapd)?;
        Ok(Start { supervision: None, source, folder, configuration, sockets })
    }

    fn supervised(
        arguments: &ServeOptions,
        by: Supervised,
        given: &Given,
    ) -> Result<Start, Failure> {
        let Supervised { up, channel, lock, ldap, ldaps, import, again, moves, .. } = by;
        let source = arguments.import.as_deref().map(|path| Source::new(path, import));
        let folder = Folder::inherited(&arguments.folder, lock)?;
        let configuration =
            Configuration::load_with(&folder, given)?.with_flags(&arguments.overrides);
        let sockets = Sockets { plain: ldap, tls: ldaps };
        let supervision = Some(Supervision { up, channel, again, moves });
        Ok(Start { supervision, source: source.transpose()?, folder, configuration, sockets })
    }
}

/// Writes into the log what of the schema is taken for something else than it says.
fn say_schema_warnings(logs: &Logs, instance: &Instance) {
    for warning in instance.directory.schema_warnings() {
        logs.say(Severity::Warning, "schema", &[("text", Value::Text(&warning))]);
    }
}

/// Counts where `keyway top` can look. Where no file can be had, on a full disk above all, it is
/// counted in memory: to serve, and to make room by deletions, matters more than to be watched.
fn open_meter(folder: &Folder) {
    let path = folder.file(name::METER);
    let Err(why) = keyway_meter::open(Some(&path)) else { return };
    // The page of an earlier process would show what is no more.
    let _ = std::fs::remove_file(&path);
    let why = match why {
        keyway_meter::Error::System { source, .. } if is_disk_full(&source) => {
            "the disk is full; make room".to_owned()
        }
        keyway_meter::Error::System { source, .. } => format!("{}; move it away", plain(&source)),
        why => format!("{why}; move it away"),
    };
    output::note(format_args!(
        "warning: the counters are in memory only, and keyway top does not see them: cannot make \
         {}: {why} and start again",
        path.display()
    ));
}

/// Says in the log when the cryptod is lost and when it is back.
fn tell_of_cryptod(logs: &Logs) -> impl Fn(bool) + Clone + Send + 'static {
    let log = logs.log.clone();
    move |is_there| {
        let (severity, text) = match is_there {
            true => (Severity::Info, "it is back"),
            false => (
                Severity::Error,
                "it is gone, or a key in use was rotated, revoked or taken away (keyway key list): operations with its \
                 keys are refused until it is back",
            ),
        };
        log.say(SystemTime::now(), severity, "cryptod", &[("text", Value::Text(text))]);
    }
}

/// Puts entries into a directory that is empty, or was not populated to the end. Says whether it
/// did.
fn populate(
    arguments: &ServeOptions,
    source: Option<Source>,
    folder: &Folder,
    instance: &Instance,
    sample_password: &dyn Fn() -> Result<Vec<u8>, Failure>,
) -> Result<bool, Failure> {
    let sample = |people, done| {
        // Without entries no password is needed.
        let password = if people == 0 { Vec::new() } else { sample_password()? };
        let password = String::from_utf8_lossy(&password).into_owned();
        populate::sample(instance, &Sample::new(people, password), done)
    };
    let advice = "correct it and start again";
    let manner =
        |done| Manner { go_on: false, done, advice, unverified: false, fast_passwords: None };
    let unfinished = instance.unfinished()?.filter(|unfinished| unfinished.records > 0);
    match (source, unfinished) {
        // Input that came through a pipe may come through it another way the next time.
        (Some(source), Some(unfinished))
            if source.path == unfinished.source && source.path != "-" =>
        {
            let populated = populate::ldif(instance, folder, source, manner(unfinished.records))?;
            say_notes(arguments, &populated)?;
        }
        (Some(source), None) if !instance.is_populated()? => {
            let populated = populate::ldif(instance, folder, source, manner(0))?;
            say_notes(arguments, &populated)?;
        }
        (Some(_), Some(unfinished)) => {
            return Err(Failure::new(populate::unfinished_text(&unfinished, folder.path())));
        }
        (Some(_), None) => return Err(already_populated(folder, arguments)),
        (None, Some(unfinished)) => match populate::people_of(&unfinished) {
            Some(people) => sample(people, unfinished.records)?,
            None => {
                output::note(populate::unfinished_text(&unfinished, folder.path()));
                return Ok(false);
            }
        },
        (None, None) if arguments.empty => {
            // No later start, without the flag, is a first one.
            if !instance.is_populated()? {
                instance.mark_populated()?;
            }
            return Ok(false);
        }
        (None, None) if !instance.is_populated()? => {
            sample(arguments.sample.unwrap_or(SAMPLE_PEOPLE), 0)?;
        }
        (None, None) => {
            if arguments.sample.is_some() {
                let folder = folder.path().display();
                output::note(format_args!(
                    "{folder} holds a directory already; --sample is for a first start"
                ));
            }
            return Ok(false);
        }
    }
    Ok(true)
}

/// Says what was done otherwise than the input says; a program that reads JSON waits for one object.
fn say_notes(arguments: &ServeOptions, populated: &Populated) -> Result<(), Failure> {
    if arguments.json { Ok(()) } else { populate::say_notes(populated) }
}

/// Becomes the user that it is to run as, finds the folder and the configuration, and takes the ports,
/// unless there are sockets already. Says too which user cryptod is to be, if that is another. To be called before it
/// starts a thread.
///
/// # Errors
/// If there is no such user, or that user cannot read the named files. If the folder or a port cannot be had, or
/// the configuration is wrong.
pub fn prepare(
    arguments: &ServeOptions,
    handed_over: Option<Sockets>,
    given: &Given,
    half: Half<'_>,
) -> Result<(Folder, Configuration, Sockets, Option<Account>), Failure> {
    let entered = user::enter(arguments.user.as_ref(), &arguments.folder, half)?;
    let (folder, configuration, sockets) = open(arguments, handed_over, given)?;
    user::check(configuration.user.as_ref(), arguments.user.as_ref())?;
    let files = configuration.tls.named().map(|file| folder.file_at(file));
    entered.can_read(arguments.schema.iter().cloned().chain(files))?;
    entered.keep_nothing()?;
    Ok((folder, configuration, sockets, entered.cryptod().cloned()))
}

fn open(
    arguments: &ServeOptions,
    handed_over: Option<Sockets>,
    given: &Given,
) -> Result<(Folder, Configuration, Sockets), Failure> {
    let open_sockets = |configuration: &Configuration| match handed_over {
        Some(sockets) => Ok(sockets),
        None => Sockets::open(
            configuration.listen,
            configuration.listen_tls,
            configuration.unix.path.is_some(),
        ),
    };
    let path = &arguments.folder;
    let open = |folder: &Folder| {
        Configuration::load_with(folder, given).map(|it| it.with_flags(&arguments.overrides))
    };
    if data::look(path)? == State::Ours {
        let folder = Folder::open(path, Timestamp::now())?;
        let configuration = open(&folder)?;
        let sockets = open_sockets(&configuration)?;
        return Ok((folder, configuration, sockets));
    }
    let sockets =
        open_sockets(&Configuration::ahead(path, given)?.with_flags(&arguments.overrides))?;
    let folder = Folder::open(path, Timestamp::now())?;
    let configuration = open(&folder)?;
    Ok((folder, configuration, sockets))
}

fn already_populated(folder: &Folder, arguments: &ServeOptions) -> Failure {
    let folder = output::shell(&folder.path().to_string_lossy());
    let file = arguments.import.as_deref().unwrap_or("-".as_ref()).to_string_lossy();
    Failure::new(format!(
        "{folder} holds a directory already; add to it with: keyway directory import {} --data \
         {folder}",
        output::shell(&file)
    ))
}

fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("keyway")
        .build()
        .map_err(|why| Failure::new(format!("cannot start threads: {why}")))
}

fn add_naming_contexts(
    folder: &Folder,
    configuration: &Configuration,
    instance: &Instance,
) -> Result<(), Failure> {
    if instance.store.is_following() {
        // The one that writes adds them, as soon as one does.
        return Ok(());
    }
    for dn in &configuration.naming_contexts {
        instance.ensure_naming_context(dn).map_err(|why| {
            let file = folder.file(name::CONFIGURATION);
            Failure::new(format!("{}: naming_contexts: {dn}: {why}", file.display()))
        })?;
    }
    Ok(())
}

/// The parts that a server is started with.
struct Serving<'a> {
    arguments: &'a ServeOptions,
    folder: &'a Folder,
    instance: &'a Instance,
    engine: &'a Engine,
    verifier: &'a Verifier,
    logs: &'a Logs,
    certificates: Certificates,
    configuration: Configuration,
    supervision: Option<Supervision>,
    push_metrics: PushMetrics,
    cryptod_socket: PathBuf,
    /// The socket of the cryptod that holds the keys of the folder's own certificates, if one does.
    held_by: Option<PathBuf>,
}

impl Serving<'_> {
    /// Serves until a signal comes or the store fails.
    async fn serve(self, sockets: Sockets, banner: &Banner, hangup: Signal) -> Result<(), Failure> {
        let runner = self.runner();
        let channel = self.supervision.as_ref().map(|it| it.channel.try_clone()).transpose();
        let channel = channel.map_err(|why| Failure::new(format!("cannot serve: {why}")))?;
        let mut signals = Signals::catch_beside(hangup, channel)?;
        let address = |socket: &Option<TcpListener>| socket.as_ref()?.local_addr().ok();
        let addresses = [address(&sockets.plain), address(&sockets.tls)];
        let (server, listeners) = self.server(sockets)?;
        let Serving { arguments, folder, instance, engine, verifier, logs, .. } = self;
        let Serving { certificates, configuration, supervision, push_metrics, held_by, .. } = self;
        let cluster = match addresses[1] {
            Some(_) => Some(cluster::start(
                cluster::Serving {
                    folder: folder.path(),
                    directory: &instance.directory,
                    store: &instance.store,
                    engine,
                    log: &logs.log,
                    server: &server,
                    cryptod: held_by,
                    url: cluster::own_url(configuration.cluster.url.as_ref(), addresses[1]),
                },
                cluster::node_settings(&configuration),
                cluster::TailSettings::read(folder, &configuration.cluster, engine)?,
            )?),
            // Members reach each other over LDAPS.
            None => None,
        };
        // Clients come when it is known where their changes are made.
        for listener in listeners {
            let listens = server.listen(listener.kind(), Some(listener));
            listens.map_err(|why| Failure::new(format!("cannot serve: {why}")))?;
        }
        banner.log(logs);
        if let Some(text) = limits::fit_open_files(&mut configuration.network.limits.clone()) {
            logs.say(Severity::Warning, "limit", &[("text", Value::Text(&text))]);
            output::note(text);
        }
        let tasks = Tasks::start(&instance.directory, runner, logs.log.clone())?;
        let (tree, mut changes) =
            tree::publish(&instance.directory, configuration.settings.clone());
        let mut reload = Reload {
            arguments,
            folder,
            instance,
            engine,
            verifier,
            logs,
            addresses,
            supervisor: supervision.as_ref().filter(|it| it.moves).map(|it| &it.channel),
            server: &server,
            node: cluster.as_ref().map(|cluster| cluster.node.clone()),
            certificates,
            push: push_metrics,
            configuration,
            waiting: Vec::new(),
            tree,
            holder: supervision.as_ref().map_or_else(std::process::id, |it| it.up),
            reads: 0,
            untold: None,
        };
        reload.remember();
        reload.publish(None);
        reload.push_metrics();
        instance.directory.build_indexes();
        reload.take_asked();
        match &supervision {
            // Before any other process knows: an end that is asked for then is orderly.
            Some(supervision) => supervised::ready(&supervision.channel),
            None => {
                user::warn_of_root(arguments.user.as_ref());
                notify::ready(false);
            }
        }
        if supervision.as_ref().is_none_or(|it| !it.again) {
            banner.say(arguments.json)?;
        }
        let mut look = tokio::time::interval(CERTIFICATES_LOOK_EVERY);
        let mut look_around = tokio::time::interval(gauges::LOOK_EVERY);
        look_around.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let size = gauges::StoreSize::new();
        let mut feed = gauges::FeedGauges::new();
        let mut refusals = gauges::Refusals::default();
        let cryptod = gauges::Cryptod::of(folder.path());
        let backups = backups::Monitor::of(folder.path());
        let member = cluster::Monitor::of(cluster.as_ref().map(|cluster| cluster.node.clone()));
        let shown = (cryptod.clone(), backups.clone(), member.clone());
        server.show_beside(move |wanted| {
            let of = |name, entries: &dyn Fn() -> Vec<VirtualEntry>| match wanted.shows(name) {
                true => entries(),
                false => Vec::new(),
            };
            [
                of("Cryptod", &|| shown.0.entries()),
                of("Backups", &|| shown.1.entries()),
                of("Cluster", &|| shown.2.entries()),
            ]
            .concat()
        });
        let mut looking = tokio::spawn(async {});
        let mut settling = tokio::spawn(async {});
        let failed = loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    Asked::End => break None,
                    // It reads files; connections go on with the other threads.
                    Asked::Reload => {
                        let moved = signals.moved();
                        block_in_place(|| reload.run(moved));
                    }
                },
                Some((modification, reply)) = changes.recv() => {
                    reply(block_in_place(|| reload.change(&modification)));
                }
                _ = look.tick() => block_in_place(|| {
                    reload.look_at_certificates();
                    // A schema that was changed over LDAP may order an attribute anew.
                    instance.directory.build_indexes();
                }),
                _ = look_around.tick() => {
                    block_in_place(|| reload.publish_again());
                    gauges::show_engine(engine);
                    size.show(&instance.store);
                    feed.show(&instance.directory);
                    refusals.look(&instance.store, logs);
                    backups.look(logs);
                    let (cryptod, directory) = (cryptod.clone(), instance.directory.clone());
                    // It waits for the disk. Lines stay kept where it fails, and a full disk says so itself.
                    settling = match settling.is_finished() {
                        true => spawn_blocking(move || {
                            drop(directory.settle_audit());
                            while matches!(directory.trim_feed(), Ok(true)) {}
                        }),
                        false => settling,
                    };
                    let member = member.clone();
                    // It waits for the store, and for the daemon.
                    looking = match looking.is_finished() {
                        true => spawn_blocking(move || {
                            member.look();
                            cryptod.look();
                        }),
                        false => looking,
                    };
                }
                why = failure_of(instance) => break Some(why),
            }
        };
        tokio::spawn(signals.end_at_next());
        notify::stopping();
        let node = cluster.as_ref().map(|cluster| cluster.node.clone());
        let followed = async {
            if let Some(node) = node {
                node.followed().await;
            }
        };
        server.shutdown(followed).await;
        block_in_place(|| tasks.end());
        let _ = settling.await;
        // Lines that cannot be settled now are at the next start.
        let _ = block_in_place(|| instance.directory.settle_audit());
        drop(cluster);
        match failed {
            None => {
                logs.say(Severity::Info, "stop", &[]);
                Ok(())
            }
            Some(why) => {
                logs.say(Severity::Error, "stop", &[("text", Value::Text(&why))]);
                let text = format!(
                    "the store takes no more changes ({why}); what was acknowledged had reached the disk by \
                     then; start again when that is mended"
                );
                // With what a full disk has let through, it can be read at once.
                Err(match instance.store.refused() {
                    Some(keyway_store::Error::DiskFull) => {
                        Failure::with_status(&text, supervised::STORE_STOPPED)
                    }
                    _ => Failure::new(text),
                })
            }
        }
    }

    fn runner(&self) -> Runner {
        let Serving { folder, instance, configuration, .. } = self;
        let at = |path: &PathBuf| folder.file_at(path);
        let places = &configuration.tasks;
        let places = keyway_config::Tasks {
            exports: at(&places.exports),
            mode: places.mode,
            repository: places.repository.as_ref().map(at),
            secret: places.secret.as_ref().map(|secret| match secret {
                TaskSecret::KeyFile(path) => TaskSecret::KeyFile(at(path)),
                TaskSecret::PassphraseFile(path) => TaskSecret::PassphraseFile(at(path)),
            }),
        };
        Runner {
            folder: folder.path().to_owned(),
            directory: Arc::downgrade(&instance.directory),
            store: instance.store.clone(),
            places,
            cryptod: self.cryptod_socket.clone(),
        }
    }

    /// The server of clients, and what it is to listen on.
    fn server(&self, sockets: Sockets) -> Result<(LdapServer, Vec<Listener>), Failure> {
        let tls = || self.certificates.current.clone();
        let listener = |socket, mode| Listener { socket, mode };
        let plain = sockets.plain.map(|socket| listener(socket.into(), Mode::StartTls(tls())));
        let tls = sockets.tls.map(|socket| listener(socket.into(), Mode::Tls(tls())));
        let unix = unix_socket::listen(self.folder, &self.configuration.unix)?;
        let unix = unix.map(|socket| listener(socket.into(), Mode::Plain));
        let listeners = plain.into_iter().chain(tls).chain(unix).collect();
        let mut network = self.configuration.network.clone();
        limits::fit_open_files(&mut network.limits);
        let server = LdapServer::start(self.instance.directory.clone(), Vec::new(), network);
        let server = server.map_err(|why| Failure::new(format!("cannot serve: {why}")))?;
        Ok((server, listeners))
    }
}

/// Resolves when the store has stopped.
async fn failure_of(instance: &Instance) -> String {
    let mut look = tokio::time::interval(LOOK_AFTER);
    loop {
        look.tick().await;
        if let Some(why) = instance.store.failed() {
            return why;
        }
    }
}
