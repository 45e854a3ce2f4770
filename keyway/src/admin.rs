//! The administrator and the passwords that we make: in files of their own, never printed.

use crate::cli::AdminPassword;
use crate::instance::Instance;
use crate::instance::describe;
use crate::offline::{self, Offline};
use keyway_folder::data::{Folder, name};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_password::BindHistory;
use keyway_password::limits::PASSWORD_BYTES_MAX;
use keyway_password::{Given, PasswordCheck, Passwords, classify};
use keyway_server::ADMINISTRATOR_DN;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::path::Path;
use tokio::runtime::{self, Runtime};
use zeroize::Zeroizing;

/// Gives a directory without an administrator one, whose password is in the data folder.
///
/// A directory that has one is left as it is: he may have changed his password.
///
/// # Errors
/// If the password cannot be written, hashed or stored.
pub fn ensure(
    folder: &Folder,
    instance: &Instance,
    passwords: &Passwords,
    runtime: &Runtime,
) -> Result<(), Failure> {
    let bad = |why: keyway_server::Failure| {
        Failure::new(format!("cannot make the administrator: {}", describe(&why)))
    };
    if instance.directory.has_administrator().map_err(bad)? {
        return Ok(());
    }
    let hashed = stored_password(folder, name::ADMIN_PASSWORD, passwords, runtime)?;
    instance.directory.bootstrap_administrator(hashed).map_err(bad)
}

/// What is in the file of the administrator's password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordFile {
    /// The password.
    Right,
    /// Another, which may have been right once.
    Stale,
    /// There is none, or none that we can read.
    Gone,
}

/// Whether the file in the data folder still has the administrator's password. What cannot be
/// checked now is taken for stale: it is only to be spoken of.
pub fn password_file(
    folder: &Folder,
    instance: &Instance,
    passwords: &Passwords,
    runtime: &Runtime,
) -> PasswordFile {
    let Ok(text) = folder.read_secret(name::ADMIN_PASSWORD) else { return PasswordFile::Gone };
    let found = match instance.directory.credentials(ADMINISTRATOR_DN) {
        Ok(Some(found)) => found,
        _ => return PasswordFile::Stale,
    };
    // The clients that read a password from a file take all of it.
    let password = Zeroizing::new(text.as_bytes().to_vec());
    // The first and only attempt of this process at it.
    let attempt = passwords.attempt(Ipv4Addr::LOCALHOST.into(), &[], BindHistory::default());
    let entry = found.subject.id().map(|id| id.0);
    let verdict = match passwords.check(attempt, entry, password, &found.passwords) {
        Ok(PasswordCheck::Known(verdict)) => Ok(verdict),
        Ok(PasswordCheck::Pending(pending)) => runtime.block_on(pending),
        Err(why) => Err(why),
    };
    match verdict {
        Ok(verdict) if verdict.is_right() => PasswordFile::Right,
        _ => PasswordFile::Stale,
    }
}

/// The stored form of the password in a file, which is made if it is not there.
///
/// The file has no line end: the clients that read a password from a file take all of it.
///
/// # Errors
/// If it cannot be written, read or hashed.
pub fn stored_password(
    folder: &Folder,
    file: &str,
    passwords: &Passwords,
    runtime: &Runtime,
) -> Result<Vec<u8>, Failure> {
    if !folder.has(file) {
        folder.write_secret(file, &passwords.generate().map_err(unmade)?)?;
    }
    let text = folder.read_secret(file)?;
    let password = Zeroizing::new(text.trim_end_matches(['\n', '\r']).as_bytes().to_vec());
    runtime.block_on(passwords.hash(password).map_err(unmade)?).map_err(unmade)
}

fn unmade(why: keyway_password::Error) -> Failure {
    Failure::new(format!("cannot make a password: {why}"))
}

/// `keyway admin password`: gives the administrator of a directory that nobody serves a new
/// password, and his entry if it is gone.
///
/// # Errors
/// If there is no directory, somebody uses it, or the password cannot be read, hashed or stored.
pub fn password(arguments: &AdminPassword) -> Result<(), Failure> {
    let given = arguments.from.as_deref().map(read_password).transpose()?;
    let Offline { instance, folder, engine, configuration } =
        offline::open(&arguments.data.folder)?;
    let bad = |why: keyway_server::Failure| {
        Failure::new(format!("cannot set the password: {}", describe(&why)))
    };
    let was_there = instance.directory.has_administrator().map_err(bad)?;
    let passwords = Passwords::new(engine, configuration.directory.password_cost);
    let is_given = given.is_some();
    let password = given.map_or_else(|| passwords.generate().map_err(unmade), Ok)?;
    let runtime = runtime::Builder::new_current_thread()
        .build()
        .map_err(|why| Failure::new(format!("cannot set the password: {why}")))?;
    let hash = passwords.hash(password.clone()).map_err(unmade)?;
    let hashed = runtime.block_on(hash).map_err(unmade)?;
    if !is_given {
        folder.write_secret(name::ADMIN_PASSWORD, &password)?;
    }
    instance.directory.bootstrap_administrator(hashed).map_err(bad)?;
    instance.close()?;
    // What is in it opens nothing any more, and whoever reads it is misled.
    let removed = is_given && folder.remove(name::ADMIN_PASSWORD)?;
    let file = folder.file(name::ADMIN_PASSWORD).display().to_string();
    if arguments.json {
        return output::json(&json!({
            "event": "administrator_password_set",
            "administrator": ADMINISTRATOR_DN,
            "administrator_made": !was_there,
            "password_file": (!is_given).then_some(file),
        }));
    }
    let made = if was_there { "" } else { " was not there any more, is made again and" };
    let place = match (is_given, removed) {
        (false, _) => format!("; it is in {file}"),
        (true, true) => format!(", the one given; {file}, which held an older one, is removed"),
        (true, false) => ", the one given".to_owned(),
    };
    output::text(format_args!("{ADMINISTRATOR_DN}{made} has a new password{place}"))
}

/// The first line of a file, or of standard input for `-`.
fn read_password(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let shown = path.display().to_string();
    let (shown, mut input): (_, Box<dyn Read>) = match shown.as_str() {
        "-" => ("standard input".to_owned(), Box::new(io::stdin())),
        _ => match File::open(path) {
            Ok(file) => (shown, Box::new(file)),
            Err(why) => return Err(Failure::new(format!("{shown}: {}", plain(&why)))),
        },
    };
    let refused = |why: &str| Failure::new(format!("{shown}: {why}"));
    let mut password = Zeroizing::new(Vec::with_capacity(PASSWORD_BYTES_MAX + 1));
    let mut byte = Zeroizing::new([0]);
    while password.len() <= PASSWORD_BYTES_MAX {
        match input.read(&mut *byte) {
            Ok(0) => break,
            Ok(_) if *byte == *b"\n" => break,
            Ok(_) => password.extend_from_slice(&*byte),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(refused(&plain(&why))),
        }
    }
    if password.last() == Some(&b'\r') {
        password.pop();
    }
    match classify(&password) {
        _ if password.is_empty() => Err(refused("it has no password in its first line")),
        _ if password.len() > PASSWORD_BYTES_MAX => {
            Err(refused(&format!("a password may have {PASSWORD_BYTES_MAX} bytes at most")))
        }
        Ok(Given::Password(whole)) if whole == password.as_slice() => Ok(password),
        _ => Err(refused(
            "it begins like a password that is hashed already ({SCHEME}); give the password itself",
        )),
    }
}
