//! Naming contexts, and where a name leads in them.
//!
//! The entry at the top of a naming context has its whole DN as one component below the store's root.

use crate::access;
use crate::failure::{Failure, Result};
use crate::virtual_entries::VirtualTree;
use keyway_codec::message::ResultCode;
use keyway_schema::{EntryName, Schema, text_of};
use keyway_store::{EntryId, View};
use std::sync::Arc;

/// The administrator's name.
pub const ADMINISTRATOR_DN: &str = "cn=admin,cn=keyway";

/// The naming context that the server keeps its own entries in.
pub const SYSTEM_DN: &str = "cn=keyway";

/// A part of the tree that this server holds, from one entry downwards.
#[derive(Clone, Debug)]
pub struct NamingContext {
    /// The name of the entry at its top, which may not have been added yet.
    pub name: EntryName,
    /// The text form of that name.
    pub text: String,
    /// Under which component it hangs from the store's root.
    pub component: Vec<u8>,
    /// Whether it is the server's own.
    pub is_system: bool,
}

impl NamingContext {
    /// The context of this name.
    pub fn new(name: EntryName) -> NamingContext {
        let text = name.text();
        let is_system = text.eq_ignore_ascii_case(SYSTEM_DN);
        NamingContext { component: name.canonical(), text, name, is_system }
    }
}

impl NamingContext {
    /// Where its entries are, as access rules see it.
    pub fn place(&self) -> access::Place {
        if self.is_system { access::Place::System } else { access::Place::Data }
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
    /// Into a tree that is not stored.
    Virtual(VirtualTree),
    /// Nowhere that this server knows.
    Outside,
}

/// Finds where a name leads, without looking at entries.
pub fn place<'c>(contexts: &'c [Arc<NamingContext>], name: &EntryName) -> Place<'c> {
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
        None => VirtualTree::of(name).map_or(Place::Outside, Place::Virtual),
    }
}

/// The name of a naming context that there may be.
///
/// # Errors
/// If it is no DN, names no entry, or is the server's own.
pub fn of_context(schema: &Schema, dn: &str) -> Result<EntryName> {
    let name = EntryName::parse(schema, dn)?;
    let refused =
        |why: &str| Err(Failure::new(ResultCode::UnwillingToPerform, format!("\"{dn}\" {why}")));
    if name.is_root() || name.parts.iter().any(|part| part.component.is_none()) {
        return refused("cannot be the top of a naming context");
    }
    match place(&[], &name) {
        Place::Virtual(_) | Place::Subschema => refused("is the server's own"),
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
    name: &EntryName,
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
    name: &EntryName,
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

/// The first RDN and what follows it; `None` if it is the only one, or there are quotes or
/// semicolons.
pub fn split(dn: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, byte) in dn.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' | b';' => return None,
            b',' => return Some((dn.get(..at)?, dn.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_name_is_split_behind_its_first_rdn() {
        assert_eq!(split("uid=a,dc=x,dc=y"), Some(("uid=a", "dc=x,dc=y")));
        assert_eq!(split(r"cn=a\,b,dc=x"), Some((r"cn=a\,b", "dc=x")));
        assert_eq!(split(r"cn=a\\,dc=x"), Some((r"cn=a\\", "dc=x")));
        assert_eq!(split("dc=x"), None);
        assert_eq!(split(r#"cn="a,b",dc=x"#), None);
        assert_eq!(split("cn=a;dc=x,dc=y"), None);
        assert_eq!(split(r"cn=a\;b,dc=x"), Some((r"cn=a\;b", "dc=x")));
    }
}
