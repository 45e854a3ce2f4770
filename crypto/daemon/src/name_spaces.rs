//! Name spaces: clients that are no administrators make and destroy keys whose names begin in a certain way.

use crate::keys::{Caller, Who};
use keyway_ring::control::KeyAsk;

/// A name space: the keys in it are these clients' to make, to use and to destroy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSpace {
    /// The names of its keys begin so.
    pub prefix: String,
    /// The clients.
    pub clients: Who,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSpaces(pub Vec<NameSpace>);

impl NameSpaces {
    /// The prefixes under which a client may make keys.
    pub fn prefixes(&self, caller: &Caller) -> Vec<String> {
        self.of(caller).map(|space| space.prefix.clone()).collect()
    }

    /// The name space in which a client may do what it asks for.
    pub fn permits(&self, caller: &Caller, ask: &KeyAsk) -> Option<&NameSpace> {
        let name = match ask {
            KeyAsk::Generate { name, .. }
            | KeyAsk::Import { name, .. }
            | KeyAsk::Rotate { name }
            | KeyAsk::Certify { name, .. }
            | KeyAsk::Revoke { name }
            | KeyAsk::Delete { name } => name,
            // Who may use a key, whether a damaged one is relied on, and what is in tokens, administrators decide.
            KeyAsk::GenerateIn { .. }
            | KeyAsk::Adopt { .. }
            | KeyAsk::Allow { .. }
            | KeyAsk::Forbid { .. }
            | KeyAsk::Accept { .. }
            | KeyAsk::Export { .. }
            | KeyAsk::ImportWrapped { .. }
            | KeyAsk::List { .. }
            | KeyAsk::Public { .. } => return None,
        };
        self.of(caller).find(|space| space.has(name))
    }

    fn of(&self, caller: &Caller) -> impl Iterator<Item = &NameSpace> {
        self.0.iter().filter(|space| space.clients.is(caller))
    }
}

impl NameSpace {
    /// Whether a name lies in it.
    pub fn has(&self, name: &str) -> bool {
        name.len() > self.prefix.len() && name.starts_with(&self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_what_begins_with_its_prefix() {
        let caller = |uid| Caller {
            uid,
            gid: uid,
            groups: Vec::new(),
            pid: 1,
            executable: Ok("/x".into()),
            vm: None,
        };
        let space = |prefix: &str, uid| NameSpace {
            prefix: prefix.to_owned(),
            clients: Who { uid: Some(uid), ..Who::ANY },
        };
        let spaces = NameSpaces(vec![space("app.", 7), space("web.", 8), space("old.", 7)]);
        assert_eq!(spaces.prefixes(&caller(7)), ["app.", "old."]);
        let revoke = |name: &str| KeyAsk::Revoke { name: name.to_owned() };
        assert!(spaces.permits(&caller(7), &revoke("app.one")).is_some());
        for (uid, name) in [(7, "app."), (7, "web.one"), (7, "app"), (8, "app.one"), (9, "old.x")] {
            assert!(spaces.permits(&caller(uid), &revoke(name)).is_none(), "{uid} {name}");
        }
        let name = "app.one".to_owned();
        let allow = KeyAsk::Allow { name: name.clone(), callers: Vec::new() };
        assert!(spaces.permits(&caller(7), &allow).is_none());
        assert!(spaces.permits(&caller(7), &KeyAsk::Accept { name }).is_none());
    }
}
