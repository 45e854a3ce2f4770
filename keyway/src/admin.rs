//! The administrator and the passwords that we make: in files of their own, never printed.

use crate::data::{Folder, name};
use crate::failure::{Failure, describe};
use crate::instance::Instance;
use keyway_server::password::Passwords;
use tokio::runtime::Runtime;
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
    let bad = |why| Failure::new(format!("cannot make a password: {why}"));
    if !folder.has(file) {
        folder.write_secret(file, &passwords.generate().map_err(bad)?)?;
    }
    let text = folder.read_secret(file)?;
    let password = Zeroizing::new(text.trim_end_matches(['\n', '\r']).as_bytes().to_vec());
    runtime.block_on(passwords.hash(password).map_err(bad)?).map_err(bad)
}
