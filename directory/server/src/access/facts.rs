//! The facts about a subject that rules ask for.

use super::{Over, Subject};
use crate::integrity::normal_dn;
use keyway_schema::{EntryName, Schema};
use std::sync::Arc;

/// The facts about a subject that rules ask for.
pub(crate) struct Facts<'s> {
    pub subject: &'s Subject,
    pub over: Over,
    /// His DN as the tree has it.
    pub name: Option<EntryName>,
    /// The normal form of his DN as a value.
    pub dn: Option<Vec<u8>>,
    /// The text of his DN, as it is in the tree.
    pub text: Option<Arc<str>>,
    /// His entry is gone, so he counts as anonymous.
    pub is_gone: bool,
    /// The groups that rules speak of and he is in.
    pub groups: Vec<Vec<u8>>,
}

impl<'s> Facts<'s> {
    /// The facts about a subject of which no name need be known.
    pub fn nothing(subject: &'s Subject) -> Facts<'s> {
        let (over, groups) = (subject.over, Vec::new());
        Facts { subject, over, name: None, dn: None, text: None, is_gone: false, groups }
    }

    /// Whether he has no entry, or has it no more.
    pub fn is_anonymous(&self) -> bool {
        self.is_gone || self.subject.is_anonymous()
    }

    /// He has this DN.
    pub fn is_called(&mut self, dn: &str, schema: &Schema) {
        self.name = EntryName::parse(schema, dn).ok();
        self.dn = normal_dn(schema, dn);
    }
}
