//! The modifications that make one state of an entry another.

use crate::changing::is_left_to_server;
use keyway_codec::ldif::Modification;
use keyway_codec::message::ChangeOperation;
use keyway_schema::operational::ENTRY_UUID;
use keyway_schema::{EntryAttributes, Schema, base};
use std::collections::HashSet;

/// The modifications that make an entry's values what they were. Values are compared byte for byte, so that another
/// spelling is a difference; their order is none. Attributes that a server sets by itself are left to it.
pub fn modifications(
    schema: &Schema,
    now: &EntryAttributes,
    then: &EntryAttributes,
) -> Vec<Modification> {
    let gone = now.iter().filter(|(name, _)| values(then, name).is_empty());
    let gone = gone.map(|(name, _)| (name, &[][..]));
    let all = then.iter().map(|(name, values)| (name, values.as_slice())).chain(gone);
    let all = all.filter(|(name, _)| !is_left_to_server(name) && *name != ENTRY_UUID);
    all.flat_map(|(name, wanted)| of_one(schema, name, values(now, name), wanted)).collect()
}

/// The values of an attribute; none if it has none.
pub fn values<'a>(attributes: &'a EntryAttributes, name: &str) -> &'a [Vec<u8>] {
    let found = attributes.iter().find(|(own, _)| own == name);
    found.map_or(&[], |(_, values)| values)
}

fn of_one(schema: &Schema, name: &str, held: &[Vec<u8>], wanted: &[Vec<u8>]) -> Vec<Modification> {
    let (goes, comes) = (without(held, wanted), without(wanted, held));
    if goes.is_empty() && comes.is_empty() {
        return Vec::new();
    }
    let modification = |operation, values: Vec<Vec<u8>>| Modification {
        operation,
        attribute: name.to_owned(),
        values,
    };
    let has_equality = schema.attribute(base(name)).is_some_and(|it| it.equality().is_some());
    // Single values cannot be told apart without a rule; and where most of them change, all of them are told more briefly.
    if !has_equality || goes.len() + comes.len() >= wanted.len() {
        return vec![modification(ChangeOperation::Replace, wanted.to_vec())];
    }
    let parts = [(ChangeOperation::Delete, goes), (ChangeOperation::Add, comes)];
    let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
    parts.map(|(operation, values)| modification(operation, values)).collect()
}

fn without(some: &[Vec<u8>], others: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let others: HashSet<&Vec<u8>> = others.iter().collect();
    some.iter().filter(|value| !others.contains(value)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_schema::operational::MODIFY_TIMESTAMP;
    use std::collections::{BTreeMap, BTreeSet};

    type Model = BTreeMap<String, BTreeSet<Vec<u8>>>;

    fn model(attributes: &EntryAttributes) -> Model {
        let mut model = Model::new();
        for (name, values) in attributes {
            model.insert(name.clone(), values.iter().cloned().collect());
        }
        model
    }

    /// Does what RFC 4511 § 4.6 says.
    fn make(model: &mut Model, modification: &Modification) {
        let values = model.entry(modification.attribute.clone()).or_default();
        match modification.operation {
            ChangeOperation::Replace => *values = modification.values.iter().cloned().collect(),
            ChangeOperation::Delete => modification.values.iter().for_each(|value| {
                assert!(values.remove(value), "a value goes that is not there");
            }),
            ChangeOperation::Add => modification.values.iter().for_each(|value| {
                assert!(values.insert(value.clone()), "a value comes that is there");
            }),
            other => panic!("{other:?}"),
        }
        model.retain(|_, values| !values.is_empty());
    }

    /// The attributes that the bits of a number choose.
    fn some(mut bits: u32) -> EntryAttributes {
        let mut attributes = EntryAttributes::new();
        for name in ["description", "jpegPhoto", "member;x-option"] {
            let mut values = Vec::new();
            for value in ["a", "b", "c", "d"] {
                if bits & 1 == 1 {
                    values.push(value.as_bytes().to_vec());
                }
                bits >>= 1;
            }
            if !values.is_empty() {
                attributes.push((name.to_owned(), values));
            }
        }
        attributes
    }

    #[test]
    fn what_is_made_is_what_was() {
        let schema = Schema::standard().unwrap();
        for number in 0..20_000_u32 {
            let bits = number.wrapping_mul(2_654_435_761) >> 8;
            let (now, then) = (some(bits), some(bits >> 12));
            let found = modifications(&schema, &now, &then);
            let mut made = model(&now);
            found.iter().for_each(|modification| make(&mut made, modification));
            assert_eq!(made, model(&then));
            assert_eq!(found.is_empty(), model(&now) == model(&then));
            // Many values are not sent where few change.
            let told = found.iter().map(|one| one.values.len()).sum::<usize>();
            assert!(told <= then.iter().map(|(_, values)| values.len()).sum(), "{found:?}");
        }
    }

    #[test]
    fn what_the_server_sets_is_its_own() {
        let one = |name: &str, value: &str| (name.to_owned(), vec![value.as_bytes().to_vec()]);
        let now = vec![one(MODIFY_TIMESTAMP, "1"), one(ENTRY_UUID, "2"), one("cn", "a")];
        let then = vec![one("cn", "A"), one("pwdFailureTime", "3")];
        let found = modifications(&Schema::standard().unwrap(), &now, &then);
        assert_eq!(found.len(), 1, "another spelling is a difference: {found:?}");
    }
}
