//! This program as a client of a running cryptod: keys that it holds are used there, and nowhere
//! else.

use crate::limits::{CRYPTOD_LOOK_EVERY, CRYPTOD_WAIT};
use keyway_config::Configuration;
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Engine, Selection};
use keyway_folder::data::{Folder, name};
use keyway_folder::folder_keys;
use keyway_host::failure::{Failure, plain};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf, absolute};
use std::thread;
use std::time::Instant;

/// The driver's name.
const DRIVER: &str = "cryptod";

/// Which daemon holds keys.
pub struct Daemon {
    /// Where it listens.
    pub socket: PathBuf,
    /// Whether it holds those of the data folder's own certificates, too.
    pub holds_own: bool,
    /// The setting that names it, and the advice if no daemon listens there.
    source: String,
    advice: String,
}

/// The daemon that a directory needs, if it needs one: the one that a flag names, or else the
/// configuration, or that of the data folder, if it holds keys of it or is to hold one.
///
/// # Errors
/// If the system does not say where we are.
pub fn daemon(
    folder: &Folder,
    configuration: &Configuration,
    flag: Option<&Path>,
) -> Result<Option<Daemon>, Failure> {
    let file = folder.file(name::CONFIGURATION).display().to_string();
    if let Some(socket) = flag {
        return Ok(Some(Daemon {
            socket: absolute(socket).map_err(|why| Failure::system("find", socket, &why))?,
            holds_own: true,
            source: "--cryptod".to_owned(),
            advice: "start one (keyway cryptod --help), or correct the path".to_owned(),
        }));
    }
    if let Some(socket) = &configuration.cryptod {
        return Ok(Some(Daemon {
            socket: folder.file_at(socket),
            holds_own: false,
            source: format!("{file}: [cryptod] socket"),
            advice: "start one (keyway cryptod --help), or correct the path".to_owned(),
        }));
    }
    if folder_keys::are_held(folder.path()) {
        return Ok(Some(Daemon::of_folder(folder.path())));
    }
    let source = format!("{file} names keys that the folder's cryptod is to hold");
    let names = configuration.names_held_keys();
    Ok(names.then(|| Daemon { source, ..Daemon::of_folder(folder.path()) }))
}

/// Connects the engine to a daemon, for as long as what comes of it is kept. One that is about to be
/// started is waited for, up to [`CRYPTOD_WAIT`]. `tell` is called with `false` when the daemon has
/// gone, and with `true` when it is back.
///
/// # Errors
/// If no daemon listens there, or it refuses this process.
pub fn connect(
    engine: &Engine,
    daemon: Option<&Daemon>,
    tell: impl Fn(bool) + Clone + Send + Sync + 'static,
) -> Result<Option<Remote>, Failure> {
    let Some(daemon) = daemon else { return Ok(None) };
    let options = RemoteOptions {
        name: DRIVER.to_owned(),
        // Operations that take none of its keys are done here.
        selection: Selection::Named,
        ..RemoteOptions::new(&daemon.socket, "keyway directory")
    };
    let begun = Instant::now();
    loop {
        match Remote::connect_and_tell(engine, options.clone(), tell.clone()) {
            Ok(remote) => return Ok(Some(remote)),
            Err(why) if is_absent(&why) && begun.elapsed() < CRYPTOD_WAIT => {
                thread::sleep(CRYPTOD_LOOK_EVERY);
            }
            Err(why) => return Err(daemon.failure(&why)),
        }
    }
}

/// Whether no process listens, by the system's error.
fn is_absent(why: &io::Error) -> bool {
    why.raw_os_error().is_some()
        && matches!(why.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

impl Daemon {
    /// That of a data folder whose certificates' keys it holds.
    pub fn of_folder(folder: &Path) -> Daemon {
        let data = keyway_host::output::shell(&folder.to_string_lossy());
        Daemon {
            socket: name::socket_at(folder),
            holds_own: true,
            source: format!("the keys of {data} are in its cryptod"),
            advice: format!(
                "start it (keyway cryptod --data {data}), or both (keyway up --data {data})"
            ),
        }
    }

    fn failure(&self, why: &io::Error) -> Failure {
        let Daemon { source, advice, .. } = self;
        let socket = self.socket.display();
        Failure::new(match is_absent(why) {
            true => format!(
                "{source}: no cryptod listens at {socket}, and none came within {} s; {advice}",
                CRYPTOD_WAIT.as_secs()
            ),
            false => format!("{source}: cannot use the cryptod at {socket}: {}", plain(why)),
        })
    }
}
