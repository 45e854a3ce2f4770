//! The messages of vhost-user (QEMU's docs/interop/vhost-user.rst) as types. All numbers are little-endian.
//!
//! The layouts of a session are QEMU's own structures, not the specification's. There are three: QEMU before 7.1 and
//! DPDK have 632 bytes with an operation's number before the algorithm, QEMU from 7.1 on 632 bytes without it, and
//! later ones 1,072 bytes with that number in front, so that asymmetric ciphers have a layout of their own.

use crate::crypto::{SessionParameters, SessionRequest, Status, is_akcipher_create, word_at};
use crate::limits::{PAYLOAD_BYTES_MAX, REGIONS_MAX};
use std::fmt;

/// Length of a message's header, in bytes.
pub const HEADER_BYTES: usize = 12;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// A memory table's bytes before its regions, and of each region.
const TABLE_HEADER_BYTES: usize = 8;
const REGION_BYTES: usize = 32;
/// Bytes of GET_CONFIG's header, before the contents.
const CONFIG_HEADER_BYTES: usize = 12;

/// The number of a ring in a message with a file. A bit says that there is no file.
const RING_MASK: u64 = 0xff;
const NO_FILE: u64 = 1 << 8;

const SESSION_BYTES: usize = 632;
const LATER_SESSION_BYTES: usize = 1_072;
/// Shortest key of a cipher here, in bytes, and more than an algorithm's number.
const KEY_BYTES_MIN: u32 = 16;

/// The front end's bytes are no message. Its connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The message's number.
    pub request: u32,
    /// Whether an answer is wanted where the message has none of its own.
    pub need_reply: bool,
    /// Bytes behind the header.
    pub payload_bytes: usize,
}

impl Header {
    /// Reads a front end's header.
    ///
    /// # Errors
    /// If it is of another version, is an answer, or announces more than [`PAYLOAD_BYTES_MAX`].
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Malformed> {
        let [request, flags, payload_bytes] = [0, 4, 8].map(|at| word_at(bytes, at));
        if flags & VERSION_MASK != VERSION || flags & REPLY != 0 {
            return Err(Malformed("its version is not 1, or it is an answer"));
        }
        let payload_bytes = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(Malformed("it is too long"));
        }
        Ok(Header { request, need_reply: flags & NEED_REPLY != 0, payload_bytes })
    }

    /// An answer with this payload.
    pub fn answer(self, payload: &[u8]) -> Vec<u8> {
        let words = [self.request, VERSION | REPLY, payload.len() as u32];
        let mut message: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        message.extend(payload);
        message
    }
}

/// A region of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionDescription {
    /// Where the guest has it.
    pub guest: u64,
    /// Its length.
    pub bytes: u64,
    /// Where the front end has it. Rings are named by such addresses.
    pub user: u64,
    /// Where it begins in its file.
    pub offset: u64,
}

/// Where a ring lies, in the front end's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingAddresses {
    /// The descriptor table.
    pub descriptors: u64,
    /// What the driver offers.
    pub available: u64,
    /// What the device has used.
    pub used: u64,
}

/// A front end's message. Its files come beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Which features of virtio there are.
    GetFeatures,
    /// The features that the front end took.
    SetFeatures(u64),
    /// The first message of a front end that uses the device.
    SetOwner,
    /// Stops all rings. No longer sent.
    ResetOwner,
    /// The guest's memory, with a file for each region.
    SetMemTable(Vec<RegionDescription>),
    /// How many descriptors a ring has.
    SetVringNum {
        /// The ring.
        ring: u32,
        /// As many.
        descriptors: u32,
    },
    /// Where a ring lies.
    SetVringAddr {
        /// The ring.
        ring: u32,
        /// There.
        addresses: RingAddresses,
    },
    /// The next entry that the device takes.
    SetVringBase {
        /// The ring.
        ring: u32,
        /// The entry.
        base: u32,
    },
    /// Stops a ring and asks for the next entry.
    GetVringBase {
        /// The ring.
        ring: u32,
    },
    /// The event that says that something is available. Starts the ring.
    SetVringKick(RingFile),
    /// The event by which the device interrupts the driver.
    SetVringCall(RingFile),
    /// The event that says that a ring is broken.
    SetVringErr(RingFile),
    /// Which features of this protocol there are.
    GetProtocolFeatures,
    /// The features of this protocol that the front end took.
    SetProtocolFeatures(u64),
    /// How many rings there are.
    GetQueueNum,
    /// Lets a ring work or not.
    SetVringEnable {
        /// The ring.
        ring: u32,
        /// Whether.
        enabled: bool,
    },
    /// A connection for messages of the device, with a file.
    SetBackendReqFd,
    /// Reads the configuration space.
    GetConfig {
        /// From there.
        offset: u32,
        /// So many bytes.
        bytes: u32,
        /// The front end's, to be sent back.
        flags: u32,
    },
    /// Writes the configuration space.
    SetConfig,
    /// Opens a session, if that could be read.
    CreateCryptoSession {
        /// How it was laid out.
        layout: SessionLayout,
        /// The session.
        session: Result<SessionRequest<'a>, Status>,
    },
    /// Closes a session.
    CloseCryptoSession {
        /// The session's number.
        session: u64,
    },
    /// A message that this device does not know.
    Unknown,
}

/// A ring, and whether a file comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingFile {
    /// The ring.
    pub ring: u32,
    /// Whether.
    pub has_file: bool,
}

/// The layout of a session in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLayout {
    /// The session's number first, 632 bytes.
    NumberFirst,
    /// The session's number last, 1,072 bytes.
    NumberLast,
}

impl SessionLayout {
    /// The answer's payload: the session's number, negative for a refusal, and nothing of the key.
    pub fn answer(self, session: i64) -> Vec<u8> {
        let (bytes, at) = match self {
            SessionLayout::NumberFirst => (SESSION_BYTES, 0),
            SessionLayout::NumberLast => (LATER_SESSION_BYTES, LATER_SESSION_BYTES - 8),
        };
        let mut payload = vec![0; bytes];
        payload[at..at + 8].copy_from_slice(&session.to_le_bytes());
        payload
    }
}

impl<'a> Message<'a> {
    /// Reads a message. One that is longer than it has to be is taken: User-Mode Linux sends more than one region's
    /// bytes for one region.
    ///
    /// # Errors
    /// If it is too short, or says that it has more than fits.
    pub fn decode(request: u32, payload: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let word = |at: usize| word_at(payload, at);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let has = |bytes: usize| {
            let is_whole = payload.len() >= bytes;
            is_whole.then_some(()).ok_or(Malformed("it is too short"))
        };
        Ok(match request {
            1 => Message::GetFeatures,
            2 => has(8).map(|()| Message::SetFeatures(long(0)))?,
            3 => Message::SetOwner,
            4 => Message::ResetOwner,
            5 => Message::SetMemTable(regions(payload)?),
            8 => has(8).map(|()| Message::SetVringNum { ring: word(0), descriptors: word(4) })?,
            9 => {
                has(40)?;
                let [descriptors, used, available] = [8, 16, 24].map(long);
                let addresses = RingAddresses { descriptors, available, used };
                Message::SetVringAddr { ring: word(0), addresses }
            }
            10 => has(8).map(|()| Message::SetVringBase { ring: word(0), base: word(4) })?,
            11 => has(8).map(|()| Message::GetVringBase { ring: word(0) })?,
            12..=14 => {
                has(8)?;
                let ring = (long(0) & RING_MASK) as u32;
                let file = RingFile { ring, has_file: long(0) & NO_FILE == 0 };
                match request {
                    12 => Message::SetVringKick(file),
                    13 => Message::SetVringCall(file),
                    _ => Message::SetVringErr(file),
                }
            }
            15 => Message::GetProtocolFeatures,
            16 => has(8).map(|()| Message::SetProtocolFeatures(long(0)))?,
            17 => Message::GetQueueNum,
            18 => {
                has(8)?;
                Message::SetVringEnable { ring: word(0), enabled: word(4) != 0 }
            }
            21 => Message::SetBackendReqFd,
            24 => {
                has(CONFIG_HEADER_BYTES)?;
                Message::GetConfig { offset: word(0), bytes: word(4), flags: word(8) }
            }
            25 => Message::SetConfig,
            26 => session(payload)?,
            27 => has(8).map(|()| Message::CloseCryptoSession { session: long(0) })?,
            _ => Message::Unknown,
        })
    }
}

fn regions(payload: &[u8]) -> Result<Vec<RegionDescription>, Malformed> {
    let count = usize::try_from(word_at(payload, 0)).unwrap_or(usize::MAX);
    if count > REGIONS_MAX {
        return Err(Malformed("its memory table has too many regions"));
    }
    let described = payload.get(TABLE_HEADER_BYTES..).unwrap_or(&[]);
    let (described, _) = described.as_chunks::<REGION_BYTES>();
    let described = described.get(..count).ok_or(Malformed("its memory table is cut short"))?;
    let region = |bytes: &[u8; REGION_BYTES]| {
        let long = |at| u64::from(word_at(bytes, at)) | u64::from(word_at(bytes, at + 4)) << 32;
        let [guest, bytes, user, offset] = [0, 8, 16, 24].map(long);
        RegionDescription { guest, bytes, user, offset }
    };
    Ok(described.iter().map(region).collect())
}

/// Reads a session. Of the two layouts of one length, the one with a number of an operation has the algorithm's number
/// where the other has the length of the key, which is never as small.
fn session(payload: &[u8]) -> Result<Message<'_>, Malformed> {
    let word = |at: usize| word_at(payload, at);
    let (layout, session) = match payload.len() {
        SESSION_BYTES => {
            let has_code =
                is_akcipher_create(u64::from(word(8))) == Some(false) && word(12) < KEY_BYTES_MIN;
            let session = cipher(payload, if has_code { 12 } else { 8 });
            (SessionLayout::NumberFirst, session)
        }
        LATER_SESSION_BYTES => {
            let code = u64::from(word(0)) | u64::from(word(4)) << 32;
            let session = match is_akcipher_create(code) {
                Some(false) => cipher(payload, 8),
                Some(true) => akcipher(payload),
                None => Err(Status::NotSupported),
            };
            (SessionLayout::NumberLast, session)
        }
        _ => return Err(Malformed("a session has 632 or 1,072 bytes")),
    };
    Ok(Message::CreateCryptoSession { layout, session })
}

/// A cipher's session, whose parameters begin there. The key is at the same place in all layouts, before that of a MAC.
fn cipher(payload: &[u8], at: usize) -> Result<SessionRequest<'_>, Status> {
    const CIPHER_ALONE: u8 = 1;
    let byte = |at: usize| payload.get(at).copied().unwrap_or(0);
    if byte(at + 24) != CIPHER_ALONE {
        return Err(Status::NotSupported);
    }
    let [algorithm, key_bytes] = [at, at + 4].map(|at| word_at(payload, at));
    let parameters = SessionParameters::cipher(algorithm, key_bytes, byte(at + 25).into())?;
    parameters.with_key(payload.get(56..120).unwrap_or(&[]))
}

/// An asymmetric cipher's session, of the layout that has such.
fn akcipher(payload: &[u8]) -> Result<SessionRequest<'_>, Status> {
    let [algorithm, key_type, key_bytes, padding, hash] =
        [8, 12, 16, 32, 36].map(|at| word_at(payload, at));
    let parameters = SessionParameters::akcipher(algorithm, key_type, key_bytes, padding, hash)?;
    parameters.with_key(payload.get(40..LATER_SESSION_BYTES - 8).unwrap_or(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::Direction;
    use proptest::prelude::*;

    /// A payload with these bytes, at these positions.
    fn payload(bytes: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut payload = vec![0; bytes];
        for (at, part) in parts {
            payload[*at..at + part.len()].copy_from_slice(part);
        }
        payload
    }

    fn created(payload: &[u8]) -> (SessionLayout, Result<SessionRequest<'_>, Status>) {
        match Message::decode(26, payload) {
            Ok(Message::CreateCryptoSession { layout, session }) => (layout, session),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_three_layouts_of_a_session() {
        let key = [7; 32];
        let expected =
            |bytes, direction| Ok(SessionRequest::AesCbc { direction, key: &[7; 32][..bytes] });
        let parts: &[(usize, &[u8])] =
            &[(8, &[3]), (12, &[16]), (32, &[1, 1]), (40, &[0xff; 16]), (56, &key)];
        let first = (SessionLayout::NumberFirst, expected(16, Direction::Encrypt));
        assert_eq!(created(&payload(632, parts)), first);
        let parts: &[(usize, &[u8])] =
            &[(8, &[2]), (12, &[3]), (16, &[24]), (36, &[1, 2]), (40, &[0xff; 16]), (56, &key)];
        let with_code = (SessionLayout::NumberFirst, expected(24, Direction::Decrypt));
        assert_eq!(created(&payload(632, parts)), with_code);
        let parts: &[(usize, &[u8])] =
            &[(0, &[2]), (8, &[3]), (12, &[32]), (32, &[1, 2]), (56, &key)];
        let later = (SessionLayout::NumberLast, expected(32, Direction::Decrypt));
        assert_eq!(created(&payload(1_072, parts)), later);
        let parts: &[(usize, &[u8])] = &[
            (0, &[4, 4]),
            (8, &[1]),
            (12, &[2]),
            (16, &[0, 4]),
            (32, &[1]),
            (36, &[6]),
            (40, &[9; 1_024]),
        ];
        let hash = Some(keyway_engine::Algorithm::Sha256);
        let rsa = SessionRequest::Rsa { private: true, hash, key: &[9; 1_024] };
        assert_eq!(created(&payload(1_072, parts)), (SessionLayout::NumberLast, Ok(rsa)));
    }

    #[test]
    fn sessions_that_the_device_has_not_are_refused_and_their_layout_is_known() {
        // AES-ECB, whose number is that of the operation: it is the layout without one.
        let ecb = payload(632, &[(8, &[2]), (12, &[16]), (32, &[1, 1])]);
        assert_eq!(created(&ecb), (SessionLayout::NumberFirst, Err(Status::NotSupported)));
        let chained = payload(632, &[(8, &[3]), (12, &[16]), (32, &[2, 1])]);
        assert_eq!(created(&chained).1, Err(Status::NotSupported));
        let long = payload(632, &[(8, &[3]), (12, &[65]), (32, &[1, 1])]);
        assert_eq!(created(&long).1, Err(Status::BadMessage), "not the MAC's key");
        let hash = payload(1_072, &[(0, &[2, 1])]);
        assert_eq!(created(&hash), (SessionLayout::NumberLast, Err(Status::NotSupported)));
        assert!(Message::decode(26, &[0; 631]).is_err());
        assert_eq!(SessionLayout::NumberFirst.answer(-1)[..8], [0xff; 8]);
        assert_eq!(SessionLayout::NumberLast.answer(5)[1_064..], [5, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_memory_table_has_the_regions_that_it_announces() {
        let region: Vec<u8> = [1_u64, 2, 3, 4].into_iter().flat_map(u64::to_le_bytes).collect();
        let table = payload(72, &[(0, &[1]), (8, &region)]);
        let described = RegionDescription { guest: 1, bytes: 2, user: 3, offset: 4 };
        let expected = Ok(Message::SetMemTable(vec![described]));
        assert_eq!(Message::decode(5, &table), expected, "as User-Mode Linux sends it");
        assert_eq!(Message::decode(5, &table[..40]), expected);
        assert!(Message::decode(5, &table[..39]).is_err());
        assert!(Message::decode(5, &payload(4_000, &[(0, &[33])])).is_err());
    }

    #[test]
    fn headers_are_checked() {
        let bytes = payload(12, &[(0, &[5]), (4, &[9]), (8, &[40])]);
        let bytes: [u8; 12] = bytes.try_into().unwrap();
        let header = Header { request: 5, need_reply: true, payload_bytes: 40 };
        assert_eq!(Header::decode(&bytes), Ok(header));
        assert_eq!(header.answer(&[1, 2])[..], [5, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 1, 2]);
        for (at, byte) in [(4, 0), (4, 2), (4, 5), (10, 1)] {
            let mut bytes = bytes;
            bytes[at] = byte;
            assert!(Header::decode(&bytes).is_err(), "{byte} at {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(request in 0_u32..48, payload: Vec<u8>) {
            let _ = Message::decode(request, &payload);
        }

        #[test]
        fn any_session_is_read_within_its_bytes(parts: [u8; 64], key_bytes: u8, code: bool) {
            for bytes in [632, 1_072] {
                let mut payload = payload(bytes, &[(0, &parts)]);
                payload[12] = key_bytes;
                if code {
                    payload[..4].copy_from_slice(&[4, 4, 0, 0]);
                }
                if let (_, Ok(SessionRequest::AesCbc { key, .. } | SessionRequest::Rsa { key, .. })) =
                    created(&payload)
                {
                    prop_assert!(!key.is_empty() && key.len() <= 1_024);
                }
            }
        }
    }
}
