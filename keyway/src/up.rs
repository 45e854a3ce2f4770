//! `keyway up`: makes what is missing, opens what is there, serves until it is told to stop.

use crate::admin;
use crate::cli::{Listen, Up};
use crate::configuration::Configuration;
use crate::data::{self, Folder, State, name};
use crate::failure::{Failure, is_disk_full, plain};
use crate::fill::{self, Manner};
use crate::instance::Instance;
use crate::listeners;
use crate::log::{self, Logs};
use crate::moment::Moment;
use crate::output;
use crate::sample::Sample;
use crate::signals::{Asked, Signals};
use crate::source::Source;
use crate::tls::Tls;
use crate::welcome::Welcome;
use keyway_server::log::{Severity, Value};
use keyway_server::network::{Listener, Mode, Server};
use keyway_server::password::Passwords;
use rustls::ServerConfig;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// People in a sample whose size nobody gave.
const SAMPLE_PEOPLE: u32 = 1_000;
/// How long the end of the store may go unnoticed.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Serves until it is told to stop.
///
/// # Errors
/// Whatever keeps it from serving; what was acknowledged before is on the disk.
pub fn run(arguments: &Up) -> Result<(), Failure> {
    // A file that is not there and a port that is taken are found before anything is made.
    let source = arguments.import.as_deref().map(Source::open).transpose()?;
    let (folder, mut configuration, doors) = prepare(arguments)?;
    let logs = Logs::open(&folder, &configuration.log)?;
    configuration.directory.log = logs.log.clone();
    open_meter(&folder);
    let engine = keyway_drivers::engine();
    let mut tls = Tls::new(&engine)?;
    let made = tls.make(&folder, &configuration.tls, &doors.addresses()?, Moment::now())?;
    let runtime = runtime()?;
    let passwords = Passwords::new(engine.clone(), configuration.directory.password_cost);
    let instance = Instance::open(&folder, &configuration, &engine)?;
    admin::ensure(&folder, &instance, &passwords, &runtime)?;
    let password = || admin::stored_password(&folder, name::SAMPLE_PASSWORD, &passwords, &runtime);
    let first_start = fill(arguments, source, &folder, &instance, &password)?;
    add_naming_contexts(&folder, &configuration, &instance)?;
    let password = admin::password_file(&folder, &instance, &passwords, &runtime);
    let welcome = Welcome::new(&folder, &instance, &doors, &made, password, first_start)?;
    let serving = Serving { configuration, tls: made.config, doors, json: arguments.json };
    let ended = runtime.block_on(serving.serve(&instance, &welcome, &logs));
    drop(runtime);
    instance.close()?;
    drop(logs);
    ended?;
    if arguments.json {
        output::json(&json!({ "event": "stopped" }))
    } else {
        output::text("stopped")
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
        keyway_meter::Error::System { source, .. } => plain(&source),
        why => why.to_string(),
    };
    output::note(format_args!(
        "warning: the counters are in memory only, and keyway top does not see them: cannot make \
         {}: {why} and start again",
        path.display()
    ));
}

/// Fills a directory that is empty, or was not filled to the end. Says whether it did.
fn fill(
    arguments: &Up,
    source: Option<Source>,
    folder: &Folder,
    instance: &Instance,
    sample_password: &dyn Fn() -> Result<Vec<u8>, Failure>,
) -> Result<bool, Failure> {
    let sample = |people, done| {
        // Nobody needs one where there is nobody.
        let password = if people == 0 { Vec::new() } else { sample_password()? };
        let password = String::from_utf8_lossy(&password).into_owned();
        fill::sample(instance, &Sample::new(people, password), done)
    };
    let manner = |done| Manner { go_on: false, done, advice: "correct it and start again" };
    let unfinished = instance.unfinished()?.filter(|unfinished| unfinished.records > 0);
    match (source, unfinished) {
        // What came through a pipe may come through it another way the next time.
        (Some(source), Some(unfinished))
            if source.path == unfinished.source && source.path != "-" =>
        {
            fill::ldif(instance, source, manner(unfinished.records))?;
        }
        (Some(source), None) if !instance.is_filled()? => {
            fill::ldif(instance, source, manner(0))?;
        }
        (Some(_), Some(unfinished)) => {
            return Err(Failure::new(fill::unfinished_text(&unfinished, folder.path())));
        }
        (Some(_), None) => return Err(already_filled(folder, arguments)),
        (None, Some(unfinished)) => match fill::people_of(&unfinished) {
            Some(people) => sample(people, unfinished.records)?,
            None => {
                output::note(fill::unfinished_text(&unfinished, folder.path()));
                return Ok(false);
            }
        },
        (None, None) if !instance.is_filled()? => {
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

/// Finds the folder and the configuration, and takes the ports.
fn prepare(arguments: &Up) -> Result<(Folder, Configuration, Doors), Failure> {
    let path = &arguments.data.folder;
    let open = |folder: &Folder| Configuration::load(folder).map(|it| with_flags(it, arguments));
    if data::look(path)? == State::Ours {
        let folder = Folder::open(path, Moment::now())?;
        let configuration = open(&folder)?;
        let doors = Doors::open(&configuration)?;
        return Ok((folder, configuration, doors));
    }
    let doors = Doors::open(&with_flags(Configuration::ahead(path)?, arguments))?;
    let folder = Folder::open(path, Moment::now())?;
    let configuration = open(&folder)?;
    Ok((folder, configuration, doors))
}

fn with_flags(mut configuration: Configuration, arguments: &Up) -> Configuration {
    let either = |flag: Option<Listen>, file: Listen| flag.unwrap_or(file);
    configuration.listen = either(arguments.listen, configuration.listen);
    configuration.listen_tls = either(arguments.listen_tls, configuration.listen_tls);
    configuration.tls.names.extend(arguments.names.iter().cloned());
    configuration
}

fn already_filled(folder: &Folder, arguments: &Up) -> Failure {
    let folder = output::shell(&folder.path().to_string_lossy());
    let file = arguments.import.as_deref().unwrap_or("-".as_ref()).to_string_lossy();
    Failure::new(format!(
        "{folder} holds a directory already; add to it with: keyway directory import {} --data \
         {folder}",
        output::shell(&file)
    ))
}

/// The sockets.
pub struct Doors {
    /// LDAP with StartTLS.
    pub plain: Option<TcpListener>,
    /// LDAPS.
    pub tls: Option<TcpListener>,
}

impl Doors {
    fn open(configuration: &Configuration) -> Result<Doors, Failure> {
        let open = |address: Listen, flag| {
            address.map(|address| listeners::listen(address, flag)).transpose()
        };
        let plain = open(configuration.listen, "--listen")?;
        let tls = open(configuration.listen_tls, "--listen-tls")?;
        if plain.is_none() && tls.is_none() {
            return Err(Failure::new(
                "there is nothing to listen on: listen and listen_tls are both off",
            ));
        }
        Ok(Doors { plain, tls })
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        self.plain.iter().chain(&self.tls).map(listeners::address).collect()
    }
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
    for dn in &configuration.naming_contexts {
        instance.ensure_naming_context(dn).map_err(|why| {
            let file = folder.file(name::CONFIGURATION);
            Failure::new(format!("{}: naming_contexts: {dn}: {why}", file.display()))
        })?;
    }
    Ok(())
}

/// What a server is started with.
struct Serving {
    configuration: Configuration,
    tls: Arc<ServerConfig>,
    doors: Doors,
    json: bool,
}

impl Serving {
    /// Serves until a signal comes or the store fails.
    async fn serve(
        self,
        instance: &Instance,
        welcome: &Welcome,
        logs: &Logs,
    ) -> Result<(), Failure> {
        let mut signals = Signals::catch()?;
        let json = self.json;
        let log_settings = self.configuration.log.clone();
        let server = self.start(instance)?;
        welcome.log(logs);
        welcome.say(json)?;
        let failed = loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    Asked::End => break None,
                    Asked::Reload => reopen(logs, &log_settings),
                },
                why = failure_of(instance) => break Some(why),
            }
        };
        tokio::spawn(signals.end_at_next());
        server.shutdown().await;
        match &failed {
            None => logs.say(Severity::Info, "stop", &[]),
            Some(why) => logs.say(Severity::Error, "stop", &[("text", Value::Text(why))]),
        }
        match failed {
            None => Ok(()),
            Some(why) => Err(Failure::new(format!(
                "the store takes no more changes ({why}); what was acknowledged is safe, start again"
            ))),
        }
    }

    fn start(self, instance: &Instance) -> Result<Server, Failure> {
        let config = self.tls;
        let plain = self
            .doors
            .plain
            .map(|socket| Listener { socket, mode: Mode::StartTls(config.clone()) });
        let tls = self.doors.tls.map(|socket| Listener { socket, mode: Mode::Tls(config.clone()) });
        let listeners = plain.into_iter().chain(tls).collect();
        Server::start(instance.directory.clone(), listeners, self.configuration.network)
            .map_err(|why| Failure::new(format!("cannot serve: {why}")))
    }
}

/// Opens the logs anew; what cannot be opened stays as it was, and is spoken of.
fn reopen(logs: &Logs, settings: &log::Settings) {
    if let Err(why) = logs.reopen(settings) {
        output::note(&why);
        logs.say(Severity::Error, "reload", &[("text", Value::Shown(&why))]);
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
