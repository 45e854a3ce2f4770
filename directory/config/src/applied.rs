//! The configuration that was in force last, as the store remembers it: a file that looks like what is left of
//! it is not taken for an edit.

use crate::loss;
use keyway_folder::data::{self, Folder, name};
use keyway_host::failure::Failure;
use keyway_host::output::shell;
use keyway_store::{Options, Store};
use std::path::Path;

/// The store's row with its text.
pub const META_CONFIGURATION: &str = "configuration";

/// Refuses a text that looks like what is left of the one that was in force when this store was served last.
///
/// # Errors
/// If it does, or the store cannot be read.
pub fn check(folder: &Path, store: &Store, text: &str) -> Result<(), Failure> {
    match of_store(store)? {
        Some(applied) => refuse_loss(folder, &applied, text),
        None => Ok(()),
    }
}

/// Why a text looks like what is left of `applied`, if it does.
pub fn loss(applied: &str, text: &str) -> Option<String> {
    loss::of(applied, text)
}

/// Refuses a text that looks like what is left of `applied`, unless the administrator has accepted it.
///
/// # Errors
/// If it looks like what is left of that.
pub fn refuse_loss(folder: &Path, applied: &str, text: &str) -> Result<(), Failure> {
    let Some(why) = loss(applied, text) else { return Ok(()) };
    let accepted = data::read(&folder.join(name::ACCEPTED));
    if accepted.is_ok_and(|accepted| accepted == text) {
        return Ok(());
    }
    let (file, data) = (folder.join(name::CONFIGURATION), shell(&folder.to_string_lossy()));
    Err(Failure::new(format!(
        "{} looks like what is left of the configuration that was in force: {why}; put the whole file back, \
         have it written with `keyway config restore --data {data}`, or, if this is meant, say so with `keyway \
         config accept --data {data}`",
        file.display()
    )))
}

/// Remembers the text that is in force from now on.
///
/// # Errors
/// If it cannot be written.
pub fn note(folder: &Folder, store: &Store, text: &str) -> Result<(), Failure> {
    if of_store(store)?.as_deref() != Some(text) {
        let row = text.as_bytes().to_vec();
        store
            .write_now(move |write| write.local_put(META_CONFIGURATION, &row))
            .map_err(|why| Failure::new(format!("cannot write to the store: {why}")))?;
    }
    if folder.has(name::ACCEPTED) {
        folder.remove(name::ACCEPTED)?;
    }
    Ok(())
}

/// The text that was in force last, also beside a running server; `None` if nothing was served yet.
///
/// # Errors
/// If the store cannot be read.
pub fn of_folder(folder: &Path) -> Result<Option<String>, Failure> {
    let path = folder.join(name::STORE);
    if !Store::is_at(&path) {
        return Ok(None);
    }
    let store = Store::open_to_read(&path, &Options::default())
        .map_err(|why| Failure::new(format!("{}: {why}", path.display())))?;
    of_store(&store)
}

fn of_store(store: &Store) -> Result<Option<String>, Failure> {
    let unreadable = |why| Failure::new(format!("cannot read the store: {why}"));
    let read = store.read().map_err(unreadable)?;
    let row = read.view().meta_get(META_CONFIGURATION).map_err(unreadable)?;
    Ok(row.map(|row| String::from_utf8_lossy(row).into_owned()))
}
