//! The agent's answers, for keys of an engine in this process. Public keys look as `ssh-keygen` writes them.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_engine::{Algorithm, Engine, Key, Parameters, Request, Session};
use keyway_ssh_agent::{AgentKey, Keys, Malformed, Signing, Unavailable, answer, encode_signature};
use std::sync::{Arc, LazyLock, Mutex};

static ENGINE: LazyLock<Engine> = LazyLock::new(keyway_drivers::engine);

/// SubjectPublicKeyInfo, and the public key as `ssh-keygen` writes it, in base64.
const PUBLIC_KEYS: [(Algorithm, &str, &str); 4] = [
    (
        Algorithm::Ed25519,
        "MCowBQYDK2VwAyEA8ao8CSeIWNEhKfxK3RX9qbo8/8Y1r8EWyIgp2taEHL4=",
        "AAAAC3NzaC1lZDI1NTE5AAAAIPGqPAkniFjRISn8St0V/am6PP/GNa/BFsiIKdrWhBy+",
    ),
    (
        Algorithm::EcdsaP256Sha256,
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqXLnCrPn3FIPAGsNi9/kAQmQXXiTHQrx0V3b5+H/8AiDdNr6hPCn\
        ivXEX0T5B2LQlYftqE9eO6tE8AMzC8tdVw==",
        "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKly5wqz59xSDwBrDYvf5AEJkF14kx0K8dFd\
        2+fh//AIg3Ta+oTwp4r1xF9E+Qdi0JWH7ahPXjurRPADMwvLXVc=",
    ),
    (
        Algorithm::EcdsaP384Sha384,
        "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEHsUNMrcCxZYfZedNSAosFOl5eQjX+2S1NwszlAxMR61e+5e0woB1IXq5\
        7thQHSY9sV/jQLe00FOtZJGagz+tS1g5c4B5Eb3WmFi6jY2R0zlO8kGVOL/3hgyUYm7fmTtP",
        "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBB7FDTK3AsWWH2XnTUgKLBTpeXkI1/tktTcL\
        M5QMTEetXvuXtMKAdSF6ue7YUB0mPbFf40C3tNBTrWSRmoM/rUtYOXOAeRG91phYuo2NkdM5TvJBlTi/94YMlGJu\
        35k7Tw==",
    ),
    (
        Algorithm::RsaPkcs1Sha256,
        "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwR7G4XnqQgMzJp3KtzwzPePZd73vceOGlhCDke5aSEUg\
        tsAaiJf/PFPrMEJFSIr4WTUMQnsqEzZS39yki1jGf1pNUrXkII4gFTY7+ndOGxeAHle6HzivZwpEHOsDgC3vZ3pJ\
        9PtI+fPiCC1MuBhDKoBtGf5fN8sC1TIC26boKkarY5LNS8JsQOHQuzoCVlRBUhEegWk4vqom0a+mv18uhPGcYKCF\
        mhOeg30LIFWmtlyDdegcg9bFUT1ZYWuiXc1f16ueeW+gtf/kgrPN3NkmfL0YK44/unRPcASNjiru0oSIbhysPzwI\
        rNxzJfXp7CS8ctidTUkwX5iKftIz8pvm8wIDAQAB",
        "AAAAB3NzaC1yc2EAAAADAQABAAABAQDBHsbheepCAzMmncq3PDM949l3ve9x44aWEIOR7lpIRSC2wBqIl/88U+sw\
        QkVIivhZNQxCeyoTNlLf3KSLWMZ/Wk1SteQgjiAVNjv6d04bF4AeV7ofOK9nCkQc6wOALe9nekn0+0j58+IILUy4\
        GEMqgG0Z/l83ywLVMgLbpugqRqtjks1LwmxA4dC7OgJWVEFSER6BaTi+qibRr6a/Xy6E8ZxgoIWaE56DfQsgVaa2\
        XIN16ByD1sVRPVlha6JdzV/Xq555b6C1/+SCs83c2SZ8vRgrjj+6dE9wBI2OKu7ShIhuHKw/PAis3HMl9ensJLxy\
        2J1NSTBfmIp+0jPym+bz",
    ),
];

fn decoded(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).unwrap()
}

#[test]
fn public_keys_are_those_of_ssh_keygen() {
    for (algorithm, info, blob) in PUBLIC_KEYS {
        let key = AgentKey::new("k", &[algorithm], &decoded(info)).unwrap();
        assert_eq!((key.blob(), key.name()), (&decoded(blob)[..], "k"));
        // A key is one of its own kind, and for something that SSH has.
        let others = PUBLIC_KEYS.iter().filter(|(other, ..)| *other != algorithm);
        for (other, ..) in others {
            assert_eq!(AgentKey::new("k", &[*other], &decoded(info)), None);
        }
        assert_eq!(AgentKey::new("k", &[], &decoded(info)), None);
        assert_eq!(AgentKey::new("k", &[algorithm], &decoded(info)[1..]), None);
    }
    let (_, rsa, _) = PUBLIC_KEYS[3];
    for algorithm in [Algorithm::RsaPssSha256, Algorithm::RsaOaepSha256, Algorithm::RsaPkcs1Sha384]
    {
        assert_eq!(AgentKey::new("k", &[algorithm], &decoded(rsa)), None);
    }
}

#[test]
fn rsa_signs_as_the_flags_say_and_never_with_sha_1() {
    let info = decoded(PUBLIC_KEYS[3].1);
    let both = [Algorithm::RsaPssSha256, Algorithm::RsaPkcs1Sha256, Algorithm::RsaPkcs1Sha512];
    let key = AgentKey::new("k", &both, &info).unwrap();
    let name = |key, flags| Signing::of(key, flags).map(|signing| signing.name);
    let expected = [None, None, Some("rsa-sha2-256"), Some("rsa-sha2-256"), Some("rsa-sha2-512")];
    for (flags, expected) in expected.into_iter().enumerate() {
        assert_eq!(name(&key, flags as u32), expected, "{flags}");
    }
    assert_eq!(name(&key, 6), Some("rsa-sha2-256"));
    let one = AgentKey::new("k", &[Algorithm::RsaPkcs1Sha512], &info).unwrap();
    assert_eq!((name(&one, 2), name(&one, 4)), (None, Some("rsa-sha2-512")));
    let ed25519 = AgentKey::new("k", &[Algorithm::Ed25519], &decoded(PUBLIC_KEYS[0].1)).unwrap();
    assert_eq!((name(&ed25519, 0), name(&ed25519, 4)), (Some("ssh-ed25519"), Some("ssh-ed25519")));
}

#[test]
fn signatures_are_written_as_ssh_has_them() {
    let p256 = Signing { algorithm: Algorithm::EcdsaP256Sha256, name: "ecdsa-sha2-nistp256" };
    // r has its highest bit set, s is short.
    let written = encode_signature(p256, b"\x30\x08\x02\x03\x00\x80\x01\x02\x01\x07").unwrap();
    assert_eq!(
        written,
        b"\0\0\0\x13ecdsa-sha2-nistp256\0\0\0\x0c\0\0\0\x03\x00\x80\x01\0\0\0\x01\x07"
    );
    for wrong in [
        &b""[..],
        b"\x30\x00",
        b"\x30\x03\x02\x01\x07",
        b"\x30\x06\x02\x01\x80\x02\x01\x07",     // negative
        b"\x30\x06\x02\x01\x00\x02\x01\x07",     // zero
        b"\x30\x07\x02\x02\x00\x07\x02\x01\x07", // longer than it need be
        b"\x30\x06\x02\x01\x07\x02\x01\x07\x00",
        b"\x30\x09\x02\x01\x07\x02\x01\x07\x02\x01\x07",
    ] {
        assert_eq!(encode_signature(p256, wrong), None, "{wrong:02x?}");
    }
    let ed25519 = Signing { algorithm: Algorithm::Ed25519, name: "ssh-ed25519" };
    let written = encode_signature(ed25519, &[7; 64]).unwrap();
    assert_eq!(written[..19], *b"\0\0\0\x0bssh-ed25519\0\0\0\x40");
    assert_eq!(written[19..], [7; 64]);
}

/// Keys of this process, which may be gone.
struct Held {
    sessions: Vec<(AgentKey, Session)>,
    is_gone: Mutex<bool>,
}

impl Held {
    fn new(algorithms: &[Algorithm]) -> Held {
        let key = |algorithm: &Algorithm| {
            let session = ENGINE.session(Parameters::new(*algorithm, Key::Generate)).unwrap();
            let public = session.public_key().unwrap();
            let info = keyway_wire::subject_public_key_info(*algorithm, &public).unwrap();
            (AgentKey::new(algorithm.name(), &[*algorithm], &info).unwrap(), session)
        };
        Held { sessions: algorithms.iter().map(key).collect(), is_gone: Mutex::new(false) }
    }

    fn all(&self) -> Arc<[AgentKey]> {
        self.sessions.iter().map(|(key, _)| key.clone()).collect()
    }
}

impl Keys for Held {
    fn list(&self) -> Result<Arc<[AgentKey]>, Unavailable> {
        if *self.is_gone.lock().unwrap() { Err(Unavailable) } else { Ok(self.all()) }
    }

    fn known(&self) -> Arc<[AgentKey]> {
        // The second one is new.
        self.all().iter().take(1).cloned().collect()
    }

    fn sign(&self, key: &AgentKey, signing: Signing, data: &[u8]) -> Result<Vec<u8>, Unavailable> {
        if *self.is_gone.lock().unwrap() {
            return Err(Unavailable);
        }
        let (_, session) = self.sessions.iter().find(|(held, _)| held == key).unwrap();
        assert_eq!(signing.algorithm, key.algorithms()[0]);
        session.sign(data).map_err(|_| Unavailable)
    }
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

fn request(blob: &[u8], data: &[u8]) -> Vec<u8> {
    [&[13][..], &string(blob), &string(data), &[0; 4]].concat()
}

const FAILURE: [u8; 5] = [0, 0, 0, 1, 5];

#[test]
fn keys_are_listed_and_sign() {
    let held = Held::new(&[Algorithm::EcdsaP384Sha384, Algorithm::Ed25519]);
    let listed = answer(&[11], &held).unwrap();
    let mut expected = vec![12, 0, 0, 0, 2];
    for (key, _) in &held.sessions {
        expected.extend([string(key.blob()), string(key.name().as_bytes())].concat());
    }
    assert_eq!(listed, string(&expected));
    let key = &held.sessions[1].0;
    let signed = answer(&request(key.blob(), b"a message"), &held).unwrap();
    assert_eq!(signed[..8], [0, 0, 0, 88, 14, 0, 0, 0]);
    let signature = &signed[signed.len() - 64..];
    let (public_key, message) = (key.public_key(), &b"a message"[..]);
    let verify =
        &mut Request::Verify { public_key, message, parameters: Default::default(), signature };
    ENGINE.run(Algorithm::Ed25519, verify).unwrap();
    let p384 = answer(&request(held.sessions[0].0.blob(), b""), &held).unwrap();
    assert!(p384.windows(19).any(|part| part == b"ecdsa-sha2-nistp384"));
    // A key that is not there, and what would change keys.
    assert_eq!(answer(&request(b"no key", b""), &held).unwrap(), FAILURE);
    assert_eq!(answer(&[17], &held).unwrap(), FAILURE);
    assert_eq!(answer(&[13, 0], &held), Err(Malformed));
    // Their holder goes, and comes back.
    *held.is_gone.lock().unwrap() = true;
    assert_eq!(answer(&[11], &held).unwrap(), FAILURE);
    assert_eq!(answer(&request(key.blob(), b"a message"), &held).unwrap(), FAILURE);
    *held.is_gone.lock().unwrap() = false;
    assert_eq!(answer(&request(key.blob(), b"a message"), &held).unwrap(), signed);
}
