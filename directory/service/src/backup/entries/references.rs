//! Values that name entries: which attributes have them, and what such a value of the backup means by now.

use super::side::Side;
use keyway_host::failure::Failure;
use keyway_schema::{EntryAttributes, EntryName, Schema, base};
use keyway_server::Room;
use keyway_store::{EntryId, EntryRef};
use std::collections::{HashMap, HashSet};

/// The attributes that follow the entries which they name.
pub struct References {
    /// Canonical names, those of subtypes among them.
    names: HashSet<String>,
}

impl References {
    /// Those that the configuration lists, as far as the schema knows them.
    pub fn new(schema: &Schema, listed: &[String]) -> References {
        let known = listed.iter().filter_map(|name| schema.attribute(name));
        let family = known.flat_map(|attribute| schema.family(attribute));
        References { names: family.map(|member| member.name().to_owned()).collect() }
    }

    /// Whether what is stored under this description names entries.
    pub fn has(&self, stored: &str) -> bool {
        self.names.contains(base(stored))
    }

    /// The values in a backup that name one of these entries, by the number of the entry that has them. The names are
    /// in the form that equal ones have in common.
    ///
    /// # Errors
    /// The store's.
    pub fn to(
        &self,
        then: &Side,
        names: &HashSet<Vec<u8>>,
    ) -> Result<Vec<(EntryId, EntryAttributes)>, Failure> {
        let is_one = |value: &[u8]| {
            let name = parse(then.schema(), value);
            name.is_some_and(|name| names.contains(&name.canonical()))
        };
        let mut all = Vec::new();
        then.each(|view, id, entry: &EntryRef<'_>| {
            let mut found = EntryAttributes::new();
            for (name, values) in entry.attributes().filter(|(name, _)| self.has(name)) {
                let values = values.filter(|value| is_one(value)).map(<[u8]>::to_vec);
                found.push((name.to_owned(), values.collect()));
            }
            for large in entry.large().filter(|large| self.has(large.name)) {
                let mut values = Vec::new();
                for value in view.large_values(id, &large)? {
                    let (_, value) = value?;
                    if is_one(value) {
                        values.push(value.to_vec());
                    }
                }
                found.push((large.name.to_owned(), values));
            }
            found.retain(|(_, values)| !values.is_empty());
            if !found.is_empty() {
                all.push((id, found));
            }
            Ok(())
        })?;
        Ok(all)
    }
}

/// Understands a value as a name.
pub fn parse(schema: &Schema, value: &[u8]) -> Option<EntryName> {
    EntryName::parse(schema, str::from_utf8(value).ok()?).ok()
}

/// The entries that have no more the names that values in the backup give them.
#[derive(Default)]
pub struct Targets {
    /// The `entryUUID` of the entry that a value named.
    lost: HashMap<Vec<u8>, String>,
}

impl Targets {
    /// Looks up which entries the references of one of the backup name.
    ///
    /// # Errors
    /// The stores'.
    pub fn look(
        &mut self,
        (then, now): (&Side, &Side),
        references: &References,
        attributes: &EntryAttributes,
    ) -> Result<(), Failure> {
        let all = attributes.iter().filter(|(name, _)| references.has(name));
        for value in all.flat_map(|(_, values)| values) {
            if self.lost.contains_key(value) {
                continue;
            }
            let Some(name) = parse(then.schema(), value) else { continue };
            let Room::Taken(id) = then.room(&name)? else { continue };
            let Some(uuid) = then.uuid(id)? else { continue };
            let there = match parse(now.schema(), value).map(|name| now.room(&name)).transpose()? {
                Some(Room::Taken(id)) => now.uuid(id)?,
                _ => None,
            };
            if there.as_ref() != Some(&uuid) {
                self.lost.insert(value.clone(), uuid);
            }
        }
        Ok(())
    }

    /// The `entryUUID`s of those that have another name, or are gone.
    pub fn uuids(&self) -> impl Iterator<Item = &String> {
        self.lost.values()
    }

    /// The attributes of an entry of the backup with references to what has other names by now. A reference to an entry
    /// that is gone for good is left out: another entry may get that name. Returns how many were.
    pub fn follow(
        &self,
        references: &References,
        attributes: &mut EntryAttributes,
        became: impl Fn(&str) -> Became,
    ) -> u64 {
        let mut left_out = 0;
        for (_, values) in attributes.iter_mut().filter(|(name, _)| references.has(name)) {
            let mut seen = HashSet::new();
            values.retain_mut(|value| {
                match self.lost.get(value).map(|uuid| became(uuid)) {
                    None | Some(Became::Back) => {}
                    Some(Became::Renamed(dn)) => *value = dn.into_bytes(),
                    Some(Became::Gone) => {
                        left_out += 1;
                        return false;
                    }
                }
                // Two may have become one.
                seen.insert(value.clone())
            });
        }
        attributes.retain(|(_, values)| !values.is_empty());
        left_out
    }
}

/// The lot of an entry since the backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// It comes back, with the name that it had.
    Back,
    /// It has this name.
    Renamed(String),
    /// It is not there.
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: &str, values: &[&str]) -> (String, Vec<Vec<u8>>) {
        (name.to_owned(), values.iter().map(|value| value.as_bytes().to_vec()).collect())
    }

    #[test]
    fn values_follow_what_they_named() {
        let schema = Schema::standard().unwrap();
        let references = References::new(&schema, &["MEMBER".to_owned(), "nothing".to_owned()]);
        assert!(references.has("member;x-option") && !references.has("cn"));
        let lost = ["back", "renamed", "gone"]
            .map(|one| (format!("cn={one}").into_bytes(), one.to_owned()));
        let targets = Targets { lost: lost.into() };
        let became = |uuid: &str| match uuid {
            "back" => Became::Back,
            "renamed" => Became::Renamed("cn=new".to_owned()),
            _ => Became::Gone,
        };
        let all = ["cn=here", "cn=back", "cn=renamed", "cn=gone", "cn=new"];
        let mut attributes = vec![
            attribute("member", &all),
            attribute("cn", &all),
            attribute("manager", &["cn=gone"]),
        ];
        let left_out = targets.follow(&references, &mut attributes, became);
        assert_eq!(left_out, 1);
        let wanted = vec![
            attribute("member", &["cn=here", "cn=back", "cn=new"]),
            attribute("cn", &all),
            attribute("manager", &["cn=gone"]),
        ];
        assert_eq!(attributes, wanted);
        let mut one = vec![attribute("member", &["cn=gone"])];
        assert_eq!((targets.follow(&references, &mut one, became), one.len()), (1, 0));
    }
}
