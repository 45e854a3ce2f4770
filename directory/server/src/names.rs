//! Names of entries: what a DN is in the tree.
//!
//! Two DNs that the schema calls equal become the same components. The entry at the top of a
//! naming context has its whole DN as one component below the store's root.

use crate::failure::{Failure, Result};
use crate::limits::NAME_BYTES_MAX;
use crate::made::MadeTree;
use crate::operational::SUBSCHEMA_DN;
use crate::schema::Schema;
use keyway_codec::dn::{Dn, Rdn};
use keyway_codec::message::ResultCode;
use keyway_codec::syntax::append_part;
use keyway_store::{EntryId, View};
use std::sync::Arc;

/// The naming context that the server keeps its own entries in.
pub const SYSTEM_DN: &str = "cn=keyway";

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
pub struct Name {
    /// The RDNs, that of the entry itself first.
    pub parts: Vec<NamePart>,
}

impl Name {
    /// Understands a DN.
    ///
    /// # Errors
    /// `invalidDNSyntax` for a malformed DN and for values that are not of their type's syntax.
    pub fn parse(schema: &Schema, text: &str) -> Result<Name> {
        if text.len() > NAME_BYTES_MAX {
            return Err(invalid(text, &format!("it is longer than {NAME_BYTES_MAX} bytes")));
        }
        let dn = Dn::parse(text).map_err(|error| invalid(text, &error.to_string()))?;
        let parts = dn.rdns.iter().map(|rdn| NamePart::new(schema, rdn)).collect::<Result<_>>()?;
        Ok(Name { parts })
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
    pub fn parent(&self) -> Name {
        Name { parts: self.parts.get(1..).unwrap_or_default().to_vec() }
    }

    /// The text form.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// What equal names have in common and others have not.
    pub fn canonical(&self) -> Vec<u8> {
        joined(&self.parts)
    }

    /// Whether it is the other name or below it.
    pub fn is_within(&self, above: &Name) -> bool {
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
    /// `invalidDNSyntax` for a value that is not of its type's syntax.
    pub fn new(schema: &Schema, rdn: &Rdn) -> Result<NamePart> {
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

fn invalid(text: &str, why: &str) -> Failure {
    let shown: String = text.chars().take(200).collect();
    Failure::new(ResultCode::InvalidDnSyntax, format!("\"{shown}\" is not a valid DN: {why}"))
}

fn joined(parts: &[NamePart]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        append_part(&mut out, part.component.as_deref().unwrap_or(part.text.as_bytes()));
    }
    out
}

/// The text form of a part of a DN.
pub fn text_of(parts: &[NamePart]) -> String {
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    texts.join(",")
}

/// A part of the tree that this server holds, from one entry downwards.
#[derive(Clone, Debug)]
pub struct NamingContext {
    /// The name of the entry at its top, which may not have been added yet.
    pub name: Name,
    /// The text form of that name.
    pub text: String,
    /// Under which component it hangs from the store's root.
    pub component: Vec<u8>,
    /// Whether it is the server's own.
    pub is_system: bool,
}

impl NamingContext {
    /// The context of this name.
    pub fn new(name: Name) -> NamingContext {
        let text = name.text();
        let is_system = text.eq_ignore_ascii_case(SYSTEM_DN);
        NamingContext { component: name.canonical(), text, name, is_system }
    }
}

/// Where a name leads.
#[derive(Clone, Debug)]
pub enum Place<'c> {
    /// To the root DSE.
    Root,
    /// To the subschema entry.
    Subschema,
    /// Into a naming context.
    Inside {
        /// Which one.
        context: &'c Arc<NamingContext>,
        /// How many RDNs the name has below the context's top; 0 for the top itself.
        below: usize,
    },
    /// Into a tree that is made when it is asked for.
    Made(MadeTree),
    /// Nowhere that this server knows.
    Outside,
}

/// Finds where a name leads, without looking at entries.
pub fn place<'c>(contexts: &'c [Arc<NamingContext>], name: &Name) -> Place<'c> {
    if name.is_root() {
        return Place::Root;
    }
    if name.is_subschema() {
        return Place::Subschema;
    }
    match contexts.iter().find(|context| name.is_within(&context.name)) {
        Some(context) => {
            Place::Inside { context, below: name.parts.len() - context.name.parts.len() }
        }
        None => MadeTree::of(name).map_or(Place::Outside, Place::Made),
    }
}

/// The name of a naming context that there may be.
///
/// # Errors
/// If it is no DN, names no entry, or is the server's own.
pub fn of_context(schema: &Schema, dn: &str) -> Result<Name> {
    let name = Name::parse(schema, dn)?;
    let refused =
        |why: &str| Err(Failure::new(ResultCode::UnwillingToPerform, format!("\"{dn}\" {why}")));
    if name.is_root() || name.parts.iter().any(|part| part.component.is_none()) {
        return refused("cannot be the top of a naming context");
    }
    match place(&[], &name) {
        Place::Made(_) | Place::Subschema => refused("is the server's own"),
        _ => Ok(name),
    }
}

/// Says what is wrong with the DN of a naming context.
///
/// # Errors
/// That, in words.
pub fn check_context(schema: &Schema, dn: &str) -> Result<(), String> {
    of_context(schema, dn).map(drop).map_err(|why| why.diagnostic)
}

/// Walks from a context's top as far towards the entry of a name that has `below` RDNs under it as
/// there are entries. Returns the last one, and how many RDNs are left; `None` without a top.
///
/// # Errors
/// The store's.
pub fn descend(
    view: View<'_>,
    context: &NamingContext,
    name: &Name,
    below: usize,
) -> Result<Option<(EntryId, usize)>> {
    let Some(mut id) = view.child(EntryId::ROOT, &context.component)? else { return Ok(None) };
    for depth in (0..below).rev() {
        let component = name.parts.get(depth).and_then(|part| part.component.as_deref());
        let found = match component {
            Some(component) => view.child(id, component)?,
            None => None,
        };
        let Some(found) = found else { return Ok(Some((id, depth + 1))) };
        id = found;
    }
    Ok(Some((id, 0)))
}

/// Walks from a context's top to the entry of a name that has `below` RDNs under it.
///
/// # Errors
/// `noSuchObject` with the last entry that is there, or the store's.
pub fn resolve(
    view: View<'_>,
    context: &NamingContext,
    name: &Name,
    below: usize,
) -> Result<EntryId> {
    match descend(view, context, name, below)? {
        None => Err(Failure::no_such_object("")),
        Some((id, 0)) => Ok(id),
        Some((_, left)) => {
            Err(Failure::no_such_object(text_of(name.parts.get(left..).unwrap_or_default())))
        }
    }
}

/// The top entries of the naming contexts of users that have been added, ascending.
pub fn tops(view: View<'_>, contexts: &[Arc<NamingContext>]) -> Result<Vec<EntryId>> {
    let mut tops = Vec::new();
    for context in contexts.iter().filter(|context| !context.is_system) {
        tops.extend(view.child(EntryId::ROOT, &context.component)?);
    }
    tops.sort_unstable();
    Ok(tops)
}
