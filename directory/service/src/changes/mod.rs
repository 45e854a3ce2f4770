//! What the feed of a data folder says: read in short looks, chosen, followed and shown; and the history of one entry.

mod entry_history;
mod json;
mod places;
mod printer;
mod reading;
mod text;

pub use entry_history::show as entry_history;
use keyway_host::failure::Failure;
use keyway_schema::EntryName;
use keyway_server::{DescribedChange, Reason};
use places::is_of_subtree;
use printer::Printer;
use reading::Reading;
use std::path::PathBuf;
use std::thread;

use crate::limits::FEED_LOOK_EVERY;

/// How changes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines for people.
    Text,
    /// A line of JSON for each.
    Json,
    /// Change records (RFC 2849).
    Ldif,
}

/// Whose changes are shown, and how.
#[derive(Clone, Debug)]
pub struct Showing {
    /// The data folder.
    pub folder: PathBuf,
    /// How.
    pub form: Form,
    /// Whether those are shown too that the server makes after a bind.
    pub binds: bool,
    /// Whether values of passwords and keys are shown.
    pub passwords: bool,
}

impl Showing {
    fn takes(&self, change: &DescribedChange) -> bool {
        self.binds || change.note.as_ref().is_none_or(|note| note.reason != Reason::Bind)
    }
}

/// The part of the feed that is shown.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The first position; the first that is kept if none is given.
    pub from: Option<u64>,
    /// The last position; the last that there is if none is given.
    pub to: Option<u64>,
    /// Whether to wait for further changes at the end.
    pub follows: bool,
    /// The DN of the entry of whose subtree changes are shown.
    pub subtree: Option<String>,
}

/// Shows changes.
///
/// # Errors
/// If there is no feed, if it does not have what was asked for, or the output cannot be written.
pub fn show(showing: &Showing, asked: &Asked) -> Result<(), Failure> {
    let mut reading = Reading::open(&showing.folder, showing.passwords)?;
    let printer = Printer::new(showing.form);
    let parse = |dn: &String| EntryName::parse(reading.describer.schema(), dn);
    let subtree = asked.subtree.as_ref().map(parse).transpose().map_err(Failure::usage)?;
    let mut to = asked.to.unwrap_or(u64::MAX);
    if !asked.follows {
        // A server may write faster than is read.
        to = to.min(reading.head()?.position);
    }
    if let Some(from) = asked.from {
        reading.begin(from);
    }
    loop {
        let Some(changes) = reading.next(to).map_err(|why| printer.refuse(why))? else {
            if !asked.follows || reading.position() >= to {
                return Ok(());
            }
            thread::sleep(FEED_LOOK_EVERY);
            continue;
        };
        for change in changes.iter().filter(|change| showing.takes(change)) {
            let schema = reading.describer.schema();
            if subtree.as_ref().is_none_or(|top| is_of_subtree(schema, top, change)) {
                printer.change(change, schema)?;
            }
        }
    }
}
