//! Records, cut out of a stream and opened (RFC 8446 § 5, RFC 5246 § 6).

use super::keys::Secret;
use super::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, Reason};
use crate::limits::{RECORD_NUMBERS_TRIED, RECORDS_TRIED};
use keyway_engine::{Algorithm, Engine, Key, NONCE_BYTES, Parameters, Request, Session, TAG_BYTES};
use zeroize::Zeroizing;

const HEADER_BYTES: usize = 5;
/// The bytes of a record at most, with those that a cipher adds.
const RECORD_BYTES_MAX: usize = (1 << 14) + 2048;
/// The bytes of each nonce that AES-GCM of TLS 1.2 sends (RFC 5288).
const EXPLICIT_BYTES: usize = 8;
const SALT_BYTES: usize = NONCE_BYTES - EXPLICIT_BYTES;

/// Whether octets begin with a record.
pub(crate) fn looks_like_tls(octets: &[u8]) -> bool {
    matches!(octets, [0x14..=0x17, 0x03, 0x00..=0x04, ..])
}

/// One direction's octets.
#[derive(Debug, Default)]
pub(super) struct Records {
    octets: Vec<u8>,
    start: usize,
    spare: Vec<u8>,
    /// After a gap: how many records were tried since, while it is not known where one begins.
    tried: Option<usize>,
}

impl Records {
    pub(super) fn push(&mut self, octets: &[u8]) {
        if self.start > 0 {
            self.octets.drain(..self.start);
            self.start = 0;
        }
        self.octets.extend_from_slice(octets);
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.octets.capacity()
    }

    pub(super) fn lose(&mut self) {
        self.octets.clear();
        self.start = 0;
        self.tried = Some(0);
    }

    /// Room for a record again.
    pub(super) fn give_back(&mut self, record: Vec<u8>) {
        self.spare = record;
    }

    /// The type and the contents of the next whole record, opened if there is a key.
    pub(super) fn next(
        &mut self,
        mut opener: Option<&mut Opener>,
    ) -> Result<Option<(u8, Vec<u8>)>, Reason> {
        loop {
            let octets = self.octets.get(self.start..).unwrap_or_default();
            let Some(header) = octets.first_chunk::<HEADER_BYTES>().copied() else {
                return Ok(None);
            };
            let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
            let is_record = looks_like_tls(&header) && length <= RECORD_BYTES_MAX;
            if !is_record && self.tried.is_some() {
                self.start += 1;
                continue;
            }
            if !is_record {
                return Err("the following octets are not TLS".into());
            }
            let Some(payload) = octets.get(HEADER_BYTES..HEADER_BYTES + length) else {
                return Ok(None);
            };
            let mut record = std::mem::take(&mut self.spare);
            record.clear();
            record.extend_from_slice(payload);
            let kind = header[0];
            let Some(opener) = opener.as_deref_mut().filter(|_| kind != CHANGE_CIPHER_SPEC) else {
                self.start += HEADER_BYTES + length;
                return Ok(Some((kind, record)));
            };
            if let Some(tried) = self.tried {
                if opener.find(&header, &mut record) {
                    self.tried = None;
                } else if tried >= RECORDS_TRIED {
                    return Err("TLS after a gap: no record can be opened any more".into());
                } else {
                    (self.start, self.tried) = (self.start + 1, Some(tried + 1));
                    continue;
                }
            }
            self.start += HEADER_BYTES + length;
            let kind = opener.open(&header, &mut record)?;
            return Ok(Some((kind, record)));
        }
    }
}

/// The protection of records, as a cipher suite says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cipher {
    aead: Algorithm,
    is_sha384: bool,
    is_tls13: bool,
}

impl Cipher {
    /// `None` if it is none with an AEAD.
    pub(super) fn new(suite: u16, is_tls13: bool) -> Option<Self> {
        let (aead, is_sha384) = match suite {
            0x1301 | 0xc02b | 0xc02f | 0x009c | 0x009e => (Algorithm::Aes128Gcm, false),
            0x1302 | 0xc02c | 0xc030 | 0x009d | 0x009f => (Algorithm::Aes256Gcm, true),
            0x1303 | 0xcca8 | 0xcca9 | 0xccaa => (Algorithm::ChaCha20Poly1305, false),
            _ => return None,
        };
        Some(Cipher { aead, is_sha384, is_tls13 })
    }

    fn key_bytes(self) -> usize {
        if self.aead == Algorithm::Aes128Gcm { 16 } else { 32 }
    }

    fn hash_bytes(self) -> usize {
        if self.is_sha384 { 48 } else { 32 }
    }

    /// How much of the nonce is sent with each record.
    fn explicit_bytes(self) -> usize {
        let is_sent = !self.is_tls13 && self.aead != Algorithm::ChaCha20Poly1305;
        if is_sent { EXPLICIT_BYTES } else { 0 }
    }
}

/// Opens the records of one direction.
#[derive(Debug)]
pub(super) struct Opener {
    engine: Engine,
    cipher: Cipher,
    session: Session,
    iv: [u8; NONCE_BYTES],
    /// TLS 1.3: the traffic secret, from which the next one follows.
    secret: Secret,
    number: u64,
}

fn fault(why: keyway_engine::Error) -> Reason {
    format!("TLS cannot be read: {why}").into()
}

impl Opener {
    pub(super) fn tls13(engine: &Engine, cipher: Cipher, secret: Secret) -> Result<Self, Reason> {
        let mut key = Zeroizing::new(vec![0; cipher.key_bytes()]);
        let mut iv = [0; NONCE_BYTES];
        expand(engine, cipher, &secret, b"key", &mut key)?;
        expand(engine, cipher, &secret, b"iv", &mut iv)?;
        Opener::new(engine, cipher, &key, iv, secret)
    }

    pub(super) fn tls12(
        engine: &Engine,
        cipher: Cipher,
        master: &[u8],
        client_random: &[u8; 32],
        server_random: &[u8; 32],
        is_client: bool,
    ) -> Result<Self, Reason> {
        let (key_bytes, iv_bytes) = (cipher.key_bytes(), NONCE_BYTES - cipher.explicit_bytes());
        let mut block = Zeroizing::new(vec![0; 2 * (key_bytes + iv_bytes)]);
        let seed = [&b"key expansion"[..], server_random, client_random];
        prf(engine, cipher, master, &seed, &mut block).map_err(fault)?;
        let (keys, ivs) = block.split_at(2 * key_bytes);
        let own = usize::from(!is_client);
        let key = keys.chunks(key_bytes).nth(own).unwrap_or_default();
        let mut iv = [0; NONCE_BYTES];
        let salt = ivs.chunks(iv_bytes).nth(own).unwrap_or_default();
        iv.iter_mut().zip(salt).for_each(|(to, from)| *to = *from);
        Opener::new(engine, cipher, key, iv, Secret::default())
    }

    fn new(
        engine: &Engine,
        cipher: Cipher,
        key: &[u8],
        iv: [u8; NONCE_BYTES],
        secret: Secret,
    ) -> Result<Self, Reason> {
        let session = engine.session(Parameters::new(cipher.aead, Key::Secret(key)));
        let session = session.map_err(fault)?;
        Ok(Opener { engine: engine.clone(), cipher, session, iv, secret, number: 0 })
    }

    /// TLS 1.3: the next keys (RFC 8446 § 7.2).
    pub(super) fn update(&mut self) -> Result<(), Reason> {
        let mut next = Zeroizing::new(vec![0; self.cipher.hash_bytes()]);
        expand(&self.engine, self.cipher, &self.secret, b"traffic upd", &mut next)?;
        *self = Opener::tls13(&self.engine, self.cipher, next)?;
        Ok(())
    }

    /// Opens a record in place and gives its type.
    fn open(&mut self, header: &[u8; HEADER_BYTES], record: &mut Vec<u8>) -> Result<u8, Reason> {
        let kind = self.open_as(self.number, header, record);
        self.number += 1;
        kind.ok_or_else(|| "a TLS record cannot be opened with the keys of the key log".into())
    }

    /// Whether a record can be opened as one of the next; which one is remembered.
    fn find(&mut self, header: &[u8; HEADER_BYTES], record: &mut [u8]) -> bool {
        let found = (self.number..self.number + RECORD_NUMBERS_TRIED).find(|number| {
            let mut copy = record.to_vec();
            self.open_as(*number, header, &mut copy).is_some()
        });
        self.number = found.unwrap_or(self.number);
        found.is_some()
    }

    fn open_as(
        &self,
        number: u64,
        header: &[u8; HEADER_BYTES],
        record: &mut Vec<u8>,
    ) -> Option<u8> {
        let explicit = self.cipher.explicit_bytes();
        let mut nonce = self.iv;
        if explicit > 0 {
            let sent = record.get(..explicit)?;
            nonce.get_mut(SALT_BYTES..)?.copy_from_slice(sent);
            record.drain(..explicit);
        } else {
            let counted = nonce.get_mut(SALT_BYTES..)?;
            counted.iter_mut().zip(number.to_be_bytes()).for_each(|(to, octet)| *to ^= octet);
        }
        let length = record.len().checked_sub(TAG_BYTES)?;
        if self.cipher.is_tls13 {
            let length = self.session.open_in_place(&nonce, header, record).ok()?;
            record.truncate(length);
            // After the contents its type, and as many noughts as the sender likes.
            let end = record.iter().rposition(|octet| *octet != 0)?;
            let kind = record.get(end).copied()?;
            record.truncate(end);
            return (header[0] == APPLICATION_DATA).then_some(kind);
        }
        let length = u16::try_from(length).ok()?.to_be_bytes();
        let associated = [&number.to_be_bytes()[..], &header[..3], &length].concat();
        let opened = self.session.open_in_place(&nonce, &associated, record).ok()?;
        record.truncate(opened);
        Some(header[0])
    }
}

/// HKDF-Expand-Label with no context (RFC 8446 § 7.1).
fn expand(
    engine: &Engine,
    cipher: Cipher,
    secret: &[u8],
    label: &[u8],
    out: &mut [u8],
) -> Result<(), Reason> {
    let algorithm = if cipher.is_sha384 { Algorithm::HkdfSha384 } else { Algorithm::HkdfSha256 };
    let session = engine.session(Parameters::new(algorithm, Key::Secret(secret))).map_err(fault)?;
    let length = u16::try_from(out.len()).unwrap_or_default().to_be_bytes();
    let label_bytes = [u8::try_from(label.len() + 6).unwrap_or_default()];
    let info: [&[u8]; 5] = [&length, &label_bytes, b"tls13 ", label, &[0]];
    session.run(&mut Request::Expand { info: &info, out }).map(drop).map_err(fault)
}

/// The pseudo-random function of TLS 1.2 (RFC 5246 § 5).
fn prf(
    engine: &Engine,
    cipher: Cipher,
    secret: &[u8],
    seed: &[&[u8]],
    out: &mut [u8],
) -> Result<(), keyway_engine::Error> {
    let algorithm = if cipher.is_sha384 { Algorithm::HmacSha384 } else { Algorithm::HmacSha256 };
    let session = engine.session(Parameters::new(algorithm, Key::Secret(secret)))?;
    let mac = |data: &[&[u8]]| {
        let mut out = Zeroizing::new(vec![0; cipher.hash_bytes()]);
        session.run(&mut Request::Mac { data, out: &mut out }).map(|_| out)
    };
    let mut a = mac(seed)?;
    for chunk in out.chunks_mut(cipher.hash_bytes()) {
        let block = mac(&[&[a.as_slice()], seed].concat())?;
        chunk.iter_mut().zip(block.iter()).for_each(|(to, from)| *to = *from);
        a = mac(&[a.as_slice()])?;
    }
    Ok(())
}
