//! The user that a connection speaks for, and over what.

use super::strength::Over;
use super::table::Resolved;
use super::trace::Trace;
use keyway_lock::Unpoisoned;
use keyway_store::EntryId;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The user that a connection speaks for. Cheap to clone; clones share what is known of it.
#[derive(Clone, Default)]
pub struct Subject {
    identity: Identity,
    /// How he came in.
    pub(super) over: Over,
    /// The rules that speak of him, as far as they were looked up.
    known: Arc<Mutex<Option<Arc<Resolved>>>>,
    /// Where what rules decide for him is noted.
    trace: Option<Arc<Trace>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Identity {
    /// No user: no bind, or an anonymous one.
    #[default]
    Anonymous,
    /// A user with an entry.
    User { dn: Arc<str>, id: EntryId },
    /// The administrator, whose entry is in the server's own naming context.
    Administrator { dn: Arc<str>, id: EntryId },
}

impl Subject {
    /// The one that has not said who it is.
    pub fn anonymous() -> Subject {
        Subject::default()
    }

    /// A user, by its entry and the DN that is written there.
    pub fn user(dn: &str, id: EntryId) -> Subject {
        Subject { identity: Identity::User { dn: dn.into(), id }, ..Subject::default() }
    }

    /// A user that has no entry, by its DN.
    pub fn without_entry(dn: &str) -> Subject {
        Subject::user(dn, EntryId(u64::MAX))
    }

    /// The administrator, likewise.
    pub fn administrator(dn: &str, id: EntryId) -> Subject {
        Subject { identity: Identity::Administrator { dn: dn.into(), id }, ..Subject::default() }
    }

    /// This subject on a connection like this.
    #[must_use]
    pub fn over(self, over: Over) -> Subject {
        // Rules that were looked up for him on another connection do not hold here.
        Subject { identity: self.identity, over, known: Arc::default(), trace: None }
    }

    /// How he came in.
    pub fn came(&self) -> Over {
        self.over
    }

    /// This subject, and decisions of rules for it are noted there from now on.
    #[must_use]
    pub fn traced(self, trace: Option<Arc<Trace>>) -> Subject {
        Subject { trace, ..self }
    }

    /// Where what rules decide for him is noted.
    pub(crate) fn trace(&self) -> Option<Arc<Trace>> {
        self.trace.clone()
    }

    /// The authorization identity of RFC 4513 § 5.2.1.8: `dn:...`, or empty for no user.
    pub fn authz_id(&self) -> String {
        self.dn().map(|dn| format!("dn:{dn}")).unwrap_or_default()
    }

    /// The DN that the subject's entry has now, or had when it was last looked up: it may have been renamed since
    /// the bind.
    pub fn name(&self) -> Option<Arc<str>> {
        let now = self.known().and_then(|known| known.text.clone());
        now.or_else(|| self.dn().map(Arc::from))
    }

    /// The DN that the subject's entry had at the bind.
    pub fn dn(&self) -> Option<&str> {
        match &self.identity {
            Identity::Anonymous => None,
            Identity::User { dn, .. } | Identity::Administrator { dn, .. } => Some(dn),
        }
    }

    /// The subject's entry.
    pub fn id(&self) -> Option<EntryId> {
        match &self.identity {
            Identity::Anonymous => None,
            Identity::User { id, .. } | Identity::Administrator { id, .. } => Some(*id),
        }
    }

    /// Whether it is no user.
    pub fn is_anonymous(&self) -> bool {
        self.identity == Identity::Anonymous
    }

    /// Whether it is the administrator.
    pub fn is_administrator(&self) -> bool {
        matches!(self.identity, Identity::Administrator { .. })
    }

    /// The rules that were looked up last.
    pub(super) fn known(&self) -> Option<Arc<Resolved>> {
        self.known.lock().unpoisoned().clone()
    }

    /// Keeps what was looked up.
    pub(super) fn keep(&self, resolved: Arc<Resolved>) {
        *self.known.lock().unpoisoned() = Some(resolved);
    }
}

impl PartialEq for Subject {
    fn eq(&self, other: &Subject) -> bool {
        self.identity == other.identity && self.over == other.over
    }
}

impl Eq for Subject {}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("identity", &self.identity)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
