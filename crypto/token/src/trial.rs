//! A trial of what a token does with a key: once for each algorithm, when the key is made or taken in.

use crate::held::TokenSession;
use keyway_engine::{
    Algorithm, DriverSession, Error, Key, Kind, OaepParameters, Request, SignatureParameters, Step,
};
use zeroize::Zeroizing;

const TEXT: &[u8] = b"a trial of a key in a token";

/// Has the token do what the session is for, and compares that with what software makes of the public half.
///
/// # Errors
/// The fault, in words.
pub(crate) fn run(session: &TokenSession) -> Result<(), String> {
    match session.algorithm.kind() {
        Kind::Signature => sign(session),
        Kind::Encryption => decrypt(session),
        _ => agree(session),
    }
}

/// The trial's hash, where the algorithm leaves that to the request.
fn hash(algorithm: Algorithm) -> Option<Algorithm> {
    let leaves_it = algorithm.signature_hash().is_none() && algorithm != Algorithm::Ed25519;
    leaves_it.then_some(Algorithm::Sha256)
}

fn sign(session: &TokenSession) -> Result<(), String> {
    let parameters = SignatureParameters { hash: hash(session.algorithm), ..Default::default() };
    let operation =
        session.sign(&parameters, TEXT).map_err(|why| said("it signs nothing", &why))?;
    let signature =
        session.key.run(&operation, |_| true).map_err(|why| said("it signs nothing", &why))?;
    let (message, public_key) = (TEXT, &session.key.public[..]);
    session
        .run(&mut Request::Verify { public_key, message, parameters, signature: &signature })
        .map(drop)
        .map_err(|_| {
            "its signature does not fit the public half that it has for the key".to_owned()
        })
}

fn decrypt(session: &TokenSession) -> Result<(), String> {
    let hash = (session.algorithm == Algorithm::RsaOaep).then_some(Algorithm::Sha256);
    let parameters = OaepParameters { hash, mgf1_hash: None };
    let public_key = &session.key.public[..];
    let mut sealed = vec![0; crate::kind::modulus_bytes(public_key)];
    let (message, label) = (TEXT, &[][..]);
    let used = session
        .run(&mut Request::PublicEncrypt {
            public_key,
            message,
            parameters,
            label,
            out: &mut sealed,
        })
        .map_err(|why| said("its public half encrypts nothing", &why))?;
    let what = match session.algorithm {
        Algorithm::RsaOaepSha1 => "it decrypts nothing",
        _ => "it decrypts nothing with SHA-256, where many do rsa-oaep-sha-1",
    };
    let operation = session.decrypt(&parameters, label, &sealed[..used]);
    let operation = operation.map_err(|why| said(what, &why))?;
    let opened = session.key.run(&operation, |_| true).map_err(|why| said(what, &why))?;
    match opened[..] == *TEXT {
        true => Ok(()),
        false => Err("it decrypts to something else".to_owned()),
    }
}

fn agree(session: &TokenSession) -> Result<(), String> {
    let algorithm = session.algorithm;
    let failed = |why: Error| said("it agrees on nothing", &why);
    let step = Step { algorithm, key: Key::Generate };
    let other = session.software.open(&[step]).map_err(failed)?;
    let mut point = vec![0; algorithm.public_key_bytes().unwrap_or(0)];
    other.run(&mut Request::PublicKey { out: &mut point }).map_err(failed)?;
    let mut secret = Zeroizing::new(vec![0; algorithm.output_bytes().unwrap_or(0)]);
    let operation = session.agree(&point, secret.len()).map_err(failed)?;
    let agreed =
        session.key.run(&operation, |_| true).map_err(|why| said("it agrees on nothing", &why))?;
    let peer = &session.key.public[..];
    other.run(&mut Request::Agree { peer, out: &mut secret }).map_err(failed)?;
    match agreed == secret {
        true => Ok(()),
        false => Err("it agrees on another secret than its peer".to_owned()),
    }
}

fn said(what: &str, why: &dyn std::fmt::Display) -> String {
    format!("{what} ({why})")
}
