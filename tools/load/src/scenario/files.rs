//! The files that a scenario may name.

use super::section::{self, Document, Value};
use crate::error::Error;
use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Where files are that a scenario names.
pub(super) struct Files<'f> {
    pub(super) folder: &'f Path,
    /// Whether only those below it are read.
    pub(super) is_confined: bool,
    /// Those that the scenario's templates name and that were read.
    pub(super) read: RefCell<Vec<PathBuf>>,
}

impl Files<'_> {
    /// Whether one may be read that a file of ours names.
    pub(super) fn check(&self, path: &Path) -> Result<(), String> {
        match !self.is_confined || is_below(path) {
            true => Ok(()),
            false => Err(format!("{}: {BELOW_ONLY}", path.display())),
        }
    }
}

const BELOW_ONLY: &str = "an agent reads files below its folder only";

fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// The keys whose values are files.
const FILES: &[&str] = &["ca", "certificate", "key", "file", "password_file", "template"];

/// Refuses a scenario that names files elsewhere than below the folder it is read in.
pub(super) fn confined(text: &str, name: &str) -> Result<(), Error> {
    let document = Document { name, text };
    let table = DeTable::parse(text);
    let table =
        table.map_err(|why| document.error(&why.span().unwrap_or_default(), why.message()))?;
    each_file(document, table.get_ref(), &mut |value, path| match is_below(path) {
        true => Ok(()),
        false => Err(document.error(&value.span(), BELOW_ONLY)),
    })
}

/// The files that a scenario names.
pub(super) fn named(
    document: Document<'_>,
    table: &DeTable<'_>,
    folder: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let mut all = Vec::new();
    each_file(document, table, &mut |_, path| {
        all.push(folder.join(path));
        Ok(())
    })?;
    Ok(all)
}

/// Calls `look` with each file that a scenario names.
fn each_file(
    document: Document<'_>,
    table: &DeTable<'_>,
    look: &mut dyn FnMut(&Value<'_>, &Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut tables = vec![table];
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            let is_file = FILES.contains(&key.get_ref().as_ref());
            if let Some(path) = value.get_ref().as_str().filter(|_| is_file) {
                look(value, Path::new(path))?;
            }
            for value in section::members(value) {
                match value.get_ref() {
                    DeValue::Table(table) => tables.push(table),
                    DeValue::Array(_) => {
                        let why = "lists of lists have no meaning";
                        return Err(document.error(&value.span(), why));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}
