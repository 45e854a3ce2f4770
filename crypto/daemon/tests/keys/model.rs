//! The store against a plain model of it, over any order of operations and starts.

use crate::{MAC_PURPOSE, Place, at, caller, manager, purposes, user};
use keyway_daemon::keys::{Error, KeyStore, Material, Purpose, Spec, Wanted};
use keyway_engine::Algorithm;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 3] = ["a", "b.c", "d_e"];
const USERS: u32 = 3;

#[derive(Clone, Debug)]
enum Operation {
    Add(usize),
    Rotate(usize),
    Revoke(usize),
    Delete(usize),
    Allow(usize, u32),
    Forbid(usize, u32),
    /// Opened, used so often.
    Use(usize, u32, Option<u32>, u64),
    Reopen,
}

#[derive(Default)]
struct Key {
    created_s: u64,
    /// Made when, used how often.
    versions: Vec<(u64, u64)>,
    allowed: BTreeSet<u32>,
    revoked_s: Option<u64>,
}

type Model = BTreeMap<&'static str, Key>;

fn operation() -> impl Strategy<Value = Operation> {
    let name = || 0..NAMES.len();
    let user = || 0..USERS;
    prop_oneof![
        4 => name().prop_map(Operation::Add),
        2 => name().prop_map(Operation::Rotate),
        1 => name().prop_map(Operation::Revoke),
        1 => name().prop_map(Operation::Delete),
        3 => (name(), user()).prop_map(|(name, user)| Operation::Allow(name, user)),
        2 => (name(), user()).prop_map(|(name, user)| Operation::Forbid(name, user)),
        6 => (name(), user(), prop::option::of(0..4u32), 0..9u64)
            .prop_map(|(name, user, version, uses)| Operation::Use(name, user, version, uses)),
        1 => Just(Operation::Reopen),
    ]
}

const SPEC: Spec<'static> = Spec { algorithms: &[Algorithm::HmacSha256], purposes: MAC_PURPOSE };

/// The outcome of an operation, by name.
fn outcome<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(Error::Exists(_)) => "exists",
        Err(Error::NoSuchKey(_)) => "no such key",
        Err(Error::Revoked(_)) => "revoked",
        Err(Error::NotRevoked(_)) => "not revoked",
        Err(Error::Refused) => "refused",
        Err(Error::Unfit(_)) => "unfit",
        Err(_) => "other",
    }
}

/// Does it to both, and says what both have to say.
fn apply(
    store: &KeyStore,
    model: &mut Model,
    operation: &Operation,
    now: u64,
) -> [&'static str; 2] {
    let (by, at) = (&manager(), at(now));
    match *operation {
        Operation::Add(name) => {
            let name = NAMES[name];
            let did = outcome(&store.add(name, SPEC, Material::NEW, by, at));
            if model.contains_key(name) {
                return [did, "exists"];
            }
            let key = Key { created_s: now, versions: vec![(now, 0)], ..Key::default() };
            model.insert(name, key);
            [did, "ok"]
        }
        Operation::Rotate(name) => {
            let rotated = store.rotate(NAMES[name], Material::NEW, by, at);
            let did = outcome(&rotated);
            let expected = active(model, name, |key| {
                key.versions.push((now, 0));
                assert_eq!(rotated.unwrap() as usize, key.versions.len());
            });
            [did, expected]
        }
        Operation::Revoke(name) => {
            let did = outcome(&store.revoke(NAMES[name], by, at));
            [did, active(model, name, |key| key.revoked_s = Some(now))]
        }
        Operation::Delete(name) => {
            let did = outcome(&store.delete(NAMES[name], by, at));
            match model.get(NAMES[name]).map(|key| key.revoked_s) {
                None => [did, "no such key"],
                Some(None) => [did, "not revoked"],
                Some(_) => {
                    model.remove(NAMES[name]);
                    [did, "ok"]
                }
            }
        }
        Operation::Allow(name, uid) => {
            let did = outcome(&store.allow(NAMES[name], &user(uid), MAC_PURPOSE, by, at));
            [
                did,
                active(model, name, |key| {
                    key.allowed.insert(uid);
                }),
            ]
        }
        Operation::Forbid(name, uid) => {
            let forbidden = store.forbid(NAMES[name], &user(uid), MAC_PURPOSE, by, at);
            let did = outcome(&forbidden);
            let expected = active(model, name, |key| {
                assert_eq!(forbidden.unwrap(), key.allowed.remove(&uid));
            });
            [did, expected]
        }
        Operation::Use(name, uid, version, uses) => {
            let wanted = Wanted { version, ..Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE) };
            let session = store.session(NAMES[name], &caller(uid), wanted, at);
            let did = outcome(&session);
            let Some(key) = model.get_mut(NAMES[name]) else { return [did, "refused"] };
            if !key.allowed.contains(&uid) {
                return [did, "refused"];
            }
            if key.revoked_s.is_some() {
                return [did, "revoked"];
            }
            let number = version.unwrap_or(key.versions.len() as u32);
            let index = (number as usize).checked_sub(1);
            match index.and_then(|index| key.versions.get_mut(index)) {
                None => [did, "unfit"],
                Some((_, used)) => {
                    *used += uses;
                    session.unwrap().count(uses);
                    [did, "ok"]
                }
            }
        }
        Operation::Reopen => ["ok", "ok"],
    }
}

fn active(model: &mut Model, name: usize, change: impl FnOnce(&mut Key)) -> &'static str {
    match model.get_mut(NAMES[name]) {
        None => "no such key",
        Some(key) if key.revoked_s.is_some() => "revoked",
        Some(key) => {
            change(key);
            "ok"
        }
    }
}

fn compare(store: &KeyStore, model: &Model) {
    let listed = store.list();
    assert_eq!(listed.len(), model.len());
    for (info, (name, key)) in listed.iter().zip(model) {
        assert_eq!(info.name, *name);
        assert_eq!(info.created_s, key.created_s);
        assert_eq!(info.revoked_s, key.revoked_s);
        assert_eq!(info.purposes, purposes(&[Purpose::Mac]));
        let versions: Vec<_> = info.versions.iter().map(|it| (it.created_s, it.uses)).collect();
        assert_eq!(versions, key.versions);
        let allowed: BTreeSet<_> = info.grants.iter().filter_map(|grant| grant.who.uid).collect();
        assert_eq!(allowed, key.allowed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("KEYWAY_NIGHTLY").is_some() { 200 } else { 12 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_store_does_what_a_model_does(all in prop::collection::vec(operation(), 1..60)) {
        let place = Place::new();
        let (mut store, mut model) = (place.open(), Model::new());
        for (now, operation) in all.iter().enumerate() {
            if matches!(operation, Operation::Reopen) {
                drop(store);
                store = place.open();
            }
            let [did, expected] = apply(&store, &mut model, operation, now as u64);
            prop_assert_eq!(did, expected, "{:?}", operation);
            compare(&store, &model);
        }
        drop(store);
        compare(&place.open(), &model);
    }
}
