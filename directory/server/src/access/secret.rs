//! Attributes that no subject should learn by the way: passwords and keys, and who may do what.
//!
//! A rule gives them to a subject only if it names them or allows everything. Which of them are known
//! depends on the sets and files of the schema.

use keyway_codec::secret::SECRETS;
use keyway_schema::Schema;

/// Who may do what, here or on the server that an entry comes from.
const ACCESS: &[&str] = &[
    "OpenLDAPaci",
    "aci",
    "authzFrom",
    "authzTo",
    "entryACI",
    "ipaKrb5DelegationACL",
    "keywayAccessRule",
    "nTSecurityDescriptor",
    "olcAccess",
    "prescriptiveACI",
    "subentryACI",
    "subtreeACI",
];

/// Those that a schema knows, by canonical names, with their subtypes. Shorter names come first: most of those that are
/// looked for differ from all in their length.
#[derive(Debug)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub fn new(schema: &Schema) -> Secrets {
        Secrets::of(schema, SECRETS.iter().chain(ACCESS))
    }

    /// Passwords and keys alone.
    pub fn passwords(schema: &Schema) -> Secrets {
        Secrets::of(schema, SECRETS.iter())
    }

    fn of<'n>(schema: &Schema, names: impl Iterator<Item = &'n &'n str>) -> Secrets {
        let known = names.filter_map(|name| schema.attribute(name));
        let mut names: Vec<String> =
            known.flat_map(|one| schema.family(one)).map(|one| one.name().to_owned()).collect();
        names.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
        names.dedup();
        Secrets(names)
    }

    /// None at all.
    pub fn none() -> Secrets {
        Secrets(Vec::new())
    }

    /// Whether an attribute is one, given by its canonical name.
    pub fn contain(&self, name: &str) -> bool {
        self.0.binary_search_by(|one| order(one).cmp(&order(name))).is_ok()
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }
}

fn order(name: &str) -> (usize, &str) {
    (name.len(), name)
}
