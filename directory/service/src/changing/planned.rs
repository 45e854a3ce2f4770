//! A change that is to be made.

use keyway_codec::ldif::{Modification, Record, RecordKind, Writer};
use serde_json::{Value, json};

/// A change, and what has to be true of the entry for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedChange {
    /// The change. Attributes that else only the server sets may be among the others.
    pub record: Record,
    /// Values that the entry must have when it is made; not of an entry that is added.
    pub only_if: Vec<(String, Vec<u8>)>,
    /// The reason for it, for people.
    pub why: String,
}

impl PlannedChange {
    /// Adds an entry.
    pub fn add(dn: String, lines: Vec<(String, Vec<u8>)>, why: String) -> PlannedChange {
        PlannedChange::new(dn, RecordKind::Add(lines), Vec::new(), why)
    }

    /// A change of an entry that must have these values.
    pub fn new(
        dn: String,
        kind: RecordKind,
        only_if: Vec<(String, Vec<u8>)>,
        why: String,
    ) -> PlannedChange {
        PlannedChange { record: Record { line: 0, dn, kind }, only_if, why }
    }

    /// A word for it.
    pub fn kind(&self) -> &'static str {
        match self.record.kind {
            RecordKind::Add(_) | RecordKind::Content(_) => "add",
            RecordKind::Delete => "delete",
            RecordKind::Modify(_) => "modify",
            RecordKind::ModRdn { .. } => "modrdn",
        }
    }

    /// The change record with a comment before it. Values of secret attributes are counted in comments.
    pub fn ldif(&self, is_secret: impl Fn(&str) -> bool) -> String {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.comment(&self.why);
        let mut hidden = |name: &str, count: usize| {
            let values = if count == 1 { "1 value".to_owned() } else { format!("{count} values") };
            writer.comment(&format!("{name}: {values}, not shown"));
        };
        let mut record = self.record.clone();
        match &mut record.kind {
            RecordKind::Add(lines) | RecordKind::Content(lines) => {
                let mut secret: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
                secret.retain(|name| is_secret(name));
                secret.chunk_by(|one, other| one == other).for_each(|chunk| {
                    chunk.first().iter().for_each(|name| hidden(name, chunk.len()));
                });
                lines.retain(|(name, _)| !is_secret(name));
            }
            RecordKind::Modify(modifications) => {
                for Modification { attribute, values, .. } in modifications.iter() {
                    if is_secret(attribute) {
                        hidden(attribute, values.len());
                    }
                }
                modifications.retain(|one| !is_secret(&one.attribute));
            }
            RecordKind::Delete | RecordKind::ModRdn { .. } => {}
        }
        Writer::new(&mut out).record(&record);
        // All that is not ASCII is in comments.
        String::from_utf8_lossy(&out).into_owned()
    }

    /// An object for programs.
    pub fn json(&self, event: &str, is_secret: impl Fn(&str) -> bool) -> Value {
        let (kind, dn, why) = (self.kind(), &self.record.dn, &self.why);
        json!({ "event": event, "kind": kind, "dn": dn, "why": why, "ldif": self.ldif(is_secret) })
    }
}
