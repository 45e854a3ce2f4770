//! The files that a scenario may name.

use super::section::{self, Document};
use crate::error::Error;
use std::path::{Component, Path};
use toml::de::{DeTable, DeValue};

/// Where files are that a scenario names.
pub(super) struct Files<'f> {
    pub(super) folder: &'f Path,
    /// Whether only those below it are read.
    pub(super) is_confined: bool,
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

/// Refuses a scenario that names files elsewhere than below the folder it is read in.
pub(super) fn confined(text: &str, name: &str) -> Result<(), Error> {
    let document = Document { name, text };
    let table = DeTable::parse(text);
    let table =
        table.map_err(|why| document.error(&why.span().unwrap_or_default(), why.message()))?;
    let mut tables = vec![table.get_ref()];
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            let is_file = ["ca", "certificate", "key", "file", "password_file", "template"]
                .contains(&key.get_ref().as_ref());
            let path = value.get_ref().as_str().filter(|_| is_file).map(Path::new);
            if !path.is_none_or(is_below) {
                return Err(document.error(&value.span(), BELOW_ONLY));
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
