//! A synthetic workload: for each algorithm a key, an operation and what undoes it, to measure and
//! to test with.

use crate::{
    Algorithm, Cost, Direction, IV_BYTES_MAX, Iv, Key, Kind, NONCE_BYTES, OaepParameters, Opened,
    Operation, PacketKey, PacketKeys, Part, SAMPLE_BYTES, SignatureParameters, TAG_BYTES,
};

/// A packet's header up to its number: first byte, and a connection's name of eight.
pub const PACKET_HEADER: [u8; 9] = [0x43; 9];
/// Length of the number behind it, in bytes, as the first byte says; that is the longest, so that a
/// packet may be empty.
const PACKET_NUMBER_BYTES: usize = 4;
/// Authenticated beside the text of an AEAD, in bytes; about a record's header.
const AAD_BYTES: usize = 16;
/// The output of a password derivation where nothing else is fixed, in bytes.
const DERIVED_BYTES: usize = 32;
/// Space behind a message for what compression adds to what it cannot compress, in bytes.
const COMPRESSION_SLACK_BYTES: usize = 1_024;

/// Length of the secret that [`key`] takes, in bytes. `None` for what takes no secret, or generates
/// it.
pub fn secret_bytes(algorithm: Algorithm) -> Option<usize> {
    match algorithm.kind() {
        Kind::Aead | Kind::Packet | Kind::Mask | Kind::Cipher => algorithm.key_bytes(),
        Kind::Mac | Kind::Hkdf => algorithm.key_bytes().or(algorithm.output_bytes()),
        _ => None,
    }
}

/// A key that fits. `secret` has [`secret_bytes`]. A packet's header and text have the same key. An
/// algorithm with a private key generates it, as far as that is possible: RSA has to be given one.
pub fn key(algorithm: Algorithm, secret: &[u8]) -> Key<'_> {
    match algorithm.kind() {
        Kind::Aead | Kind::Mask | Kind::Cipher | Kind::Mac | Kind::Hkdf => Key::Secret(secret),
        Kind::Packet => {
            let current = PacketKey { key: secret, iv: &[0; NONCE_BYTES] };
            Key::Packet(PacketKeys::new(secret, current))
        }
        Kind::Exchange | Kind::Kem | Kind::Signature => Key::Generate,
        _ => Key::None,
    }
}

/// How a message is signed with an algorithm: with SHA-256, if the algorithm leaves that open.
pub fn signature_parameters(algorithm: Algorithm) -> SignatureParameters {
    let is_open =
        (algorithm.is_ecdsa() || algorithm.is_rsa()) && algorithm.signature_hash().is_none();
    if is_open {
        SignatureParameters::message(Algorithm::Sha256)
    } else {
        SignatureParameters::default()
    }
}

/// How a message is padded for encryption: with SHA-256, if the algorithm leaves that open.
pub fn oaep_parameters(algorithm: Algorithm) -> OaepParameters {
    let hash = (algorithm == Algorithm::RsaOaep).then_some(Algorithm::Sha256);
    OaepParameters { hash, mgf1_hash: None }
}

/// The plain operation of an algorithm, requested once; the steps of a chain are to protect.
///
/// It works on all of `text`, or puts out as many bytes. `input` goes in beside the text: the
/// peer's public key, or a ciphertext for the session's. A signature has `signature_bytes` of room.
pub fn operation(
    steps: &[Algorithm],
    text: Vec<u8>,
    input: Vec<u8>,
    signature_bytes: usize,
) -> Operation {
    let [algorithm] = *steps else { return chain(steps, text) };
    let (bytes, nonce) = (text.len(), [0; NONCE_BYTES]);
    match algorithm.kind() {
        Kind::Aead => match algorithm {
            Algorithm::Aes128Gmac | Algorithm::Aes256Gmac => Operation::seal(nonce, text, []),
            _ => Operation::seal(nonce, [0; AAD_BYTES], text),
        },
        Kind::Packet => {
            let header_bytes = PACKET_HEADER.len() + PACKET_NUMBER_BYTES;
            let number = [0; PACKET_NUMBER_BYTES];
            let packet = [&PACKET_HEADER[..], &number, &text, &[0; TAG_BYTES]].concat();
            Operation::protect(0, header_bytes, packet)
        }
        Kind::Mask => Operation::mask([0; SAMPLE_BYTES]),
        Kind::Cipher => Operation::encrypt([0; IV_BYTES_MAX], text),
        Kind::Compression => Operation::compress(text, 2 * bytes + COMPRESSION_SLACK_BYTES),
        Kind::Hash => Operation::digest(algorithm, text),
        Kind::Mac => Operation::mac(algorithm, text),
        Kind::Hkdf => Operation::expand([0; 16], bytes),
        Kind::Exchange => Operation::agree(algorithm, input),
        Kind::Kem => Operation::encapsulate(algorithm, input),
        Kind::Signature => Operation::Sign {
            message: text,
            parameters: signature_parameters(algorithm),
            out: vec![0; signature_bytes],
        },
        Kind::Encryption => Operation::PrivateDecrypt {
            out: vec![0; input.len()].into(),
            ciphertext: input,
            parameters: oaep_parameters(algorithm),
            label: Vec::new(),
        },
        Kind::Random => Operation::random(bytes),
        Kind::Password => {
            let password = b"correct horse battery staple".to_vec().into();
            let bytes = algorithm.output_bytes().unwrap_or(DERIVED_BYTES);
            Operation::derive(least_cost(algorithm), password, *b"saltsaltsaltsalt", bytes)
        }
    }
}

/// Text, with room for a tag of each MAC behind it and for compression behind them.
fn chain(steps: &[Algorithm], mut data: Vec<u8>) -> Operation {
    let (text, mut length) = (0..data.len(), data.len());
    let parts = steps.iter().map(|step| match step.kind() {
        Kind::Mac => {
            let over = 0..length;
            length += step.output_bytes().unwrap_or(0);
            Part::Mac { tag: over.end..length, over }
        }
        Kind::Compression => Part::Compression { text: text.clone() },
        _ => Part::Cipher { iv: Iv::Given([0; IV_BYTES_MAX]), text: text.clone() },
    });
    let parts: Vec<_> = parts.collect();
    let compresses = steps.iter().any(|step| step.kind() == Kind::Compression);
    data.resize(length, 0);
    let capacity = if compresses { text.end + COMPRESSION_SLACK_BYTES } else { 0 };
    Operation::chain(Direction::Protect, data, capacity, parts)
}

/// The operation that undoes one of [`operation`] that was done with this result. `None` where
/// nothing does that takes no other key. For one that was not done it is as long, and not
/// authentic.
pub fn inverse(operation: &Operation, result: usize) -> Option<Operation> {
    Some(match operation {
        Operation::Seal { nonce, aad, data, tag } => {
            Operation::open(*nonce, &aad[..], [&data[..], tag].concat())
        }
        Operation::Protect { number, packet, .. } => Operation::Unprotect {
            largest: number.checked_sub(1),
            number_at: PACKET_HEADER.len(),
            packet: packet.clone(),
            opened: Opened::default(),
        },
        Operation::Encrypt { iv, data } => Operation::decrypt(*iv, &data[..]),
        Operation::Compress { data, out } => Operation::decompress(out.get(..result)?, data.len()),
        Operation::Encapsulate { ciphertext, secret, .. } => Operation::Decapsulate {
            ciphertext: ciphertext.clone(),
            secret: vec![0; secret.len()].into(),
        },
        _ => return None,
    })
}

/// The least that a password derivation may cost; about.
pub fn least_cost(algorithm: Algorithm) -> Cost {
    use Algorithm::*;
    match algorithm {
        Argon2id | Argon2i => Cost::Argon2 { memory_kib: 8, passes: 1, lanes: 1 },
        Scrypt => Cost::Scrypt { log_n: 1, r: 1, p: 1 },
        Bcrypt => Cost::Bcrypt { log_rounds: 4 },
        Md5Crypt => Cost::Md5Crypt,
        Sha256Crypt | Sha512Crypt => Cost::ShaCrypt { rounds: 1_000 },
        _ => Cost::Pbkdf2 { iterations: 1 },
    }
}
