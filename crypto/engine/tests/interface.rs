//! The crate as its users see it: names, messages, and no secrets.

use keyway_engine::*;
use std::sync::Arc;

/// Fills what is put out with sevens, whatever it is asked for.
struct Sevens;

impl Driver for Sevens {
    fn name(&self) -> &str {
        "interface"
    }

    fn supports(&self, _: &[Algorithm]) -> bool {
        true
    }

    fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(Sevens))
    }
}

impl DriverSession for Sevens {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Seal { data, tag, .. } => {
                data.fill(7);
                tag.fill(7);
                Ok(data.len())
            }
            Request::Digest { out, .. } => {
                out.fill(7);
                Ok(out.len())
            }
            _ => Ok(0),
        }
    }
}

fn engine() -> Engine {
    Engine::builder().driver(Arc::new(Sevens)).build()
}

const GCM: Parameters<'_> = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(b"the secret key 1"));

#[test]
fn nothing_that_is_shown_is_secret() {
    let engine = engine();
    let session = engine.session(GCM).unwrap();
    let queue = engine.queue(4);
    let task = Task::new(&session, Operation::seal([0; 12], "header", "the secret text"));
    let password = Zeroizing::new(b"the secret word".to_vec());
    let cost = Cost::Pbkdf2 { iterations: 1 };
    let derive = Operation::derive(cost, password.clone(), "salt", 20);
    let derivation = Derivation {
        algorithm: Algorithm::Pbkdf2Sha256,
        cost,
        password,
        salt: Vec::new(),
        output_bytes: 20,
    };
    let iv = *b"a secret IV!";
    let counter = GCM.nonces(Nonces::Counter { iv, from: 3 });
    let shown = format!(
        "{engine:?} {session:?} {queue:?} {task:?} {derive:?} {derivation:?} {counter:?} {:?} {:?}",
        Request::Sign { parameters: Default::default(), message: b"the secret text", out: &mut [] },
        engine.stream(Algorithm::Sha256).map(drop),
    );
    let bytes = |secret: &[u8]| format!("{secret:?}").trim_matches(['[', ']']).to_owned();
    for secret in [&b"the secret"[..], b"a secret IV"] {
        assert!(!shown.contains(std::str::from_utf8(secret).unwrap()), "{shown}");
        assert!(!shown.contains(&bytes(secret)), "{shown}");
    }
    for said in ["interface", "Aes128Gcm", "seal, 15 bytes", "depth: 4", "from: 3"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
}

#[test]
fn a_refusal_says_whether_the_kind_or_which_length_is_wrong() {
    let engine = engine();
    let session = engine.session(GCM).unwrap();
    let refused = session.run(&mut Request::Random { out: &mut [0; 4] });
    let kind = RequestError::Kind { request: "random", algorithm: Algorithm::Aes128Gcm };
    assert_eq!(refused, Err(Error::InvalidRequest(kind)));
    let says = refused.unwrap_err().to_string();
    assert_eq!(says, "the request cannot be run: `random` is nothing that aes-128-gcm does");

    let refused = engine.digest(Algorithm::Sha256, &[], &mut [0; 20]);
    let (of, expected) = (Field::Out, ExpectedLength::Exactly(32));
    assert_eq!(
        refused,
        Err(Error::InvalidRequest(RequestError::Length { of, given: 20, expected }))
    );
    let says = refused.unwrap_err().to_string();
    assert_eq!(says, "the request cannot be run: its `out` has 20 bytes, where 32 are wanted");

    let key = Key::Secret(&[1; 32]);
    let iv = &[0; IV_BYTES_MAX];
    for (algorithm, given, expected) in [
        (Algorithm::Aes256Cbc, 20, ExpectedLength::MultipleOf(16)),
        (Algorithm::Aes128Xts, 15, ExpectedLength::AtLeast(16)),
    ] {
        let session = engine.session(Parameters::new(algorithm, key)).unwrap();
        let refused = session.run(&mut Request::Encrypt { iv, data: &mut vec![0; given] });
        assert_eq!(refused, Err(Error::length(Field::Data, given, expected)));
    }
    let gmac = Parameters::new(Algorithm::Aes256Gmac, key);
    let opened = engine.session(gmac).unwrap().open_in_place(&[0; 12], &[], &mut [0; 20]);
    assert_eq!(opened, Err(Error::length(Field::Data, 20, ExpectedLength::Exactly(16))));
    let (cost, password, salt) = (Cost::Pbkdf2 { iterations: 1 }, &[0; 5_000], &[]);
    let derive = &mut Request::Derive { cost, password, salt, out: &mut [0; 20] };
    let expected = ExpectedLength::AtMost(limits::PASSWORD_BYTES_MAX);
    let refused = engine.run(Algorithm::Pbkdf2Sha256, derive);
    assert_eq!(refused, Err(Error::length(Field::Password, 5_000, expected)));
}

#[test]
fn operations_are_made_and_read_by_their_names() {
    let engine = engine();
    let session = engine.session(GCM).unwrap();
    let hash = engine.session(Parameters::new(Algorithm::Sha384, Key::None)).unwrap();
    let mut queue = engine.queue(4);
    let seal = Task::new(&session, Operation::seal([1; 12], "header", "text"));
    assert!(seal.output().is_err());
    let mut tasks = vec![seal, Task::new(&hash, Operation::digest(Algorithm::Sha384, "text"))];
    queue.submit(&mut tasks, false);
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(&mut done, std::time::Duration::from_secs(10));
    }
    done.sort_by_key(|task| task.operation.name());
    assert_eq!(done[0].output(), Ok(&[7; 48][..]));
    assert_eq!(done[1].output(), Ok(&[7; 4][..]));
    assert_eq!((done[1].operation.name(), done[1].operation.tag()), ("seal", Some(&[7; 16])));
    assert_eq!(done[1].operation.nonce(), Some(&[1; 12]));
}
