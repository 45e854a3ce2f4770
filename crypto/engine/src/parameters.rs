//! The parameters that a session is opened with.

use crate::{Algorithm, Error, Kind, NONCE_BYTES, limits};
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// One thing that a session does, and the key it does it with.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The algorithm of the step.
    pub algorithm: Algorithm,
    /// Under which key.
    pub key: Key<'a>,
}

/// The parameters that a session is opened with. The engine keeps a copy, so that it can open the
/// session anew in another driver. It wipes the copy when the session ends; the caller may wipe its
/// own at once.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    steps: Steps<'a>,
    /// The drivers that may do the work.
    pub demand: Demand<'a>,
    /// Whether the results of this session leave a [`Queue`](crate::Queue) in the order in which
    /// they went in.
    pub ordered: bool,
    /// The maker of the nonces.
    pub nonces: Nonces,
    /// How often the key may be used.
    pub usage: Usage,
    /// The client that the work is for, in the meters: a short name of lower-case letters, digits
    /// and dashes.
    pub client: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
enum Steps<'a> {
    One([Step<'a>; 1]),
    Chain(&'a [Step<'a>]),
}

impl<'a> Parameters<'a> {
    /// A session that does one thing, with the choice of driver left to the scheduler.
    /// Packets of QUIC must be numbered upwards, unless [`nonces`](Self::nonces) says otherwise.
    pub const fn new(algorithm: Algorithm, key: Key<'a>) -> Self {
        let parameters = Self::of(Steps::One([Step { algorithm, key }]));
        match algorithm.kind() {
            Kind::Packet => parameters.nonces(Nonces::Ascending),
            _ => parameters,
        }
    }

    /// A session that does several things in one request ([`Request::Chain`]), in this order when
    /// it protects and backwards when it unprotects: ciphers, MACs and compression, 2 to
    /// [`CHAIN_STEPS_MAX`](limits::CHAIN_STEPS_MAX) of them.
    ///
    /// [`Request::Chain`]: crate::Request::Chain
    pub const fn chain(steps: &'a [Step<'a>]) -> Self {
        Self::of(Steps::Chain(steps))
    }

    const fn of(steps: Steps<'a>) -> Self {
        Parameters {
            steps,
            demand: Demand::Any,
            ordered: false,
            nonces: Nonces::Given,
            usage: Usage::UNLIMITED,
            client: None,
        }
    }

    /// Demands certain drivers.
    #[must_use]
    pub const fn on(self, demand: Demand<'a>) -> Self {
        Parameters { demand, ..self }
    }

    /// Makes the results leave a queue in the order in which the tasks went in.
    #[must_use]
    pub const fn ordered(self) -> Self {
        Parameters { ordered: true, ..self }
    }

    /// Says who makes the nonces.
    #[must_use]
    pub const fn nonces(self, nonces: Nonces) -> Self {
        Parameters { nonces, ..self }
    }

    /// Limits how often the key may be used.
    #[must_use]
    pub const fn usage(self, usage: Usage) -> Self {
        Parameters { usage, ..self }
    }

    /// Names the client that the work is for, in the meters.
    #[must_use]
    pub const fn client(self, client: &'a str) -> Self {
        Parameters { client: Some(client), ..self }
    }

    /// The steps of the session, in the order of protecting.
    pub fn steps(&self) -> &[Step<'a>] {
        match &self.steps {
            Steps::One(step) => step,
            Steps::Chain(steps) => steps,
        }
    }

    /// Refuses what no driver could do.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Steps::Chain(steps) = self.steps {
            let chained = |step: &Step<'_>| {
                matches!(step.algorithm.kind(), Kind::Cipher | Kind::Mac | Kind::Compression)
            };
            if !(2..=limits::CHAIN_STEPS_MAX).contains(&steps.len()) || !steps.iter().all(chained) {
                return Err(Error::invalid_request(
                    "a chain has 2 to 4 steps, each a cipher, a MAC or a compression",
                ));
            }
        }
        for Step { algorithm, key } in self.steps() {
            let fits = match (algorithm.key_bytes(), key) {
                (Some(expected), Key::Secret(secret)) => secret.len() == expected,
                (Some(expected), Key::Packet(keys)) => keys.have(expected),
                _ => true,
            };
            if !fits {
                return Err(Error::InvalidKey("it is not as long as the algorithm's keys are"));
            }
        }
        let misnamed =
            |step: &Step<'_>| matches!(step.key, Key::Named(name) if key_reference(name).is_none());
        if self.steps().iter().any(misnamed) {
            return Err(Error::InvalidKey(
                "a key's name begins with a lower-case letter, a digit or an underscore, and has these, dashes \
                 and dots, 64 at most; `@` and a number behind it name a version",
            ));
        }
        if self.client.is_some_and(|client| !is_name(client)) {
            return Err(Error::invalid_request(
                "a client's name has lower-case letters, digits and dashes, 32 at most",
            ));
        }
        let kind = match self.steps() {
            [step] => Some(step.algorithm.kind()),
            _ => None,
        };
        match (self.nonces, kind) {
            (Nonces::Given, _)
            | (Nonces::Salted | Nonces::Counter { .. }, Some(Kind::Aead))
            | (Nonces::Ascending, Some(Kind::Packet)) => {}
            (Nonces::Salted | Nonces::Counter { .. }, _) => {
                return Err(Error::invalid_request("only an AEAD session makes its own nonces"));
            }
            (Nonces::Ascending, _) => {
                return Err(Error::invalid_request("only packets are numbered upwards"));
            }
        }
        if !matches!(kind, Some(Kind::Aead | Kind::Packet)) && self.usage != Usage::UNLIMITED {
            return Err(Error::invalid_request("only an AEAD session has a usage limit"));
        }
        Ok(())
    }
}

/// Whether it is fit for the meters, where it is one part of a name.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=limits::NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
}

/// Whether a driver may hold a key under this name ([`Key::Named`]). None begins with a dash, which would be an
/// option in a shell, or a dot, which hides files and leads to other folders.
pub fn is_key_name(name: &str) -> bool {
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_')
    };
    (1..=limits::KEY_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(fits)
        && !name.starts_with(['-', '.'])
}

/// The name of a key, and the number of its version if that is given: `NAME` or `NAME@NUMBER`. `None` if it is
/// neither.
pub fn key_reference(text: &str) -> Option<(&str, Option<u32>)> {
    let (name, version) = match text.split_once('@') {
        Some((name, number)) => (name, Some(number.parse().ok().filter(|it| *it > 0)?)),
        None => (text, None),
    };
    is_key_name(name).then_some((name, version))
}

/// The drivers that may do the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demand<'a> {
    /// Any driver that the scheduler picks.
    #[default]
    Any,
    /// Only drivers that compute on the host's processors.
    Software,
    /// Only devices.
    Hardware,
    /// Only the driver of this name.
    Named(&'a str),
}

/// The maker of the nonces of a session for an AEAD or for packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nonces {
    /// The consumer. It must never give the same one twice under one key: not in this session, not
    /// in another, not in a later process. Nothing checks this. With AES-GCM or ChaCha20-Poly1305,
    /// two texts under one key and nonce reveal where they differ, and reveal the key of the tags,
    /// so that any attacker can forge. A consumer that cannot keep count takes [`Nonces::Salted`].
    Given,
    /// The session. It draws a start at random when it is opened, and counts from there on. So it
    /// repeats none. Two sessions under one key meet only if their starts, of 96 bits each, happen
    /// to lie that close together. All clones share one counter.
    /// [`Session::seal_next`](crate::Session::seal_next) says which nonce it was.
    ///
    /// A child that is forked has a copy of the count, and would repeat what its parent goes on with: there
    /// the session refuses to seal, and the child opens another.
    Salted,
    /// The session. A nonce is the twelve bytes of `iv`, the last eight of them xored with a
    /// counter that starts at `from` (as in RFC 8446 § 5.3). It repeats none, and all clones share
    /// one counter. Another session under the same key and IV has a counter of its own: it must
    /// begin where this one ended ([`Session::sealed`](crate::Session::sealed)). In a forked child it refuses
    /// to seal, as with [`Nonces::Salted`].
    Counter {
        /// Comes with the key.
        iv: [u8; NONCE_BYTES],
        /// Texts that were sealed under the key before: 0 for a new one. They count for
        /// [`Usage::seals_max`].
        from: u64,
    },
    /// The consumer: they are the numbers of the packets that it protects. A number that is not
    /// higher than all before it is refused, so none comes twice. All clones share the count, and
    /// it goes on after a key update ([`Session::update`](crate::Session::update)). Another session
    /// that is opened with the same keys has a count of its own.
    Ascending,
}

impl fmt::Debug for Nonces {
    /// Without the IV, which comes with the key and may be as secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nonces::Given => f.write_str("Given"),
            Nonces::Salted => f.write_str("Salted"),
            Nonces::Counter { from, .. } => write!(f, "Counter {{ from: {from}, .. }}"),
            Nonces::Ascending => f.write_str("Ascending"),
        }
    }
}

/// How often an AEAD key may be used. Past a limit the session answers [`Error::Exhausted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Most seals.
    pub seals_max: u64,
    /// Most failed opens.
    pub forgeries_max: u64,
}

impl Usage {
    /// No limit: the consumer keeps count itself.
    pub const UNLIMITED: Usage = Usage { seals_max: u64::MAX, forgeries_max: u64::MAX };
    /// AES-GCM in QUIC: 2^23 packets sealed, 2^52 failed (RFC 9001 § 6.6).
    pub const QUIC_AES_GCM: Usage = Usage { seals_max: 1 << 23, forgeries_max: 1 << 52 };
    /// AES-CCM in QUIC: 2^21.5 of either (RFC 9001 § 6.6).
    pub const QUIC_AES_CCM: Usage = Usage { seals_max: 2_965_820, forgeries_max: 2_965_820 };
    /// ChaCha20-Poly1305 in QUIC: 2^36 failed (RFC 9001 § 6.6).
    pub const QUIC_CHACHA20: Usage = Usage { seals_max: u64::MAX, forgeries_max: 1 << 36 };
    /// GCM with random nonces: 2^32 seals (SP 800-38D § 8.3).
    pub const RANDOM_NONCES: Usage = Usage { seals_max: 1 << 32, forgeries_max: u64::MAX };
}

/// Where a session's key comes from.
#[derive(Clone, Copy)]
pub enum Key<'a> {
    /// No key: hashes, random bytes, verification, encapsulation, password hashing, compression.
    None,
    /// The key itself: AEAD, cipher, MAC, or an HKDF pseudo-random key. For password hashing, the
    /// pepper: the input of the hash is HMAC-SHA-256 of the password under it, so that stored
    /// values are worth nothing to an attacker without it.
    Secret(&'a [u8]),
    /// HKDF-Extract of these (RFC 5869 § 2.2).
    Extract {
        /// The salt; empty stands for a string of zeros.
        salt: &'a [u8],
        /// The input keying material.
        secret: &'a [u8],
    },
    /// The keys of one direction of a QUIC connection, for packets and nothing else.
    Packet(PacketKeys<'a>),
    /// A fresh key pair. Its private half never leaves the driver. When that driver goes, the key
    /// goes with it.
    Generate,
    /// A private key as PKCS#8 (RFC 5208, RFC 5958), DER.
    Pkcs8(&'a [u8]),
    /// An RSA private key as PKCS#1 (RFC 8017), DER.
    Pkcs1(&'a [u8]),
    /// An elliptic-curve private key as SEC 1 (RFC 5915), DER.
    Sec1(&'a [u8]),
    /// A key that a driver holds, by its name there: lower-case letters, digits, dashes, dots and
    /// underscores, [`KEY_NAME_BYTES_MAX`](limits::KEY_NAME_BYTES_MAX) at most. No other driver can
    /// take that one's place: while it is gone, the session answers [`Error::Gone`].
    Named(&'a str),
}

/// Keys that protect the packets of one direction of a QUIC connection (RFC 9001 § 5.1): one for
/// headers, which stays, and others for payloads, which are updated (§ 6). After an update, and
/// when the next key is there, [`Session::update`](crate::Session::update) gives them to the
/// session.
#[derive(Clone, Copy)]
pub struct PacketKeys<'a> {
    /// For headers; as long as the others.
    pub header: &'a [u8],
    /// The key in use: packets are protected under it.
    pub current: PacketKey<'a>,
    /// The key phase bit that goes with it.
    pub phase: bool,
    /// The lowest packet number that came under it; lower ones of the other phase are under the key
    /// before it.
    pub since: u64,
    /// The key before it, as long as it is kept.
    pub previous: Option<PacketKey<'a>>,
    /// The key after it. That it is ready keeps an update from showing in the time taken.
    pub next: Option<PacketKey<'a>>,
}

/// A key for payloads.
#[derive(Clone, Copy)]
pub struct PacketKey<'a> {
    /// [`Algorithm::key_bytes`].
    pub key: &'a [u8],
    /// The bytes that packet numbers are xored into (RFC 9001 § 5.3).
    pub iv: &'a [u8; NONCE_BYTES],
}

impl<'a> PacketKeys<'a> {
    /// Keys that are not updated.
    pub const fn new(header: &'a [u8], current: PacketKey<'a>) -> Self {
        PacketKeys { header, current, phase: false, since: 0, previous: None, next: None }
    }

    pub(crate) fn have(&self, bytes: usize) -> bool {
        let others = [self.previous, self.next].into_iter().flatten();
        [self.header.len(), self.current.key.len()]
            .into_iter()
            .chain(others.map(|key| key.key.len()))
            .all(|length| length == bytes)
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Key::None => "None",
            Key::Secret(_) => "Secret(..)",
            Key::Extract { .. } => "Extract(..)",
            Key::Packet(_) => "Packet(..)",
            Key::Generate => "Generate",
            Key::Pkcs8(_) => "Pkcs8(..)",
            Key::Pkcs1(_) => "Pkcs1(..)",
            Key::Sec1(_) => "Sec1(..)",
            Key::Named(name) => return write!(f, "Named({name:?})"),
        })
    }
}

/// A session's own copy of a key.
pub(crate) enum OwnedKey {
    None,
    Secret(Zeroizing<Vec<u8>>),
    Extract { salt: Zeroizing<Vec<u8>>, secret: Zeroizing<Vec<u8>> },
    Packet(Box<OwnedPacketKeys>),
    Generate,
    Pkcs8(Zeroizing<Vec<u8>>),
    Pkcs1(Zeroizing<Vec<u8>>),
    Sec1(Zeroizing<Vec<u8>>),
    Named(String),
}

impl OwnedKey {
    pub fn new(key: Key<'_>) -> Self {
        let own = |bytes: &[u8]| Zeroizing::new(bytes.to_vec());
        match key {
            Key::None => OwnedKey::None,
            Key::Secret(secret) => OwnedKey::Secret(own(secret)),
            Key::Extract { salt, secret } => {
                OwnedKey::Extract { salt: own(salt), secret: own(secret) }
            }
            Key::Packet(keys) => OwnedKey::Packet(Box::new(OwnedPacketKeys::new(keys))),
            Key::Generate => OwnedKey::Generate,
            Key::Pkcs8(der) => OwnedKey::Pkcs8(own(der)),
            Key::Pkcs1(der) => OwnedKey::Pkcs1(own(der)),
            Key::Sec1(der) => OwnedKey::Sec1(own(der)),
            Key::Named(name) => OwnedKey::Named(name.to_owned()),
        }
    }

    pub fn view(&self) -> Key<'_> {
        match self {
            OwnedKey::None => Key::None,
            OwnedKey::Secret(secret) => Key::Secret(secret),
            OwnedKey::Extract { salt, secret } => Key::Extract { salt, secret },
            OwnedKey::Packet(keys) => Key::Packet(keys.view()),
            OwnedKey::Generate => Key::Generate,
            OwnedKey::Pkcs8(der) => Key::Pkcs8(der),
            OwnedKey::Pkcs1(der) => Key::Pkcs1(der),
            OwnedKey::Sec1(der) => Key::Sec1(der),
            OwnedKey::Named(name) => Key::Named(name),
        }
    }
}

pub(crate) struct OwnedPacketKeys {
    header: Zeroizing<Vec<u8>>,
    current: OwnedPacketKey,
    phase: bool,
    since: u64,
    previous: Option<OwnedPacketKey>,
    next: Option<OwnedPacketKey>,
}

struct OwnedPacketKey {
    key: Zeroizing<Vec<u8>>,
    /// In a box, so that a move leaves none of it behind.
    iv: Box<Zeroizing<[u8; NONCE_BYTES]>>,
}

impl OwnedPacketKeys {
    fn new(keys: PacketKeys<'_>) -> Self {
        let PacketKeys { header, current, phase, since, previous, next } = keys;
        let own = OwnedPacketKey::new;
        OwnedPacketKeys {
            header: Zeroizing::new(header.to_vec()),
            current: own(current),
            phase,
            since,
            previous: previous.map(own),
            next: next.map(own),
        }
    }

    /// Whether that is the key in use, found out in a time that says nothing of it.
    pub fn has_current(&self, key: PacketKey<'_>) -> bool {
        let same = self.current.key.ct_eq(key.key) & self.current.iv[..].ct_eq(key.iv);
        same.into()
    }

    fn view(&self) -> PacketKeys<'_> {
        let OwnedPacketKeys { header, current, phase, since, previous, next } = self;
        let (phase, since) = (*phase, *since);
        let view = OwnedPacketKey::view;
        let (previous, next) = (previous.as_ref().map(view), next.as_ref().map(view));
        PacketKeys { header, current: current.view(), phase, since, previous, next }
    }
}

impl OwnedPacketKey {
    fn new(key: PacketKey<'_>) -> Self {
        let mut iv = Box::new(Zeroizing::new([0; NONCE_BYTES]));
        iv.copy_from_slice(key.iv);
        OwnedPacketKey { key: Zeroizing::new(key.key.to_vec()), iv }
    }

    fn view(&self) -> PacketKey<'_> {
        PacketKey { key: &self.key, iv: &self.iv }
    }
}
