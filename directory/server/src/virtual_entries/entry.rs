//! A virtual entry.

use keyway_schema::EntryAttributes;

/// An entry of such a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualEntry {
    /// Its name.
    pub dn: String,
    /// Its attributes, under their canonical names; what follows from its place is added to them, but for the
    /// number of those below it where it is there already, since not all of them are made.
    pub attributes: EntryAttributes,
}

impl VirtualEntry {
    /// An entry of a structural class, with these values; attributes without any are left out.
    pub fn new(dn: String, class: &str, attributes: &[(&str, Vec<String>)]) -> VirtualEntry {
        let classes = ["top", class].map(|class| class.as_bytes().to_vec());
        let mut all: EntryAttributes = vec![("objectClass".to_owned(), classes.to_vec())];
        for (name, values) in attributes.iter().filter(|(_, values)| !values.is_empty()) {
            let values = values.iter().map(|value| value.as_bytes().to_vec()).collect();
            all.push(((*name).to_owned(), values));
        }
        VirtualEntry { dn, attributes: all }
    }
}
