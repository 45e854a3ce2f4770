//! Searches that no index helps: counted by what they lack, and refused where they would have to look
//! at too much.

use crate::access::Subject;
use crate::directory::Core;
use crate::failure::{Failure, Result};
use crate::integrity::Membership;
use crate::limits::UNINDEXED_COUNTED_MAX;
use crate::plan::Lack;
use keyway_codec::message::ResultCode;
use keyway_meter::{Counter, counter};
use keyway_schema::EntryName;
use keyway_store::{Key, Names, View};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What such searches are counted by: their attribute and the kind of index that they lack.
#[derive(Default)]
pub(crate) struct Unindexed(Mutex<HashMap<String, Arc<Lacking>>>);

/// Searches that lack the same.
pub(crate) struct Lacking {
    /// `description substring`, for the log.
    pub label: String,
    searches: Counter,
    entries: Counter,
    time_ns: Counter,
}

impl Unindexed {
    /// Counts a search.
    pub fn count(&self, lack: &Lack) -> Arc<Lacking> {
        let (attribute, index) = match lack {
            Lack::Index { attribute, kind } => (attribute.as_str(), kind.name()),
            Lack::Cannot(_) => ("any", "none"),
        };
        let label = format!("{attribute} {index}");
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lacking = match all.get(&label) {
            Some(lacking) => lacking.clone(),
            None => {
                // A name's parts are between dots, and there is no end of names.
                let is_counted = all.len() < UNINDEXED_COUNTED_MAX && !attribute.contains('.');
                let lacking = Arc::new(match is_counted {
                    true => Lacking::new(label.clone(), attribute, index),
                    false => Lacking::new(label.clone(), "other", index),
                });
                if is_counted {
                    all.insert(label, lacking.clone());
                }
                lacking
            }
        };
        lacking.searches.increment();
        lacking
    }
}

impl Lacking {
    fn new(label: String, attribute: &str, index: &str) -> Lacking {
        let of = |what: &str| counter(&format!("search.unindexed.{attribute}.{index}.{what}"));
        Lacking { label, searches: of("searches"), entries: of("entries"), time_ns: of("time") }
    }

    /// Counts what a step has cost.
    pub fn cost(&self, entries: u64, time: Duration) {
        self.entries.add(entries);
        self.time_ns.add(nanoseconds(time));
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Lets a subject search a scope without an index.
///
/// # Errors
/// `adminLimitExceeded` if there is more in it than he may look at; the store's.
pub(super) fn allow(
    core: &Core,
    view: View<'_>,
    subject: &Subject,
    scope: &[Key],
    lack: &Lack,
) -> Result<()> {
    let (max, free) = {
        let settings = core.shared.settings.read().unwrap_or_else(PoisonError::into_inner);
        (settings.search_unindexed_max as usize, settings.search_unindexed_free.clone())
    };
    if max == 0 || subject.is_administrator() || !is_longer(view, scope, max)? {
        return Ok(());
    }
    if is_free(core, view, subject, &free)? {
        return Ok(());
    }
    let what = match lack {
        Lack::Index { attribute, kind } => {
            format!("attribute {attribute} has no index for {kind}")
        }
        Lack::Cannot(why) => format!("no index can help, {why}"),
    };
    let text = format!(
        "{what}, and there are more than the {max} entries that may be looked at without one: have \
         it added, add a term that is indexed, or search below another base"
    );
    Err(Failure::new(ResultCode::AdminLimitExceeded, text))
}

fn is_longer(view: View<'_>, scope: &[Key], max: usize) -> Result<bool> {
    let mut count = 0;
    for list in scope {
        count += view.count_at_most(list, max + 1 - count.min(max))?;
        if count > max {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a subject is one of these, or in one of the groups among them.
fn is_free(core: &Core, view: View<'_>, subject: &Subject, free: &[String]) -> Result<bool> {
    let Some(id) = subject.id().filter(|_| !free.is_empty()) else { return Ok(false) };
    let names = RefCell::new(Names::new());
    let dn = view.dn(id, &mut names.borrow_mut())?;
    let Some(dn) = dn else { return Ok(false) };
    let membership = Membership { core, view, names: &names, nested: true };
    for one in free {
        let Ok(name) = EntryName::parse(&core.schema, one) else { continue };
        let Some(one) = core.entry_named(view, &name)? else { continue };
        if one == id || membership.is_in(&dn, one)? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}
