//! Operations of a key store, and its refusals.

use crate::{ENGINE, MAC, MAC_PURPOSE, Place, at, caller, manager, now, purposes, user};
use keyway_daemon::keys::{Error, Material, Purpose, Purposes, Spec, UnknownPurpose, Wanted, Who};
use keyway_engine::{Algorithm, Key, Parameters, Request};

fn spec(algorithm: &[Algorithm]) -> Spec<'_> {
    let all = algorithm.iter().map(|it| Purposes::of(*it)).fold(Purposes::NONE, Purposes::and);
    let alone = Purposes::from(Purpose::Wrap).and(Purpose::Esp.into());
    Spec { algorithms: algorithm, purposes: all.without(alone) }
}

#[test]
fn a_key_of_every_algorithm_is_made_kept_and_opened() {
    let place = Place::new();
    let store = place.open();
    let mut names = Vec::new();
    for algorithm in Algorithm::ALL {
        let (name, algorithms) = (algorithm.name(), [*algorithm]);
        let spec = spec(&algorithms);
        let made = store.add(name, spec, Material::Generate { rsa_bits: 2_048 }, &manager(), now());
        let is_off = *algorithm == Algorithm::TripleDesCbc;
        if spec.purposes.is_empty() {
            assert!(matches!(made, Err(Error::Unfit(_))), "{name}: {made:?}");
        } else if is_off {
            assert!(matches!(made, Err(Error::Engine(_))), "{name}: {made:?}");
        } else {
            made.unwrap_or_else(|why| panic!("{name}: {why}"));
            store.allow(name, &Who::ANY, spec.purposes, &manager(), now()).unwrap();
            names.push((*algorithm, spec.purposes));
        }
    }
    assert!(names.len() > 40);
    let before = store.list();
    drop(store);
    let store = place.open();
    assert_eq!(store.list(), before);
    for (algorithm, purposes) in names {
        let key =
            store.session(algorithm.name(), &caller(7), Wanted::new(algorithm, purposes), now());
        let key = key.unwrap_or_else(|why| panic!("{algorithm}: {why}"));
        let shown = store.show(algorithm.name()).unwrap();
        let public = key.session().public_key().unwrap_or_default();
        assert_eq!(shown.versions[0].public_key, public, "{algorithm}");
    }
}

#[test]
fn one_rsa_key_signs_and_decrypts() {
    let place = Place::new();
    let store = place.open();
    let algorithms = [Algorithm::RsaPssSha256, Algorithm::RsaPkcs1Sha256, Algorithm::RsaOaepSha256];
    let spec = spec(&algorithms);
    store.add("rsa", spec, Material::Generate { rsa_bits: 2_048 }, &manager(), now()).unwrap();
    store.allow("rsa", &user(7), spec.purposes, &manager(), now()).unwrap();
    let sign = Purpose::Sign.into();
    let [one, other] = [Algorithm::RsaPssSha256, Algorithm::RsaPkcs1Sha256]
        .map(|it| store.session("rsa", &caller(7), Wanted::new(it, sign), now()).unwrap());
    assert_eq!(one.session().public_key().unwrap(), other.session().public_key().unwrap());
    // To sign is not what this algorithm does.
    let wanted = Wanted::new(Algorithm::RsaOaepSha256, sign);
    assert!(matches!(store.session("rsa", &caller(7), wanted, now()), Err(Error::Unfit(_))));
    let wanted = Wanted::new(Algorithm::RsaOaepSha256, Purpose::Decrypt.into());
    store.session("rsa", &caller(7), wanted, now()).unwrap();
}

#[test]
fn keys_are_imported_in_every_encoding() {
    let place = Place::new();
    let store = place.open();
    let ecdsa = Algorithm::EcdsaP256Sha256;
    let pkcs8 = keyway_drivers::generate_private_key(ecdsa, 0).unwrap();
    let pem = pem("PRIVATE KEY", &pkcs8);
    let add = |name, material| store.add(name, spec(&[ecdsa]), material, &manager(), now());
    add("der", Material::Pkcs8(&pkcs8)).unwrap();
    add("pem", Material::Pem(pem.as_bytes())).unwrap();
    let public = |name| store.show(name).unwrap().versions[0].public_key.clone();
    assert_eq!(public("der"), public("pem"));

    let rsa = Algorithm::RsaPssSha256;
    let pkcs8 = keyway_drivers::generate_private_key(rsa, 2_048).unwrap();
    let add = |name, material| store.add(name, spec(&[rsa]), material, &manager(), now());
    // The PKCS#1 key is the last field of the PKCS#8 one (RFC 5208 § 5): 26 bytes in.
    add("pkcs1", Material::Pkcs1(&pkcs8[26..])).unwrap();
    add("rsa", Material::Pkcs8(&pkcs8)).unwrap();
    assert_eq!(public("pkcs1"), public("rsa"));
    let pem = self::pem("RSA PRIVATE KEY", &pkcs8[26..]);
    add("rsa.pem", Material::Pem(pem.as_bytes())).unwrap();
    assert_eq!(public("rsa.pem"), public("rsa"));

    // SEC 1 (RFC 5915 § 3), without parameters and public key.
    let sec1 = [&[0x30, 37, 2, 1, 1, 4, 32][..], &[7; 32]].concat();
    let add = |name, material| store.add(name, spec(&[ecdsa]), material, &manager(), now());
    add("sec1", Material::Sec1(&sec1)).unwrap();

    // A rejected key leaves nothing behind.
    let before = store.list();
    for material in [
        Material::Pkcs8(&sec1),
        Material::Pem(b"no PEM"),
        Material::Secret(&[7; 32]),
        Material::Pkcs8(&[]),
        Material::Pkcs8(&[0x30; 20_000]),
    ] {
        let refused = add("bad", material);
        assert!(matches!(refused, Err(Error::Material(_) | Error::Engine(_))), "{material:?}");
    }
    assert_eq!(store.list(), before);
    assert!(!place.key_file("bad").exists());
}

/// RFC 7468, in one line, which readers take (§ 2, lax).
fn pem(label: &str, der: &[u8]) -> String {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

#[test]
fn only_the_newest_version_seals_and_older_ones_open() {
    let place = Place::new();
    let store = place.open();
    let aead = Algorithm::Aes128Gcm;
    store.add("k", spec(&[aead]), Material::NEW, &manager(), at(10)).unwrap();
    store.allow("k", &user(7), spec(&[aead]).purposes, &manager(), at(11)).unwrap();
    let both = Wanted::new(aead, purposes(&[Purpose::Encrypt, Purpose::Decrypt]));
    let old = store.session("k", &caller(7), both, now()).unwrap();
    let mut text = *b"text and room for a tag.";
    let (nonce, tag) = old.session().seal_next(b"", &mut text[..8]).unwrap();
    text[8..].copy_from_slice(&tag);

    assert_eq!(store.rotate("k", Material::NEW, &manager(), at(20)).unwrap(), 2);
    assert!(
        old.is_ended() && !old.permits(&Request::Open { nonce: &nonce, aad: b"", data: &mut [] })
    );
    assert_eq!(store.session("k", &caller(7), both, now()).unwrap().version(), 2);
    let first = Wanted { version: Some(1), ..both };
    assert!(matches!(store.session("k", &caller(7), first, now()), Err(Error::Unfit(_))));
    let opening = Wanted { purposes: Purpose::Decrypt.into(), ..first };
    let opening = store.session("k", &caller(7), opening, now()).unwrap();
    let mut copy = text;
    let mut request = Request::Open { nonce: &nonce, aad: b"", data: &mut copy };
    assert!(opening.permits(&request));
    assert_eq!(opening.session().run(&mut request).unwrap(), 8);
    assert_eq!(&copy[..8], b"text and");
    let mut tag = [0; 16];
    let sealing = Request::Seal { nonce: &nonce, aad: b"", data: &mut [], tag: &mut tag };
    assert!(!opening.permits(&sealing));

    let none = Wanted { version: Some(3), ..both };
    assert!(matches!(store.session("k", &caller(7), none, now()), Err(Error::Unfit(_))));
    let versions = store.show("k").unwrap().versions;
    assert_eq!(
        versions.iter().map(|it| (it.number, it.created_s)).collect::<Vec<_>>(),
        [(1, 10), (2, 20)]
    );
}

#[test]
fn a_client_cannot_choose_the_nonce_of_an_aead() {
    let place = Place::new();
    let store = place.open();
    for algorithm in [Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305, Algorithm::Aes128Ccm] {
        let (name, algorithms) = (algorithm.name(), [algorithm]);
        let spec = spec(&algorithms);
        store.add(name, spec, Material::NEW, &manager(), now()).unwrap();
        store.allow(name, &Who::ANY, spec.purposes, &manager(), now()).unwrap();
        for purposes in [spec.purposes, Purpose::Decrypt.into()] {
            let key =
                store.session(name, &caller(1), Wanted::new(algorithm, purposes), now()).unwrap();
            let refused = key.session().seal(&[0; 12], b"", &mut [0; 16]);
            assert!(matches!(refused, Err(keyway_engine::Error::InvalidRequest(_))));
        }
    }
}

#[test]
fn who_may_not_use_a_key_does_not_learn_whether_it_exists() {
    let place = Place::new();
    let store = place.open();
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
    store.allow("k", &user(7), MAC_PURPOSE, &manager(), now()).unwrap();
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    let wrong = Wanted::new(Algorithm::Aes128Gcm, Purpose::Sign.into());
    let mut said = Vec::new();
    for (name, wanted) in [("k", wanted), ("k", wrong), ("none", wanted), ("none", wrong)] {
        said.push(store.session(name, &caller(8), wanted, now()).unwrap_err());
        said.push(store.wrap(name, &caller(8), b"", b"", now()).unwrap_err());
        said.push(store.unwrap(name, &caller(8), b"", b"", now()).unwrap_err());
    }
    for refused in &said {
        assert!(matches!(refused, Error::Refused));
        assert_eq!(refused.to_string(), said[0].to_string());
    }
    store.revoke("k", &manager(), now()).unwrap();
    assert!(matches!(store.session("k", &caller(8), wanted, now()), Err(Error::Refused)));
    assert!(matches!(store.session("k", &caller(7), wanted, now()), Err(Error::Revoked(_))));
}

#[test]
fn grants_are_for_users_groups_and_executables() {
    let place = Place::new();
    let store = place.open();
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
    let opens = |caller: &keyway_daemon::keys::Caller| {
        store.session("k", caller, Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE), now()).is_ok()
    };
    // Root, too, needs a grant.
    assert!(!opens(&caller(0)) && !opens(&caller(7)));
    let this = Who { executable: Some("/usr/bin/client".into()), ..Who::ANY };
    let group = Who { gid: Some(100), ..Who::ANY };
    let both = Who { uid: Some(7), gid: Some(100), ..this.clone() };
    for who in [user(7), this, group, both, Who::ANY] {
        store.allow("k", &who, MAC_PURPOSE, &manager(), now()).unwrap();
        assert!(opens(&caller(7)), "{who}");
        let other = keyway_daemon::keys::Caller {
            uid: 8,
            gid: 101,
            groups: vec![],
            pid: 1,
            executable: Err(keyway_daemon::keys::Unseen::Gone),
            vm: None,
        };
        assert_eq!(opens(&other), who == Who::ANY, "{who}");
        assert!(store.forbid("k", &who, MAC_PURPOSE, &manager(), now()).unwrap());
        assert!(!store.forbid("k", &who, MAC_PURPOSE, &manager(), now()).unwrap());
        assert!(!opens(&caller(7)), "{who}");
    }
    // A virtual machine has what it is named for, and nothing that is for users, for all of them or for root.
    let machine = |name: &str| Who { vm: Some(name.to_owned()), ..Who::ANY };
    let vm = |name: &str| keyway_daemon::keys::Caller { vm: Some(name.to_owned()), ..caller(7) };
    store.allow("k", &machine("web"), MAC_PURPOSE, &manager(), now()).unwrap();
    assert!(opens(&vm("web")) && !opens(&vm("web2")) && !opens(&caller(7)));
    store.forbid("k", &machine("web"), MAC_PURPOSE, &manager(), now()).unwrap();
    for who in [user(7), Who::ANY] {
        store.allow("k", &who, MAC_PURPOSE, &manager(), now()).unwrap();
        assert!(opens(&caller(7)) && !opens(&vm("web")), "{who}");
        store.forbid("k", &who, MAC_PURPOSE, &manager(), now()).unwrap();
    }
    for wrong in [machine("a/b"), machine(""), Who { uid: Some(1), ..machine("web") }] {
        assert!(store.allow("k", &wrong, MAC_PURPOSE, &manager(), now()).is_err(), "{wrong}");
    }
    let relative = Who { executable: Some("client".into()), ..Who::ANY };
    let refused = store.allow("k", &relative, MAC_PURPOSE, &manager(), now());
    assert!(matches!(refused, Err(Error::Unfit(_))));
}

#[test]
fn a_grant_is_for_some_purposes_and_ends_sessions_when_it_goes() {
    let place = Place::new();
    let store = place.open();
    let aead = Algorithm::Aes256Gcm;
    store.add("k", spec(&[aead]), Material::NEW, &manager(), now()).unwrap();
    let (encrypt, decrypt) = (Purpose::Encrypt.into(), Purpose::Decrypt.into());
    store.allow("k", &user(7), encrypt, &manager(), now()).unwrap();
    let open = |purposes| store.session("k", &caller(7), Wanted::new(aead, purposes), now());
    assert!(matches!(open(decrypt), Err(Error::Unfit(_))));
    assert!(matches!(open(Purposes::NONE), Err(Error::Unfit(_))));
    let sealing = open(encrypt).unwrap();
    // To be allowed more ends nothing.
    store.allow("k", &user(7), decrypt, &manager(), now()).unwrap();
    assert!(!sealing.is_ended());
    let both = open(encrypt.and(decrypt)).unwrap();
    store.forbid("k", &user(7), decrypt, &manager(), now()).unwrap();
    assert!(sealing.is_ended() && both.is_ended());
    assert!(open(decrypt).is_err());
    let sealing = open(encrypt).unwrap();
    store.revoke("k", &manager(), now()).unwrap();
    assert!(sealing.is_ended());
}

#[test]
fn what_does_not_go_together_is_refused() {
    use Algorithm::*;
    let place = Place::new();
    let store = place.open();
    let one = |algorithms: &[Algorithm], all: &[Purpose]| {
        let spec = Spec { algorithms, purposes: purposes(all) };
        store.add("k", spec, Material::NEW, &manager(), now())
    };
    for refused in [
        one(&[], &[Purpose::Sign]),
        one(&[Ed25519], &[]),
        one(&[Ed25519], &[Purpose::Decrypt]),
        one(&[Ed25519, EcdsaP256Sha256], &[Purpose::Sign]),
        one(&[RsaPssSha256, RsaPssSha256], &[Purpose::Sign]),
        one(&[Aes256Gcm], &[Purpose::Wrap, Purpose::Decrypt]),
        one(&[Aes128Gcm], &[Purpose::Wrap]),
        one(&[Aes256Gcm], &[Purpose::Esp, Purpose::Encrypt]),
        one(&[Aes128Cbc], &[Purpose::Esp]),
        one(&[Aes128Ctr], &[Purpose::Encrypt]),
        one(&[Sha256], &[Purpose::Mac]),
    ] {
        assert!(matches!(refused, Err(Error::Unfit(_))), "{refused:?}");
    }
    one(&[Aes128Ctr], &[Purpose::Encrypt, Purpose::Decrypt]).unwrap();
    let refused = store.allow("k", &user(7), Purpose::Decrypt.into(), &manager(), now());
    assert!(matches!(refused, Err(Error::Unfit(_))));
    for name in ["", "K", "a/b", "ä", ".", "..", "-x", &"a".repeat(65)] {
        let refused = store.add(name, MAC, Material::NEW, &manager(), now());
        assert!(matches!(refused, Err(Error::Name)), "{name}");
    }
    for name in ["_", "a.", "a-", &"a".repeat(64)] {
        store.add(name, MAC, Material::NEW, &manager(), now()).unwrap();
    }
    let again = store.add("k", MAC, Material::NEW, &manager(), now());
    assert!(matches!(again, Err(Error::Exists(_))));
}

#[test]
fn what_is_revoked_can_be_deleted_and_nothing_else() {
    let place = Place::new();
    let store = place.open();
    store.add("k", MAC, Material::NEW, &manager(), at(1)).unwrap();
    assert!(matches!(store.delete("k", &manager(), now()), Err(Error::NotRevoked(_))));
    store.revoke("k", &manager(), at(2)).unwrap();
    assert_eq!(store.show("k").unwrap().revoked_s, Some(2));
    let is_revoked = |result| matches!(result, Err(Error::Revoked(_)));
    assert!(is_revoked(store.revoke("k", &manager(), now())));
    assert!(is_revoked(store.rotate("k", Material::NEW, &manager(), now()).map(drop)));
    assert!(is_revoked(store.allow("k", &user(1), MAC_PURPOSE, &manager(), now())));
    assert!(is_revoked(store.forbid("k", &user(1), MAC_PURPOSE, &manager(), now()).map(drop)));
    store.delete("k", &manager(), now()).unwrap();
    assert!(matches!(store.show("k"), Err(Error::NoSuchKey(_))));
    assert!(!place.key_file("k").exists());
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
}

#[test]
fn what_is_wrapped_is_unwrapped_by_its_key_and_context_alone() {
    let place = Place::new();
    let store = place.open();
    let wrap = Spec { algorithms: &[Algorithm::Aes256Gcm], purposes: Purpose::Wrap.into() };
    for name in ["w", "other"] {
        store.add(name, wrap, Material::NEW, &manager(), now()).unwrap();
        store.allow(name, &user(7), wrap.purposes, &manager(), now()).unwrap();
    }
    let wrapped = store.wrap("w", &caller(7), b"session 1", b"keys", now()).unwrap();
    assert_eq!(wrapped.len(), 4 + 32);
    assert_ne!(wrapped, store.wrap("w", &caller(7), b"session 1", b"keys", now()).unwrap());
    store.rotate("w", Material::NEW, &manager(), now()).unwrap();
    let unwrap =
        |name, context, bytes: &[u8]| store.unwrap(name, &caller(7), context, bytes, now());
    assert_eq!(&**unwrap("w", b"session 1", &wrapped).unwrap(), b"keys");
    assert!(matches!(unwrap("w", b"session 2", &wrapped), Err(Error::Unwrap)));
    assert!(matches!(unwrap("other", b"session 1", &wrapped), Err(Error::Unwrap)));
    for at in 0..wrapped.len() {
        let mut spoilt = wrapped.clone();
        spoilt[at] ^= 1;
        assert!(matches!(unwrap("w", b"session 1", &spoilt), Err(Error::Unwrap)), "{at}");
        assert!(matches!(unwrap("w", b"session 1", &wrapped[..at]), Err(Error::Unwrap)), "{at}");
    }
    let long = vec![0; (1 << 20) + 1];
    assert!(matches!(store.wrap("w", &caller(7), b"", &long, now()), Err(Error::Limit { .. })));
    let session =
        store.session("w", &caller(7), Wanted::new(Algorithm::Aes256Gcm, wrap.purposes), now());
    assert!(matches!(session, Err(Error::Unfit(_))));
}

#[test]
fn uses_are_counted_and_saved() {
    let place = Place::new();
    let store = place.open();
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
    store.allow("k", &user(7), MAC_PURPOSE, &manager(), now()).unwrap();
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    let key = store.session("k", &caller(7), wanted, now()).unwrap();
    key.clone().count(5);
    let uses = |store: &keyway_daemon::keys::KeyStore| store.show("k").unwrap().versions[0].uses;
    assert_eq!(uses(&store), 5);
    let file = std::fs::read(place.key_file("k")).unwrap();
    store.save_usage().unwrap();
    let saved = std::fs::read(place.key_file("k")).unwrap();
    assert_ne!(file, saved);
    // Nothing to save.
    store.save_usage().unwrap();
    assert_eq!(std::fs::read(place.key_file("k")).unwrap(), saved);
    assert!(!key.is_ended());
    key.count(2);
    drop(store);
    assert_eq!(uses(&place.open()), 7);
}

#[test]
fn a_session_is_the_key_that_was_imported() {
    let place = Place::new();
    let store = place.open();
    store.add("k", MAC, Material::Secret(&[9; 32]), &manager(), now()).unwrap();
    store.allow("k", &user(7), MAC_PURPOSE, &manager(), now()).unwrap();
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    let key = store.session("k", &caller(7), wanted, now()).unwrap();
    let direct =
        ENGINE.session(Parameters::new(Algorithm::HmacSha256, Key::Secret(&[9; 32]))).unwrap();
    let macs = [key.session(), &direct].map(|session| {
        let mut out = [0; 32];
        session.run(&mut Request::Mac { data: &[b"text"], out: &mut out }).unwrap();
        out
    });
    assert_eq!(macs[0], macs[1]);
}

#[test]
fn purposes_are_named() {
    let all: Purposes = Purpose::ALL.into_iter().collect();
    assert_eq!(all.to_string(), "sign,decrypt,encrypt,mac,derive,agree,wrap,esp");
    assert_eq!(all.to_string().parse(), Ok(all));
    assert_eq!("sign, mac".parse(), Ok(purposes(&[Purpose::Sign, Purpose::Mac])));
    assert_eq!("".parse::<Purposes>(), Err(UnknownPurpose));
}
