//! Entries that a subject may not know of. To a subject that may do nothing to an entry it is one that is not
//! there: an answer says the same of it as of a name that no entry has, and names none as matched.

use super::{Subject, View};
use crate::candidate::Candidate;
use crate::failure::{Failure, Result};
use crate::naming::{self, NamingContext};
use crate::state::Snapshot;
use keyway_codec::message::ResultCode;
use keyway_schema::EntryName;
use keyway_store::{EntryId, View as Tree};

impl Snapshot {
    /// A failure of an operation on the entry of a name, as this subject may be told it: that there is no entry,
    /// where its existence is not for this subject, and as matched the last one above that is. Any failure would
    /// tell of the entry, but for those of the server and those that lead elsewhere, by a referral object or an
    /// alias that the subject may know of.
    pub(crate) fn disclosed(
        &self,
        tree: Tree<'_>,
        rights: &View,
        (context, name, below): (&NamingContext, &EntryName, usize),
        failure: Failure,
    ) -> Failure {
        use ResultCode::*;
        let tells_nothing = [Busy, Other, Unavailable];
        let leads_elsewhere = [Referral, AliasProblem, AliasDereferencingProblem];
        if tells_nothing.contains(&failure.code) || leads_elsewhere.contains(&failure.code) {
            return failure;
        }
        let told = naming::descend(tree, context, name, below).and_then(|found| match found {
            None => Ok(Some(Failure::no_such_object(""))),
            Some((id, 0)) if self.may_know(tree, rights, id)? => Ok(None),
            Some((id, _)) => self.nothing_at(tree, rights, id).map(Some),
        });
        match told {
            Ok(told) => told.unwrap_or(failure),
            Err(store) => store,
        }
    }

    /// `noSuchObject` for an entry that the subject may not know of, if so.
    pub(crate) fn hidden(
        &self,
        tree: Tree<'_>,
        rights: &View,
        id: EntryId,
    ) -> Result<Option<Failure>> {
        match self.may_know(tree, rights, id)? {
            true => Ok(None),
            false => self.nothing_at(tree, rights, id).map(Some),
        }
    }

    fn nothing_at(&self, tree: Tree<'_>, rights: &View, mut id: EntryId) -> Result<Failure> {
        while let Some(entry) = tree.entry(id)? {
            let matched = self.with_names(|names| -> Result<_> {
                let candidate = Candidate::stored(self, id, entry, tree, names);
                match rights.may_know(&candidate)? {
                    true => Ok(Some(candidate.dn()?.to_owned())),
                    false => Ok(None),
                }
            })?;
            if let Some(matched) = matched {
                return Ok(Failure::no_such_object(matched));
            }
            id = entry.parent();
        }
        Ok(Failure::no_such_object(""))
    }

    /// Says of an entry in a naming context whether this subject may know of it.
    pub(crate) fn known_to(
        &self,
        tree: Tree<'_>,
        subject: &Subject,
    ) -> impl Fn(&NamingContext, EntryId) -> Result<bool> {
        move |context, id| self.may_know(tree, &self.permissions(subject, context.place()), id)
    }

    /// Whether the subject of these rights may know of an entry.
    pub(crate) fn may_know(&self, tree: Tree<'_>, rights: &View, id: EntryId) -> Result<bool> {
        let Some(entry) = tree.entry(id)? else { return Ok(false) };
        self.with_names(|names| rights.may_know(&Candidate::stored(self, id, entry, tree, names)))
    }
}
