//! Which changes are shown, and how.

use keyway_server::{DescribedChange, Reason};
use std::path::PathBuf;

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
    /// Whether a change is shown, as far as its reason goes.
    pub(super) fn takes(&self, change: &DescribedChange) -> bool {
        self.binds || change.note.as_ref().is_none_or(|note| note.reason != Reason::Bind)
    }
}
