//! The administrator and the passwords that we make: in files of their own, never printed.

use crate::instance::Instance;
use crate::instance::describe;
use keyway_folder::data::{Folder, name};
use keyway_host::failure::Failure;
use keyway_password::BindHistory;
use keyway_password::{PasswordCheck, Passwords};
use keyway_server::ADMINISTRATOR_DN;
use std::net::Ipv4Addr;
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

/// Gives a directory without an administrator one, whose password is in the data folder.
///
/// A directory that has one is left as it is: the password may have been changed.
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

/// The contents of the file of the administrator's password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordFile {
    /// The password.
    Right,
    /// Another, which may have been right once.
    Stale,
    /// There is none, or none that we can read.
    Gone,
}

/// Whether the file in the data folder still has the administrator's password. A password that cannot
/// be checked now is taken for stale: it is only to be spoken of.
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

/// Why no password was made.
pub fn unmade(why: keyway_password::Error) -> Failure {
    Failure::new(format!("cannot make a password: {why}"))
}
