//! A request that owns its bytes, for work that outlives the call it is submitted with.

use crate::limits::PUBLIC_KEY_BYTES_MAX;
use crate::request::name_of;
use crate::{
    Algorithm, Buffer, Class, Cost, Direction, Effort, IV_BYTES_MAX, MASK_BYTES, NONCE_BYTES,
    OaepParameters, Opened, Part, Request, SAMPLE_BYTES, SignatureParameters, TAG_BYTES,
};
use std::fmt;
use zeroize::Zeroizing;

/// One operation with its buffers; each variant is [`Request`]'s of the same name, which says what
/// the fields mean. The buffers come back with the result, to be used again. Data that streams
/// through may lie in lent memory.
// Its tag is a byte of its own: a queue asks for it often, and would have to work it out otherwise.
#[derive(Clone)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Operation {
    Seal {
        nonce: [u8; NONCE_BYTES],
        aad: Vec<u8>,
        data: Buffer,
        tag: [u8; TAG_BYTES],
    },
    Open {
        nonce: [u8; NONCE_BYTES],
        aad: Vec<u8>,
        data: Buffer,
    },
    Protect {
        number: u64,
        header_bytes: usize,
        packet: Buffer,
    },
    Unprotect {
        largest: Option<u64>,
        number_at: usize,
        packet: Buffer,
        opened: Opened,
    },
    Mask {
        sample: [u8; SAMPLE_BYTES],
        out: [u8; MASK_BYTES],
    },
    Encrypt {
        iv: [u8; IV_BYTES_MAX],
        data: Buffer,
    },
    Decrypt {
        iv: [u8; IV_BYTES_MAX],
        data: Buffer,
    },
    Compress {
        data: Buffer,
        out: Buffer,
    },
    Decompress {
        data: Buffer,
        out: Buffer,
    },
    Chain {
        direction: Direction,
        data: Buffer,
        length: usize,
        parts: Vec<Part>,
    },
    Digest {
        data: Buffer,
        out: Vec<u8>,
    },
    Mac {
        data: Buffer,
        out: Vec<u8>,
    },
    Expand {
        info: Vec<u8>,
        out: Zeroizing<Vec<u8>>,
    },
    PublicKey {
        out: Vec<u8>,
    },
    Agree {
        peer: Vec<u8>,
        out: Zeroizing<Vec<u8>>,
    },
    Encapsulate {
        peer: Vec<u8>,
        ciphertext: Vec<u8>,
        secret: Zeroizing<Vec<u8>>,
    },
    Decapsulate {
        ciphertext: Vec<u8>,
        secret: Zeroizing<Vec<u8>>,
    },
    Sign {
        message: Vec<u8>,
        parameters: SignatureParameters,
        out: Vec<u8>,
    },
    Verify {
        public_key: Vec<u8>,
        message: Vec<u8>,
        parameters: SignatureParameters,
        signature: Vec<u8>,
    },
    PublicEncrypt {
        public_key: Vec<u8>,
        message: Vec<u8>,
        parameters: OaepParameters,
        label: Vec<u8>,
        out: Vec<u8>,
    },
    PrivateDecrypt {
        ciphertext: Vec<u8>,
        parameters: OaepParameters,
        label: Vec<u8>,
        out: Zeroizing<Vec<u8>>,
    },
    Random {
        out: Zeroizing<Vec<u8>>,
    },
    Derive {
        cost: Cost,
        password: Zeroizing<Vec<u8>>,
        salt: Vec<u8>,
        out: Zeroizing<Vec<u8>>,
    },
    VerifyPassword {
        effort: Effort,
        cost: Cost,
        entry: Vec<u8>,
        password: Zeroizing<Vec<u8>>,
        salt: Vec<u8>,
        expected: Vec<u8>,
    },
}

impl fmt::Debug for Operation {
    /// Its name and its bytes; its data may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({}, {} bytes)", self.name(), self.bytes())
    }
}

/// One for each variant, with room for what is put out.
#[allow(missing_docs)]
impl Operation {
    pub fn seal(
        nonce: [u8; NONCE_BYTES],
        aad: impl Into<Vec<u8>>,
        text: impl Into<Buffer>,
    ) -> Self {
        let (aad, data) = (aad.into(), text.into());
        Operation::Seal { nonce, aad, data, tag: [0; TAG_BYTES] }
    }

    /// `data` is ciphertext and tag.
    pub fn open(
        nonce: [u8; NONCE_BYTES],
        aad: impl Into<Vec<u8>>,
        data: impl Into<Buffer>,
    ) -> Self {
        Operation::Open { nonce, aad: aad.into(), data: data.into() }
    }

    pub fn protect(number: u64, header_bytes: usize, packet: impl Into<Buffer>) -> Self {
        Operation::Protect { number, header_bytes, packet: packet.into() }
    }

    pub fn unprotect(largest: Option<u64>, number_at: usize, packet: impl Into<Buffer>) -> Self {
        let (packet, opened) = (packet.into(), Opened::default());
        Operation::Unprotect { largest, number_at, packet, opened }
    }

    pub fn mask(sample: [u8; SAMPLE_BYTES]) -> Self {
        Operation::Mask { sample, out: [0; MASK_BYTES] }
    }

    pub fn encrypt(iv: [u8; IV_BYTES_MAX], data: impl Into<Buffer>) -> Self {
        Operation::Encrypt { iv, data: data.into() }
    }

    pub fn decrypt(iv: [u8; IV_BYTES_MAX], data: impl Into<Buffer>) -> Self {
        Operation::Decrypt { iv, data: data.into() }
    }

    /// `capacity` is the most bytes that may come out.
    pub fn compress(data: impl Into<Buffer>, capacity: usize) -> Self {
        Operation::Compress { data: data.into(), out: vec![0; capacity].into() }
    }

    /// `capacity` is the most bytes that may come out.
    pub fn decompress(data: impl Into<Buffer>, capacity: usize) -> Self {
        Operation::Decompress { data: data.into(), out: vec![0; capacity].into() }
    }

    /// The message is all of `data`, to which `capacity` bytes are added for steps that make it
    /// longer. Lent memory does not grow: put it into the variant.
    pub fn chain(
        direction: Direction,
        data: impl Into<Vec<u8>>,
        capacity: usize,
        parts: impl Into<Vec<Part>>,
    ) -> Self {
        let mut data = data.into();
        let length = data.len();
        data.resize(length + capacity, 0);
        Operation::Chain { direction, data: data.into(), length, parts: parts.into() }
    }

    pub fn digest(algorithm: Algorithm, data: impl Into<Buffer>) -> Self {
        Operation::Digest { data: data.into(), out: put_out(algorithm) }
    }

    pub fn mac(algorithm: Algorithm, data: impl Into<Buffer>) -> Self {
        Operation::Mac { data: data.into(), out: put_out(algorithm) }
    }

    /// `bytes` are to come out.
    pub fn expand(info: impl Into<Vec<u8>>, bytes: usize) -> Self {
        Operation::Expand { info: info.into(), out: vec![0; bytes].into() }
    }

    pub fn public_key(algorithm: Algorithm) -> Self {
        let capacity = algorithm.public_key_bytes().unwrap_or(PUBLIC_KEY_BYTES_MAX);
        Operation::PublicKey { out: vec![0; capacity] }
    }

    pub fn agree(algorithm: Algorithm, peer: impl Into<Vec<u8>>) -> Self {
        Operation::Agree { peer: peer.into(), out: put_out(algorithm).into() }
    }

    pub fn encapsulate(algorithm: Algorithm, peer: impl Into<Vec<u8>>) -> Self {
        let ciphertext = vec![0; algorithm.ciphertext_bytes().unwrap_or(0)];
        Operation::Encapsulate { peer: peer.into(), ciphertext, secret: put_out(algorithm).into() }
    }

    pub fn decapsulate(algorithm: Algorithm, ciphertext: impl Into<Vec<u8>>) -> Self {
        let (ciphertext, secret) = (ciphertext.into(), put_out(algorithm).into());
        Operation::Decapsulate { ciphertext, secret }
    }

    pub fn verify(
        public_key: impl Into<Vec<u8>>,
        message: impl Into<Vec<u8>>,
        signature: impl Into<Vec<u8>>,
    ) -> Self {
        let (public_key, message) = (public_key.into(), message.into());
        let (parameters, signature) = (SignatureParameters::default(), signature.into());
        Operation::Verify { public_key, message, parameters, signature }
    }

    /// `capacity` is as many bytes as the modulus has, or more.
    pub fn public_encrypt(
        public_key: impl Into<Vec<u8>>,
        message: impl Into<Vec<u8>>,
        capacity: usize,
    ) -> Self {
        let (public_key, message) = (public_key.into(), message.into());
        let (parameters, label) = (OaepParameters::default(), Vec::new());
        Operation::PublicEncrypt { public_key, message, parameters, label, out: vec![0; capacity] }
    }

    /// `capacity` is as many bytes as the modulus has, or more.
    pub fn private_decrypt(ciphertext: impl Into<Vec<u8>>, capacity: usize) -> Self {
        Operation::PrivateDecrypt {
            ciphertext: ciphertext.into(),
            parameters: OaepParameters::default(),
            label: Vec::new(),
            out: vec![0; capacity].into(),
        }
    }

    pub fn random(bytes: usize) -> Self {
        Operation::Random { out: vec![0; bytes].into() }
    }

    /// `bytes` are to come out.
    pub fn derive(
        cost: Cost,
        password: Zeroizing<Vec<u8>>,
        salt: impl Into<Vec<u8>>,
        bytes: usize,
    ) -> Self {
        Operation::Derive { cost, password, salt: salt.into(), out: vec![0; bytes].into() }
    }
}

/// Room for what an algorithm puts out.
fn put_out(algorithm: Algorithm) -> Vec<u8> {
    vec![0; algorithm.output_bytes().unwrap_or(0)]
}

impl Operation {
    /// The kind of the request, in a word or two, as it is written in messages.
    pub const fn name(&self) -> &'static str {
        name_of!(Operation, self)
    }

    /// The buffer that the result is in: where it works in place, what it works on, without the
    /// tag of [`Operation::Seal`]; of [`Operation::Encapsulate`] the ciphertext. Empty for
    /// [`Operation::Verify`] and [`Operation::VerifyPassword`]. How much of it counts, the task's
    /// result says.
    pub fn output(&self) -> &[u8] {
        match self {
            Operation::Seal { data, .. }
            | Operation::Open { data, .. }
            | Operation::Encrypt { data, .. }
            | Operation::Decrypt { data, .. }
            | Operation::Chain { data, .. } => data,
            Operation::Protect { packet, .. } | Operation::Unprotect { packet, .. } => packet,
            Operation::Mask { out, .. } => out,
            Operation::Compress { out, .. } | Operation::Decompress { out, .. } => out,
            Operation::Digest { out, .. }
            | Operation::Mac { out, .. }
            | Operation::PublicKey { out }
            | Operation::Sign { out, .. }
            | Operation::PublicEncrypt { out, .. } => out,
            Operation::Expand { out, .. }
            | Operation::Agree { out, .. }
            | Operation::PrivateDecrypt { out, .. }
            | Operation::Random { out }
            | Operation::Derive { out, .. } => out,
            Operation::Encapsulate { ciphertext, .. } => ciphertext,
            Operation::Decapsulate { secret, .. } => secret,
            Operation::Verify { .. } | Operation::VerifyPassword { .. } => &[],
        }
    }

    /// The secret that both sides have, of [`Operation::Encapsulate`] and
    /// [`Operation::Decapsulate`].
    pub fn secret(&self) -> Option<&[u8]> {
        match self {
            Operation::Encapsulate { secret, .. } | Operation::Decapsulate { secret, .. } => {
                Some(secret)
            }
            _ => None,
        }
    }

    /// The tag, of [`Operation::Seal`].
    pub fn tag(&self) -> Option<&[u8; TAG_BYTES]> {
        match self {
            Operation::Seal { tag, .. } => Some(tag),
            _ => None,
        }
    }

    /// The nonce, of [`Operation::Seal`] and [`Operation::Open`]; where the session makes its own,
    /// afterwards the one that it made.
    pub fn nonce(&self) -> Option<&[u8; NONCE_BYTES]> {
        match self {
            Operation::Seal { nonce, .. } | Operation::Open { nonce, .. } => Some(nonce),
            _ => None,
        }
    }

    /// Calls `f` with the request that this is.
    #[inline]
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Request<'_>) -> R) -> R {
        match self {
            Operation::Seal { nonce, aad, data, tag } => {
                f(&mut Request::Seal { nonce, aad, data, tag })
            }
            Operation::Open { nonce, aad, data } => f(&mut Request::Open { nonce, aad, data }),
            Operation::Protect { number, header_bytes, packet } => {
                f(&mut Request::Protect { number: *number, header_bytes: *header_bytes, packet })
            }
            Operation::Unprotect { largest, number_at, packet, opened } => {
                let (largest, number_at) = (*largest, *number_at);
                f(&mut Request::Unprotect { largest, number_at, packet, opened })
            }
            Operation::Mask { sample, out } => f(&mut Request::Mask { sample, out }),
            Operation::Encrypt { iv, data } => f(&mut Request::Encrypt { iv, data }),
            Operation::Decrypt { iv, data } => f(&mut Request::Decrypt { iv, data }),
            Operation::Compress { data, out } => f(&mut Request::Compress { data, out }),
            Operation::Decompress { data, out } => f(&mut Request::Decompress { data, out }),
            Operation::Chain { direction, data, length, parts } => {
                f(&mut Request::Chain { direction: *direction, data, length: *length, parts })
            }
            Operation::Digest { data, out } => f(&mut Request::Digest { data: &[data], out }),
            Operation::Mac { data, out } => f(&mut Request::Mac { data: &[data], out }),
            Operation::Expand { info, out } => f(&mut Request::Expand { info: &[info], out }),
            Operation::PublicKey { out } => f(&mut Request::PublicKey { out }),
            Operation::Agree { peer, out } => f(&mut Request::Agree { peer, out }),
            Operation::Encapsulate { peer, ciphertext, secret } => {
                f(&mut Request::Encapsulate { peer, ciphertext, secret })
            }
            Operation::Decapsulate { ciphertext, secret } => {
                f(&mut Request::Decapsulate { ciphertext, secret })
            }
            Operation::Sign { message, parameters, out } => {
                f(&mut Request::Sign { message, parameters: *parameters, out })
            }
            Operation::Verify { public_key, message, parameters, signature } => {
                let parameters = *parameters;
                f(&mut Request::Verify { public_key, message, parameters, signature })
            }
            Operation::PublicEncrypt { public_key, message, parameters, label, out } => {
                let parameters = *parameters;
                f(&mut Request::PublicEncrypt { public_key, message, parameters, label, out })
            }
            Operation::PrivateDecrypt { ciphertext, parameters, label, out } => {
                let parameters = *parameters;
                f(&mut Request::PrivateDecrypt { ciphertext, parameters, label, out })
            }
            Operation::Random { out } => f(&mut Request::Random { out }),
            Operation::Derive { cost, password, salt, out } => {
                f(&mut Request::Derive { cost: *cost, password, salt, out })
            }
            Operation::VerifyPassword { effort, cost, entry, password, salt, expected } => {
                let (effort, cost) = (*effort, *cost);
                f(&mut Request::VerifyPassword { effort, cost, entry, password, salt, expected })
            }
        }
    }

    /// Bytes worked on, for meters and costs; see [`Request::bytes`].
    #[inline]
    pub fn bytes(&self) -> usize {
        match self {
            Operation::Seal { data, .. }
            | Operation::Encrypt { data, .. }
            | Operation::Decrypt { data, .. }
            | Operation::Compress { data, .. }
            | Operation::Decompress { data, .. }
            | Operation::Digest { data, .. }
            | Operation::Mac { data, .. } => data.len(),
            Operation::Open { data, .. } => data.len().saturating_sub(TAG_BYTES),
            Operation::Protect { packet, .. } | Operation::Unprotect { packet, .. } => packet.len(),
            Operation::Mask { .. } => MASK_BYTES,
            Operation::Chain { data, length, .. } => data.len().min(*length),
            Operation::Sign { message, .. }
            | Operation::Verify { message, .. }
            | Operation::PublicEncrypt { message, .. } => message.len(),
            Operation::PrivateDecrypt { ciphertext, .. } => ciphertext.len(),
            Operation::Expand { out, .. }
            | Operation::Random { out }
            | Operation::Derive { out, .. } => out.len(),
            Operation::VerifyPassword { expected, .. } => expected.len(),
            Operation::PublicKey { .. }
            | Operation::Agree { .. }
            | Operation::Encapsulate { .. }
            | Operation::Decapsulate { .. } => 0,
        }
    }

    /// See [`Request::is_recall`].
    #[inline]
    pub(crate) fn is_recall(&self) -> bool {
        matches!(self, Operation::VerifyPassword { effort: Effort::Recall, .. })
    }

    /// The class it runs in; see [`Request::class`].
    #[inline]
    pub fn class(&mut self, algorithm: Algorithm) -> Class {
        match self {
            Operation::Derive { .. }
            | Operation::VerifyPassword { .. }
            | Operation::PrivateDecrypt { .. }
            | Operation::Sign { .. }
            | Operation::Agree { .. } => self.with(|request| request.class(algorithm)),
            _ => Class::Fast,
        }
    }
}
