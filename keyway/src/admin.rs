//! `keyway admin password`.

use crate::cli::AdminPassword;
use keyway_folder::data::name;
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_password::limits::PASSWORD_BYTES_MAX;
use keyway_password::{Given, Passwords, classify};
use keyway_server::ADMINISTRATOR_DN;
use keyway_service::admin::unmade;
use keyway_service::instance::describe;
use keyway_service::offline::{self, Offline};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use tokio::runtime;
use zeroize::Zeroizing;

/// Gives the administrator of a directory that no process serves a new password, and an entry if that is gone.
///
/// # Errors
/// If there is no directory, another process uses it, or the password cannot be read, hashed or stored.
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
    // The password in it is no longer valid, and would mislead a reader of the file.
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
