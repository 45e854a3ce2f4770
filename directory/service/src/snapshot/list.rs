//! The snapshots that there are, and their removal.

use super::place::{Listed, Snapshots, check_name};
use keyway_host::failure::Failure;
use std::collections::BTreeSet;
use std::path::Path;

/// The snapshots of a data folder, the oldest first, and behind them those that are damaged.
///
/// # Errors
/// If their folder cannot be read, or is not the data folder's.
pub fn list(folder: &Path) -> Result<Vec<Listed>, Failure> {
    Snapshots::look(folder)?.map_or(Ok(Vec::new()), |snapshots| snapshots.all())
}

/// Removes snapshots, also damaged ones: all of these, or none if one of them is not there.
///
/// # Errors
/// If one is not there or cannot be removed.
pub fn delete(folder: &Path, names: &[String]) -> Result<(), Failure> {
    names.iter().try_for_each(|name| check_name(name))?;
    let snapshots = Snapshots::lock(folder)?;
    let names: BTreeSet<&String> = names.iter().collect();
    names.iter().try_for_each(|name| snapshots.find(name).map(drop))?;
    names.iter().try_for_each(|name| snapshots.delete(name))
}
