//! Why a server would not start with a configuration, as far as this machine can tell without one: addresses,
//! sockets, folders.

use keyway_config::Configuration;
use keyway_config::Running;
use keyway_folder::data::name;
use keyway_folder::folder_keys;
use keyway_folder::tls::ServerKey;
use keyway_folder::unix_socket;
use keyway_host::failure::{Failure, plain};
use keyway_host::listeners::{self, Listen};
use keyway_log::To;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

/// Looks for a reason. Places that a server on the folder has taken are not in the way.
///
/// # Errors
/// The reason, under the name of the setting.
pub fn check(folder: &Path, configuration: &Configuration) -> Result<(), Failure> {
    let file = folder.join(name::CONFIGURATION);
    let wrong = |key: &str, why: &dyn std::fmt::Display| {
        Failure::new(format!("{}: {key}: {why}", file.display()))
    };
    let Configuration { listen, listen_tls, unix, log, .. } = configuration;
    if listen.is_none() && listen_tls.is_none() && unix.path.is_none() {
        return Err(listeners::nothing_to_listen_on());
    }
    for (key, address) in [("listen", listen), ("listen_tls", listen_tls)] {
        is_of_this_machine(*address).map_err(|why| wrong(key, &why))?;
    }
    if let Some(path) = &unix.path {
        unix_socket::check(&folder.join(path)).map_err(|why| wrong("listen_unix", &why))?;
    }
    if log.to == To::Files {
        can_be_folder(&folder.join(&log.folder)).map_err(|why| wrong("log.folder", &why))?;
    }
    if log.to == To::Journal && Running::look(folder).is_none() && !log.journal.exists() {
        let why = format!("there is no socket {}", log.journal.display());
        return Err(wrong("log.journal_socket", &why));
    }
    Ok(())
}

/// Reads the certificates and keys that it names.
///
/// # Errors
/// Which file is wrong, and how.
pub fn check_tls(folder: &Path, configuration: &Configuration) -> Result<(), Failure> {
    let tls = &configuration.tls;
    for pair in tls.files.iter().chain(&tls.additional) {
        keyway_folder::pem::certificates(&folder.join(&pair.certificate))?;
        if let ServerKey::File(key) = &pair.key {
            folder_keys::read(&folder.join(key))?;
        }
    }
    for authority in &tls.client_ca {
        keyway_folder::pem::certificates(&folder.join(authority))?;
    }
    Ok(())
}

/// Whether one could listen there, were it free and were this user allowed to.
fn is_of_this_machine(address: Listen) -> Result<(), String> {
    let Some(address) = address else { return Ok(()) };
    // Another port than the one that may be in use: it is about the address.
    let mut anywhere = address;
    anywhere.set_port(0);
    match TcpListener::bind(anywhere) {
        Err(why) if why.kind() == ErrorKind::AddrNotAvailable => {
            Err(format!("{} is no address of this machine", address.ip()))
        }
        _ => Ok(()),
    }
}

/// Whether there is a folder, or could be one.
fn can_be_folder(path: &Path) -> Result<(), String> {
    let Some(there) = path.ancestors().find(|above| above.exists()) else { return Ok(()) };
    match there.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(format!("{} is no folder", there.display())),
        Err(why) => Err(format!("{}: {}", there.display(), plain(&why))),
    }
}
