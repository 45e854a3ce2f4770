//! The null driver: only for those who name it, and nothing but zeros, directly and through a
//! queue.

use keyway_engine::{
    Algorithm, Demand, Direction, Effort, Engine, Error, Iv, Key, Kind, Operation, Parameters,
    Part, Queue, Session, Step, Task, workload,
};
use std::time::Duration;
use zeroize::Zeroizing;

fn engine() -> Engine {
    Engine::builder().driver(keyway_test_drivers::null()).legacy(true).slow_pool(1, 8).build()
}

fn open(engine: &Engine, algorithm: Algorithm) -> Session {
    let parameters = Parameters::new(algorithm, Key::None).on(Demand::Named("null"));
    let session = engine.session(parameters).unwrap();
    assert_eq!(session.driver(), "null");
    session
}

/// Every operation of an algorithm, with room full of ones, and how many bytes it puts out.
fn operations(algorithm: Algorithm) -> Vec<(Operation, usize)> {
    let bytes = algorithm.output_bytes().unwrap_or(32);
    let ones = |bytes| vec![1_u8; bytes];
    let secret = |bytes| Zeroizing::new(ones(bytes));
    let public = Operation::PublicKey { out: ones(2048) };
    let public = (public, algorithm.public_key_bytes().unwrap_or(2048));
    match algorithm.kind() {
        Kind::Aead => {
            // GMAC takes no text.
            let gmac = matches!(algorithm, Algorithm::Aes128Gmac | Algorithm::Aes256Gmac);
            let text = if gmac { 0 } else { 27 };
            let seal = Operation::Seal {
                nonce: [0; 12],
                aad: vec![],
                data: ones(text).into(),
                tag: [1; 16],
            };
            let open = Operation::open([0; 12], [], ones(text + 16));
            vec![(seal, text), (open, text)]
        }
        Kind::Packet => {
            let packet = || ones(2 + 30 + 16);
            let protect = Operation::protect(1, 3, packet());
            let unprotect = Operation::unprotect(None, 1, packet());
            vec![(protect, 48), (unprotect, 32)]
        }
        Kind::Mask => vec![(Operation::Mask { sample: [1; 16], out: [1; 5] }, 5)],
        Kind::Cipher => vec![
            (Operation::encrypt([0; 16], ones(48)), 48),
            (Operation::decrypt([0; 16], ones(48)), 48),
        ],
        Kind::Compression => vec![
            (Operation::Compress { data: ones(48).into(), out: ones(50).into() }, 50),
            (Operation::Decompress { data: ones(48).into(), out: ones(50).into() }, 50),
        ],
        Kind::Hash => vec![(Operation::Digest { data: [].into(), out: ones(bytes) }, bytes)],
        Kind::Mac => vec![(Operation::Mac { data: [].into(), out: ones(bytes) }, bytes)],
        Kind::Hkdf => vec![(Operation::Expand { info: vec![], out: secret(bytes) }, bytes)],
        Kind::Exchange => {
            vec![public, (Operation::Agree { peer: vec![], out: secret(bytes) }, bytes)]
        }
        Kind::Kem => {
            let ciphertext = algorithm.ciphertext_bytes().unwrap();
            let encapsulate = Operation::Encapsulate {
                peer: vec![],
                ciphertext: ones(ciphertext),
                secret: secret(bytes),
            };
            let decapsulate = Operation::Decapsulate { ciphertext: vec![], secret: secret(bytes) };
            vec![public, (encapsulate, ciphertext), (decapsulate, bytes)]
        }
        Kind::Signature => {
            let parameters = workload::signature_parameters(algorithm);
            let [public_key, message, signature] = [(); 3].map(|()| vec![]);
            let verify = Operation::Verify { public_key, message, parameters, signature };
            let sign = Operation::Sign { message: vec![], parameters, out: ones(64) };
            vec![public, (sign, 64), (verify, 0)]
        }
        Kind::Encryption => {
            let encrypt = Operation::PublicEncrypt {
                parameters: workload::oaep_parameters(algorithm),
                label: Default::default(),
                public_key: vec![],
                message: vec![],
                out: ones(256),
            };
            let decrypt = Operation::PrivateDecrypt {
                parameters: workload::oaep_parameters(algorithm),
                label: Default::default(),
                ciphertext: vec![],
                out: secret(256),
            };
            vec![public, (encrypt, 256), (decrypt, 256)]
        }
        Kind::Random => vec![(Operation::Random { out: secret(bytes) }, bytes)],
        Kind::Password => {
            let cost = workload::least_cost(algorithm);
            let (password, salt) = (secret(0), vec![0; 16]);
            let verify = Operation::VerifyPassword {
                effort: Effort::Full,
                cost,
                entry: vec![],
                password: password.clone(),
                salt: salt.clone(),
                expected: vec![0; bytes],
            };
            let derive = Operation::Derive { cost, password, salt, out: secret(bytes) };
            vec![(derive, bytes), (verify, 1)]
        }
    }
}

/// Whether all that was put out is zeros, so many bytes of it, and the data are as they were.
fn is_done(operation: &Operation, used: usize) -> bool {
    let zeros = |out: &[u8], used: usize| {
        out[..used].iter().all(|byte| *byte == 0) && out[used..].iter().all(|byte| *byte == 1)
    };
    match operation {
        Operation::Seal { data, tag, .. } => zeros(data, 0) && zeros(tag, 16),
        Operation::Protect { packet, .. } | Operation::Unprotect { packet, .. } => zeros(packet, 0),
        Operation::Mask { out, .. } => zeros(out, used),
        Operation::Open { data, .. }
        | Operation::Encrypt { data, .. }
        | Operation::Decrypt { data, .. }
        | Operation::Chain { data, .. } => zeros(data, 0),
        Operation::Compress { out, .. } | Operation::Decompress { out, .. } => zeros(out, used),
        Operation::Digest { out, .. }
        | Operation::Mac { out, .. }
        | Operation::PublicKey { out }
        | Operation::Sign { out, .. }
        | Operation::PublicEncrypt { out, .. } => zeros(out, used),
        Operation::Expand { out, .. }
        | Operation::Agree { out, .. }
        | Operation::PrivateDecrypt { out, .. }
        | Operation::Random { out }
        | Operation::Derive { out, .. } => zeros(out, used),
        Operation::Encapsulate { ciphertext, secret, .. } => {
            zeros(ciphertext, used) && zeros(secret, 32)
        }
        Operation::Decapsulate { secret, .. } => zeros(secret, used),
        Operation::Verify { .. } => used == 0,
        Operation::VerifyPassword { .. } => used == 1,
    }
}

#[test]
fn it_is_never_chosen() {
    let engine = engine();
    for &algorithm in Algorithm::ALL {
        let parameters = Parameters::new(algorithm, Key::None);
        assert_eq!(engine.session(parameters).err(), Some(Error::Unsupported(algorithm)));
        if algorithm.kind() == Kind::Hash {
            assert_eq!(engine.stream(algorithm).err(), Some(Error::Unsupported(algorithm)));
        }
    }
}

#[test]
fn it_takes_everything_when_it_is_named() {
    let engine = engine();
    for &algorithm in Algorithm::ALL {
        let session = open(&engine, algorithm);
        for (mut operation, bytes) in operations(algorithm) {
            let used = operation.with(|request| session.run(request));
            assert_eq!(used, Ok(bytes), "{algorithm}");
            assert!(is_done(&operation, bytes), "{algorithm}");
        }
    }
}

#[test]
fn it_does_the_same_through_a_queue() {
    let engine = engine();
    let (mut tasks, mut expected) = (Vec::new(), Vec::new());
    for &algorithm in Algorithm::ALL {
        let session = open(&engine, algorithm);
        for (operation, bytes) in operations(algorithm) {
            tasks.push(Task::tagged(&session, operation, expected.len() as u64));
            expected.push(bytes);
        }
    }
    let chain = [
        Step { algorithm: Algorithm::Aes128Cbc, key: Key::None },
        Step { algorithm: Algorithm::HmacSha1, key: Key::None },
    ];
    let parameters = Parameters::chain(&chain).on(Demand::Named("null"));
    let session = engine.session(parameters).unwrap();
    let parts = vec![
        Part::Cipher { iv: Iv::Given([0; 16]), text: 0..16 },
        Part::Mac { over: 0..16, tag: 16..28 },
    ];
    let (direction, data) = (Direction::Unprotect, vec![1; 28].into());
    let operation = Operation::Chain { direction, data, length: 28, parts };
    tasks.push(Task::tagged(&session, operation, expected.len() as u64));
    expected.push(28);

    let mut queue = engine.queue(expected.len());
    assert_eq!(queue.submit(&mut tasks, false), expected.len());
    let mut done = collect(&mut queue);
    done.sort_by_key(|task| task.user);
    assert!(done.iter().map(|task| task.user).eq(0..expected.len() as u64));
    for (task, bytes) in done.iter().zip(expected) {
        let algorithm = task.session().algorithm();
        assert_eq!(task.result(), Ok(bytes), "{algorithm}");
        assert!(is_done(&task.operation, bytes), "{algorithm}");
    }
}

fn collect(queue: &mut Queue) -> Vec<Box<Task>> {
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        assert!(queue.wait(&mut done, Duration::from_secs(60)) > 0, "nothing comes back");
    }
    done
}
