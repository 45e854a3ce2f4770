//! Export of what can still be read of a damaged store.

use super::ExportError;
use super::export::unreadable;
use super::frame::Framed;
use crate::failure::Failure;
use crate::naming::SYSTEM_DN;
use crate::redefine::META_SCHEMA;
use keyway_codec::ldif::Writer;
use keyway_codec::message::ResultCode;
use keyway_engine::Engine;
use keyway_schema::{Changes, EntryAttributes, EntryName, Schema, beyond_defaults};
use keyway_store::{EntryId, EntryRef, Salvage};
use std::io;

/// The outcome of a salvage.
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// Entries that were written.
    pub entries: u64,
    /// Entries that are known to have been there and could not be read.
    pub lost: Vec<Lost>,
    /// Values that entries which were written should have beside those that they have.
    pub lost_values: u64,
    /// How many more there should be, of which nothing is known: the server's own and those outside
    /// a base that was asked for may be among them. `None` if that number itself is lost.
    pub unnamed: Option<u64>,
}

/// An entry that could not be read.
#[derive(Clone, Debug)]
pub struct Lost {
    /// Its identifier in the store.
    pub id: u64,
    /// Its DN in normal form, if it is known.
    pub dn: Option<String>,
    /// Why.
    pub why: String,
}

/// Writes what can be read as LDIF, parents first: the entries of `base` and below, or all but the
/// server's own, in an export's frame. An entry that is lost is a comment in its place before its
/// children, and one whose DN is not known stands in their DNs as `cn=lost entry N`.
///
/// # Errors
/// The output's; `invalidDNSyntax` for the base.
pub fn salvage(
    store: &Salvage,
    engine: &Engine,
    base: Option<&str>,
    out: &mut dyn io::Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Salvaged, ExportError> {
    let schema = Schema::standard().map_err(|why| other(why.to_string()))?;
    let base =
        base.map(|base| EntryName::parse(&schema, base)).transpose().map_err(Failure::from)?;
    let is_asked_for = |dn: &str| match &base {
        Some(base) => EntryName::parse(&schema, dn).is_ok_and(|name| name.is_within(base)),
        None => true,
    };
    let mut salvaged = Salvaged::default();
    let mut out = Framed::begin(out, engine, &definitions(store)?)?;
    let mut buffer = Vec::new();
    for id in store.lost() {
        let name = Named::of(store, id);
        if !name.is_system && is_asked_for(&name.dn) {
            let why = store.why(id).to_owned();
            let dn = (!name.is_guess).then_some(name.dn);
            let shown = dn.as_deref().unwrap_or("its name is not known");
            Writer::new(&mut buffer).comment(&format!("lost: entry {id}, {shown}: {why}"));
            salvaged.lost.push(Lost { id: id.0, dn, why });
        }
    }
    if !salvaged.lost.is_empty() {
        buffer.push(b'\n');
    }
    let mut read = 0;
    for id in store.entries() {
        read += 1;
        let name = Named::of(store, id);
        if name.is_system || !is_asked_for(&name.dn) {
            continue;
        }
        let record = store.record(id)?;
        let entry = EntryRef::decode(id, &record).map_err(|why| other(why.to_string()))?;
        let (large, missing) = large(store, id, &entry)?;
        let mut writer = Writer::new(&mut buffer);
        if missing > 0 {
            salvaged.lost_values += missing;
            writer.comment(&format!("lost: {missing} values of the next entry"));
        }
        writer.dn(&name.dn);
        for (name, values) in entry.attributes() {
            values.for_each(|value| writer.value(name, value));
        }
        for (name, values) in &large {
            values.iter().for_each(|value| writer.value(name, value));
        }
        writer.end();
        out.write(&buffer)?;
        buffer.clear();
        salvaged.entries += 1;
        progress(salvaged.entries);
    }
    out.write(&buffer)?;
    out.end(salvaged.entries)?;
    let known = read + store.lost().len() as u64;
    salvaged.unnamed = store.expected().map(|expected| expected.saturating_sub(known));
    Ok(salvaged)
}

/// The definitions that a new data folder lacks, if the store's can be read.
fn definitions(store: &Salvage) -> Result<String, ExportError> {
    let row = store.meta(META_SCHEMA).unwrap_or_default();
    let text = String::from_utf8_lossy(&row);
    // A row that is spoilt tells nothing, and the entries are worth something without it.
    let all = Changes::from_text(&text).unwrap_or_default();
    let text = beyond_defaults(all.attribute_types.iter(), all.object_classes.iter());
    Ok(text.map_err(unreadable)?)
}

/// The readable values of an entry's large attributes, and how many of their values cannot be read.
fn large(
    store: &Salvage,
    id: EntryId,
    entry: &EntryRef<'_>,
) -> Result<(EntryAttributes, u64), ExportError> {
    let (mut attributes, mut missing) = (EntryAttributes::new(), 0);
    for large in entry.large() {
        let values = store.values(id, &large)?;
        missing += large.count.saturating_sub(values.len() as u64);
        attributes.push((large.name.to_owned(), values));
    }
    Ok((attributes, missing))
}

fn other(why: String) -> ExportError {
    Failure::new(ResultCode::Other, why).into()
}

/// The name of an entry, as far as it is known.
struct Named {
    dn: String,
    /// A part of it was made up.
    is_guess: bool,
    is_system: bool,
}

impl Named {
    fn of(store: &Salvage, id: EntryId) -> Named {
        let mut named = Named { dn: String::new(), is_guess: false, is_system: false };
        for id in [id].into_iter().chain(store.above(id)) {
            let is_top = store.parent(id) == Some(EntryId::ROOT);
            let known = store.rdn(id).map(str::to_owned);
            let known = known.or_else(|| text(store.component(id)?, is_top));
            let part = known.unwrap_or_else(|| {
                named.is_guess = true;
                format!("cn=lost entry {id}")
            });
            named.is_system = is_top && part.eq_ignore_ascii_case(SYSTEM_DN);
            if !named.dn.is_empty() {
                named.dn.push(',');
            }
            named.dn.push_str(&part);
        }
        named
    }
}

/// The text of a component (`names` says how it is made): an RDN, or the DN of a topmost entry.
/// `None` if it was cut, or a value of it is no text.
fn text(component: &[u8], is_top: bool) -> Option<String> {
    if is_top {
        let rdns: Option<Vec<_>> =
            parts(component)?.into_iter().map(|rdn| text(rdn, false)).collect();
        return Some(rdns?.join(","));
    }
    let parts = parts(component)?;
    let mut avas = Vec::new();
    for pair in parts.chunks(2) {
        let [name, value] = pair else { return None };
        let (name, value) = (str::from_utf8(name).ok()?, str::from_utf8(value).ok()?);
        // Prepared strings begin and end with a space, and have two for one (RFC 4518 § 2.6.1).
        let words: Vec<_> = value.split(' ').filter(|word| !word.is_empty()).collect();
        avas.push(format!("{name}={}", escaped(&words.join(" "))));
    }
    (!avas.is_empty()).then(|| avas.join("+"))
}

/// Takes apart what `append_part` has joined.
fn parts(mut joined: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !joined.is_empty() {
        let (mut length, mut shift) = (0usize, 0u32);
        loop {
            let (&byte, rest) = joined.split_first()?;
            joined = rest;
            length |= usize::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (part, rest) = joined.split_at_checked(length)?;
        joined = rest;
        parts.push(part);
    }
    Some(parts)
}

/// A value in a DN's text form (RFC 4514 § 2.4).
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for (at, c) in value.chars().enumerate() {
        let special = ",+\"\\<>;=".contains(c) || (at == 0 && c == '#');
        match c {
            '\0' => text.push_str("\\00"),
            _ if special => text.extend(['\\', c]),
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_codec::syntax::append_part;

    #[test]
    fn a_component_is_told_in_words() {
        let mut rdn = Vec::new();
        append_part(&mut rdn, b"cn");
        append_part(&mut rdn, b" a,  b ");
        assert_eq!(text(&rdn, false).as_deref(), Some("cn=a\\, b"));
        let mut top = Vec::new();
        append_part(&mut top, &rdn);
        append_part(&mut top, &rdn);
        assert_eq!(text(&top, true).as_deref(), Some("cn=a\\, b,cn=a\\, b"));
        for cut in 1..rdn.len() {
            assert_eq!(text(&rdn[..cut], false), None);
        }
        assert_eq!(text(&[0xFF; 20], false), None);
    }
}
