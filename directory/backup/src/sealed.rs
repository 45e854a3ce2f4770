//! Sealed files: pieces of files, lists, manifests and pieces of the feed.
//!
//! `KWYB`, version of the format (1 byte), kind (1), length of the label (1), length of the sealed part (4,
//! little-endian), label, nonce (12); then the sealed part, AES-256-GCM's ciphertext and tag (16). All before the
//! nonce is authenticated. The label is the file's name: that of a chunk, of a backup, or history and positions
//! of a piece of the feed. So a file in another's place is told from one that was altered.
//!
//! In the ciphertext are one byte for the form (0 as it is, 1 a frame of zstd), the length of the text (4,
//! little-endian), and the text, compressed where that makes it shorter. So the lengths of files show a little
//! of how well their content compresses, and nothing more.
//!
//! Two keys are derived from the repository's secret by HKDF-SHA-256, salted with the repository's identity:
//! one of HMAC-SHA-256 names chunks, one of AES-256-GCM seals all files. Each process draws the start of its
//! nonces at random and counts from there (`Nonces::Salted`).

use crate::error::{Error, Fault};
use crate::header::{ID_BYTES, RootSecret};
use crate::limits::{NAME_BYTES, ZSTD_LEVEL};
use crate::name::Name;
use keyway_engine::{
    Algorithm, Engine, Key, NONCE_BYTES, Nonces, Parameters, Request, Session, TAG_BYTES, Usage,
};
use zeroize::Zeroizing;
use zstd_safe::CCtx;

const MAGIC: &[u8; 4] = b"KWYB";
/// The only version of the format.
const VERSION: u8 = 1;
/// Magic number, version, kind and two lengths.
const FIXED_BYTES: usize = MAGIC.len() + 1 + 1 + 1 + 4;
/// Form and length of the text.
const FORM_BYTES: usize = 1 + 4;
const RAW: u8 = 0;
const ZSTD: u8 = 1;
/// Longest part of a sealed file that is not its text, in bytes.
pub(crate) const OVERHEAD_BYTES_MAX: usize =
    FIXED_BYTES + u8::MAX as usize + NONCE_BYTES + FORM_BYTES + TAG_BYTES;
/// How much of a chunk is not its text, in bytes.
pub(crate) const CHUNK_OVERHEAD_BYTES: u64 =
    (FIXED_BYTES + NAME_BYTES + NONCE_BYTES + FORM_BYTES + TAG_BYTES) as u64;

/// The kinds of sealed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A piece of a file.
    Piece = 1,
    /// The names of chunks.
    List = 2,
    /// The contents of a backup.
    Manifest = 3,
    /// A piece of the feed.
    Segment = 4,
}

/// A sealed file, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// A [`Kind`], or another byte.
    pub kind: u8,
    /// The name that it was written under.
    pub label: &'a [u8],
    /// The part that is authenticated but not sealed.
    head: &'a [u8],
    nonce: [u8; NONCE_BYTES],
    /// Where ciphertext and tag begin.
    sealed_at: usize,
}

impl<'a> Envelope<'a> {
    /// Takes the bytes of a file apart.
    ///
    /// # Errors
    /// The fault of these bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let (fixed, rest) = bytes.split_at_checked(FIXED_BYTES).ok_or(Fault::Truncated)?;
        let fixed = fixed.strip_prefix(MAGIC).ok_or(Fault::Altered)?;
        let &[version, kind, label_bytes, a, b, c, d] = fixed else { return Err(Fault::Altered) };
        if version != VERSION {
            return Err(Fault::Unfit(
                "a later version of this program wrote it, or it was altered",
            ));
        }
        let sealed_bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        let (label, rest) =
            rest.split_at_checked(usize::from(label_bytes)).ok_or(Fault::Truncated)?;
        let (nonce, sealed) = rest.split_first_chunk().ok_or(Fault::Truncated)?;
        if sealed.len() < sealed_bytes {
            return Err(Fault::Truncated);
        }
        if sealed.len() > sealed_bytes || sealed_bytes < TAG_BYTES {
            return Err(Fault::Altered);
        }
        let head = bytes.get(..FIXED_BYTES + label.len()).ok_or(Fault::Truncated)?;
        Ok(Envelope { kind, label, head, nonce: *nonce, sealed_at: head.len() + NONCE_BYTES })
    }
}

/// A thread's means to compress.
pub(crate) struct Compressor {
    context: CCtx<'static>,
    out: Zeroizing<Vec<u8>>,
}

impl Compressor {
    pub fn new() -> Result<Self, Error> {
        let none = || Error::Unfit("there is no memory to compress with".to_owned());
        let context = CCtx::try_create().ok_or_else(none)?;
        Ok(Compressor { context, out: Zeroizing::default() })
    }

    /// The text in the form that is shorter.
    fn pack<'a>(&'a mut self, text: &'a [u8]) -> Result<(u8, &'a [u8]), Error> {
        let bound = zstd_safe::compress_bound(text.len());
        if self.out.capacity() < bound {
            self.out = Zeroizing::new(Vec::with_capacity(bound));
        }
        let compressed =
            self.context.compress(&mut *self.out, text, ZSTD_LEVEL).map_err(|code| {
                Error::Unfit(format!("zstd failed: {}", zstd_safe::get_error_name(code)))
            })?;
        Ok(match self.out.get(..compressed) {
            Some(shorter) if compressed < text.len() => (ZSTD, shorter),
            _ => (RAW, text),
        })
    }
}

/// Reads what was sealed: form, length, and the text in that form.
///
/// # Errors
/// If it is no text of so many bytes at most.
pub fn unpack(packed: &[u8], bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, Fault> {
    const WRONG: Fault = Fault::Unfit("what was sealed is not what this program seals");
    let &[form, a, b, c, d, ref body @ ..] = packed else { return Err(WRONG) };
    let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
    if bytes > bytes_max {
        return Err(WRONG);
    }
    let mut text = Zeroizing::new(Vec::with_capacity(bytes));
    match form {
        RAW => text.extend_from_slice(if body.len() <= bytes { body } else { &[] }),
        ZSTD => {
            zstd_safe::decompress(&mut *text, body).map_err(|_| WRONG)?;
        }
        _ => return Err(WRONG),
    }
    if text.len() == bytes { Ok(text) } else { Err(WRONG) }
}

/// The keys of a repository.
pub(crate) struct Vault {
    naming: Session,
    sealing: Session,
    opening: Session,
}

impl Vault {
    pub fn new(engine: &Engine, id: &[u8; ID_BYTES], secret: &RootSecret) -> Result<Self, Error> {
        let extract = Key::Extract { salt: id, secret: &secret[..] };
        let root = engine.session(Parameters::new(Algorithm::HkdfSha256, extract))?;
        let derive = |info: &[u8]| -> Result<Zeroizing<[u8; 32]>, Error> {
            let mut key = Zeroizing::new([0; 32]);
            root.run(&mut Request::Expand { info: &[info], out: &mut *key })?;
            Ok(key)
        };
        let (names, content) = (derive(b"keyway backup names")?, derive(b"keyway backup content")?);
        let aead = || Parameters::new(Algorithm::Aes256Gcm, Key::Secret(&*content));
        Ok(Vault {
            naming: engine.session(Parameters::new(Algorithm::HmacSha256, Key::Secret(&*names)))?,
            sealing: engine.session(aead().nonces(Nonces::Salted).usage(Usage::RANDOM_NONCES))?,
            opening: engine.session(aead())?,
        })
    }

    /// The name of a chunk with this text.
    pub fn name(&self, kind: Kind, text: &[u8]) -> Result<Name, Error> {
        let mut name = [0; NAME_BYTES];
        self.naming.run(&mut Request::Mac { data: &[&[kind as u8], text], out: &mut name })?;
        Ok(Name(name))
    }

    /// The bytes of a file. `label` has at most 255 bytes.
    pub fn seal(
        &self,
        compressor: &mut Compressor,
        kind: Kind,
        label: &[u8],
        text: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let too_long = |_| Error::Unfit("a file to seal is too long".to_owned());
        let text_bytes = u32::try_from(text.len()).map_err(too_long)?;
        let (form, body) = compressor.pack(text)?;
        let sealed_bytes = FORM_BYTES + body.len() + TAG_BYTES;
        let mut file = Zeroizing::new(Vec::with_capacity(
            FIXED_BYTES + label.len() + NONCE_BYTES + sealed_bytes,
        ));
        file.extend_from_slice(MAGIC);
        let label_bytes = u8::try_from(label.len()).map_err(too_long)?;
        file.extend_from_slice(&[VERSION, kind as u8, label_bytes]);
        file.extend_from_slice(&u32::try_from(sealed_bytes).map_err(too_long)?.to_le_bytes());
        file.extend_from_slice(label);
        let head = file.len();
        file.extend_from_slice(&[0; NONCE_BYTES]);
        file.push(form);
        file.extend_from_slice(&text_bytes.to_le_bytes());
        file.extend_from_slice(body);
        let (head, rest) = file.split_at_mut(head);
        let (nonce_at, text) = rest.split_at_mut(NONCE_BYTES);
        let (nonce, tag) = self.sealing.seal_next(head, text)?;
        nonce_at.copy_from_slice(&nonce);
        file.extend_from_slice(&tag);
        // It is sealed: nothing of it has to be wiped.
        Ok(std::mem::take(&mut *file))
    }

    /// The text of a file.
    pub fn open(
        &self,
        kind: Kind,
        label: &[u8],
        bytes: Vec<u8>,
        text_bytes_max: usize,
    ) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let mut bytes = Zeroizing::new(bytes);
        let envelope = Envelope::parse(&bytes)?;
        let is_in_place = envelope.kind == kind as u8 && envelope.label == label;
        let (head, nonce) = (envelope.head.to_vec(), envelope.nonce);
        let sealed_at = envelope.sealed_at;
        let sealed = bytes.get_mut(sealed_at..).ok_or(Fault::Truncated)?;
        let text_bytes = match self.opening.open_in_place(&nonce, &head, sealed) {
            Ok(text_bytes) => text_bytes,
            Err(keyway_engine::Error::Authentication) => return Err(Fault::Altered),
            Err(why) => return Err(Fault::Unreadable(format!("the engine failed: {why}"))),
        };
        if !is_in_place {
            return Err(Fault::Misplaced);
        }
        unpack(sealed.get(..text_bytes).ok_or(Fault::Truncated)?, text_bytes_max)
    }
}
