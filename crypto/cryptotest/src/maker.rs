//! The operations that are run: made, and made ready to be run again.

use crate::subject::{PACKET_HEADER, Subject};
use keyway_engine::{
    Algorithm, Cost, Direction, IV_BYTES_MAX, Iv, Kind, MASK_BYTES, NONCE_BYTES, Operation, Part,
    SAMPLE_BYTES, TAG_BYTES,
};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Authenticated beside the text of an AEAD, in bytes; about a record's header.
const AAD_BYTES: usize = 16;
/// Length of the number behind it, in bytes, as the first byte says; that is the longest, so that a
/// packet may be empty.
const PACKET_NUMBER_BYTES: usize = 4;
/// What a password derivation puts out where nothing else is fixed, in bytes.
const DERIVED_BYTES: usize = 32;
/// Space behind a message for what compression adds to what it cannot compress, in bytes.
const COMPRESSION_SLACK_BYTES: usize = 1_024;

/// Makes the operations of one thread, all of one size.
pub struct Maker {
    pub(crate) subject: Arc<Subject>,
    /// What those that work in place begin with.
    pub(crate) plain: Vec<u8>,
    number: u64,
}

impl Maker {
    pub(crate) fn new(subject: &Arc<Subject>, bytes: usize) -> Maker {
        // Text that compression halves, more or less.
        let mut state = 1u64;
        let plain = (0..bytes).map(|at| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if at % 2 == 0 { (state >> 56) as u8 } else { b'e' }
        });
        Maker { subject: subject.clone(), plain: plain.collect(), number: 0 }
    }

    /// A new one.
    pub(crate) fn operation(&mut self) -> Operation {
        let subject = self.subject.clone();
        let Subject { session, work, .. } = &*subject;
        let input = || subject.input().to_vec();
        let (algorithm, plain) = (work.algorithm(), self.plain.clone());
        let zeros = |length: usize| Zeroizing::new(vec![0; length]);
        let output = algorithm.output_bytes().unwrap_or(0);
        let mut operation = match algorithm.kind() {
            _ if work.is_chain() => chain(&work.steps, plain),
            Kind::Aead => {
                let gmac = matches!(algorithm, Algorithm::Aes128Gmac | Algorithm::Aes256Gmac);
                let (aad, data) =
                    if gmac { (plain, Vec::new()) } else { (vec![0; AAD_BYTES], plain) };
                Operation::Seal { nonce: [0; NONCE_BYTES], aad, data, tag: [0; TAG_BYTES] }
            }
            Kind::Packet => {
                let header_bytes = PACKET_HEADER.len() + PACKET_NUMBER_BYTES;
                let packet = vec![0; header_bytes + plain.len() + TAG_BYTES];
                Operation::Protect { number: 0, header_bytes, packet }
            }
            Kind::Mask => Operation::Mask { sample: [0; SAMPLE_BYTES], out: [0; MASK_BYTES] },
            Kind::Cipher => Operation::Encrypt { iv: [0; IV_BYTES_MAX], data: plain },
            Kind::Compression => {
                let out = vec![0; 2 * plain.len() + COMPRESSION_SLACK_BYTES];
                Operation::Compress { data: plain, out }
            }
            Kind::Hash => Operation::Digest { data: plain, out: vec![0; output] },
            Kind::Mac => Operation::Mac { data: plain, out: vec![0; output] },
            Kind::Hkdf => Operation::Expand { info: vec![0; 16], out: zeros(plain.len()) },
            Kind::Exchange => Operation::Agree { peer: input(), out: zeros(output) },
            Kind::Kem => Operation::Encapsulate {
                peer: input(),
                ciphertext: vec![0; algorithm.ciphertext_bytes().unwrap_or(0)],
                secret: zeros(output),
            },
            Kind::Signature => {
                Operation::Sign { message: plain, out: vec![0; session.signature_bytes_max()] }
            }
            Kind::Encryption => {
                Operation::PrivateDecrypt { ciphertext: input(), out: zeros(subject.input().len()) }
            }
            Kind::Random => Operation::Random { out: zeros(plain.len()) },
            Kind::Password => Operation::Derive {
                cost: cost(algorithm),
                password: Zeroizing::new(b"correct horse battery staple".to_vec()),
                salt: b"saltsaltsaltsalt".to_vec(),
                out: zeros(if output > 0 { output } else { DERIVED_BYTES }),
            },
        };
        self.renew(&mut operation);
        operation
    }

    /// Makes it ready to be run and checked again: another nonce, vector or text, and nothing left
    /// of the last result.
    pub(crate) fn renew(&mut self, operation: &mut Operation) {
        self.number += 1;
        let number = self.number.to_be_bytes();
        let stamp = |bytes: &mut [u8]| {
            bytes.iter_mut().zip(number.iter().rev()).for_each(|(byte, new)| *byte = *new);
        };
        match operation {
            Operation::Seal { nonce, data, tag, .. } => {
                stamp(nonce);
                *tag = [0; TAG_BYTES];
                if !data.is_empty() {
                    data.copy_from_slice(&self.plain);
                }
            }
            Operation::Protect { number, header_bytes, packet } => {
                *number = self.number;
                packet.fill(0);
                let (header, rest) = packet.split_at_mut(*header_bytes);
                header[..PACKET_HEADER.len()].copy_from_slice(&PACKET_HEADER);
                rest[..self.plain.len()].copy_from_slice(&self.plain);
            }
            Operation::Mask { sample, out } => {
                stamp(sample);
                out.fill(0);
            }
            Operation::Encrypt { iv, data } => {
                stamp(iv);
                data.copy_from_slice(&self.plain);
            }
            Operation::Chain { data, parts, .. } => {
                let (text, rest) = data.split_at_mut(self.plain.len());
                text.copy_from_slice(&self.plain);
                rest.fill(0);
                for part in parts {
                    if let Part::Cipher { iv: Iv::Given(iv), .. } = part {
                        stamp(iv);
                    }
                }
            }
            Operation::Compress { out, .. } => out.fill(0),
            Operation::Digest { data, out } | Operation::Mac { data, out } => {
                stamp(data);
                out.fill(0);
            }
            Operation::Sign { message, out } => {
                stamp(message);
                out.fill(0);
            }
            Operation::Expand { info, out } => {
                stamp(info);
                out.fill(0);
            }
            Operation::Agree { out, .. }
            | Operation::PrivateDecrypt { out, .. }
            | Operation::Random { out }
            | Operation::Derive { out, .. } => out.fill(0),
            Operation::Encapsulate { ciphertext, secret, .. } => {
                ciphertext.fill(0);
                secret.fill(0);
            }
            _ => {}
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
    let parts = parts.collect();
    let compresses = steps.iter().any(|step| step.kind() == Kind::Compression);
    data.resize(length + if compresses { text.end + COMPRESSION_SLACK_BYTES } else { 0 }, 0);
    Operation::Chain { direction: Direction::Protect, data, length, parts }
}

/// About what is asked of a login, so that one derivation takes some tens of milliseconds.
fn cost(algorithm: Algorithm) -> Cost {
    use Algorithm::*;
    match algorithm {
        Argon2id | Argon2i => Cost::Argon2 { memory_kib: 19_456, passes: 2, lanes: 1 },
        Scrypt => Cost::Scrypt { log_n: 14, r: 8, p: 1 },
        Bcrypt => Cost::Bcrypt { log_rounds: 9 },
        Md5Crypt => Cost::Md5Crypt,
        Sha256Crypt | Sha512Crypt => Cost::ShaCrypt { rounds: 5_000 },
        _ => Cost::Pbkdf2 { iterations: 10_000 },
    }
}
