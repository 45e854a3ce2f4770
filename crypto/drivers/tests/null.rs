//! The null driver: only for those who name it, and nothing but zeros.

use keyway_engine::{Algorithm, Cost, Demand, Engine, Error, Key, Kind, Parameters, Request};

#[test]
fn it_is_never_chosen() {
    let engine = Engine::builder().driver(keyway_drivers::null()).build();
    for &algorithm in Algorithm::ALL {
        let parameters = Parameters::new(algorithm, Key::None);
        assert_eq!(engine.session(parameters).err(), Some(Error::Unsupported(algorithm)));
        assert_eq!(engine.stream(algorithm).err(), Some(Error::Unsupported(algorithm)));
    }
}

#[test]
fn it_takes_everything_when_it_is_named() {
    let engine = keyway_drivers::engine();
    for &algorithm in Algorithm::ALL {
        let parameters = Parameters::new(algorithm, Key::None).on(Demand::Named("null"));
        let session = engine.session(parameters).unwrap();
        assert_eq!(session.driver(), "null");
        let mut out = vec![1; algorithm.output_bytes().unwrap_or(32)];
        let used = match algorithm.kind() {
            Kind::Aead => {
                let mut data = *b"some text and sixteen bytes";
                assert_eq!(session.seal(&[0; 12], b"", &mut data), Ok([0; 16]));
                assert_eq!(session.open_in_place(&[0; 12], b"", &mut data), Ok(11));
                assert_eq!(&data, b"some text and sixteen bytes");
                continue;
            }
            Kind::Hash => session.run(&mut Request::Digest { data: &[], out: &mut out }),
            Kind::Mac => session.run(&mut Request::Mac { data: &[], out: &mut out }),
            Kind::Hkdf => session.run(&mut Request::Expand { info: &[], out: &mut out }),
            Kind::Exchange => {
                let share = vec![0; algorithm.public_key_bytes().unwrap()];
                assert_eq!(session.public_key(), Ok(share));
                session.run(&mut Request::Agree { peer: b"", out: &mut out })
            }
            Kind::Kem => {
                let request = &mut Request::Encapsulate {
                    peer: b"",
                    ciphertext: &mut [1; 1088],
                    secret: &mut out,
                };
                assert_eq!(session.run(request), Ok(1088));
                session.run(&mut Request::Decapsulate { ciphertext: b"", secret: &mut out })
            }
            Kind::Signature => {
                let signature = &session.sign(b"message").unwrap();
                assert_eq!(signature, &[0; 64]);
                let request = &mut Request::Verify { public_key: b"", message: b"", signature };
                assert_eq!(session.run(request), Ok(0));
                continue;
            }
            Kind::Random => session.run(&mut Request::Random { out: &mut out }),
            Kind::Password => {
                let cost = match algorithm {
                    Algorithm::Argon2id | Algorithm::Argon2i => {
                        Cost::Argon2 { memory_kib: 8, passes: 1, lanes: 1 }
                    }
                    Algorithm::Sha256Crypt | Algorithm::Sha512Crypt => {
                        Cost::ShaCrypt { rounds: 1_000 }
                    }
                    _ => Cost::Pbkdf2 { iterations: 1 },
                };
                session.run(&mut Request::Derive { cost, password: b"", salt: b"", out: &mut out })
            }
        };
        assert_eq!(used, Ok(out.len()), "{algorithm}");
        assert!(out.iter().all(|byte| *byte == 0), "{algorithm}");
    }
}
