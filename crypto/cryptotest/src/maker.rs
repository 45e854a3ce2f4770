//! The operations that are run: made, and made ready to be run again.

use crate::subject::Subject;
use keyway_engine::workload::{self, PACKET_HEADER};
use keyway_engine::{Algorithm, Cost, Iv, Operation, Part, TAG_BYTES};
use std::sync::Arc;

/// Makes the operations of one thread, all of one size.
pub struct Maker {
    pub(crate) subject: Arc<Subject>,
    /// The first data of operations that work in place.
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
        let Subject { session, work, .. } = &*self.subject;
        if work.verifies {
            return self.subject.verification(&self.plain);
        }
        let (text, input) = (self.plain.clone(), self.subject.input().to_vec());
        let capacity = session.signature_bytes_max();
        let mut operation = workload::operation(&work.steps, text, input, capacity);
        if let Operation::Derive { cost, .. } = &mut operation {
            *cost = login_cost(work.algorithm());
        }
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
            Operation::Sign { message, out, .. } => {
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

/// About what is asked of a login, so that one derivation takes some tens of milliseconds.
fn login_cost(algorithm: Algorithm) -> Cost {
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
