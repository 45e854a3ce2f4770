//! The paddings that a caller may name.

use keyway_engine::Algorithm;

/// How a digest is padded before it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignaturePadding {
    /// RSASSA-PKCS1-v1_5 (RFC 8017 § 8.2): a digest of this hash, or without one the bytes as they are, which are
    /// the DER of a DigestInfo as a rule.
    Pkcs1(Option<Algorithm>),
    /// RSASSA-PSS (RFC 8017 § 8.1).
    Pss {
        /// The digest's hash.
        hash: Algorithm,
        /// The hash of MGF1.
        mgf1_hash: Algorithm,
        /// The length of the salt, in bytes; none for what a signature has that is verified.
        salt_bytes: Option<u16>,
    },
}

/// How a message is padded before it is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionPadding<'a> {
    /// RSAES-OAEP (RFC 8017 § 7.1).
    Oaep {
        /// The label's hash.
        hash: Algorithm,
        /// The hash of MGF1.
        mgf1_hash: Algorithm,
        /// The label.
        label: &'a [u8],
    },
    /// RSAES-PKCS1-v1_5 (RFC 8017 § 7.2).
    Pkcs1,
}

/// The library did not do it: a digest or a message of the wrong length, a hash that it has not, a signature or a
/// padding that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;
