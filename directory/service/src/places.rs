//! The places that ldapd keeps in its sandbox, by its configuration.

use keyway_config::{Configuration, TaskSecret};
use keyway_folder::data::{Folder, name};
use keyway_folder::unix_socket;
use keyway_host::failure::Failure;
use keyway_host::sandbox::Places;
use keyway_log::{To, folder_mode};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The files that ldapd may open: its data folder and its logs, which are made if they are not there, the place of its
/// Unix socket, and to read in the folders of the files that its configuration names.
///
/// # Errors
/// If the logs' folder cannot be made.
pub fn places(folder: &Folder, configuration: &Configuration) -> Result<Places, Failure> {
    let mut places = Places::default();
    places.write.push(folder.path().into());
    // The configuration, if a link leads to it, is replaced where it is.
    let file = fs::canonicalize(folder.file(name::CONFIGURATION)).ok();
    places.write.extend(file.as_deref().and_then(Path::parent).map(Into::into));
    if configuration.log.to == To::Files {
        let logs = folder.file_at(&configuration.log.folder);
        let mode = folder_mode(configuration.log.mode);
        let made = DirBuilder::new().recursive(true).mode(mode).create(&logs);
        made.map_err(|why| Failure::system("make the logs' folder", &logs, &why))?;
        places.write.push(logs);
    }
    let mut linked = linked_from(folder.path());
    linked.extend(linked_from(&folder.file(name::SCHEMA)));
    linked.extend(linked_from(&folder.file_at(&configuration.log.folder)));
    for target in linked {
        // A file's neighbours may be what the link leads to tomorrow.
        let beside = target.parent().filter(|_| !target.is_dir());
        places.read.extend(beside.map(Into::into));
        places.write.push(target);
    }
    let tasks = &configuration.tasks;
    let exports = folder.file_at(&tasks.exports);
    if !exports.starts_with(folder.path()) {
        // A task says what is wrong with a folder that is not there.
        let _ = DirBuilder::new().recursive(true).mode(folder_mode(tasks.mode)).create(&exports);
    }
    let repository = tasks.repository.as_ref().map(|repository| folder.file_at(repository));
    places.write.extend([Some(exports), repository].into_iter().flatten().filter(|it| it.is_dir()));
    let secret = tasks.secret.as_ref().map(|secret| match secret {
        TaskSecret::KeyFile(path) | TaskSecret::PassphraseFile(path) => path.as_path(),
    });
    let socket = unix_socket::file(folder, &configuration.unix);
    places.sockets.extend(socket.as_deref().and_then(Path::parent).map(Into::into));
    let collector = configuration.metrics.as_ref().and_then(|it| it.ca.as_deref());
    let cluster = configuration.cluster.named();
    for named in configuration.tls.named().chain(collector).chain(secret).chain(cluster) {
        let file = folder.file_at(named);
        // A link may lead from the one to the other, and tomorrow to another file there.
        for file in [fs::canonicalize(&file).ok(), Some(file)].iter().flatten() {
            places.read.extend(file.parent().map(Into::into));
        }
    }
    Ok(places)
}

/// The targets of links in a folder: files that were moved elsewhere.
fn linked_from(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|link| fs::canonicalize(link.path()).ok()).collect()
}
