//! This program as a client of a running cryptod: keys that it holds are used there, and nowhere
//! else.

use crate::data::{Folder, name};
use crate::failure::{Failure, plain};
use crate::limits::{CRYPTOD_LOOK_EVERY, CRYPTOD_WAIT};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Engine, Selection};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// What the driver is called.
const DRIVER: &str = "cryptod";

/// Connects the engine to the daemon that `[cryptod]` names, if it names one, for as long as what
/// comes of it is kept. One that is about to be started is waited for, up to [`CRYPTOD_WAIT`].
/// `tell` is called with `false` when the daemon has gone, and with `true` when it is back.
///
/// # Errors
/// If nobody listens there, or whoever does refuses us.
pub fn connect(
    engine: &Engine,
    folder: &Folder,
    socket: Option<&Path>,
    tell: impl Fn(bool) + Clone + Send + 'static,
) -> Result<Option<Remote>, Failure> {
    let Some(socket) = socket else { return Ok(None) };
    let options = RemoteOptions {
        name: DRIVER.to_owned(),
        // What takes none of its keys is done here.
        selection: Selection::Named,
        ..RemoteOptions::new(folder.file_at(socket), "keyway directory")
    };
    let begun = Instant::now();
    loop {
        match Remote::connect_and_tell(engine, options.clone(), tell.clone()) {
            Ok(remote) => return Ok(Some(remote)),
            Err(why) if is_absent(&why) && begun.elapsed() < CRYPTOD_WAIT => {
                thread::sleep(CRYPTOD_LOOK_EVERY);
            }
            Err(why) => return Err(failure(folder, &options.path, &why)),
        }
    }
}

/// Whether nobody listens, by what the system says.
fn is_absent(why: &io::Error) -> bool {
    why.raw_os_error().is_some()
        && matches!(why.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

fn failure(folder: &Folder, socket: &Path, why: &io::Error) -> Failure {
    let (file, socket) = (folder.file(name::CONFIGURATION), socket.display());
    let why = match is_absent(why) {
        true => format!(
            "no cryptod listens at {socket}, and none came within {} s; start one (keyway cryptod \
             --help), or correct the path",
            CRYPTOD_WAIT.as_secs()
        ),
        false => format!("cannot use the cryptod at {socket}: {}", plain(why)),
    };
    Failure::new(format!("{}: [cryptod] socket: {why}", file.display()))
}
