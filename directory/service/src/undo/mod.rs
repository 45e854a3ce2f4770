//! Undoes commits: the reverse of their changes is planned from the feed, and checked against the entries as they are
//! now. A later change of what is to be undone is a conflict, and then nothing is planned.
//!
//! A commit may have changes of several requests, which came at one time. One of them is named by one of its changes:
//! `1207.3`.

mod blame;
mod chosen;
mod position;
mod references;
mod reverse;
mod state;

pub use position::UndoPosition;

use crate::changes::Reading;
use crate::changing::{PlannedChange, show};
use keyway_config::{Configuration, Given};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_server::Describer;
use reverse::Reverse;
use serde_json::json;
use std::path::{Path, PathBuf};

/// A planned undoing.
pub struct Undo {
    /// The changes that undo it, in their order; none if all is as it was before.
    pub changes: Vec<PlannedChange>,
    folder: PathBuf,
    /// Of the state that it was planned for.
    describer: Describer,
    last: u64,
}

impl Undo {
    /// Plans to undo these positions, the last one first, in the store of a data folder, also while a server serves it.
    /// All requests of a position that names none are undone only if `all` is set.
    ///
    /// # Errors
    /// If a position is not there, has changes of several requests or some that cannot be undone, or what it has
    /// changed was changed again since.
    pub fn plan(folder: &Path, positions: &[UndoPosition], all: bool) -> Result<Undo, Failure> {
        let mut positions = positions.to_vec();
        positions.sort_unstable();
        positions.dedup();
        let reading = Reading::open(folder, true)?;
        let last = reading.head()?.position;
        let configuration = Configuration::ahead(folder, &Given::none())?;
        let references = configuration.directory.integrity.references;
        let mut reverse = Reverse::new(reading, references);
        for position in positions.iter().rev() {
            let requests = chosen::requests(reverse.reading(), *position, all)?;
            requests.iter().rev().try_for_each(|request| reverse.request(request))?;
        }
        let (Reading { describer, .. }, changes) = reverse.end();
        Ok(Undo { changes, folder: folder.to_owned(), describer, last })
    }

    /// Shows what would be changed.
    ///
    /// # Errors
    /// The output's.
    pub fn show(&self, json: bool) -> Result<(), Failure> {
        let is_secret = |name: &str| self.describer.is_secret(keyway_schema::base(name));
        show(&self.changes, json, is_secret)?;
        match self.changes.len() {
            count if json => output::json(&json!({ "event": "planned_all", "changes": count })),
            0 => output::text("# all is as it was before: there is nothing to undo"),
            _ => Ok(()),
        }
    }

    /// Says what was changed, once it is, and how to undo that.
    ///
    /// # Errors
    /// If the store cannot be read, or the output's.
    pub fn report(&self, json: bool) -> Result<(), Failure> {
        let (count, made) = (self.changes.len(), self.made()?);
        if json {
            return output::json(
                &json!({ "event": "undone", "changes": count, "positions": made }),
            );
        }
        if count == 0 {
            return output::text("all is as it was before: there is nothing to undo");
        }
        let changes = if count == 1 { "1 change" } else { &format!("{count} changes") };
        let made: Vec<String> = made.iter().map(u64::to_string).collect();
        let made = made.join(" ");
        output::text(format_args!("undone by {changes}; keyway undo {made} would undo that"))
    }

    /// The positions of the changes once they are made: those that undo the undoing.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn made(&self) -> Result<Vec<u64>, Failure> {
        let mut reading = Reading::open(&self.folder, false)?;
        let last = reading.head()?.position;
        let mut made = Vec::new();
        reading.begin(self.last.saturating_add(1));
        while let Some(changes) = reading.next(last)? {
            for change in changes {
                let is_it = |one: &PlannedChange| {
                    let dn = change.entry().map(|entry| &entry.dn);
                    dn == Some(&one.record.dn) && change.kind() == one.kind()
                };
                if self.changes.iter().any(is_it) && made.last() != Some(&change.position) {
                    made.push(change.position);
                }
            }
        }
        Ok(made)
    }
}
