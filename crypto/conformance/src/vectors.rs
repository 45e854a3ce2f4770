//! Vectors of the documents that define the algorithms, in `vectors.txt`.
//!
//! Each line there is an algorithm, an operation and named fields in hexadecimal; a line that
//! begins with a blank goes on with the one before.

use crate::bench::{Bench, Checked, Stop};
use crate::work::{OwnKey, RSA_2048, Work, outputs};
use keyway_engine::{Algorithm, Cost, Demand, Operation, Parameters};
use std::collections::HashMap;
use std::sync::LazyLock;
use zeroize::Zeroizing;

static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(|| parse(include_str!("vectors.txt")));

struct Vector {
    algorithm: String,
    operation: String,
    fields: HashMap<String, Vec<u8>>,
    line: usize,
}

/// Bytes from hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<_> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8))
        .collect()
}

fn parse(text: &str) -> Vec<Vector> {
    let mut vectors: Vec<Vector> = Vec::new();
    let mut last = String::new();
    for (line, content) in text.lines().enumerate() {
        if content.starts_with('#') || content.trim().is_empty() {
            continue;
        }
        let mut words = content.split_whitespace();
        if !content.starts_with(' ') {
            let mut word = || words.next().unwrap_or_default().to_owned();
            let (algorithm, operation) = (word(), word());
            vectors.push(Vector { algorithm, operation, fields: HashMap::new(), line: line + 1 });
        }
        let Some(vector) = vectors.last_mut() else { continue };
        for word in words {
            let digits = match word.split_once('=') {
                Some((name, digits)) => {
                    last = name.to_owned();
                    vector.fields.insert(last.clone(), Vec::new());
                    digits
                }
                None => word,
            };
            // Text stands in quotes, blanks as underscores; all the rest is hexadecimal.
            let bytes = match digits.strip_prefix('"') {
                Some(text) => text.trim_end_matches('"').replace('_', " ").into_bytes(),
                None => hex(digits),
            };
            vector.fields.entry(last.clone()).or_default().extend(bytes);
        }
    }
    vectors
}

impl Vector {
    fn get(&self, name: &str) -> Vec<u8> {
        self.fields.get(name).cloned().unwrap_or_default()
    }

    fn array<const BYTES: usize>(&self, name: &str) -> [u8; BYTES] {
        let mut array = [0; BYTES];
        for (to, from) in array.iter_mut().zip(self.get(name)) {
            *to = from;
        }
        array
    }

    fn number(&self, name: &str) -> u32 {
        self.get(name).iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    fn key(&self) -> OwnKey {
        if let Some(secret) = self.fields.get("secret") {
            return OwnKey::Extract(self.get("salt"), secret.clone());
        }
        if let Some(der) = self.fields.get("pkcs8") {
            return OwnKey::Pkcs8(der.clone());
        }
        match self.fields.get("key") {
            // The suite's own.
            Some(key) if key.is_empty() => OwnKey::Pkcs8(RSA_2048.to_vec()),
            Some(key) => OwnKey::Secret(key.clone()),
            None => OwnKey::None,
        }
    }

    fn operation(&self) -> Option<Operation> {
        let (data, out) = (self.get("in"), vec![0; self.get("out").len()]);
        let secret = Zeroizing::new(out.clone());
        let (nonce, aad, iv) = (self.array("nonce"), self.get("aad"), self.array("iv"));
        let costs = [self.number("n"), self.number("r"), self.number("p")];
        Some(match self.operation.as_str() {
            "seal" => Operation::seal(nonce, aad, data),
            "open" => Operation::open(nonce, aad, data),
            "encrypt" => Operation::encrypt(iv, data),
            "decrypt" => Operation::decrypt(iv, data),
            "decompress" => Operation::decompress(data, out.len()),
            "digest" => Operation::Digest { data: data.into(), out },
            "mac" => Operation::Mac { data: data.into(), out },
            "expand" => Operation::Expand { info: data, out: secret },
            "agree" => Operation::Agree { peer: data, out: secret },
            "decapsulate" => Operation::Decapsulate { ciphertext: data, secret },
            "sign" => {
                Operation::Sign { parameters: Default::default(), message: data, out: vec![0; 600] }
            }
            "verify" => Operation::Verify {
                parameters: Default::default(),
                public_key: self.get("public"),
                message: data,
                signature: self.get("signature"),
            },
            "private-decrypt" => Operation::PrivateDecrypt {
                parameters: Default::default(),
                label: Default::default(),
                ciphertext: data,
                out: Zeroizing::new(vec![0; 256]),
            },
            "pbkdf2" | "argon2" | "scrypt" | "bcrypt" | "md5-crypt" | "sha-crypt" => {
                let [n, r, p] = costs;
                let cost = match self.operation.as_str() {
                    "pbkdf2" => Cost::Pbkdf2 { iterations: n },
                    "argon2" => Cost::Argon2 { memory_kib: n, passes: r, lanes: p },
                    "scrypt" => Cost::Scrypt { log_n: n as u8, r, p },
                    "bcrypt" => Cost::Bcrypt { log_rounds: n },
                    "md5-crypt" => Cost::Md5Crypt,
                    _ => Cost::ShaCrypt { rounds: n },
                };
                let password = Zeroizing::new(data);
                Operation::Derive { cost, password, salt: self.get("salt"), out: secret }
            }
            _ => return None,
        })
    }
}

/// Public key, message and signature of a published example.
pub(crate) fn signed(algorithm: Algorithm) -> Option<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let is =
        |vector: &&Vector| vector.algorithm == algorithm.name() && vector.operation == "verify";
    let vector = VECTORS.iter().find(is)?;
    Some((vector.get("public"), vector.get("in"), vector.get("signature")))
}

pub(crate) fn check(bench: &Bench, work: &Work) -> Checked {
    let name = work.label();
    let mut cases = 0;
    for vector in VECTORS.iter().filter(|vector| vector.algorithm == name) {
        let case = format!("{} of line {} of vectors.txt", vector.operation, vector.line);
        let failed = |why: String| Stop::fail(case.clone(), why);
        let Some(algorithm) = work.algorithm() else { continue };
        let Some(mut operation) = vector.operation() else {
            return Err(failed("there is no such operation".into()));
        };
        let (key, named) = (vector.key(), Demand::Named(bench.driver.name()));
        let parameters = Parameters::new(algorithm, key.view()).on(named);
        let session = match bench.subject_engine.session(parameters) {
            Ok(session) => session,
            // It need not take every kind of key.
            Err(keyway_engine::Error::Unsupported(_)) => continue,
            Err(error) => return Err(failed(error.to_string())),
        };
        let result = operation.with(|request| session.run(request));
        let result = result.map_err(|error| failed(format!("it failed: {error}")))?;
        if outputs(&operation, result).concat() != vector.get("out") {
            return Err(failed("the bytes are wrong".into()));
        }
        cases += 1;
    }
    if cases == 0 { Err(Stop::Skip("there is no short vector for it".into())) } else { Ok(cases) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_names_an_algorithm_and_an_operation() {
        for vector in VECTORS.iter() {
            assert!(vector.algorithm.parse::<Algorithm>().is_ok(), "line {}", vector.line);
            assert!(vector.operation().is_some(), "line {}", vector.line);
        }
    }
}
