//! RSAES-PKCS1-v1_5 without an oracle: a ciphertext whose padding is wrong decrypts to a message that is derived from
//! the key and the ciphertext (draft-irtf-cfrg-rsa-guidance; so do OpenSSL 3.2 and NSS). An attacker who sends chosen
//! ciphertexts learns nothing from the answer, and nothing from its time: no branch and no address depends on the
//! padding. The length of the message that is handed out does, as it does for a padding that is right.

use aws_lc_rs::{digest, hmac};
use subtle::{
    Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater, ConstantTimeLess,
};
use zeroize::Zeroizing;

/// Zero, two, and eight bytes of padding that are not zero, at least (RFC 8017 § 7.2.1).
const PADDING_BYTES_MIN: usize = 10;
/// Candidates of a length, of two bytes each: that none fits has a probability of 2^-128 at most.
const LENGTH_CANDIDATES: usize = 128;

/// The secret with which a key derives such messages.
pub(crate) struct Rejection {
    /// The hash of the private exponent, as a key of HMAC-SHA-256.
    key: hmac::Key,
}

impl Rejection {
    /// For a private exponent as long as the modulus.
    pub fn new(private_exponent: &[u8]) -> Rejection {
        let hashed = digest::digest(&digest::SHA256, private_exponent);
        Rejection { key: hmac::Key::new(hmac::HMAC_SHA256, hashed.as_ref()) }
    }

    /// Takes the padding off, and writes the message, or the one that stands for it, to the front of `out`. All
    /// three are as long as the modulus. Returns the message's length.
    pub fn unpad(&self, ciphertext: &[u8], padded: &[u8], out: &mut [u8]) -> usize {
        let bytes = padded.len();
        let key = hmac::sign(&self.key, ciphertext);
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_ref());
        let mut derived = Zeroizing::new(vec![0; bytes]);
        derive(&key, b"message", &mut derived);
        let derived_from = bytes - self.derived_length(&key, bytes);
        let (is_right, from) = message_start(padded);
        let from = select(is_right, from, derived_from);
        for (to, (right, derived)) in out.iter_mut().zip(padded.iter().zip(derived.iter())) {
            *to = u8::conditional_select(derived, right, is_right);
        }
        // Only the length shows from here on, and that is handed out.
        out.copy_within(from..bytes, 0);
        out[bytes - from..].fill(0);
        bytes - from
    }

    /// The length of the derived message: the last candidate that fits.
    fn derived_length(&self, key: &hmac::Key, bytes: usize) -> usize {
        let most = bytes - PADDING_BYTES_MIN;
        let mask = (most.next_power_of_two() - 1) | most;
        let mut candidates = [0; 2 * LENGTH_CANDIDATES];
        derive(key, b"length", &mut candidates);
        let (candidates, _) = candidates.as_chunks::<2>();
        candidates.iter().fold(0, |length, candidate| {
            let candidate = usize::from(u16::from_be_bytes(*candidate)) & mask;
            select((candidate as u64).ct_lt(&(most as u64)), candidate, length)
        })
    }
}

/// Whether a padding is right, and where the message behind it begins.
fn message_start(padded: &[u8]) -> (Choice, usize) {
    let [zero, two, rest @ ..] = padded else { return (Choice::from(0), padded.len()) };
    let (mut found, mut separator) = (Choice::from(0), 0);
    for (at, byte) in rest.iter().enumerate() {
        let is_first = byte.ct_eq(&0) & !found;
        separator = select(is_first, at + 2, separator);
        found |= is_first;
    }
    let is_late = (separator as u64).ct_gt(&(PADDING_BYTES_MIN as u64 - 1));
    (zero.ct_eq(&0) & two.ct_eq(&2) & found & is_late, separator + 1)
}

/// One of two numbers, without a branch.
fn select(choice: Choice, yes: usize, no: usize) -> usize {
    u64::conditional_select(&(no as u64), &(yes as u64), choice) as usize
}

/// Fills `out` with the draft's pseudorandom function: HMACs of a count, the label and the length in bits.
fn derive(key: &hmac::Key, label: &[u8], out: &mut [u8]) {
    let bits = (out.len() as u16 * 8).to_be_bytes();
    for (count, part) in out.chunks_mut(digest::SHA256_OUTPUT_LEN).enumerate() {
        let mut context = hmac::Context::with_key(key);
        context.update(&(count as u16).to_be_bytes());
        context.update(label);
        context.update(&bits);
        part.copy_from_slice(&context.sign().as_ref()[..part.len()]);
    }
}
