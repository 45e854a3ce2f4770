//! Searches of the server's own.

use crate::access::View;
use crate::candidate::Candidate;
use crate::directory::Directory;
use crate::evaluate::{Evaluator, Truth};
use crate::failure::Result;
use crate::naming;
use crate::plan::{count_max, plan};
use keyway_codec::Filter;
use keyway_schema::Matcher;
use keyway_store::{EntryId, Key};

impl Directory {
    /// The DN of the one user entry with this `uid`; `None` if there is none, or more than one.
    ///
    /// # Errors
    /// The store's.
    pub fn dn_of_uid(&self, uid: &str) -> Result<Option<String>> {
        self.dn_of("uid", uid)
    }

    /// The DN of the one user entry with this `uidNumber`; `None` if there is none, or more than one.
    ///
    /// # Errors
    /// The store's.
    pub fn dn_of_uid_number(&self, uid: u32) -> Result<Option<String>> {
        self.dn_of("uidNumber", &uid.to_string())
    }

    fn dn_of(&self, attribute: &str, value: &str) -> Result<Option<String>> {
        let snapshot = &*self.snapshot();
        let (attribute, value) = (attribute.into(), value.as_bytes().into());
        let filter = Filter::Equality { attribute, value };
        let matcher = Matcher::new(&snapshot.schema, &filter);
        let rights = View::unrestricted();
        let evaluator = Evaluator::search(&snapshot.schema, &rights);
        let read = self.store.read()?;
        let view = read.view();
        let tops = naming::tops(view, &snapshot.shared.contexts())?;
        let subtrees = tops.iter().copied().map(Key::subtree).collect();
        let source = plan(snapshot, view, &matcher, subtrees, count_max(2))?;
        snapshot.with_names(|names| {
            let mut found = None;
            for id in source.candidates(view, EntryId::ROOT)? {
                let id = id?;
                let Some(entry) = view.entry(id)? else { continue };
                let candidate = Candidate::stored(snapshot, id, entry, view, names);
                if evaluator.matches(&matcher, &candidate)? != Truth::True
                    || !candidate.is_within(&tops)?
                {
                    continue;
                }
                if found.replace(candidate.dn()?.to_owned()).is_some() {
                    return Ok(None);
                }
            }
            Ok(found)
        })
    }
}
