//! The keys that a caller may use, listed.

use crate::{ENGINE, MAC, MAC_PURPOSE, Place, caller, manager, now, purposes, user};
use keyway_daemon::keys::{Grant, Material, Purpose, Spec, Usable, Wanted, Who};
use keyway_engine::{Algorithm, Request};
use std::fs;

fn names(keys: &[Usable]) -> Vec<&str> {
    keys.iter().map(|key| key.name.as_str()).collect()
}

#[test]
fn they_are_those_that_a_session_can_be_opened_with() {
    let place = Place::new();
    let store = place.open();
    let both = purposes(&[Purpose::Encrypt, Purpose::Decrypt]);
    let vault = Spec { algorithms: &[Algorithm::Aes256Gcm], purposes: both };
    let signer = Spec { algorithms: &[Algorithm::Ed25519], purposes: Purpose::Sign.into() };
    for name in ["a-others", "gone", "mine", "z-others"] {
        store.add(name, MAC, Material::NEW, &manager(), now()).unwrap();
    }
    store.add("box", vault, Material::NEW, &manager(), now()).unwrap();
    store.add("signer", signer, Material::NEW, &manager(), now()).unwrap();
    for (name, uid) in [("a-others", 8), ("gone", 7), ("mine", 7), ("z-others", 8)] {
        store.allow(name, &user(uid), MAC_PURPOSE, &manager(), now()).unwrap();
    }
    store.allow("box", &user(7), Purpose::Decrypt.into(), &manager(), now()).unwrap();
    store.allow("signer", &Who::ANY, Purpose::Sign.into(), &manager(), now()).unwrap();
    store.rotate("signer", Material::NEW, &manager(), now()).unwrap();
    store.revoke("gone", &manager(), now()).unwrap();
    let log = || fs::read_to_string(place.folder().join("audit.log")).unwrap();
    let before = log();
    let (its, more) = store.all_usable_by(&caller(7), "", 10);
    assert_eq!((names(&its), more), (vec!["box", "mine", "signer"], false));
    assert_eq!(its[0].purposes, Purpose::Decrypt.into());
    assert!(its[0].public_key.is_empty());
    let signs = Wanted::new(Algorithm::Ed25519, Purpose::Sign.into());
    let session = store.session("signer", &caller(7), signs, now()).unwrap();
    assert_eq!(its[2].public_key, session.session().public_key().unwrap());
    assert_eq!((its[2].version, its[1].version), (2, 1));
    // A manager has no right to use a key, and no key is of its own.
    assert_eq!(names(&store.all_usable_by(&manager(), "", 10).0), ["signer"]);
    assert_eq!(names(&store.all_usable_by(&caller(9), "", 10).0), ["signer"]);
    // Pages, of which none tells of a key that is not the caller's.
    let (first, more) = store.all_usable_by(&caller(7), "", 2);
    assert_eq!((names(&first), more), (vec!["box", "mine"], true));
    let (second, more) = store.all_usable_by(&caller(7), "mine", 2);
    assert_eq!((names(&second), more), (vec!["signer"], false));
    assert_eq!(store.all_usable_by(&caller(7), "signer", 2), (vec![], false));
    let (last, more) = store.all_usable_by(&caller(8), "signer", 1);
    assert_eq!((names(&last), more), (vec!["z-others"], false));
    assert_eq!(store.all_usable_by(&caller(7), "\u{10ffff}", 2), (vec![], false));
    assert_eq!(log(), before);
}

/// The list that shows more of a key, with what is not the caller's left out.
#[test]
fn grants_of_others_are_not_shown() {
    let place = Place::new();
    let store = place.open();
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
    store.add("other", MAC, Material::NEW, &manager(), now()).unwrap();
    for uid in [7, 8] {
        store.allow("k", &user(uid), MAC_PURPOSE, &manager(), now()).unwrap();
    }
    store.revoke("k", &manager(), now()).unwrap();
    let its = store.list_for(&caller(7));
    assert_eq!(its.len(), 1);
    assert_eq!(its[0].grants, [Grant { who: user(7), purposes: MAC_PURPOSE }]);
    assert!(its[0].revoked_s.is_some());
    assert_eq!(store.list_for(&caller(9)), []);
}

#[test]
fn public_halves_verify_what_is_signed() {
    let place = Place::new();
    let store = place.open();
    let spec = Spec { algorithms: &[Algorithm::EcdsaP256Sha256], purposes: Purpose::Sign.into() };
    store.add("web", spec, Material::NEW, &manager(), now()).unwrap();
    store.allow("web", &user(7), Purpose::Sign.into(), &manager(), now()).unwrap();
    let signs = Wanted::new(Algorithm::EcdsaP256Sha256, Purpose::Sign.into());
    let session = store.session("web", &caller(7), signs, now()).unwrap();
    let signature = session.session().sign(b"a message").unwrap();
    let (its, _) = store.all_usable_by(&caller(7), "", 1);
    let (public_key, message) = (&its[0].public_key[..], &b"a message"[..]);
    let verify = &mut Request::Verify {
        parameters: Default::default(),
        public_key,
        message,
        signature: &signature,
    };
    ENGINE.run(Algorithm::EcdsaP256Sha256, verify).unwrap();
}
