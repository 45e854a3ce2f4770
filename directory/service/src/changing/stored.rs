//! Entries as a store has them, for plans that are to change them back.

use keyway_host::failure::Failure;
use keyway_schema::EntryAttributes;
use keyway_schema::operational::{MODIFIERS_NAME, MODIFY_TIMESTAMP, STRUCTURAL_OBJECT_CLASS};
use keyway_store::{EntryId, Names, Store};

/// Attributes that say who has changed an entry last, and when: a change back is a change of its own.
const STAMPS: [&str; 2] = [MODIFIERS_NAME, MODIFY_TIMESTAMP];
/// Attributes that the server sets after binds, or makes of others.
const OF_SERVER: [&str; 4] =
    ["pwdFailureTime", "pwdGraceUseTime", "pwdLastSuccess", STRUCTURAL_OBJECT_CLASS];

/// An entry, all attributes included.
#[derive(Clone, Debug)]
pub struct StoredEntry {
    /// Its name.
    pub dn: String,
    /// In the order in which they are stored.
    pub attributes: EntryAttributes,
    /// How many entries are one level below.
    pub below: u64,
}

impl StoredEntry {
    /// Reads one, if it is there.
    ///
    /// # Errors
    /// The store's.
    pub fn load(store: &Store, id: EntryId) -> Result<Option<StoredEntry>, Failure> {
        let found = || -> Result<Option<StoredEntry>, keyway_store::Error> {
            let read = store.read()?;
            let view = read.view();
            let Some(entry) = view.entry(id)? else { return Ok(None) };
            let mut attributes = EntryAttributes::new();
            for (name, values) in entry.attributes() {
                attributes.push((name.to_owned(), values.map(<[u8]>::to_vec).collect()));
            }
            for large in entry.large() {
                let mut values = Vec::new();
                for value in view.large_values(id, &large)? {
                    values.push(value?.1.to_vec());
                }
                attributes.push((large.name.to_owned(), values));
            }
            let dn = view.dn_of(&entry, &mut Names::new())?;
            Ok(Some(StoredEntry { dn, attributes, below: view.child_count(id)? }))
        };
        found().map_err(|why| Failure::new(format!("cannot read the store: {why}")))
    }
}

/// Whether a change that makes an entry of what it was leaves this attribute to the server.
pub fn is_left_to_server(name: &str) -> bool {
    STAMPS.contains(&name) || OF_SERVER.contains(&name)
}
