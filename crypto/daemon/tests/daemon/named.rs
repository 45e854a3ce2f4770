//! Keys that the daemon holds: named, used, and never seen.

use crate::Served;
use crate::client::{Client, Pair, Region};
use keyway_ring::control::{Answer, Ask, GrantedKey, Key, KeyAsk, KeyPolicy, Secret, Step};
use keyway_ring::descriptor::{Completion, Descriptor, Opcode, Segment, SessionHandle, Status};

/// Lets every caller use a key.
const ALL_CALLERS: &[&str] = &["everybody"];

fn policy(algorithm: &str, purposes: &[&str], callers: &[&str]) -> KeyPolicy {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    KeyPolicy { algorithms: own(&[algorithm]), purposes: own(purposes), callers: own(callers) }
}

fn generate(client: &Client, name: &str, policy: KeyPolicy) -> Answer {
    client.ask(&Ask::Keys(KeyAsk::Generate { name: name.to_owned(), policy }))
}

fn named(name: &str) -> Key {
    Key::Named(name.to_owned())
}

fn open(client: &Client, algorithm: &str, name: &str) -> Answer {
    let step = Step { algorithm: algorithm.to_owned(), key: named(name) };
    client.ask(&Ask::Open { steps: vec![step] })
}

fn sign(pair: &mut Pair, region: &Region, session: SessionHandle) -> Completion {
    region.memory.write(0, b"a message").unwrap();
    pair.run(&Descriptor {
        opcode: Opcode::Sign as u8,
        session,
        region: region.handle,
        segments: [
            Segment { offset: 0, bytes: 9 },
            Segment { offset: 64, bytes: 128 },
            Segment::default(),
        ],
        ..Descriptor::default()
    })
}

/// Whether what was signed verifies under the public half that the daemon shows.
fn verifies(client: &Client, name: &str, signature: &[u8]) -> bool {
    use keyway_engine::{Algorithm, Request};
    let answer = client.ask(&Ask::Keys(KeyAsk::Public { name: name.to_owned() }));
    let Answer::Public { algorithm, key } = answer else { panic!("{answer:?}") };
    assert_eq!(algorithm, "ecdsa-p256-sha-256");
    let verify = &mut Request::Verify {
        parameters: Default::default(),
        public_key: &key,
        message: b"a message",
        signature,
    };
    keyway_drivers::engine().run(Algorithm::EcdsaP256Sha256, verify).is_ok()
}

fn is_refused(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused { .. })
}

#[test]
fn a_key_signs_for_allowed_callers_as_long_as_they_are() {
    let mut served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region) = (client.pair(4), client.region(4096));
    let ecdsa = "ecdsa-p256-sha-256";
    assert_eq!(generate(&client, "web", policy(ecdsa, &[], ALL_CALLERS)), Answer::Done);
    assert_eq!(generate(&client, "other", policy(ecdsa, &[], &["user:4294967294"])), Answer::Done);
    assert!(is_refused(&generate(&client, "web", policy(ecdsa, &[], &[]))));
    // Neither whether there is a key nor whether it is for another caller can be told.
    let (hidden, none) = (open(&client, ecdsa, "other"), open(&client, ecdsa, "no-such-key"));
    assert!(is_refused(&hidden));
    assert_eq!(hidden, none);
    assert!(is_refused(&open(&client, "ed25519", "web")));
    let session = client.open(ecdsa, named("web"));
    let completion = sign(&mut pair, &region, session);
    assert_eq!(completion.status, Status::Done);
    let signature = region.bytes(64, completion.used as usize);
    assert!(verifies(&client, "web", &signature));
    // Another daemon has the key, too.
    served.replace();
    let completion = sign(&mut pair, &region, session);
    assert_eq!(completion.status, Status::Done);
    assert!(verifies(&client, "web", &region.bytes(64, completion.used as usize)));
    let Answer::Keys { keys, more } = client.ask(&Ask::Keys(KeyAsk::List { after: String::new() }))
    else {
        panic!()
    };
    assert_eq!((keys.len(), more), (2, false));
    assert_eq!((keys[1].name.as_str(), keys[1].uses, keys[1].version), ("web", 2, 1));
    // A new version ends the session, and a revocation ends it all.
    assert_eq!(client.ask(&Ask::Keys(KeyAsk::Rotate { name: "web".to_owned() })), Answer::Done);
    assert_eq!(sign(&mut pair, &region, session).status, Status::Gone);
    let session = client.open(ecdsa, named("web"));
    let completion = sign(&mut pair, &region, session);
    assert!(verifies(&client, "web", &region.bytes(64, completion.used as usize)));
    assert!(!verifies(&client, "web", &signature));
    assert_eq!(client.ask(&Ask::Keys(KeyAsk::Revoke { name: "web".to_owned() })), Answer::Done);
    assert_eq!(sign(&mut pair, &region, session).status, Status::Gone);
    assert!(is_refused(&open(&client, ecdsa, "web")));
    assert_eq!(client.ask(&Ask::Keys(KeyAsk::Delete { name: "web".to_owned() })), Answer::Done);
}

/// A key that only decrypts does not encrypt, and nonces are the daemon's.
#[test]
fn a_key_does_what_it_is_for_and_nothing_else() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region) = (client.pair(4), client.region(4096));
    let material = Secret(vec![7; 16]);
    for (name, purpose) in [("opener", "decrypt"), ("sealer", "encrypt")] {
        let policy = policy("aes-128-gcm", &[purpose], ALL_CALLERS);
        let ask = KeyAsk::Import { name: name.to_owned(), policy, material: material.clone() };
        assert_eq!(client.ask(&Ask::Keys(ask)), Answer::Done);
    }
    let opener = client.open("aes-128-gcm", named("opener"));
    assert_eq!(pair.run(&region.seal(opener, b"text")).status, Status::Unsupported);
    let sealer = client.open("aes-128-gcm", named("sealer"));
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let mut seal = region.seal(sealer, b"text");
        seal.segments[2] = Segment { offset: 512, bytes: 12 };
        let sealed = pair.run(&seal);
        assert_eq!(sealed.status, Status::Done);
        nonces.push(region.bytes(512, 12));
        region.memory.write(4, &sealed.result).unwrap();
        let mut parameters = [0; 16];
        parameters[..12].copy_from_slice(&nonces[nonces.len() - 1]);
        let open = Descriptor {
            opcode: Opcode::Open as u8,
            parameters,
            segments: [Segment::default(), Segment { offset: 0, bytes: 20 }, Segment::default()],
            session: opener,
            region: region.handle,
            ..Descriptor::default()
        };
        assert_eq!(pair.run(&open).status, Status::Done);
        assert_eq!(region.bytes(0, 4), b"text");
    }
    assert_ne!(nonces[0], nonces[1]);
}

/// With a key of ESP nonces are the client's, in both directions; a key that has another purpose takes none.
#[test]
fn a_key_of_esp_takes_the_clients_nonces() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region) = (client.pair(4), client.region(4096));
    let ask = KeyAsk::Import {
        name: "tunnel".to_owned(),
        policy: policy("aes-128-gcm", &["esp"], ALL_CALLERS),
        material: Secret(vec![7; 16]),
    };
    assert_eq!(client.ask(&Ask::Keys(ask)), Answer::Done);
    let tunnel = client.open("aes-128-gcm", named("tunnel"));
    // A key that the client brought itself: it seals with the nonce of the descriptor.
    let own = client.aes();
    let (ours, theirs) =
        (pair.run(&region.seal(tunnel, b"text")), pair.run(&region.seal(own, b"text")));
    assert_eq!((ours.status, ours.result), (Status::Done, theirs.result));
    region.memory.write(4, &ours.result).unwrap();
    let open = Descriptor {
        opcode: Opcode::Open as u8,
        parameters: region.seal(tunnel, b"").parameters,
        segments: [Segment::default(), Segment { offset: 0, bytes: 20 }, Segment::default()],
        session: tunnel,
        region: region.handle,
        ..Descriptor::default()
    };
    assert_ne!(region.bytes(0, 4), b"text");
    let opened = pair.run(&open);
    assert_eq!((opened.status, region.bytes(0, 4)), (Status::Done, b"text".to_vec()));
}

/// A session goes as sealed bytes to another place, and only there.
#[test]
fn a_session_is_exported_and_imported() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region, session) = (client.pair(4), client.region(4096), client.aes());
    let wrapping = policy("aes-256-gcm", &["wrap"], ALL_CALLERS);
    assert_eq!(generate(&client, "mover", wrapping), Answer::Done);
    let under = || "mover".to_owned();
    let Answer::Exported { sealed } = client.ask(&Ask::Export { session, under: under() }) else {
        panic!()
    };
    assert!(!sealed.windows(16).any(|bytes| bytes == [7; 16]));
    let other = Client::new(&served.socket());
    let answer = other.ask(&Ask::Import { under: under(), sealed: sealed.clone() });
    let Answer::Session { session: imported, .. } = answer else { panic!("{answer:?}") };
    let (mut others_pair, others_region) = (other.pair(4), other.region(4096));
    let one = pair.run(&region.seal(session, b"text"));
    let same = others_pair.run(&others_region.seal(imported, b"text"));
    assert_eq!((one.status, one.result), (Status::Done, same.result));
    let mut spoilt = sealed;
    spoilt[20] ^= 1;
    assert!(is_refused(&other.ask(&Ask::Import { under: under(), sealed: spoilt })));
    let generated = client.open("x25519", Key::Generate);
    assert!(is_refused(&client.ask(&Ask::Export { session: generated, under: under() })));
}

/// The keys that a client may use, over all pages; that each page is one message.
fn granted(client: &Client) -> Vec<GrantedKey> {
    let mut all: Vec<GrantedKey> = Vec::new();
    loop {
        let after = all.last().map_or_else(String::new, |last| last.name.clone());
        let answer = client.ask(&Ask::Granted { after });
        let Answer::Granted { keys, more } = answer else { panic!("{answer:?}") };
        assert!(!more || !keys.is_empty());
        all.extend(keys);
        if !more {
            return all;
        }
    }
}

/// A manager is told of the keys that it may use itself, and as long lists as there are come in pages.
#[test]
fn a_client_is_told_of_the_keys_that_it_may_use() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    assert_eq!(granted(&client), []);
    let long = |number| format!("{number:02}{}", "k".repeat(62));
    for number in 0..40 {
        let policy = policy("ml-kem-1024", &[], ALL_CALLERS);
        assert_eq!(generate(&client, &long(number), policy), Answer::Done);
    }
    let own = format!("user:{}", rustix::process::getuid().as_raw());
    for (name, algorithm, who) in [
        ("none", "ed25519", "user:4294967294"),
        ("web", "ed25519", &own),
        ("vault", "aes-256-gcm", &own),
    ] {
        assert_eq!(generate(&client, name, policy(algorithm, &[], &[who])), Answer::Done);
    }
    let keys = granted(&client);
    assert_eq!(keys.len(), 42);
    assert!((0..40).all(|number| keys[number].name == long(number)));
    let [vault, web] = &keys[40..] else { panic!() };
    assert_eq!((vault.name.as_str(), vault.public_key.len()), ("vault", 0));
    assert_eq!(vault.purposes, ["decrypt", "encrypt"]);
    let answer = client.ask(&Ask::Keys(KeyAsk::Public { name: "web".to_owned() }));
    let Answer::Public { key, .. } = answer else { panic!("{answer:?}") };
    let (algorithms, public) = keyway_wire::read_subject_public_key_info(&web.public_key).unwrap();
    assert_eq!((algorithms[0].name(), public), ("ed25519", &key[..]));
    assert_eq!((&web.algorithms[..], web.version), (&["ed25519".to_owned()][..], 1));
    assert_eq!(client.ask(&Ask::Keys(KeyAsk::Revoke { name: "web".to_owned() })), Answer::Done);
    assert_eq!(granted(&client).len(), 41);
}

/// A long request of one client is no reason for another to wait: each question of the one makes an RSA
/// key, and the other's as many have their answers first.
#[test]
fn keys_are_made_beside_what_others_ask() {
    const KEYS: usize = 8;
    let served = Served::start();
    let (maker, other) = (Client::new(&served.socket()), Client::new(&served.socket()));
    for number in 0..KEYS {
        let policy = policy("rsa-pss-sha-256", &["sign"], ALL_CALLERS);
        maker.say(&Ask::Keys(KeyAsk::Generate { name: format!("key{number}"), policy }), &[]);
    }
    let mut made = KEYS;
    for _ in 0..KEYS {
        other.aes();
        let answer = other.ask(&Ask::Keys(KeyAsk::List { after: String::new() }));
        let Answer::Keys { keys, .. } = answer else { panic!("{answer:?}") };
        made = keys.len();
    }
    assert!(made < KEYS, "they were made first");
    for _ in 0..KEYS {
        assert_eq!(maker.hear().0, Answer::Done);
    }
}
