//! Single entries, brought back from a backup into a directory that goes on: the backup is restored into a folder of its
//! own, what it has is compared with what is there now, and the changes are planned that make it as it was. No entry is
//! ever deleted.
//!
//! An entry is known by its `entryUUID`. One that has another name now is left where it is, and references to it follow;
//! one whose name another entry has by now does not come back.

mod difference;
mod place;
mod plan;
mod references;
mod side;

pub use plan::Asked as AskedEntries;

use super::place::Place;
use super::point::Point;
use super::restore::restore_in;
use crate::changing::{PlannedChange, show};
use crate::lineage;
use crate::offline;
use crate::scratch::Scratch;
use keyway_codec::ldif::Writer;
use keyway_config::{Configuration, Given};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_server::Describer;
use plan::{Plan, plan};
use references::References;
use serde_json::{Value, json};
use side::Side;
use std::path::Path;

/// Changes that make entries what they were.
pub struct EntriesBack {
    plan: Plan,
    /// The one of the state that it was planned for.
    describer: Describer,
    backup: String,
    position: Option<u64>,
}

impl EntriesBack {
    /// Plans them for the directory of a data folder, also while a server serves it. The backup is chosen as
    /// [`super::restore`] does it; it is restored into a folder in `scratch`, which goes with it. `progress` hears of
    /// bytes of the store, and how many there are.
    ///
    /// # Errors
    /// As [`super::restore`]; and if the backup has no such entry, or it cannot come back.
    pub fn plan(
        folder: &Path,
        (place, backup, point): (&Place, Option<&str>, Option<&Point>),
        asked: &AskedEntries<'_>,
        scratch: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<EntriesBack, Failure> {
        // Before the store is open for the rest: a process opens it once at a time.
        let own = lineage::directory(&offline::store_to_read(folder)?)?;
        let now = Side::open(folder)?;
        now.name(asked.dn)?;
        let references =
            Configuration::ahead(folder, &Given::none())?.directory.integrity.references;
        let references = References::new(now.schema(), &references);
        let repository = place.open()?;
        let scratch = Scratch::make_in(scratch, ".keyway-restore")?;
        let restored = restore_in(&repository, backup, point, scratch.path(), progress)?;
        // Their passwords fit no other one, and names may be those of others there.
        if restored.meta.directory() != own {
            return Err(Failure::new(format!(
                "the backups are of another directory than the one in {}",
                folder.display()
            )));
        }
        let then = Side::open(scratch.path())?;
        let called = format!("backup {}{}", restored.backup, at(restored.position));
        let plan = plan((&then, &now), &references, asked, &called)?;
        let Side { describer, .. } = now;
        Ok(EntriesBack { plan, describer, backup: restored.backup, position: restored.position })
    }

    /// The changes, in their order; none if all is as it was.
    pub fn changes(&self) -> &[PlannedChange] {
        &self.plan.changes
    }

    /// Shows what would be changed.
    ///
    /// # Errors
    /// The output's.
    pub fn show(&self, json: bool) -> Result<(), Failure> {
        let is_secret = |name: &str| self.describer.is_secret(keyway_schema::base(name));
        show(self.changes(), json, is_secret)?;
        if json {
            return self.say_json("planned_all");
        }
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        self.skipped().for_each(|line| writer.comment(&line));
        writer.comment(&self.summary("would be restored"));
        let text = String::from_utf8_lossy(&out);
        output::text(text.trim_end())
    }

    /// Says what was changed, once it is.
    ///
    /// # Errors
    /// The output's.
    pub fn report(&self, json: bool) -> Result<(), Failure> {
        if json {
            return self.say_json("restored");
        }
        self.skipped().try_for_each(output::text)?;
        output::text(self.summary("restored"))
    }

    fn skipped(&self) -> impl Iterator<Item = String> {
        self.plan.skipped.iter().map(|(dn, why)| format!("skipped {dn}: {why}"))
    }

    fn summary(&self, restored: &str) -> String {
        let Plan {
            added, modified, memberships, untouched, skipped, not_in_backup, left_out, ..
        } = &self.plan;
        let backup = format!("backup {}{}", self.backup, at(self.position));
        let mut text = match self.plan.changes.is_empty() {
            true if skipped.is_empty() => {
                format!("all is as it was in {backup}: {} compared", entries(*untouched))
            }
            _ => format!(
                "{restored} from {backup}: {} added, {} modified, {} references to them given back (memberships and \
                 others), {} as they were, {} skipped",
                entries(*added),
                grouped(*modified),
                grouped(*memberships),
                grouped(*untouched),
                grouped(skipped.len() as u64)
            ),
        };
        if *not_in_backup > 0 {
            text += &format!("; {} not in it, left alone", entries(*not_in_backup));
        }
        if *left_out > 0 {
            text +=
                &format!("; {} references to what is gone by now, left out", grouped(*left_out));
        }
        text
    }

    fn say_json(&self, event: &str) -> Result<(), Failure> {
        let plan = &self.plan;
        let skipped = plan.skipped.iter().map(|(dn, why)| json!({ "dn": dn, "why": why }));
        output::json(&json!({
            "event": event, "backup": self.backup, "position": self.position, "changes": plan.changes.len(),
            "added": plan.added, "modified": plan.modified, "memberships": plan.memberships,
            "untouched": plan.untouched, "skipped": skipped.collect::<Vec<Value>>(),
            "not_in_backup": plan.not_in_backup, "references_left_out": plan.left_out,
        }))
    }
}

fn at(position: Option<u64>) -> String {
    position.map(|position| format!(" (position {position})")).unwrap_or_default()
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{} entries", grouped(count)) }
}
