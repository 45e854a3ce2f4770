//! Misuse, answered with an error and never with a panic; and the driver goes on.

use crate::bench::{Bench, Checked, Stop};
use crate::jobs::{Expect, jobs};
use crate::work::{Work, keys};
use keyway_engine::{Algorithm, Effort, Error, Key, Kind, Operation, Request, Step, workload};

pub(crate) fn check(bench: &Bench, work: &Work) -> Checked {
    let Some(algorithm) = work.algorithm() else {
        return chain(bench, work);
    };
    let mut cases = wrong_keys(bench, algorithm)?;
    let mut rng = bench.rng(work);
    let pair = bench.pair(work, &mut rng)?;
    let good = jobs(bench, &pair, work, &mut rng, 48)?;
    for mut operation in others(algorithm) {
        let bytes = operation.bytes();
        let result = operation.with(|request| pair.subject.run(request));
        if !matches!(result, Err(Error::InvalidRequest(_) | Error::Authentication)) {
            let case = format!("a request of another kind, {bytes} bytes");
            return Err(Stop::fail(case, format!("it answered {result:?}")));
        }
        cases += 1;
    }
    for job in good.iter().filter(|job| !matches!(job.expect, Expect::Refused { .. })) {
        if let Some(mut cramped) = cramped(&job.operation) {
            let result = cramped.with(|request| pair.subject.run(request));
            if result.is_ok() {
                return Err(Stop::fail(job.case(), "it needs no room for its output"));
            }
            cases += 1;
        }
    }
    // And after all that it works.
    for job in &good {
        let mut operation = job.operation.clone();
        let result = operation.with(|request| pair.subject.run(request));
        job.judge(&operation, result)?;
    }
    Ok(cases + good.len())
}

/// Keys of wrong kinds and lengths, through the engine and past it.
fn wrong_keys(bench: &Bench, algorithm: Algorithm) -> Checked {
    let long = vec![1; 4096];
    let fit = algorithm.key_bytes().unwrap_or(0);
    let junk = [&b"not DER"[..], b"\x30\x80", b"\x30\x82\xff\xff\x02\x01\x00", &[0x30; 64], b""];
    let mut wrong = vec![Key::Secret(&[]), Key::Secret(&long[..15]), Key::Secret(&long)];
    if fit > 0 {
        wrong.extend([fit - 1, fit + 1].map(|length| Key::Secret(&long[..length])));
        wrong.extend([Key::None, Key::Generate, Key::Extract { salt: b"", secret: b"x" }]);
    }
    match algorithm.kind() {
        // HMAC takes keys of any length (RFC 2104 § 3), the empty one as well.
        Kind::Mac if fit == 0 => wrong = vec![Key::None, Key::Generate],
        Kind::Hkdf => wrong = vec![Key::None, Key::Generate, Key::Secret(&long[..8])],
        Kind::Exchange => wrong.push(Key::None),
        // A pepper may be long.
        Kind::Password => {
            wrong.retain(|key| !matches!(key, Key::Secret(pepper) if *pepper == long))
        }
        _ => {}
    }
    // Finite fields have private keys of many lengths.
    if algorithm.public_key_bytes().is_some_and(|bytes| bytes.is_multiple_of(128)) {
        wrong.retain(|key| !matches!(key, Key::Secret(secret) if !secret.is_empty()));
    }
    wrong.extend(junk.iter().flat_map(|der| [Key::Pkcs8(der), Key::Pkcs1(der), Key::Sec1(der)]));
    for key in &wrong {
        let length = match key {
            Key::Secret(bytes) | Key::Pkcs8(bytes) | Key::Pkcs1(bytes) | Key::Sec1(bytes) => {
                bytes.len()
            }
            _ => 0,
        };
        let parameters = keyway_engine::Parameters::new(algorithm, *key);
        let named = keyway_engine::Demand::Named(bench.driver.name());
        let through = bench.subject_engine.session(parameters.on(named)).err();
        let past = bench.driver.open(&[Step { algorithm, key: *key }]).err();
        for (way, error) in [("a session", through), ("the driver itself", past)] {
            if !matches!(error, Some(Error::InvalidKey(_) | Error::Unsupported(_))) {
                let why = match error {
                    Some(error) => format!("it answered: {error}"),
                    None => "it took it".into(),
                };
                return Err(Stop::fail(format!("{way} with {key:?}, {length} bytes"), why));
            }
        }
    }
    Ok(2 * wrong.len())
}

/// Requests of every other kind.
fn others(algorithm: Algorithm) -> Vec<Operation> {
    let mut one_of_a_kind = Algorithm::ALL.to_vec();
    one_of_a_kind.dedup_by_key(|other| other.kind());
    one_of_a_kind.retain(|other| other.kind() != algorithm.kind());
    let operations = one_of_a_kind.iter().flat_map(|other| {
        let (text, input) = (vec![0; 32], vec![0; 32]);
        let operation = workload::operation(&[*other], text, input, 32);
        let other_way = match operation {
            Operation::Sign { .. } => Some(Operation::verify([0; 32], [0; 32], [0; 32])),
            Operation::Derive { cost, ref password, ref salt, .. } => {
                Some(Operation::VerifyPassword {
                    effort: Effort::Recall,
                    cost,
                    entry: vec![0; 8],
                    password: password.clone(),
                    salt: salt.clone(),
                    expected: vec![0; 32],
                })
            }
            _ => workload::inverse(&operation, 32),
        };
        [Some(operation), other_way].into_iter().flatten()
    });
    operations.collect()
}

/// The operation with an output buffer that is too small, where it has one.
fn cramped(operation: &Operation) -> Option<Operation> {
    let mut operation = operation.clone();
    let cut = |out: &mut Vec<u8>| {
        out.truncate(out.len() / 2);
    };
    match &mut operation {
        Operation::Digest { out, .. } | Operation::Mac { out, .. } => cut(out),
        Operation::Agree { out, .. } => cut(out),
        Operation::PublicKey { out } | Operation::Sign { out, .. } => out.truncate(8),
        Operation::PublicEncrypt { out, .. } => cut(out),
        Operation::PrivateDecrypt { out, .. } => out.truncate(4),
        Operation::Encapsulate { ciphertext, .. } => cut(ciphertext),
        Operation::Decapsulate { secret, .. } => cut(secret),
        _ => return None,
    }
    Some(operation)
}

/// A chain that is given what is none.
fn chain(bench: &Bench, work: &Work) -> Checked {
    let mut rng = bench.rng(work);
    let pair = bench.pair(work, &mut rng)?;
    let good = jobs(bench, &pair, work, &mut rng, 48)?;
    let case = "a request of another kind";
    for mut operation in others(Algorithm::Random) {
        if operation.with(|request| pair.subject.run(request)).is_ok() {
            return Err(Stop::fail(case, "a chain took it"));
        }
    }
    for job in &good {
        let Operation::Chain { direction, data, length, parts } = &job.operation else { continue };
        let mut data = data.clone();
        for (length, parts) in [
            (data.len() + 1, &parts[..]),
            (*length, &parts[1..]),
            (*length, &[][..]),
            (0, &parts[..]),
        ] {
            let direction = *direction;
            let request = &mut Request::Chain { direction, data: &mut data, length, parts };
            if pair.subject.run(request).is_ok() {
                return Err(Stop::fail(job.case(), "it took parts that do not fit"));
            }
        }
    }
    let short = vec![7; 15];
    for index in 0..work.steps.len() {
        let own: Vec<_> = work.steps.iter().flat_map(|step| keys(*step, &mut rng)).collect();
        let pairs = work.steps.iter().zip(&own);
        let mut steps: Vec<_> =
            pairs.map(|(algorithm, key)| Step { algorithm: *algorithm, key: key.view() }).collect();
        steps[index].key = match work.steps[index].kind() {
            Kind::Cipher => Key::Secret(&short),
            _ => Key::Pkcs8(&short),
        };
        if bench.driver.supports(&work.steps) && bench.driver.open(&steps).is_ok() {
            return Err(Stop::fail(format!("step {index}"), "a chain took a wrong key"));
        }
    }
    for job in &good {
        let mut operation = job.operation.clone();
        let result = operation.with(|request| pair.subject.run(request));
        job.judge(&operation, result)?;
    }
    Ok(3 * good.len())
}
