//! `keyway cryptod`: the daemon, wired.

use crate::gauges;
use crate::limits::{START_RESERVE_BYTES, TAKE_OVER_SAY_AFTER};
use crate::options::CryptodOptions;
use crate::{limit, master, tokens, vhost_user, vms, witness};
use keyway_daemon::keys::KeyStore;
use keyway_daemon::witness::{Sight, Witness};
use keyway_daemon::{Admission, Daemon, Options, listen};
use keyway_drivers::{Remember, Verifier, software};
use keyway_engine::{Builder, Engine};
use keyway_folder::data::name;
use keyway_folder::folder_keys::{self, Brought, Which};
use keyway_folder::user::{self, Half};
use keyway_host::failure::{Failure, is_disk_full, plain};
use keyway_host::notify::{self, HandedOver};
use keyway_host::output;
use keyway_host::process_hardening;
use keyway_host::sandbox;
use keyway_host::signals::{self, Signals};
use keyway_host::supervised::{self, Inherited, Supervised};
use keyway_host::timestamp::time_since_boot;
use keyway_host::who;
use keyway_meter::counter;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{getgid, getuid};
use serde_json::json;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Room that is kept for its next start, in that folder.
const RESERVE: &str = "reserve";
/// Shortest and longest time for which a ring is polled before its client has to ring.
const SPIN_MIN: Duration = Duration::from_micros(5);
const SPIN_MAX: Duration = Duration::from_micros(100);

/// Says that the other daemon takes its time to hand over, until what this returns is dropped.
fn say_if_slow(path: &Path) -> mpsc::Sender<()> {
    let (done, waiting) = mpsc::channel();
    let shown = path.display().to_string();
    thread::spawn(move || {
        if waiting.recv_timeout(TAKE_OVER_SAY_AFTER) == Err(RecvTimeoutError::Timeout) {
            output::note(format_args!(
                "the daemon at {shown} has not handed over yet: it is busy, or stopped; it is waited for"
            ));
        }
    });
    done
}

/// Serves until it is told to stop.
///
/// # Errors
/// Whatever keeps it from serving.
pub fn run(arguments: &CryptodOptions) -> Result<(), Failure> {
    if arguments.witness {
        return witness::run();
    }
    if let Some(name) = &arguments.keeps {
        return vhost_user::keep(name, arguments.no_sandbox);
    }
    if let Some(name) = &arguments.is_device_of {
        return vhost_user::serve(name, arguments.no_sandbox);
    }
    let mut supervised = arguments.inherited.as_ref().map(Inherited::take).transpose()?;
    // Files that only root may read are opened before the process changes its user.
    let open = match supervised.as_mut() {
        Some(supervised) => supervised.master.take(),
        None => arguments.master.as_ref().map(master::open).transpose()?.flatten(),
    };
    let (named, pins) = (&arguments.tokens, &arguments.token_pins);
    let token_flags = tokens::open(named, pins, &arguments.token_files)?;
    // As long as this process may see what it is to look at.
    let helper = (!arguments.no_sandbox).then(witness::start).transpose()?;
    if supervised.is_none() {
        user::enter(arguments.user.as_ref(), &arguments.folder, Half::Cryptod)?.keep_nothing()?;
    }
    let helper = helper.map(witness::Started::witness).transpose()?;
    let (helper, watch) = helper.unzip();
    if helper.is_some() {
        witness::leave_it_to_the_witness();
    }
    let weights = limit::weights(&arguments.weights)?;
    let name_spaces = limit::name_spaces(&arguments.name_spaces)?;
    let (limits, shared) = limit::limits(&arguments.limits);
    let directory = user::directory_of(&arguments.folder);
    let mut admission = admission(arguments, helper.unwrap_or_default())?;
    let sight = admission.witness.sight();
    let folder = arguments.folder.join(name::CRYPTOD);
    make_folder(&folder)?;
    let place = match arguments.take_over {
        true => Place::Taken(socket_path(arguments, &folder)),
        false => listener(arguments, &admission, &folder)?,
    };
    let mut machines = vms::listen(&arguments.vms, arguments.take_over)?;
    let (devices, no_sandbox) = (&arguments.vhost_users, arguments.no_sandbox);
    machines.devices = vhost_user::start(devices, arguments.take_over, no_sandbox)?;
    machines.sockets.extend(devices.iter().map(|vm| vm.socket.clone()));
    keep_room(&folder);
    admission.users.extend(directory.map(|(user, _)| user));
    let meter = folder.join(name::cryptod::METER);
    if let Err(why) = keyway_meter::open(Some(&meter)) {
        output::note(format_args!("warning: keyway top will not see the counters: {why}"));
    }
    if let Some((_, group)) = directory {
        share(&place, &meter, group)?;
    }
    process_hardening::lock_memory(true);
    let verifier = Verifier::new(software(), Remember::default(), Box::new(time_since_boot))
        .map_err(|why| Failure::new(format!("cannot make the password verifier: {why}")))?;
    let drivers = keyway_drivers::drivers_beside(verifier).into_iter();
    let engine = drivers.fold(Engine::builder().legacy(arguments.legacy), Builder::driver).build();
    // Before the sandbox, which may keep the daemon from where it comes from.
    let master = master::get(&arguments.master, open, &folder, &engine)?;
    let brought = match (supervised.as_mut(), directory) {
        (Some(supervised), Some(_)) => brought(supervised, &engine, &arguments.folder)?,
        _ => Vec::new(),
    };
    let token_places = token_flags.places();
    let tokens = token_flags.tokens(&folder.join(name::cryptod::TOKENS))?;
    if let Some(tokens) = &tokens {
        let registered = engine.register(tokens.clone());
        registered.map_err(|why| Failure::new(format!("cannot use tokens: {why}")))?;
    }
    let spin = keyway_ring::wake_cost().clamp(SPIN_MIN, SPIN_MAX);
    if !arguments.no_sandbox {
        let socket = match &place {
            Place::Made(_, socket) => socket.as_deref(),
            Place::Taken(socket) => Some(&**socket),
        };
        let sockets = socket.into_iter().chain(machines.sockets.iter().map(PathBuf::as_path));
        sandbox::of_cryptod(&folder, sockets, token_places).enter()?;
    }
    // In the sandbox, as all that their modules do.
    tokens.as_ref().map(tokens::look).transpose()?;
    let pumps = arguments.pumps.map_or_else(pumps, usize::from);
    let keys = || {
        let keys = master.open(&folder.join(name::cryptod::KEYS), &engine)?;
        let keys = match &tokens {
            Some(tokens) => keys.with_tokens(tokens.clone()),
            None => keys,
        };
        if let Some((user, _)) = directory {
            folder_keys::provide(&keys, user, &brought)?;
        }
        warn_of_programs(&keys, sight);
        Ok::<_, Failure>(keys)
    };
    let options = |keys, socket| Options {
        admission,
        limits,
        shared,
        weights,
        name_spaces,
        keys: Some(Arc::new(keys)),
        machines,
        socket,
        pumps,
        spin,
    };
    let (tell, handed_over) = oneshot::channel();
    let tell = Box::new(move |process| {
        // If no process reads it, this process is ending anyway.
        let _ = tell.send(process);
    });
    let (daemon, socket) = match place {
        Place::Taken(path) => {
            // The other daemon has the key store until it hands over.
            let options = || match keys() {
                Ok(keys) => Ok(options(keys, Some(path.clone()))),
                Err(why) => Err(io::Error::other(why.to_string())),
            };
            let waited_for = say_if_slow(&path);
            let daemon = Daemon::take_over(&engine, &path, options, tell);
            drop(waited_for);
            (daemon.map_err(|why| not_taken(&path, &why))?, Some(path))
        }
        Place::Made(listener, path) => {
            let options = options(keys()?, path.clone());
            let daemon = Daemon::start(&engine, listener, options, tell);
            let cannot = |why| Failure::new(format!("cannot serve: {}", plain(&why)));
            (daemon.map_err(cannot)?, path)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot wait for signals: {why}")))?;
    let channel = supervised.as_ref().map(|it| it.channel.try_clone()).transpose();
    let channel = channel.map_err(|why| Failure::new(format!("cannot serve: {}", plain(&why))))?;
    let ended = runtime.block_on(async {
        let mut signals = Signals::catch_beside(signals::catch_hangup()?, channel)?;
        say_ready(arguments, socket.as_deref(), pumps, spin)?;
        notify::ready(arguments.take_over);
        if let Some(supervised) = &supervised {
            supervised::ready(&supervised.channel);
        }
        let look = async {
            let mut look_around = tokio::time::interval(gauges::LOOK_EVERY);
            let (answered, mut before) = (counter("cryptod.requests"), None);
            loop {
                look_around.tick().await;
                // An idle daemon has nothing new to show, and takes no time for it.
                let now = answered.value();
                if before.replace(now) != Some(now) {
                    gauges::show_engine(&engine);
                }
            }
        };
        let blind = async {
            match watch {
                Some(watch) => watch.ended().await,
                None => std::future::pending().await,
            }
        };
        // In this order: a daemon that has handed over has let its witness go.
        let ended = tokio::select! {
            biased;
            () = signals.end() => Ok(None),
            Ok(process) = handed_over => Ok(Some(process)),
            why = blind => Err(why),
            () = look => Ok(None),
        };
        tokio::spawn(signals.end_at_next());
        ended
    });
    match ended {
        Ok(Some(process)) => notify::succeeded_by(process),
        _ => notify::stopping(),
    }
    tokens::end(tokens, || drop(daemon));
    let event = if ended?.is_some() { "handed over" } else { "stopped" };
    // The reader of the output may be gone; the stop succeeded all the same.
    let _ = match arguments.json {
        true => output::json(&json!({ "event": event })),
        false => output::text(event),
    };
    Ok(())
}

/// The key files that the directory's user has, and this one is to hold.
fn brought(
    supervised: &mut Supervised,
    engine: &Engine,
    data: &Path,
) -> Result<Vec<Brought>, Failure> {
    let files = [
        (Which::Authority, supervised.ca_key.take()),
        (Which::Server, supervised.server_key.take()),
    ];
    let mut brought = Vec::new();
    for (which, file) in files {
        let Some(file) = file else { continue };
        brought.extend(folder_keys::brought(engine, data, which, file)?);
    }
    Ok(brought)
}

/// Lets the group of the directory's user connect, and see the counters.
fn share(place: &Place, meter: &Path, group: u32) -> Result<(), Failure> {
    let socket = match place {
        Place::Made(_, Some(socket)) => Some((socket.as_path(), 0o660)),
        _ => None,
    };
    for (path, mode) in socket.into_iter().chain([(meter, 0o640)]) {
        let shared = chown(path, None, Some(group))
            .and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)));
        match shared {
            Err(why) if path != meter => {
                return Err(Failure::system("let the directory's user reach", path, &why));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where it listens.
enum Place {
    /// At a socket of its own, which has a path if it is this program's to remove.
    Made(OwnedFd, Option<PathBuf>),
    /// Where another daemon does, which hands over.
    Taken(PathBuf),
}

fn not_taken(path: &Path, why: &io::Error) -> Failure {
    let shown = path.display();
    Failure::new(match why.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            format!("no daemon listens at {shown}; start one without --take-over")
        }
        ErrorKind::PermissionDenied => format!(
            "cannot take over from the daemon at {shown}: {}; run as its user, or as root",
            plain(why)
        ),
        _ => format!("cannot take over from the daemon at {shown}: {}", plain(why)),
    })
}

fn say_ready(
    arguments: &CryptodOptions,
    socket: Option<&Path>,
    pumps: usize,
    spin: Duration,
) -> Result<(), Failure> {
    let shown = socket.map(|socket| socket.display().to_string());
    if arguments.json {
        return output::json(&json!({
            "event": "ready",
            "socket": shown,
            "pid": std::process::id(),
            "pumps": pumps,
            "spin_us": spin.as_micros() as u64,
            "sandbox": !arguments.no_sandbox,
        }));
    }
    let shown = shown.unwrap_or_else(|| "a socket that was handed over".to_owned());
    output::text(format_args!(
        "Keyway cryptod {} serves at {shown} ({pumps} {}, each polls for {} µs before it sleeps)",
        env!("CARGO_PKG_VERSION"),
        if pumps == 1 { "pump" } else { "pumps" },
        spin.as_micros(),
    ))
}

/// One for two processors: the others are the clients'.
fn pumps() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2)
}

/// Says which keys are granted to programs that this daemon does not see.
fn warn_of_programs(keys: &KeyStore, sight: Sight) {
    for key in keys.list() {
        for who in key.grants.iter().map(|grant| &grant.who) {
            if let (Some(_), Err(why)) = (&who.executable, sight.reaches(who.uid)) {
                output::note(format_args!(
                    "warning: no client can use key {} by {who}: {why}",
                    key.name
                ));
            }
        }
    }
}

fn admission(arguments: &CryptodOptions, witness: Witness) -> Result<Admission, Failure> {
    if !arguments.programs.is_empty() && witness.sight() != Sight::All {
        return Err(Failure::usage(
            "--allow-program: this daemon would not see which programs other users run: have root start it \
             (of whose rights it keeps only that one, in a process of its own), or give it that right \
             (systemd: AmbientCapabilities=CAP_SYS_PTRACE); it takes Linux 6.5",
        ));
    }
    let programs = arguments.programs.iter().map(|program| {
        fs::canonicalize(program).map_err(|why| Failure::system("look at", program, &why))
    });
    Ok(Admission {
        users: arguments.users.iter().map(|name| who::user(name)).collect::<Result<_, _>>()?,
        groups: arguments.groups.iter().map(|name| who::group(name)).collect::<Result<_, _>>()?,
        programs: programs.collect::<Result<_, _>>()?,
        all_users: arguments.allow_everybody,
        witness: Arc::new(witness),
    })
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(|why| Failure::system("make the folder", folder, &why))
}

/// Keeps room for the next start, if there is any: on a full disk no socket could be made.
fn keep_room(folder: &Path) {
    let path = folder.join(RESERVE);
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let kept = file
        .and_then(|file| Ok(fallocate(&file, FallocateFlags::empty(), 0, START_RESERVE_BYTES)?));
    if kept.is_err() {
        // Less than the whole of it would only make the disk fuller.
        let _ = fs::remove_file(&path);
    }
}

fn socket_path(arguments: &CryptodOptions, folder: &Path) -> PathBuf {
    arguments.socket.clone().unwrap_or_else(|| folder.join(name::cryptod::SOCKET))
}

/// The socket to listen at, and its path, if it is this program's to make and to remove.
fn listener(
    arguments: &CryptodOptions,
    admission: &Admission,
    folder: &Path,
) -> Result<Place, Failure> {
    if arguments.socket.is_none()
        && let Some(socket) = handed_over()?
    {
        return Ok(Place::Made(socket, None));
    }
    let path = socket_path(arguments, folder);
    let shown = path.display();
    if arguments.socket.is_none() && lets_others_in(admission) {
        return Err(Failure::usage(format!(
            "others are let in, and only this user reaches {shown}; name a place that they reach \
             with --socket PATH"
        )));
    }
    let listening = match listen(&path) {
        // The space that is kept for this is given back.
        Err(why) if is_disk_full(&why) && fs::remove_file(folder.join(RESERVE)).is_ok() => {
            listen(&path)
        }
        listening => listening,
    };
    match listening {
        Ok(socket) => {
            open_to_the_listed(admission, &path)?;
            Ok(Place::Made(socket, Some(path)))
        }
        Err(why) if why.kind() == ErrorKind::AddrInUse => Err(Failure::new(format!(
            "cannot listen at {shown}: {why}; stop that, or name another place with --socket PATH"
        ))),
        Err(why) if why.kind() == ErrorKind::InvalidFilename => Err(Failure::new(format!(
            "cannot listen at {shown}: the path is longer than a socket's may be; name a shorter \
             one with --socket PATH"
        ))),
        Err(why) => Err(Failure::system("listen at", &path, &why)),
    }
}

/// The socket that this process was started with, if it was.
fn handed_over() -> Result<Option<OwnedFd>, Failure> {
    let mut all = notify::handed_over()?;
    let count = all.len();
    let (Some(HandedOver { file: socket, .. }), 1) = (all.pop(), count) else {
        return match count {
            0 => Ok(None),
            _ => Err(Failure::new(format!(
                "{count} sockets were handed over, where one is wanted; let the .socket unit have one \
                 ListenSequentialPacket="
            ))),
        };
    };
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(format!("cannot take the socket that was handed over: {why}"))
    };
    let keeps_bounds = socket_domain(&socket) == Ok(AddressFamily::UNIX)
        && socket_type(&socket) == Ok(SocketType::SEQPACKET)
        && socket_acceptconn(&socket) == Ok(true);
    if !keeps_bounds {
        return Err(cannot(
            &"it is no listening Unix socket for messages; let the .socket unit have \
              ListenSequentialPacket=PATH and Accept=no",
        ));
    }
    // Where the system cannot, the daemon takes none all the same.
    let _ = keyway_ring::refuse_files(&socket);
    // A client that gave up before it was accepted delays no other.
    rustix::io::ioctl_fionbio(&socket, true).map_err(|why| cannot(&why))?;
    Ok(Some(socket))
}

/// Whether users beside this one and root are let in.
fn lets_others_in(admission: &Admission) -> bool {
    lets_other_users_in(admission) || !admission.groups.is_empty()
}

fn lets_other_users_in(admission: &Admission) -> bool {
    let own = getuid().as_raw();
    admission.all_users || admission.users.iter().any(|user| *user != own && *user != 0)
}

/// The system lets a socket's user and group connect. If others are to be let in it has to
/// let all users connect, and the daemon alone checks each client.
fn open_to_the_listed(admission: &Admission, path: &Path) -> Result<(), Failure> {
    let own = getgid().as_raw();
    if !lets_other_users_in(admission) && admission.groups.iter().all(|group| *group == own) {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(0o666))
        .map_err(|why| Failure::system("open to others", path, &why))
}
