//! A change in words, as an administrator reads it.

use keyway_schema::operational::{MODIFIERS_NAME, MODIFY_TIMESTAMP};
use keyway_schema::{Schema, base};
use keyway_server::{
    AttributeChange, AttributeValues, DescribedChange, EntryChange, Extent, Operation, RowOrEntry,
    Values,
};

/// Values of an attribute that are shown; the rest are counted.
const VALUES_SHOWN_MAX: usize = 3;
/// Characters of a value that are shown.
const VALUE_CHARS_MAX: usize = 100;

/// A line, and lines below it with more.
pub fn of(change: &DescribedChange, schema: &Schema) -> String {
    let time = change.note.as_ref().map(|note| note.time());
    // To the second.
    let time = time.as_deref().and_then(|time| time.split_once('.'));
    let time = time.map_or("at an unknown time".to_owned(), |(time, _)| format!("{time}Z"));
    let name = match &change.change {
        RowOrEntry::Row(name) => name,
        RowOrEntry::Entry(entry) => &entry.dn,
    };
    let (position, index, kind) = (change.position, change.index, change.kind());
    let mut lines = vec![
        format!("{time}  {position}.{index}  {kind}  {name}"),
        format!("    {}", change.origin()),
    ];
    if let Some(entry) = change.entry() {
        lines.extend(more(entry, schema).into_iter().map(|line| format!("    {line}")));
    }
    lines.join("\n")
}

fn more(entry: &EntryChange, schema: &Schema) -> Vec<String> {
    match &entry.operation {
        Operation::Add(attributes) => vec![format!("with {}", names(attributes, schema))],
        Operation::Delete(_) => Vec::new(),
        Operation::Modify(attributes) => changes(attributes),
        Operation::ModifyDn(renaming) => {
            let mut lines = vec![format!("now {}", renaming.new_dn)];
            let is_new = !format!("{},", entry.dn).starts_with(&format!("{},", renaming.new_rdn));
            if is_new && !renaming.delete_old_rdn {
                lines.push("the value of the old name stays".to_owned());
            }
            lines.extend(changes(&renaming.attributes));
            lines
        }
    }
}

/// Those that the server keeps in each entry are left out.
fn names(attributes: &[AttributeValues], schema: &Schema) -> String {
    let is_own = |name: &str| schema.attribute(base(name)).is_some_and(|one| one.is_operational());
    let names = attributes.iter().map(|one| one.name.as_str()).filter(|name| !is_own(name));
    names.collect::<Vec<_>>().join(", ")
}

/// The stamps of a change say what its first two lines say.
fn changes(attributes: &[AttributeChange]) -> Vec<String> {
    let is_stamp = |name: &str| [MODIFIERS_NAME, MODIFY_TIMESTAMP].contains(&name);
    attributes.iter().filter(|one| !is_stamp(&one.name)).map(words).collect()
}

fn words(change: &AttributeChange) -> String {
    let AttributeChange { name, extent, removed, added } = change;
    let all = match extent {
        Extent::Gone => format!("gone, was {}", list(removed)),
        Extent::Replaced => format!("{}, was {}", list(added), list(removed)),
        Extent::Some => {
            let parts = [("added", added), ("deleted", removed)];
            let parts = parts.iter().filter(|(_, values)| !values.is_empty());
            let parts = parts.map(|(what, values)| format!("{what} {}", list(values)));
            parts.collect::<Vec<_>>().join("; ")
        }
    };
    format!("{name}: {all}")
}

fn list(values: &Values) -> String {
    let values = match values {
        Values::Hidden(1) => return "1 value (not shown)".to_owned(),
        Values::Hidden(count) => return format!("{count} values (not shown)"),
        Values::Shown(values) => values,
    };
    let mut words: Vec<String> =
        values.iter().take(VALUES_SHOWN_MAX).map(|value| shown(value)).collect();
    match values.len().saturating_sub(VALUES_SHOWN_MAX) {
        0 => {}
        more => words.push(format!("and {more} more")),
    }
    words.join(", ")
}

fn shown(value: &[u8]) -> String {
    match str::from_utf8(value) {
        Err(_) => format!("({} bytes)", value.len()),
        Ok(text) => match text.char_indices().nth(VALUE_CHARS_MAX) {
            Some((end, _)) => {
                let (begin, rest) = text.split_at(end);
                format!("{begin:?} and {} bytes more", rest.len())
            }
            None => format!("{text:?}"),
        },
    }
}
