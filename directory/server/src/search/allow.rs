//! Whether a subject may search without an index: not where it would have to look at too much.

use crate::access::Subject;
use crate::failure::{Failure, Result};
use crate::integrity::Membership;
use crate::plan::Lack;
use crate::state::Snapshot;
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_schema::EntryName;
use keyway_store::{Key, Names, View};
use std::cell::RefCell;

/// Lets a subject search a scope without an index.
///
/// # Errors
/// `adminLimitExceeded` if there is more in it than it may look at; the store's.
pub(super) fn allow(
    snapshot: &Snapshot,
    view: View<'_>,
    subject: &Subject,
    scope: &[Key],
    lack: &Lack,
) -> Result<()> {
    let (max, free) = {
        let settings = snapshot.shared.settings.read().unpoisoned();
        (settings.search_unindexed_max as usize, settings.search_unindexed_free.clone())
    };
    if max == 0 || subject.is_administrator() || !is_longer(view, scope, max)? {
        return Ok(());
    }
    if is_free(snapshot, view, subject, &free)? {
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

/// How many entries a subject may look at without an index; `None` if that is not limited.
///
/// # Errors
/// The store's.
pub(super) fn unindexed_max(
    snapshot: &Snapshot,
    view: View<'_>,
    subject: &Subject,
) -> Result<Option<usize>> {
    let (max, free) = {
        let settings = snapshot.shared.settings.read().unpoisoned();
        (settings.search_unindexed_max as usize, settings.search_unindexed_free.clone())
    };
    let is_free =
        max == 0 || subject.is_administrator() || is_free(snapshot, view, subject, &free)?;
    Ok((!is_free).then_some(max))
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
fn is_free(
    snapshot: &Snapshot,
    view: View<'_>,
    subject: &Subject,
    free: &[String],
) -> Result<bool> {
    let Some(id) = subject.id().filter(|_| !free.is_empty()) else { return Ok(false) };
    let names = RefCell::new(Names::new());
    let dn = view.dn(id, &mut names.borrow_mut())?;
    let Some(dn) = dn else { return Ok(false) };
    let membership = Membership { snapshot, view, names: &names, nested: true };
    for one in free {
        let Ok(name) = EntryName::parse(&snapshot.schema, one) else { continue };
        let Some(one) = snapshot.entry_named(view, &name)? else { continue };
        if one == id || membership.is_in(&dn, one)? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}
