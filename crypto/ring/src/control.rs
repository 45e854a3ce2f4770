//! The messages with which a client sets things up: what the fast path must not have to do.
//!
//! Each message is a value of [`Ask`] or [`Answer`] in postcard's encoding. Every ask has one
//! answer, in order, except those that say otherwise. Names of algorithms travel as text, so that
//! two versions with different lists understand each other or say what they do not know.

use crate::descriptor::{RegionHandle, SessionHandle, Status};
use crate::limits::{KEY_BYTES_MAX, MESSAGE_BYTES_MAX, STEPS_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The version of these messages and of the rings' bytes.
pub const VERSION: u32 = 6;

/// Bytes that are wiped when they are dropped, and not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        Secret(bytes.to_vec())
    }
}

/// A key for payloads of QUIC's packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketKey {
    /// The key.
    pub key: Secret,
    /// Its initialisation vector.
    pub iv: Secret,
}

/// Keys that protect the packets of one direction of a QUIC connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketKeys {
    /// For headers.
    pub header: Secret,
    /// The key in use.
    pub current: PacketKey,
    /// Its phase bit.
    pub phase: bool,
    /// The lowest number under it.
    pub since: u64,
    /// The key before it.
    pub previous: Option<PacketKey>,
    /// The key after it.
    pub next: Option<PacketKey>,
}

/// Where a session's key comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// None is needed.
    None,
    /// The key itself.
    Secret(Secret),
    /// HKDF-Extract of these.
    Extract {
        /// The salt.
        salt: Secret,
        /// The keying material.
        secret: Secret,
    },
    /// Keys of QUIC's packets.
    Packet(Box<PacketKeys>),
    /// A fresh pair, made by the daemon.
    Generate,
    /// A private key as PKCS#8.
    Pkcs8(Secret),
    /// One as PKCS#1.
    Pkcs1(Secret),
    /// One as SEC 1.
    Sec1(Secret),
    /// One that the daemon holds: its name, and if not its newest version is meant, `@` and the version's number.
    Named(String),
}

/// One thing that a session does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The algorithm's name.
    pub algorithm: String,
    /// Under which key.
    pub key: Key,
}

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// The first message: who speaks.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// The client's name for itself, for those who watch; its rights come from its process.
        name: String,
    },
    /// A queue pair.
    Queue {
        /// Entries of each ring.
        entries: u32,
    },
    /// A queue pair is no longer needed. Has no answer.
    CloseQueue {
        /// The pair.
        queue: u32,
    },
    /// Memory that the daemon makes for a region. A client sends no files: what they are, and how
    /// long it takes to close one, would be its choice.
    Region {
        /// At least so many bytes.
        bytes: u64,
    },
    /// A region is no longer needed. Has no answer.
    Forget {
        /// The region.
        region: RegionHandle,
    },
    /// A session.
    Open {
        /// Its steps, in the order of protecting.
        steps: Vec<Step>,
    },
    /// A session is no longer needed. Has no answer.
    Close {
        /// The session.
        session: SessionHandle,
    },
    /// A session as bytes that another daemon, or this one later, can take in.
    Export {
        /// The session.
        session: SessionHandle,
        /// The daemon's key that seals it.
        under: String,
    },
    /// Takes in a session that was exported.
    Import {
        /// The daemon's key that sealed it.
        under: String,
        /// The bytes of [`Answer::Exported`].
        sealed: Vec<u8>,
    },
    /// Something about the keys that the daemon holds. Only for its administrators, and for clients in their name
    /// spaces.
    Keys(KeyAsk),
    /// How the daemon is. Only for its administrators.
    Status,
    /// Nothing but a sign of life: [`Answer::Done`].
    Ping,
    /// Hands everything to the daemon that asks. Only for the daemon's own user and root. The
    /// messages that follow are between the two.
    TakeOver,
    /// Asks what this client may do with a key that the daemon holds.
    Usable {
        /// The key's name.
        name: String,
    },
    /// Asks which keys this client may use, behind this name, in order of their names: as many as go into a
    /// message.
    Granted {
        /// The last name that is known already; empty for none.
        after: String,
    },
    /// Asks for the certificates of a key that this client may use.
    Certificates {
        /// The key's name.
        name: String,
    },
    /// Asks where this client may make and destroy keys ([`Ask::Keys`]) without being an administrator.
    NameSpaces,
}

/// A request about keys of an administrator, or of a client in its name space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyAsk {
    /// Makes a new key.
    Generate {
        /// The name it gets.
        name: String,
        /// Its purposes, and its callers.
        policy: KeyPolicy,
    },
    /// Takes in a key that was made elsewhere.
    Import {
        /// The name it gets.
        name: String,
        /// Its purposes, and its callers.
        policy: KeyPolicy,
        /// PEM, DER, or the secret itself.
        material: Secret,
    },
    /// Makes a new key in a token, which never leaves it.
    GenerateIn {
        /// The name it gets.
        name: String,
        /// Its purposes, and its callers.
        policy: KeyPolicy,
        /// The token's label.
        token: String,
    },
    /// Takes a key that is in tokens already; it stays there.
    Adopt {
        /// The name it gets.
        name: String,
        /// Its purposes, and its callers.
        policy: KeyPolicy,
        /// The labels of the tokens, which all have the key.
        tokens: Vec<String>,
        /// Which of their keys it is.
        object: TokenObject,
    },
    /// All keys behind this name, in order of their names: as many as go into a message.
    List {
        /// The last name that is known already; empty for none.
        after: String,
    },
    /// The public half of a key.
    Public {
        /// The key's name.
        name: String,
    },
    /// A new version of a key.
    Rotate {
        /// The key's name.
        name: String,
    },
    /// Certificates to keep with a key, in place of those that it has.
    Certify {
        /// The key's name.
        name: String,
        /// Each in DER, that of the key first; none to keep none.
        certificates: Vec<Vec<u8>>,
    },
    /// A key may be used no more.
    Revoke {
        /// The key's name.
        name: String,
    },
    /// A revoked key is to be gone.
    Delete {
        /// The key's name.
        name: String,
    },
    /// Others may use a key, too.
    Allow {
        /// The key's name.
        name: String,
        /// The callers, as in [`KeyPolicy::callers`].
        callers: Vec<String>,
    },
    /// Some may use a key no more.
    Forbid {
        /// The key's name.
        name: String,
        /// The callers, as in [`KeyPolicy::callers`].
        callers: Vec<String>,
    },
    /// A disabled key is to be used with the file that is there.
    Accept {
        /// The key's name.
        name: String,
    },
    /// A key with all its versions, wrapped under another one, for a daemon that has that key too.
    Export {
        /// The key's name.
        name: String,
        /// The key that wraps it.
        under: String,
    },
    /// Takes in a key that was exported.
    ImportWrapped {
        /// The name it gets.
        name: String,
        /// Its callers, as in [`KeyPolicy::callers`]: those that it had elsewhere are not these.
        callers: Vec<String>,
        /// The key that has wrapped it.
        under: String,
        /// The bytes of [`Answer::Exported`].
        wrapped: Vec<u8>,
    },
}

impl KeyAsk {
    /// The change that it asks for, and the key's name; `None` for a look.
    pub fn change(&self) -> Option<(&'static str, &str)> {
        Some(match self {
            KeyAsk::Generate { name, .. } | KeyAsk::GenerateIn { name, .. } => ("generate", name),
            KeyAsk::Import { name, .. } | KeyAsk::Adopt { name, .. } => ("import", name),
            KeyAsk::Rotate { name } => ("rotate", name),
            KeyAsk::Certify { name, .. } => ("certify", name),
            KeyAsk::Revoke { name } => ("revoke", name),
            KeyAsk::Delete { name } => ("delete", name),
            KeyAsk::Allow { name, .. } => ("allow", name),
            KeyAsk::Forbid { name, .. } => ("forbid", name),
            KeyAsk::Accept { name } => ("accept", name),
            KeyAsk::Export { name, .. } => ("export", name),
            KeyAsk::ImportWrapped { name, .. } => ("import", name),
            KeyAsk::List { .. } | KeyAsk::Public { .. } => return None,
        })
    }

    /// Whether it says who may use a key.
    pub fn names_callers(&self) -> bool {
        match self {
            KeyAsk::Generate { policy, .. }
            | KeyAsk::GenerateIn { policy, .. }
            | KeyAsk::Import { policy, .. }
            | KeyAsk::Adopt { policy, .. } => !policy.callers.is_empty(),
            KeyAsk::Allow { .. } | KeyAsk::Forbid { .. } | KeyAsk::ImportWrapped { .. } => true,
            _ => false,
        }
    }
}

/// A key in a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenObject {
    /// By its `CKA_ID`.
    Id(Vec<u8>),
    /// By its `CKA_LABEL`.
    Label(String),
}

/// The purposes of a key, and its callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPolicy {
    /// Names of algorithms; in a request also of kinds of keys: `rsa`, `ec-p256`, `ec-p384`, `ec-p521`, and of one that
    /// is to be made `rsa-2048`, `rsa-3072`, `rsa-4096`, `rsa-8192`.
    pub algorithms: Vec<String>,
    /// `sign`, `decrypt`, ...; none stands for all that the algorithms have, and of a kind's to sign.
    pub purposes: Vec<String>,
    /// `user:NAME`, `group:NAME`, `program:PATH` or `everybody`.
    pub callers: Vec<String>,
}

/// Facts about a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    /// Its name.
    pub name: String,
    /// Its purposes, and its callers.
    pub policy: KeyPolicy,
    /// Its newest version, from 1.
    pub version: u32,
    /// `active`, `revoked`, or `disabled: ` and why.
    pub state: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// How often it was used.
    pub uses: u64,
    /// The labels of the tokens that its newest version lives in; none for a key that the daemon holds itself.
    pub tokens: Vec<String>,
}

/// The daemon's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To [`Ask::Hello`].
    Hello {
        /// The daemon's [`VERSION`].
        version: u32,
        /// Names of the algorithms that its engine does.
        algorithms: Vec<String>,
        /// Its process.
        process: u32,
    },
    /// To [`Ask::Queue`], with the pair's memory and the doorbell.
    Queue {
        /// Its number.
        queue: u32,
        /// Entries of each ring.
        entries: u32,
    },
    /// To [`Ask::Region`], with the memory.
    Region {
        /// Its handle.
        region: RegionHandle,
    },
    /// To [`Ask::Open`] and [`Ask::Import`].
    Session {
        /// Its handle.
        session: SessionHandle,
        /// Longest signature, in bytes; 0 where it cannot sign.
        signature_bytes_max: u32,
        /// Whether the daemon makes the nonces.
        makes_nonces: bool,
    },
    /// To [`Ask::Export`] and [`KeyAsk::Export`].
    Exported {
        /// For [`Ask::Import`].
        sealed: Vec<u8>,
    },
    /// To [`KeyAsk::List`].
    Keys {
        /// In order of their names.
        keys: Vec<KeyInfo>,
        /// Whether there are more.
        more: bool,
    },
    /// To [`KeyAsk::Public`].
    Public {
        /// The algorithm it is given for.
        algorithm: String,
        /// subjectPublicKey bits, as the engine has them.
        key: Vec<u8>,
    },
    /// To [`Ask::Status`].
    Status(DaemonStatus),
    /// It is done.
    Done,
    /// It is not done.
    Refused {
        /// A [`Status`].
        status: u8,
        /// Why, in words.
        why: String,
    },
    /// To [`Ask::Usable`].
    Usable {
        /// Names of its algorithms.
        algorithms: Vec<String>,
        /// The client's purposes for it: `sign`, `decrypt`, ...
        purposes: Vec<String>,
        /// Its newest version.
        version: u32,
    },
    /// To [`Ask::Granted`].
    Granted {
        /// In order of their names.
        keys: Vec<GrantedKey>,
        /// Whether there are more.
        more: bool,
    },
    /// To [`Ask::Certificates`].
    Certificates {
        /// Each in DER, that of the key first; none if the key has none.
        certificates: Vec<Vec<u8>>,
    },
    /// To [`Ask::NameSpaces`].
    NameSpaces {
        /// The names of its keys begin with one of these.
        prefixes: Vec<String>,
    },
    /// To [`Ask::Queue`] of a virtual machine, whose memory the pair lies in.
    QueueAt {
        /// Its number.
        queue: u32,
        /// Entries of each ring.
        entries: u32,
        /// Where it begins, in bytes.
        at: u64,
        /// How long it is, in bytes.
        bytes: u64,
        /// The peer of the device that is rung.
        bell: u32,
    },
    /// To [`Ask::Region`] of a virtual machine, whose memory the region lies in.
    RegionAt {
        /// Its handle.
        region: RegionHandle,
        /// Where it begins, in bytes.
        at: u64,
        /// How long it is, in bytes.
        bytes: u64,
    },
}

/// A key that the client may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedKey {
    /// Its name.
    pub name: String,
    /// Names of its algorithms.
    pub algorithms: Vec<String>,
    /// The client's purposes for it: `sign`, `decrypt`, ...
    pub purposes: Vec<String>,
    /// Its newest version, from 1.
    pub version: u32,
    /// Whether that version has certificates, for [`Ask::Certificates`].
    pub has_certificates: bool,
    /// The public half of that version as a SubjectPublicKeyInfo (RFC 5280 § 4.1), DER; empty for a secret, and for
    /// a kind of key that has none.
    pub public_key: Vec<u8>,
}

/// How the daemon is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Its process.
    pub process: u32,
    /// When it started, in seconds since 1970.
    pub since: u64,
    /// Threads that poll rings.
    pub pumps: u32,
    /// The connected clients: as many as go into a message.
    pub clients: Vec<ClientStatus>,
    /// How many are connected.
    pub clients_total: u32,
}

/// How a client of the daemon is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its number.
    pub number: u64,
    /// Its name for itself.
    pub name: String,
    /// Its process and user.
    pub process: u32,
    /// The user it runs as.
    pub user: u32,
    /// The pairs it has.
    pub queues: u32,
    /// Sessions it has open.
    pub sessions: u32,
    /// Regions it has registered.
    pub regions: u32,
    /// Bytes of these.
    pub region_bytes: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes that they worked on.
    pub bytes: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Times that it rang and was looked after.
    pub doorbells: u64,
    /// Times that it was woken.
    pub wakeups: u64,
    /// How many times the time of others it gets.
    pub weight: u32,
    /// Turns that ended because it had had its share.
    pub throttled: u64,
    /// Sessions with keys that the daemon holds.
    pub keys: u32,
}

impl Answer {
    /// A refusal.
    pub fn refused(status: Status, why: impl Into<String>) -> Self {
        Answer::Refused { status: status as u8, why: why.into() }
    }
}

/// A message that cannot be read, or is longer than a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message cannot be read, or is longer than a message may be")
    }
}

impl std::error::Error for Malformed {}

/// The bytes of a message.
///
/// # Errors
/// If they are longer than a message may be.
pub fn encode(message: &impl Serialize) -> Result<Zeroizing<Vec<u8>>, Malformed> {
    // Room for the whole, so that no secret is left behind by a buffer that grew.
    let mut bytes = Zeroizing::new(vec![0; MESSAGE_BYTES_MAX]);
    let used = postcard::to_slice(message, &mut bytes).map_err(|_| Malformed)?.len();
    bytes.truncate(used);
    Ok(bytes)
}

/// A client's request, read.
///
/// # Errors
/// If it is no [`Ask`], has bytes left over, or something in it is longer than it may be.
pub fn decode_ask(bytes: &[u8]) -> Result<Ask, Malformed> {
    let ask: Ask = decode(bytes)?;
    let fits = match &ask {
        Ask::Open { steps } => fit(steps),
        Ask::Keys(KeyAsk::Import { material, .. }) => material.0.len() <= KEY_BYTES_MAX,
        _ => true,
    };
    if fits { Ok(ask) } else { Err(Malformed) }
}

/// The steps of a session that was exported.
///
/// # Errors
/// If they are none, or something in them is longer than it may be.
pub fn decode_steps(bytes: &[u8]) -> Result<Vec<Step>, Malformed> {
    let steps: Vec<Step> = decode(bytes)?;
    if fit(&steps) { Ok(steps) } else { Err(Malformed) }
}

fn fit(steps: &[Step]) -> bool {
    (1..=STEPS_MAX).contains(&steps.len()) && steps.iter().all(fits)
}

/// The daemon's answer, read.
///
/// # Errors
/// If it is no [`Answer`], or has bytes left over.
pub fn decode_answer(bytes: &[u8]) -> Result<Answer, Malformed> {
    decode(bytes)
}

/// A message of another kind, between two daemons.
///
/// # Errors
/// If it is no such value, or has bytes left over.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(Malformed),
    }
}

fn fits(step: &Step) -> bool {
    let short = |secret: &Secret| secret.0.len() <= KEY_BYTES_MAX;
    match &step.key {
        Key::Secret(key) | Key::Pkcs8(key) | Key::Pkcs1(key) | Key::Sec1(key) => short(key),
        Key::Extract { salt, secret } => short(salt) && short(secret),
        Key::None | Key::Packet(_) | Key::Generate | Key::Named(_) => true,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let key = || Key::Extract { salt: Secret(vec![]), secret: Secret(vec![7; 32]) };
        let step = |algorithm: &str, key| Step { algorithm: algorithm.to_owned(), key };
        let asks = [
            Ask::Hello { version: VERSION, name: "test".to_owned() },
            Ask::Open { steps: vec![step("hkdf-sha-256", key())] },
            Ask::Close { session: SessionHandle { index: 7, generation: 1 << 40 } },
            Ask::Forget { region: RegionHandle { index: 255, generation: 1 } },
            Ask::Keys(KeyAsk::List { after: String::new() }),
            Ask::Granted { after: "web".to_owned() },
            Ask::Certificates { name: "web".to_owned() },
        ];
        for ask in asks {
            assert_eq!(decode_ask(&encode(&ask).unwrap()), Ok(ask));
        }
        let long = Ask::Open { steps: vec![step("x", Key::Pkcs8(Secret(vec![0; 17 << 10])))] };
        assert_eq!(decode_ask(&encode(&long).unwrap()), Err(Malformed));
        let none = Ask::Open { steps: Vec::new() };
        assert_eq!(decode_ask(&encode(&none).unwrap()), Err(Malformed));
        let longer = Ask::Open { steps: vec![step("x", Key::Pkcs8(Secret(vec![0; 40 << 10])))] };
        assert_eq!(encode(&longer).unwrap_err(), Malformed);
    }

    #[test]
    fn secrets_are_not_shown() {
        let step =
            Step { algorithm: "aes-128-gcm".to_owned(), key: Key::Secret(Secret(vec![42; 16])) };
        assert!(!format!("{:?}", Ask::Open { steps: vec![step] }).contains("42"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(ask) = decode_ask(&bytes) {
                prop_assert_eq!(decode_ask(&encode(&ask).unwrap()), Ok(ask));
            }
            let _ = decode_answer(&bytes);
        }
    }
}
