//! An algorithm or a chain, keys that fit it, and the outputs of its operations.

use fastrand::Rng;
use keyway_engine::{Algorithm, Key, Kind, NONCE_BYTES, Operation, PacketKey, PacketKeys};

/// Keys for tests only, made with OpenSSL.
pub(crate) const RSA_2048: &[u8] = include_bytes!("../keys/rsa-2048.pkcs8");
const P256: &[u8] = include_bytes!("../keys/p256.pkcs8");
const P384: &[u8] = include_bytes!("../keys/p384.pkcs8");
const ED25519: &[u8] = include_bytes!("../keys/ed25519.pkcs8");

/// An algorithm, or the steps of a chain.
pub(crate) struct Work {
    pub steps: Vec<Algorithm>,
}

impl Work {
    pub fn new(steps: &[Algorithm]) -> Work {
        Work { steps: steps.to_vec() }
    }

    pub fn label(&self) -> String {
        let names: Vec<_> = self.steps.iter().map(|step| step.name()).collect();
        names.join("+")
    }

    /// `None` for a chain.
    pub fn algorithm(&self) -> Option<Algorithm> {
        match *self.steps {
            [algorithm] => Some(algorithm),
            _ => None,
        }
    }

    /// Whether one request takes so long that few have to do.
    pub fn is_heavy(&self) -> bool {
        self.algorithm().is_some_and(|algorithm| {
            !algorithm.kind().is_fast() || matches!(algorithm.kind(), Kind::Kem)
        })
    }
}

/// A key that can be used twice.
pub(crate) enum OwnKey {
    None,
    Secret(Vec<u8>),
    Extract(Vec<u8>, Vec<u8>),
    Packet(Box<OwnPacketKeys>),
    Generate,
    Pkcs8(Vec<u8>),
}

impl OwnKey {
    pub fn view(&self) -> Key<'_> {
        match self {
            OwnKey::None => Key::None,
            OwnKey::Secret(secret) => Key::Secret(secret),
            OwnKey::Extract(salt, secret) => Key::Extract { salt, secret },
            OwnKey::Packet(keys) => Key::Packet(keys.view()),
            OwnKey::Generate => Key::Generate,
            OwnKey::Pkcs8(der) => Key::Pkcs8(der),
        }
    }
}

/// Keys of QUIC's packets, before and after an update too.
pub(crate) struct OwnPacketKeys {
    header: Vec<u8>,
    keys: [(Vec<u8>, [u8; NONCE_BYTES]); 3],
}

impl OwnPacketKeys {
    fn new(rng: &mut Rng, length: usize) -> Self {
        let header = bytes(rng, length);
        let keys = [(); 3].map(|()| {
            let mut iv = [0; NONCE_BYTES];
            rng.fill(&mut iv);
            (bytes(rng, length), iv)
        });
        OwnPacketKeys { header, keys }
    }

    fn view(&self) -> PacketKeys<'_> {
        let [current, previous, next] = self.keys.each_ref().map(|(key, iv)| PacketKey { key, iv });
        let (previous, next) = (Some(previous), Some(next));
        let (phase, since) = (true, PHASE_SINCE);
        PacketKeys { header: &self.header, current, phase, since, previous, next }
    }
}

/// The first packet number under the key in use.
pub(crate) const PHASE_SINCE: u64 = 1 << 20;

pub(crate) fn bytes(rng: &mut Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    bytes
}

/// Keys that fit, the best for comparing first; a driver need not take more than one of them.
pub(crate) fn keys(algorithm: Algorithm, rng: &mut Rng) -> Vec<OwnKey> {
    use Algorithm::*;
    use OwnKey::*;
    if let (Kind::Packet, Some(length)) = (algorithm.kind(), algorithm.key_bytes()) {
        return vec![Packet(Box::new(OwnPacketKeys::new(rng, length)))];
    }
    if let Some(length) = algorithm.key_bytes() {
        return vec![Secret(bytes(rng, length))];
    }
    match algorithm {
        // Around the block of the hash, where HMAC begins to hash its key.
        HmacSha1 | HmacSha256 | HmacSha384 | HmacSha512 => {
            let lengths = [1, 16, 20, 32, 48, 63, 64, 65, 127, 128, 129, 200];
            let length = lengths[rng.usize(..lengths.len())];
            vec![Secret(bytes(rng, length))]
        }
        HkdfSha256 | HkdfSha384 if rng.bool() => {
            vec![Secret(bytes(rng, algorithm.output_bytes().unwrap_or(32)))]
        }
        HkdfSha256 | HkdfSha384 => {
            let (salt, secret) = (rng.usize(..80), rng.usize(1..100));
            vec![Extract(bytes(rng, salt), bytes(rng, secret))]
        }
        X25519 | EcdhP256 | EcdhP384 | EcdhP521 => {
            let mut scalar = bytes(rng, algorithm.output_bytes().unwrap_or(32));
            // Below the order of every group here, and not zero.
            scalar[0] = match algorithm {
                EcdhP521 => 0,
                _ => scalar[0] & 0x7f | 1,
            };
            vec![Secret(scalar), Generate]
        }
        EcdsaP256 | EcdsaP256Sha256 | EcdsaP256Sha384 => vec![Pkcs8(P256.to_vec()), Generate, None],
        EcdsaP384 | EcdsaP384Sha256 | EcdsaP384Sha384 => {
            vec![Pkcs8(P384.to_vec()), Generate, None]
        }
        EcdsaP521 => vec![Generate, None],
        Ed25519 => vec![Pkcs8(ED25519.to_vec()), Generate, None],
        MlDsa44 | MlDsa65 | MlDsa87 => vec![Generate, None],
        _ => match algorithm.kind() {
            Kind::Signature | Kind::Encryption => vec![Pkcs8(RSA_2048.to_vec()), None],
            // An exponent of 384 bits, enough for the largest group (RFC 7919 § 5.2).
            Kind::Exchange => vec![Secret(bytes(rng, 48)), Generate],
            Kind::Kem => vec![Generate, None],
            // With a pepper and without.
            Kind::Password if rng.bool() => vec![Secret(bytes(rng, 32)), None],
            _ => vec![None],
        },
    }
}

/// The outputs of an operation that ended with this result.
pub(crate) fn outputs(operation: &Operation, result: usize) -> Vec<&[u8]> {
    let front = |out: &'_ [u8]| result.min(out.len());
    match operation {
        Operation::Seal { data, tag, .. } => vec![data, tag],
        Operation::Protect { packet, .. } => vec![packet],
        // Header and text; the bytes behind them, where the tag was, may be anything.
        Operation::Unprotect { packet, opened, .. } => {
            let end = (opened.header_bytes + result).min(packet.len());
            vec![&packet[..end]]
        }
        Operation::Mask { out, .. } => vec![out],
        Operation::Open { data, .. } | Operation::Chain { data, .. } => vec![&data[..front(data)]],
        Operation::Encrypt { data, .. } | Operation::Decrypt { data, .. } => vec![data],
        Operation::Compress { out, .. } | Operation::Decompress { out, .. } => {
            vec![&out[..front(out)]]
        }
        Operation::PublicKey { out }
        | Operation::Sign { out, .. }
        | Operation::PublicEncrypt { out, .. } => vec![&out[..front(out)]],
        Operation::PrivateDecrypt { out, .. } => vec![&out[..front(out)]],
        Operation::Digest { out, .. } | Operation::Mac { out, .. } => vec![out],
        Operation::Expand { out, .. }
        | Operation::Agree { out, .. }
        | Operation::Random { out }
        | Operation::Derive { out, .. } => vec![out],
        Operation::Encapsulate { ciphertext, secret, .. } => vec![ciphertext, secret],
        Operation::Decapsulate { secret, .. } => vec![secret],
        Operation::Verify { .. } | Operation::VerifyPassword { .. } => vec![],
    }
}
