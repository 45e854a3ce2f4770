//! A change as JSON, for programs. Values that are no UTF-8 are `{"base64": "..."}`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyway_server::{
    AttributeChange, AttributeValues, DescribedChange, Extent, Operation, RowOrEntry, Values,
};
use serde_json::{Map, Value, json};

/// An object.
pub fn of(change: &DescribedChange) -> Value {
    let note = change.note.as_ref();
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("event", "change".into());
    put("position", change.position.into());
    put("index", change.index.into());
    put("number", change.number.into());
    put("time", note.map(|note| note.time()).into());
    put("reason", note.map(|note| note.reason.name()).into());
    put("author", note.map(|note| note.author.as_str()).into());
    put("connection", note.map(|note| note.connection).into());
    put("operation", note.map(|note| note.operation).into());
    put("kind", change.kind().into());
    let entry = match &change.change {
        RowOrEntry::Entry(entry) => entry,
        RowOrEntry::Row(name) => {
            put("row", name.as_str().into());
            return object.into();
        }
    };
    put("id", entry.id.0.into());
    put("entry_uuid", entry.uuid.as_str().into());
    put("dn", entry.dn.as_str().into());
    let attributes = match &entry.operation {
        Operation::Add(attributes) | Operation::Delete(attributes) => {
            attributes.iter().map(of_values).collect()
        }
        Operation::Modify(attributes) => attributes.iter().map(of_change).collect(),
        Operation::ModifyDn(renaming) => {
            put("new_dn", renaming.new_dn.as_str().into());
            put("new_rdn", renaming.new_rdn.as_str().into());
            put("delete_old_rdn", renaming.delete_old_rdn.into());
            put("new_superior", renaming.new_superior.as_deref().into());
            renaming.attributes.iter().map(of_change).collect()
        }
    };
    put("attributes", Value::Array(attributes));
    object.into()
}

fn of_values(attribute: &AttributeValues) -> Value {
    let AttributeValues { name, values } = attribute;
    match values {
        Values::Shown(shown) => json!({ "name": name, "values": array(shown) }),
        Values::Hidden(count) => json!({ "name": name, "secret": true, "count": count }),
    }
}

fn of_change(change: &AttributeChange) -> Value {
    let AttributeChange { name, extent, removed, added } = change;
    let change = match extent {
        Extent::Gone => "delete_all",
        Extent::Replaced => "replace",
        Extent::Some if removed.is_empty() => "add",
        Extent::Some if added.is_empty() => "delete",
        Extent::Some => "delete_and_add",
    };
    match (removed, added) {
        (Values::Shown(removed), Values::Shown(added)) => {
            json!({ "name": name, "change": change, "removed": array(removed), "added": array(added) })
        }
        _ => json!({
            "name": name, "change": change, "secret": true,
            "removed_count": removed.len(), "added_count": added.len(),
        }),
    }
}

fn array(values: &[Vec<u8>]) -> Value {
    let value = |value: &Vec<u8>| match str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => json!({ "base64": STANDARD.encode(value) }),
    };
    Value::Array(values.iter().map(value).collect())
}
