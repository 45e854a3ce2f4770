//! The bases that a scope has beside its own: those that aliases within it stand for (RFC 4511
//! § 4.5.1.3); and which referral objects are in it (RFC 3296 § 5.2).

use crate::access::{Subject, View as Permissions};
use crate::failure::{Failure, Result};
use crate::limits::{ALIASES_MAX, CONTINUATIONS_MAX};
use crate::locate::{Located, Seeking, aliased, locate};
use crate::state::Snapshot;
use keyway_codec::message::{ResultCode, Scope};
use keyway_store::{EntryId, Key, View};

/// The entries below which a search looks.
#[derive(Default)]
pub(super) struct SearchBases {
    /// The entries that a subtree scope goes down from.
    pub tops: Vec<EntryId>,
    /// Entries that a one-level scope has beside the base's children, ascending.
    pub extra: Vec<EntryId>,
}

impl SearchBases {
    /// The bases of a scope without aliases.
    pub fn of(tops: Vec<EntryId>) -> SearchBases {
        SearchBases { tops, extra: Vec::new() }
    }

    /// Adds what the aliases of the scope stand for. An alias of nothing, or of itself, adds nothing, and neither
    /// does one that the subject may not know of, or one of such an entry.
    ///
    /// # Errors
    /// `adminLimitExceeded` if there are too many, or the store's.
    pub fn follow(
        &mut self,
        snapshot: &Snapshot,
        view: View<'_>,
        subject: &Subject,
        scope: Scope,
    ) -> Result<()> {
        let Some(key) = snapshot.special_entries.aliases() else { return Ok(()) };
        let mut aliases = Vec::new();
        for id in view.postings(key, EntryId::ROOT)?.take(ALIASES_MAX + 1) {
            aliases.push(id?);
        }
        if aliases.len() > ALIASES_MAX {
            let text = format!("there are more than {ALIASES_MAX} aliases to be followed");
            return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
        }
        let target = |alias| target(snapshot, view, subject, alias);
        match scope {
            Scope::Base => Ok(()),
            Scope::One => self.follow_children(view, &aliases, target),
            Scope::Subtree | Scope::Subordinate => self.follow_subtree(view, aliases, target),
        }
    }

    fn follow_children(
        &mut self,
        view: View<'_>,
        aliases: &[EntryId],
        target: impl Fn(EntryId) -> Result<Option<EntryId>>,
    ) -> Result<()> {
        for alias in aliases {
            let parent = view.entry(*alias)?.map(|entry| entry.parent());
            if parent.is_some_and(|parent| self.tops.contains(&parent)) {
                self.extra.extend(target(*alias)?);
            }
        }
        self.extra.sort_unstable();
        self.extra.dedup();
        Ok(())
    }

    /// Follows the aliases of a subtree: there may be aliases again behind one.
    fn follow_subtree(
        &mut self,
        view: View<'_>,
        mut aliases: Vec<EntryId>,
        target: impl Fn(EntryId) -> Result<Option<EntryId>>,
    ) -> Result<()> {
        let mut next = 0;
        while let Some(top) = self.tops.get(next).copied() {
            next += 1;
            let mut outside = Vec::new();
            for alias in std::mem::take(&mut aliases) {
                // The base itself was looked for by other means.
                if alias == top || !view.contains(&Key::subtree(top), alias)? {
                    outside.push(alias);
                } else if let Some(target) = target(alias)?
                    && !self.covers(view, target)?
                {
                    self.tops.push(target);
                }
            }
            aliases = outside;
        }
        Ok(())
    }

    fn covers(&self, view: View<'_>, id: EntryId) -> Result<bool> {
        for top in &self.tops {
            if view.contains(&Key::subtree(*top), id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The lists of what may be in the scope.
    pub fn lists(&self, scope: Scope) -> Vec<Key> {
        let subtrees = |ids: &[EntryId]| ids.iter().map(|id| Key::subtree(*id)).collect::<Vec<_>>();
        match scope {
            Scope::One => {
                let children = self.tops.iter().map(|top| Key::children(*top));
                children.chain(subtrees(&self.extra)).collect()
            }
            _ => subtrees(&self.tops),
        }
    }

    /// The referral objects of the scope that a subject of these rights may know of, ascending.
    ///
    /// # Errors
    /// `adminLimitExceeded` if there are too many, or the store's.
    pub fn references(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        rights: &Permissions,
        scope: Scope,
    ) -> Result<Vec<EntryId>> {
        let mut found = Vec::new();
        let Some(key) = snapshot.special_entries.referrals().filter(|_| scope != Scope::Base)
        else {
            return Ok(found);
        };
        for id in view.postings(key, EntryId::ROOT)? {
            let id = id?;
            let is_within = match scope {
                Scope::One => {
                    let parent = view.entry(id)?.map(|entry| entry.parent());
                    parent.is_some_and(|parent| self.tops.contains(&parent))
                        || self.extra.contains(&id)
                }
                _ => self.covers(view, id)?,
            };
            if is_within && snapshot.may_know(view, rights, id)? {
                found.push(id);
            }
            if found.len() > CONTINUATIONS_MAX {
                let text =
                    format!("there are more than {CONTINUATIONS_MAX} referral objects there");
                return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
            }
        }
        Ok(found)
    }
}

fn leads_nowhere(code: ResultCode) -> bool {
    use ResultCode::*;
    matches!(code, NoSuchObject | AliasProblem | AliasDereferencingProblem)
}

/// The entry that an alias stands for at the end, if the subject may know of both.
fn target(
    snapshot: &Snapshot,
    view: View<'_>,
    subject: &Subject,
    alias: EntryId,
) -> Result<Option<EntryId>> {
    let Some(name) = view.entry(alias)?.and_then(|entry| aliased(&snapshot.schema, &entry)) else {
        return Ok(None);
    };
    let knows = snapshot.known_to(view, subject);
    let how = Seeking { follows_aliases: true, manages_referrals: true, scope: None };
    match locate(&snapshot.schema, &snapshot.shared.contexts(), view, &name, how, &knows) {
        // The server's own entries are not the other name of any entry.
        Ok(Located { context, id }) if !context.is_system => {
            Ok((knows(&context, alias)? && knows(&context, id)?).then_some(id))
        }
        Ok(_) => Ok(None),
        Err(failure) if leads_nowhere(failure.code) => Ok(None),
        Err(failure) => Err(failure),
    }
}
