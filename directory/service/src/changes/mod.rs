//! The feed of a data folder: read in short looks, chosen, followed and shown; and the history of one entry.

mod entry_history;
mod json;
mod places;
mod printer;
pub(crate) mod reading;
mod showing;
mod text;

pub use entry_history::show as entry_history;
pub(crate) use places::{Names, is_same};
pub(crate) use reading::{Reading, Refusal};
pub use showing::{Form, Showing};

use crate::limits::FEED_LOOK_EVERY;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_schema::EntryName;
use places::is_of_subtree;
use printer::Printer;
use std::thread;

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
    if showing.form == Form::Json {
        let head = reading.head()?;
        let (store, first, last) = (reading.incarnation(), head.first, head.position);
        output::json(
            &serde_json::json!({ "event": "feed", "store": store, "first": first, "last": last }),
        )?;
    }
    if reading.is_off() {
        output::note(
            "the feed is off (feed.enabled = false in keyway.toml): no further change is kept",
        );
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
