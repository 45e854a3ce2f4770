//! The bytes of a request and of its completion.
//!
//! A descriptor has 64 bytes, a line of the cache, and no pointers. It names a session and a region
//! by handles, and up to three segments of that region by offset and length. [`Opcode`] says what
//! each kind of request puts where. Numbers are in the processor's own order: both sides run on it.

use serde::{Deserialize, Serialize};

/// Words of a descriptor.
pub const DESCRIPTOR_WORDS: usize = 8;
/// Words of a completion.
pub const COMPLETION_WORDS: usize = 4;
/// Bytes of a descriptor's parameters, and of a completion's result.
pub const PARAMETER_BYTES: usize = 16;

macro_rules! opcodes {
    ($($(#[$doc:meta])* $id:ident = $value:literal,)*) => {
        /// The requested operation. A, B and C are the descriptor's segments, `p` its parameters,
        /// `x` its `extra`, `r` the completion's result. *in place* means that the segment is read
        /// and written.
        ///
        /// # How it is signed
        /// A byte each: whether the message is a digest (1) or whole (0); its hash; the hash of MGF1; whether
        /// the salt's length is given (1), and two bytes of that length. Zeros say all that the algorithm names
        /// itself. A hash is a number: 0 none, 1 MD5, 2 SHA-1, 3 to 6 SHA-224 to SHA-512, 7 SHA-512/256, 8 to
        /// 10 SHA3-256 to SHA3-512.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Opcode { $($(#[$doc])* $id = $value,)* }

        impl Opcode {
            /// All of them.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$id,)*];

            /// The opcode of this value.
            pub const fn new(value: u8) -> Option<Opcode> {
                match value { $($value => Some(Opcode::$id),)* _ => None }
            }
        }
    };
}

opcodes! {
    /// Nothing: it is answered at once. It serves to measure the ring itself.
    Null = 0,
    /// `p` nonce, A additional data, B text in place; `r` tag. Where the session makes the nonce,
    /// it is written over the nonce's place: the first 12 bytes of C.
    Seal = 1,
    /// `p` nonce, A additional data, B ciphertext and tag in place.
    Open = 2,
    /// `p` number (8 bytes), `x` bytes of the header, B packet in place.
    Protect = 3,
    /// `p` highest number so far (8 bytes) and whether there is one (1 byte), `x` where the number
    /// starts, B packet in place; `r` number (8 bytes), bytes of the header (4), phase (4: 0
    /// current, 1 previous, 2 next).
    Unprotect = 4,
    /// `p` sample; `r` mask.
    Mask = 5,
    /// `p` initialisation vector, B text in place.
    Encrypt = 6,
    /// As [`Opcode::Encrypt`].
    Decrypt = 7,
    /// A text; B out.
    Compress = 8,
    /// A what was compressed; B out.
    Decompress = 9,
    /// `p` length of the message (8 bytes), `x` 0 to protect and 1 to unprotect, A parts (each
    /// [`PART_BYTES`] bytes), B data in place.
    Chain = 10,
    /// A message; B out.
    Digest = 11,
    /// A message; B out.
    Mac = 12,
    /// A context; B out.
    Expand = 13,
    /// B out.
    PublicKey = 14,
    /// A the peer's share; B out.
    Agree = 15,
    /// A the peer's encapsulation key; B ciphertext out, C secret out.
    Encapsulate = 16,
    /// A ciphertext; B out.
    Decapsulate = 17,
    /// `p` how ([so](Opcode#how-it-is-signed)), A message or digest; B out.
    Sign = 18,
    /// `p` how ([so](Opcode#how-it-is-signed)), A public key, B message or digest, C signature.
    Verify = 19,
    /// `p` hash and hash of MGF1 as [there](Opcode#how-it-is-signed), one byte each, `x` bytes of OAEP's
    /// label, A public key, C label and then message; B out.
    PublicEncrypt = 20,
    /// `p` hash and hash of MGF1 as [there](Opcode#how-it-is-signed), one byte each, A ciphertext, C OAEP's label; B out.
    PrivateDecrypt = 21,
    /// B out.
    Random = 22,
    /// `p` cost ([`cost`]), A password, C salt; B out.
    Derive = 23,
    /// `p` cost and effort, `x` bytes of the salt, A password, B name of the entry, C salt and then
    /// what is expected.
    VerifyPassword = 24,
}

/// Bytes of one part of a chain, as it lies in a segment: 1 of its kind (0 cipher, 1 MAC, 2
/// compression), 1 of its kind of initialisation vector (0 given, 1 in the data), 6 unused, 16 of
/// the vector or, in the first 8, its place, and two ranges of 16 bytes each: text, or what is
/// authenticated and the tag. A range is its start and its end.
pub const PART_BYTES: usize = 56;

/// How a password's cost lies in the parameters: byte 0 has its kind, byte 1 the effort of
/// [`Opcode::VerifyPassword`] (0 recall, 1 full), and three numbers of 4 bytes each follow from
/// byte 4 on, in the order in which the kinds have them here.
pub mod cost {
    /// Iterations.
    pub const PBKDF2: u8 = 0;
    /// Memory in KiB, passes, lanes.
    pub const ARGON2: u8 = 1;
    /// The logarithm of N, r, p.
    pub const SCRYPT: u8 = 2;
    /// The logarithm of the rounds.
    pub const BCRYPT: u8 = 3;
    /// Nothing.
    pub const MD5_CRYPT: u8 = 4;
    /// Rounds.
    pub const SHA_CRYPT: u8 = 5;
}

/// A session's handle: it means something only to the client that opened it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionHandle {
    /// Its place in the client's table.
    pub index: u16,
    /// Drawn at random when it was opened; 48 bits.
    pub generation: u64,
}

/// Largest generation of a session.
pub const GENERATION_MAX: u64 = (1 << 48) - 1;

/// A region's handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegionHandle {
    /// Its place in the client's table.
    pub index: u8,
    /// How often that place was given away.
    pub generation: u16,
}

/// A part of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins, in bytes.
    pub offset: u32,
    /// How long it is, in bytes.
    pub bytes: u32,
}

impl Segment {
    /// Where it ends, in bytes from the region's start.
    pub const fn end(self) -> u64 {
        self.offset as u64 + self.bytes as u64
    }

    /// Whether the two share a byte.
    pub const fn overlaps(self, other: Segment) -> bool {
        let (begins, other_begins) = (self.offset as u64, other.offset as u64);
        begins < other.end() && other_begins < self.end() && self.bytes > 0 && other.bytes > 0
    }
}

/// A request, as it lies in the submission ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// An [`Opcode`], or nonsense.
    pub opcode: u8,
    /// On which session.
    pub session: SessionHandle,
    /// In which region its segments lie.
    pub region: RegionHandle,
    /// The client's; it comes back with the completion.
    pub cookie: u32,
    /// By opcode.
    pub parameters: [u8; PARAMETER_BYTES],
    /// By opcode.
    pub extra: u32,
    /// A, B and C.
    pub segments: [Segment; 3],
}

const fn low(word: u64) -> u32 {
    word as u32
}

const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

fn halves(bytes: [u8; PARAMETER_BYTES]) -> [u64; 2] {
    let both = u128::from_ne_bytes(bytes);
    if cfg!(target_endian = "little") {
        [both as u64, (both >> 64) as u64]
    } else {
        [(both >> 64) as u64, both as u64]
    }
}

fn whole([first, second]: [u64; 2]) -> [u8; PARAMETER_BYTES] {
    let (first, second) = (u128::from(first), u128::from(second));
    if cfg!(target_endian = "little") {
        (first | second << 64).to_ne_bytes()
    } else {
        (second | first << 64).to_ne_bytes()
    }
}

impl Descriptor {
    /// Its words; the upper half of the last one is the ring's.
    #[inline]
    pub fn to_words(&self) -> [u64; DESCRIPTOR_WORDS] {
        let SessionHandle { index, generation } = self.session;
        let first =
            u32::from(self.opcode) | u32::from(self.region.index) << 8 | u32::from(index) << 16;
        let [p, q] = halves(self.parameters);
        let [a, b, c] = self.segments.map(|segment| join(segment.offset, segment.bytes));
        [
            join(first, self.cookie),
            generation << 16 | u64::from(self.region.generation),
            p,
            q,
            a,
            b,
            c,
            u64::from(self.extra),
        ]
    }

    /// The descriptor in these words. Any words are a descriptor; whether it means something is
    /// another question.
    #[inline]
    pub fn from_words(words: [u64; DESCRIPTOR_WORDS]) -> Self {
        let [first, generations, p, q, a, b, c, last] = words;
        let segment = |word| Segment { offset: low(word), bytes: high(word) };
        Descriptor {
            opcode: first as u8,
            session: SessionHandle { index: (first >> 16) as u16, generation: generations >> 16 },
            region: RegionHandle { index: (first >> 8) as u8, generation: generations as u16 },
            cookie: high(first),
            parameters: whole([p, q]),
            extra: low(last),
            segments: [segment(a), segment(b), segment(c)],
        }
    }
}

/// How a request ended, in a completion. The client makes one of its own errors of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It was done.
    Done = 0,
    /// The daemon's engine does not do it, or not in this session.
    Unsupported = 1,
    /// It does not fit the session, or breaks a limit.
    InvalidRequest = 2,
    /// A tag, a signature or a password does not check.
    Authentication = 3,
    /// A bounded queue is full, or this client has as much under way as it may.
    Busy = 4,
    /// The key has been used as often as it may be.
    Exhausted = 5,
    /// The session is not one of this client's, or its key is revoked.
    NoSession = 6,
    /// The region is not one of this client's, or a segment lies outside it or over another.
    BadSegment = 7,
    /// The daemon's driver failed.
    Driver = 8,
    /// The daemon is shutting down, or the request's driver is gone.
    Gone = 9,
    /// The key is malformed.
    InvalidKey = 10,
}

impl Status {
    /// The status of this value; an unknown value counts as the daemon's failure.
    pub const fn new(value: u8) -> Status {
        match value {
            0 => Status::Done,
            1 => Status::Unsupported,
            2 => Status::InvalidRequest,
            3 => Status::Authentication,
            4 => Status::Busy,
            5 => Status::Exhausted,
            6 => Status::NoSession,
            7 => Status::BadSegment,
            9 => Status::Gone,
            10 => Status::InvalidKey,
            _ => Status::Driver,
        }
    }
}

/// A completion, as it lies in the completion ring. Nothing else is in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's.
    pub cookie: u32,
    /// How it ended.
    pub status: Status,
    /// How many bytes it put out.
    pub used: u32,
    /// By opcode; zeros where it says nothing.
    pub result: [u8; PARAMETER_BYTES],
}

impl Completion {
    /// Its words; the upper half of the last one is the ring's.
    #[inline]
    pub fn to_words(&self) -> [u64; COMPLETION_WORDS] {
        let [first, second] = halves(self.result);
        [first, second, join(self.used, self.status as u32), u64::from(self.cookie)]
    }

    /// The completion in these words.
    #[inline]
    pub fn from_words([first, second, third, last]: [u64; COMPLETION_WORDS]) -> Self {
        Completion {
            cookie: low(last),
            status: Status::new(high(third) as u8),
            used: low(third),
            result: whole([first, second]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_its_words() {
        let segment = |offset, bytes| Segment { offset, bytes };
        let descriptor = Descriptor {
            opcode: Opcode::Seal as u8,
            session: SessionHandle { index: 0xabcd, generation: GENERATION_MAX - 5 },
            region: RegionHandle { index: 0xfe, generation: 0x1234 },
            cookie: 0xdead_beef,
            parameters: std::array::from_fn(|i| i as u8),
            extra: 0x8765_4321,
            segments: [segment(1, 2), segment(u32::MAX, 3), segment(4, u32::MAX)],
        };
        assert_eq!(Descriptor::from_words(descriptor.to_words()), descriptor);
        assert_eq!(descriptor.to_words()[7] >> 32, 0);
        assert_eq!(descriptor.to_words()[2].to_ne_bytes(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_completion_is_its_words() {
        let result = std::array::from_fn(|i| i as u8 + 1);
        for status in (0..=10).map(Status::new) {
            let completion = Completion { cookie: 7, status, used: u32::MAX, result };
            assert_eq!(Completion::from_words(completion.to_words()), completion);
            assert_eq!(Status::new(status as u8), status);
        }
    }

    #[test]
    fn opcodes_are_their_values() {
        for value in 0..=u8::MAX {
            assert!(Opcode::new(value).is_none_or(|opcode| opcode as u8 == value));
        }
        assert!(Opcode::ALL.iter().all(|opcode| Opcode::new(*opcode as u8) == Some(*opcode)));
    }

    #[test]
    fn segments_overlap_if_they_share_a_byte() {
        let at = |offset, bytes| Segment { offset, bytes };
        assert!(at(0, 2).overlaps(at(1, 1)) && at(5, 1).overlaps(at(0, 9)));
        assert!(!at(0, 2).overlaps(at(2, 1)) && !at(3, 0).overlaps(at(0, 9)));
        assert!(at(u32::MAX, u32::MAX).overlaps(at(u32::MAX, 1)));
    }
}
