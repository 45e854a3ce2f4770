//! A session: a cipher, a hash or MAC, or both, under keys that the program has given.
//!
//! A session with both hashes what is not encrypted: before it encrypts, after it decrypts, as cryptodev-linux does. It
//! tells the program the MAC in both directions, and compares nothing. So it is two requests to cryptod, and no chain
//! of its engine, which would refuse a text whose MAC is wrong.

use crate::abi::{
    AuthOp, COP_DECRYPT, COP_ENCRYPT, COP_FLAG_AEAD_SRTP_TYPE, COP_FLAG_AEAD_TLS_TYPE,
    COP_FLAG_FINAL, COP_FLAG_RESET, COP_FLAG_UPDATE, COP_FLAG_WRITE_IV, CryptOp, SessionOp,
};
use crate::algorithm::{Cipher, Hash, cipher, hash};
use crate::daemon;
use crate::limits::{
    AUTHENTICATED_BYTES_MAX, CIPHER_KEY_BYTES_MAX, MAC_KEY_BYTES_MAX, TEXT_BYTES_MAX,
};
use crate::message::Message;
use keyway_client::{Change, ClientError, Fault, OwnKey, Whole};
use keyway_engine::{Algorithm, IV_BYTES_MAX, Kind, NONCE_BYTES, Request, TAG_BYTES};
use rustix::io::Errno;
use zeroize::Zeroizing;

#[derive(Debug)]
pub struct Session {
    cipher: Option<(Cipher, Option<OwnKey>)>,
    /// With the key of a MAC.
    hash: Option<(Hash, Option<OwnKey>)>,
    state: Whole<State>,
}

/// What changes. A request has it until it is answered, so that a session does one after the other. A child that is
/// forked meanwhile has that of before the request.
#[derive(Clone, Debug, Default)]
struct State {
    /// For a request that brings none: the one that follows from the request before it.
    iv: [u8; IV_BYTES_MAX],
    /// The message so far, of those that come in several requests.
    message: Message,
    is_closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Encrypt,
    Decrypt,
}

fn direction(op: u16) -> Result<Direction, Errno> {
    match op {
        COP_ENCRYPT => Ok(Direction::Encrypt),
        COP_DECRYPT => Ok(Direction::Decrypt),
        _ => Err(Errno::INVAL),
    }
}

/// A length, if no longer than this.
fn within(length: u32, most: usize) -> Result<usize, Errno> {
    usize::try_from(length).ok().filter(|length| *length <= most).ok_or(Errno::INVAL)
}

impl Session {
    /// Opens one, with the daemon too.
    pub fn open(wanted: &SessionOp) -> Result<Session, Errno> {
        if wanted.cipher == 0 && wanted.mac == 0 {
            return Err(Errno::INVAL);
        }
        let mut session = Session { cipher: None, hash: None, state: Whole::new(State::default()) };
        if wanted.cipher != 0 {
            let key_bytes = within(wanted.keylen, CIPHER_KEY_BYTES_MAX)?;
            let cipher = cipher(wanted.cipher, key_bytes)?;
            let secret = wanted.key.read(key_bytes)?;
            session.cipher = Some((cipher, cipher.algorithm.map(|it| OwnKey::new(it, &secret))));
        }
        if wanted.mac != 0 {
            let hash = hash(wanted.mac)?;
            let key_bytes = within(wanted.mackeylen, MAC_KEY_BYTES_MAX)?;
            // An AEAD authenticates by itself.
            if !session.is_aead() {
                let key = match hash.algorithm.kind() {
                    Kind::Mac => Some(OwnKey::new(hash.algorithm, &wanted.mackey.read(key_bytes)?)),
                    _ => None,
                };
                session.hash = Some((hash, key));
            }
        }
        let keys = || session.keys().try_for_each(|key| daemon::client().admit(key));
        match keys() {
            Ok(()) => Ok(session),
            Err(why) => {
                session.close();
                Err(daemon::failed(&why))
            }
        }
    }

    /// Ends it, after the request that is under way.
    pub fn close(&self) {
        let mut state = self.state.change();
        *state = State { is_closed: true, ..State::default() };
        drop(state);
        self.keys().for_each(|key| daemon::client().forget(key));
    }

    fn keys(&self) -> impl Iterator<Item = &OwnKey> {
        let cipher = self.cipher.iter().filter_map(|(_, key)| key.as_ref());
        cipher.chain(self.hash.iter().filter_map(|(_, key)| key.as_ref()))
    }

    fn is_aead(&self) -> bool {
        let algorithm = self.cipher.as_ref().and_then(|(cipher, _)| cipher.algorithm);
        algorithm.is_some_and(|algorithm| algorithm.kind() == Kind::Aead)
    }

    fn state(&self) -> Result<Change<'_, State>, Errno> {
        let state = self.state.change();
        if state.is_closed { Err(Errno::INVAL) } else { Ok(state) }
    }

    /// The kernel's names of its cipher and its hash.
    pub fn names(&self) -> [Option<&'static str>; 2] {
        let cipher = self.cipher.as_ref().map(|(cipher, _)| cipher.name);
        [cipher, self.hash.as_ref().map(|(hash, _)| hash.name)]
    }

    /// Encrypts or decrypts, hashes or authenticates (CIOCCRYPT).
    pub fn crypt(&self, op: &CryptOp) -> Result<(), Errno> {
        let direction = direction(op.op)?;
        if self.is_aead() {
            return Err(Errno::INVAL);
        }
        let has = |flag| op.flags & flag != 0;
        let length = within(op.len, TEXT_BYTES_MAX)?;
        let mut iv_bytes = 0;
        if let Some((cipher, _)) = &self.cipher {
            if !length.is_multiple_of(cipher.block_bytes) {
                return Err(Errno::INVAL);
            }
            if !op.iv.is_none() {
                iv_bytes = cipher.algorithm.map_or(0, Algorithm::iv_bytes);
            }
        }
        let iv = op.iv.read(iv_bytes)?;
        let mut text = op.src.read(length)?;
        let mut state = self.state()?;
        if op.flags == 0 || has(COP_FLAG_RESET) {
            state.message = Message::default();
        }
        state.iv[..iv_bytes].copy_from_slice(&iv);
        let ends = has(COP_FLAG_FINAL) || !has(COP_FLAG_UPDATE) || length == 0;
        let mut digest = Zeroizing::new(Vec::new());
        if direction == Direction::Encrypt {
            self.hash(&mut state, &text, ends, &mut digest)?;
        }
        self.cipher(&mut state, direction, &mut text)?;
        if direction == Direction::Decrypt {
            self.hash(&mut state, &text, ends, &mut digest)?;
        }
        let iv = state.iv;
        drop(state);
        if self.cipher.is_some() {
            op.dst.write(&text)?;
        }
        if has(COP_FLAG_WRITE_IV) {
            op.iv.write(&iv[..iv_bytes])?;
        }
        op.mac.write(&digest)
    }

    /// Adds to the message; at its end, puts the digest out.
    fn hash(
        &self,
        state: &mut State,
        text: &[u8],
        ends: bool,
        digest: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let Some((hash, key)) = &self.hash else { return Ok(()) };
        if state.message.length() + text.len() > TEXT_BYTES_MAX {
            return Err(Errno::NOMEM);
        }
        if !ends {
            state.message.extend(Zeroizing::new(text.to_vec()));
            return Ok(());
        }
        digest.resize(hash.algorithm.output_bytes().unwrap_or(0), 0);
        let message = std::mem::take(&mut state.message);
        let data = &message.with(text)[..];
        let client = daemon::client();
        let done = match key {
            Some(key) => client.run_with_own(key, &mut Request::Mac { data, out: digest }),
            None => {
                client.run_without_key(hash.algorithm, &mut Request::Digest { data, out: digest })
            }
        };
        done.map(drop).map_err(|why| daemon::failed(&why))
    }

    fn cipher(
        &self,
        state: &mut State,
        direction: Direction,
        text: &mut [u8],
    ) -> Result<(), Errno> {
        let Some((_, Some(key))) = self.cipher.as_ref().filter(|_| !text.is_empty()) else {
            return Ok(());
        };
        let algorithm = key.algorithm();
        let iv = state.iv;
        let last = last_block(algorithm, text);
        let mut request = match direction {
            Direction::Encrypt => Request::Encrypt { iv: &iv, data: text },
            Direction::Decrypt => Request::Decrypt { iv: &iv, data: text },
        };
        let done = daemon::client().run_with_own(key, &mut request);
        done.map_err(|why| daemon::failed(&why))?;
        match (algorithm.block_bytes(), direction) {
            // A cipher by blocks: the last one that is encrypted.
            (2.., Direction::Encrypt) => state.iv = last_block(algorithm, text),
            (2.., Direction::Decrypt) => state.iv = last,
            _ if matches!(algorithm, Algorithm::Aes128Ctr | Algorithm::Aes256Ctr) => {
                let blocks = text.len().div_ceil(IV_BYTES_MAX) as u128;
                state.iv = u128::from_be_bytes(iv).wrapping_add(blocks).to_be_bytes();
            }
            _ => {}
        }
        Ok(())
    }

    /// Seals or opens (CIOCAUTHCRYPT), and says so in the structure: as cryptodev-linux, the tag lies behind the text.
    pub fn authenticated(&self, op: &mut AuthOp) -> Result<(), Errno> {
        let direction = direction(op.op)?;
        let Some((_, Some(key))) = self.cipher.as_ref().filter(|_| self.is_aead()) else {
            return Err(Errno::INVAL);
        };
        let tag_bytes = if op.tag_len == 0 { TAG_BYTES } else { within(op.tag_len, TAG_BYTES)? };
        let has_rules = op.flags & (COP_FLAG_AEAD_TLS_TYPE | COP_FLAG_AEAD_SRTP_TYPE) != 0;
        // The engine has no shorter tags. A nonce that is not given would be one that was used.
        if has_rules || tag_bytes != TAG_BYTES || op.iv.is_none() {
            return Err(Errno::INVAL);
        }
        let length = within(op.len, TEXT_BYTES_MAX)?;
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&op.iv.read(NONCE_BYTES)?);
        let aad = op.auth_src.read(within(op.auth_len, AUTHENTICATED_BYTES_MAX)?)?;
        let mut data = op.src.read(length)?;
        let state = self.state()?;
        let text_bytes = match direction {
            Direction::Encrypt => {
                let mut tag = [0; TAG_BYTES];
                let mut seal =
                    Request::Seal { nonce: &nonce, aad: &aad, data: &mut data, tag: &mut tag };
                let done = daemon::client().run_with_own(key, &mut seal);
                done.map_err(|why| daemon::failed(&why))?;
                drop(state);
                op.dst.write(&data)?;
                op.dst.behind(length).write(&tag)?;
                length
            }
            Direction::Decrypt => {
                let text_bytes = length.checked_sub(TAG_BYTES).ok_or(Errno::INVAL)?;
                let mut open = Request::Open { nonce: &nonce, aad: &aad, data: &mut data };
                let done = daemon::client().run_with_own(key, &mut open);
                done.map_err(|why| not_authentic(&why))?;
                drop(state);
                op.dst.write(&data[..text_bytes])?;
                text_bytes
            }
        };
        op.tag = op.dst.behind(text_bytes);
        op.tag_len = TAG_BYTES as u32;
        op.len = match direction {
            Direction::Encrypt => (text_bytes + TAG_BYTES) as u32,
            Direction::Decrypt => text_bytes as u32,
        };
        Ok(())
    }

    /// Copies the message so far from another session of the same hash (CIOCCPHASH).
    pub fn copy_hash(&self, from: &Session) -> Result<(), Errno> {
        let algorithm = |session: &Session| session.hash.as_ref().map(|(hash, _)| hash.algorithm);
        if self.hash.is_none() || algorithm(self) != algorithm(from) {
            return Err(Errno::INVAL);
        }
        // One after the other: another thread may copy the other way.
        let message = from.state()?.message.clone();
        self.state()?.message = message;
        Ok(())
    }
}

/// Everything that the daemon could refuse is checked, but the tag.
fn not_authentic(why: &ClientError) -> Errno {
    match why.fault {
        Fault::Caller => Errno::BADMSG,
        _ => daemon::failed(why),
    }
}

/// The last block of a cipher by blocks, as the start of an initialisation vector.
fn last_block(algorithm: Algorithm, text: &[u8]) -> [u8; IV_BYTES_MAX] {
    let mut iv = [0; IV_BYTES_MAX];
    let last = text.last_chunk::<IV_BYTES_MAX>();
    match (algorithm.block_bytes(), text.last_chunk::<8>()) {
        (8, Some(last)) => iv[..8].copy_from_slice(last),
        _ => iv = last.copied().unwrap_or_default(),
    }
    iv
}
