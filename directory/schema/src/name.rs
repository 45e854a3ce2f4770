//! Names of entries: what a DN is in the tree.
//!
//! Two DNs that the schema calls equal become the same components.

use crate::error::NameError;
use crate::limits::NAME_BYTES_MAX;
use crate::operational::SUBSCHEMA_DN;
use crate::schema::Schema;
use keyway_codec::dn::{Dn, Rdn};
use keyway_codec::syntax::append_part;
use std::sync::Arc;

/// An RDN that has been understood.
#[derive(Clone, Debug)]
pub struct NamePart {
    /// The RDN in its text form, types under their canonical names.
    pub text: String,
    /// Equal for equal RDNs; `None` if its type is not in the schema, so that no entry has it.
    pub component: Option<Vec<u8>>,
}

/// A DN that has been understood.
#[derive(Clone, Debug)]
pub struct EntryName {
    /// The RDNs, that of the entry itself first. Names of which one is above the other can share them.
    pub parts: Vec<Arc<NamePart>>,
}

impl EntryName {
    /// Understands a DN.
    ///
    /// # Errors
    /// A malformed DN, and values that are not of their type's syntax.
    pub fn parse(schema: &Schema, text: &str) -> Result<EntryName, NameError> {
        if text.len() > NAME_BYTES_MAX {
            return Err(invalid(text, &format!("it is longer than {NAME_BYTES_MAX} bytes")));
        }
        let dn = Dn::parse(text).map_err(|error| invalid(text, &error.to_string()))?;
        let parts = dn.rdns.iter().map(|rdn| NamePart::new(schema, rdn).map(Arc::new));
        Ok(EntryName { parts: parts.collect::<Result<_, _>>()? })
    }

    /// Whether it names the root DSE.
    pub fn is_root(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether it names the subschema entry.
    pub fn is_subschema(&self) -> bool {
        let [part] = self.parts.as_slice() else { return false };
        part.text.eq_ignore_ascii_case(SUBSCHEMA_DN)
    }

    /// The name of the entry above.
    pub fn parent(&self) -> EntryName {
        EntryName { parts: self.parts.get(1..).unwrap_or_default().to_vec() }
    }

    /// The text form.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// The bytes that equal names have in common and that differ between others.
    pub fn canonical(&self) -> Vec<u8> {
        joined(&self.parts)
    }

    /// Whether it is the other name or below it.
    pub fn is_within(&self, above: &EntryName) -> bool {
        let skipped = self.parts.len().checked_sub(above.parts.len());
        let tail = skipped.and_then(|skipped| self.parts.get(skipped..));
        tail.is_some_and(|tail| {
            tail.iter()
                .zip(&above.parts)
                .all(|(one, other)| one.component.is_some() && one.component == other.component)
        })
    }
}

impl NamePart {
    /// Understands an RDN.
    ///
    /// # Errors
    /// A value that is not of its type's syntax.
    pub fn new(schema: &Schema, rdn: &Rdn) -> Result<NamePart, NameError> {
        let mut shown = rdn.clone();
        let mut normal = Vec::with_capacity(rdn.avas.len());
        let mut known = true;
        for ava in &mut shown.avas {
            let attribute = schema.attribute(&ava.attribute);
            let Some((attribute, rule)) = attribute.and_then(|a| Some((a, a.equality()?))) else {
                known = false;
                continue;
            };
            let value = schema.normalize(rule, &ava.value).ok_or_else(|| {
                invalid(&rdn.to_string(), &format!("its value is no {}", attribute.name()))
            })?;
            ava.attribute = attribute.name().to_owned();
            normal.push((attribute.name(), value));
        }
        normal.sort_unstable();
        let component = known.then(|| {
            let mut component = Vec::new();
            for (name, value) in normal {
                append_part(&mut component, name.as_bytes());
                append_part(&mut component, &value);
            }
            component
        });
        Ok(NamePart { text: shown.to_string(), component })
    }
}

fn invalid(text: &str, why: &str) -> NameError {
    let shown: String = text.chars().take(200).collect();
    NameError(format!("\"{shown}\" is not a valid DN: {why}"))
}

fn joined(parts: &[Arc<NamePart>]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        append_part(&mut out, part.component.as_deref().unwrap_or(part.text.as_bytes()));
    }
    out
}

/// The text form of a part of a DN.
pub fn text_of(parts: &[Arc<NamePart>]) -> String {
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    texts.join(",")
}
