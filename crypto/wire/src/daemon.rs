//! The daemon's half: between the bytes of a ring and an operation of the engine.
//!
//! A request's bytes are copied out of the client's reach before anything looks at them, and what
//! it put out is copied back when it is done. So a client that changes its memory meanwhile changes
//! nothing that was checked, and sees nothing that was not.

use crate::{status, values};
use keyway_engine::{
    Buffer, Cost, Direction, Effort, Error, IV_BYTES_MAX, Operation, SignatureParameters, Zeroizing,
};
use keyway_ring::SharedMemory;
use keyway_ring::descriptor::{Completion, Descriptor, Opcode, PARAMETER_BYTES, Segment, Status};

/// Copies a request of a client that runs as the user `owner` into an operation, whose buffers are
/// used again if it is of the same kind.
///
/// # Errors
/// The status that its client is told.
#[inline]
pub fn load(
    descriptor: &Descriptor,
    opcode: Opcode,
    memory: &SharedMemory,
    owner: u32,
    operation: &mut Operation,
) -> Result<(), Status> {
    check(descriptor, memory)?;
    if opcode_of(operation) != opcode {
        *operation = empty(opcode).ok_or(NONSENSE)?;
    }
    let [a, b, c] = descriptor.segments;
    let from = Source { memory };
    let parameters = &descriptor.parameters;
    match operation {
        Operation::Seal { nonce, aad, data, .. } | Operation::Open { nonce, aad, data } => {
            *nonce = values::first(parameters);
            from.load(a, aad)?;
            from.load(b, data)
        }
        Operation::Protect { number, header_bytes, packet } => {
            *number = u64::from_ne_bytes(values::first(parameters));
            *header_bytes = descriptor.extra as usize;
            from.load(b, packet)
        }
        Operation::Unprotect { largest, number_at, packet, .. } => {
            *largest = values::largest(parameters);
            *number_at = descriptor.extra as usize;
            from.load(b, packet)
        }
        Operation::Mask { sample, .. } => {
            *sample = *parameters;
            Ok(())
        }
        Operation::Encrypt { iv, data } | Operation::Decrypt { iv, data } => {
            *iv = *parameters;
            from.load(b, data)
        }
        Operation::Compress { data, out } | Operation::Decompress { data, out } => {
            make_room(b, out);
            from.load(a, data)
        }
        Operation::Chain { direction, data, length, parts } => {
            *direction = values::direction(descriptor.extra).ok_or(NONSENSE)?;
            *length = values::index(parameters).ok_or(NONSENSE)?;
            let mut bytes = Vec::new();
            from.load(a, &mut bytes)?;
            *parts = values::parts(&bytes).ok_or(NONSENSE)?;
            from.load(b, data)
        }
        Operation::Digest { data, out } | Operation::Mac { data, out } => {
            make_room(b, out);
            from.load(a, data)
        }
        Operation::Expand { info: input, out }
        | Operation::Agree { peer: input, out }
        | Operation::Decapsulate { ciphertext: input, secret: out } => {
            make_room(b, out);
            from.load(a, input)
        }
        Operation::PrivateDecrypt { ciphertext, parameters: how, label, out } => {
            *how = values::oaep(parameters).ok_or(NONSENSE)?;
            make_room(b, out);
            from.load(a, ciphertext)?;
            from.load(c, label)
        }
        Operation::PublicKey { out } => {
            make_room(b, out);
            Ok(())
        }
        Operation::Encapsulate { peer, ciphertext, secret } => {
            make_room(b, ciphertext);
            make_room(c, secret);
            from.load(a, peer)
        }
        Operation::Sign { message, parameters: how, out } => {
            *how = values::signature(parameters).ok_or(NONSENSE)?;
            make_room(b, out);
            from.load(a, message)
        }
        Operation::Verify { public_key, message, parameters: how, signature } => {
            *how = values::signature(parameters).ok_or(NONSENSE)?;
            from.load(a, public_key)?;
            from.load(b, message)?;
            from.load(c, signature)
        }
        Operation::PublicEncrypt { public_key, message, parameters: how, label, out } => {
            *how = values::oaep(parameters).ok_or(NONSENSE)?;
            make_room(b, out);
            from.load(a, public_key)?;
            let (front, back) = split(c, descriptor.extra);
            from.load(front, label)?;
            from.load(back, message)
        }
        Operation::Random { out } => {
            make_room(b, out);
            Ok(())
        }
        Operation::Derive { cost, password, salt, out } => {
            *cost = values::cost(parameters).ok_or(NONSENSE)?;
            make_room(b, out);
            from.load(a, password)?;
            from.load(c, salt)
        }
        Operation::VerifyPassword { effort, cost, entry, password, salt, expected } => {
            *cost = values::cost(parameters).ok_or(NONSENSE)?;
            *effort = values::effort(parameters).ok_or(NONSENSE)?;
            from.load(a, password)?;
            from.load(b, entry)?;
            if !entry.is_empty() {
                // Two users' entries of one name are two.
                entry.splice(..0, owner.to_ne_bytes());
            }
            let (front, back) = split(c, descriptor.extra);
            from.load(front, salt)?;
            from.load(back, expected)
        }
    }
}

/// Copies what a request put out to where its descriptor says, and says how it ended.
#[inline]
pub fn store(
    descriptor: &Descriptor,
    memory: &SharedMemory,
    operation: &Operation,
    result: Result<usize, Error>,
    makes_nonces: bool,
) -> Completion {
    let mut completion = Completion {
        cookie: descriptor.cookie,
        status: result.map_or_else(|error| status(&error), |_| Status::Done),
        used: result.map_or(0, |used| u32::try_from(used).unwrap_or(u32::MAX)),
        result: [0; PARAMETER_BYTES],
    };
    let done = result.is_ok();
    let [_, b, c] = descriptor.segments;
    let used = |out: &[u8]| result.unwrap_or(0).min(out.len());
    let out = &mut completion.result;
    // Every segment was checked when the request was taken, and memory keeps its length.
    let put = |segment: Segment, bytes: &[u8]| {
        let _ = memory.write(segment.offset as usize, bytes);
    };
    match operation {
        Operation::Seal { nonce, data, tag, .. } if done => {
            put(b, data);
            *out = *tag;
            if makes_nonces && c.bytes as usize >= nonce.len() {
                put(c, nonce);
            }
        }
        // Where the tag did not check, nothing of the text is in it.
        Operation::Open { data, .. } => put(b, data),
        Operation::Unprotect { packet, opened, .. } => {
            put(b, packet);
            if done {
                *out = values::put_opened(opened);
            }
        }
        Operation::Mask { out: mask, .. } if done => out[..mask.len()].copy_from_slice(mask),
        Operation::Protect { packet: data, .. }
        | Operation::Encrypt { data, .. }
        | Operation::Decrypt { data, .. }
        | Operation::Chain { data, .. }
            if done =>
        {
            put(b, data)
        }
        Operation::Encapsulate { ciphertext, secret, .. } if done => {
            put(b, ciphertext);
            put(c, secret);
        }
        Operation::Verify { .. } | Operation::VerifyPassword { .. } => {}
        _ if done => {
            let bytes = operation.output();
            put(b, &bytes[..used(bytes)]);
        }
        _ => {}
    }
    completion
}

/// An answer to a request that was refused.
pub fn refused(cookie: u32, status: Status) -> Completion {
    Completion { cookie, status, used: 0, result: [0; PARAMETER_BYTES] }
}

/// Bytes that a request names.
pub fn named_bytes(descriptor: &Descriptor) -> usize {
    descriptor.segments.iter().map(|segment| segment.bytes as usize).sum()
}

/// Whether all segments lie in the memory and none over another.
fn check(descriptor: &Descriptor, memory: &SharedMemory) -> Result<(), Status> {
    let [a, b, c] = descriptor.segments;
    let inside = |segment: Segment| segment.end() <= memory.bytes() as u64;
    let apart = !a.overlaps(b) && !b.overlaps(c) && !a.overlaps(c);
    if inside(a) && inside(b) && inside(c) && apart { Ok(()) } else { Err(Status::BadSegment) }
}

/// From so many bytes on a system call costs next to nothing beside the copy.
const MANY_BYTES: usize = 256 << 10;

/// Where requests are copied from.
struct Source<'a> {
    memory: &'a SharedMemory,
}

impl Source<'_> {
    #[inline]
    fn load(&self, segment: Segment, into: &mut impl Bytes) -> Result<(), Status> {
        let into = into.of_length(segment.bytes as usize);
        let read = match into.len() < MANY_BYTES {
            true => self.memory.read(segment.offset as usize, into),
            false => self.memory.read_many(segment.offset as usize, into),
        };
        read.map_err(|_| Status::BadSegment)
    }
}

/// The first bytes of a segment, as many as these or all, and the rest.
fn split(segment: Segment, front: u32) -> (Segment, Segment) {
    let (whole, front) = (segment.bytes, front.min(segment.bytes));
    // The second ends where the whole does, so its offset does not overflow.
    let back = Segment { offset: segment.offset + front, bytes: whole - front };
    (Segment { bytes: front, ..segment }, back)
}

fn make_room(segment: Segment, out: &mut impl Bytes) {
    out.of_length(segment.bytes as usize);
}

/// The bytes that a request is read into.
trait Bytes {
    /// All of it, made so long.
    fn of_length(&mut self, bytes: usize) -> &mut [u8];
}

impl Bytes for Vec<u8> {
    fn of_length(&mut self, bytes: usize) -> &mut [u8] {
        self.resize(bytes, 0);
        self
    }
}

impl Bytes for Zeroizing<Vec<u8>> {
    fn of_length(&mut self, bytes: usize) -> &mut [u8] {
        self.resize(bytes, 0);
        self
    }
}

impl Bytes for Buffer {
    fn of_length(&mut self, bytes: usize) -> &mut [u8] {
        self.resize(bytes);
        self
    }
}

const NONSENSE: Status = Status::InvalidRequest;

fn opcode_of(operation: &Operation) -> Opcode {
    match operation {
        Operation::Seal { .. } => Opcode::Seal,
        Operation::Open { .. } => Opcode::Open,
        Operation::Protect { .. } => Opcode::Protect,
        Operation::Unprotect { .. } => Opcode::Unprotect,
        Operation::Mask { .. } => Opcode::Mask,
        Operation::Encrypt { .. } => Opcode::Encrypt,
        Operation::Decrypt { .. } => Opcode::Decrypt,
        Operation::Compress { .. } => Opcode::Compress,
        Operation::Decompress { .. } => Opcode::Decompress,
        Operation::Chain { .. } => Opcode::Chain,
        Operation::Digest { .. } => Opcode::Digest,
        Operation::Mac { .. } => Opcode::Mac,
        Operation::Expand { .. } => Opcode::Expand,
        Operation::PublicKey { .. } => Opcode::PublicKey,
        Operation::Agree { .. } => Opcode::Agree,
        Operation::Encapsulate { .. } => Opcode::Encapsulate,
        Operation::Decapsulate { .. } => Opcode::Decapsulate,
        Operation::Sign { .. } => Opcode::Sign,
        Operation::Verify { .. } => Opcode::Verify,
        Operation::PublicEncrypt { .. } => Opcode::PublicEncrypt,
        Operation::PrivateDecrypt { .. } => Opcode::PrivateDecrypt,
        Operation::Random { .. } => Opcode::Random,
        Operation::Derive { .. } => Opcode::Derive,
        Operation::VerifyPassword { .. } => Opcode::VerifyPassword,
    }
}

/// An operation of that kind with empty buffers. `None` for [`Opcode::Null`], which is none.
pub fn empty(opcode: Opcode) -> Option<Operation> {
    let none = Vec::<u8>::new;
    Some(match opcode {
        Opcode::Null => return None,
        Opcode::Seal => Operation::seal([0; 12], none(), none()),
        Opcode::Open => Operation::open([0; 12], none(), none()),
        Opcode::Protect => Operation::protect(0, 0, none()),
        Opcode::Unprotect => Operation::unprotect(None, 0, none()),
        Opcode::Mask => Operation::mask([0; 16]),
        Opcode::Encrypt => Operation::encrypt([0; IV_BYTES_MAX], none()),
        Opcode::Decrypt => Operation::decrypt([0; IV_BYTES_MAX], none()),
        Opcode::Compress => Operation::compress(none(), 0),
        Opcode::Decompress => Operation::decompress(none(), 0),
        Opcode::Chain => Operation::chain(Direction::Protect, none(), 0, Vec::new()),
        Opcode::Digest => Operation::Digest { data: none().into(), out: none() },
        Opcode::Mac => Operation::Mac { data: none().into(), out: none() },
        Opcode::Expand => Operation::expand(none(), 0),
        Opcode::PublicKey => Operation::PublicKey { out: none() },
        Opcode::Agree => Operation::Agree { peer: none(), out: none().into() },
        Opcode::Encapsulate => {
            Operation::Encapsulate { peer: none(), ciphertext: none(), secret: none().into() }
        }
        Opcode::Decapsulate => Operation::Decapsulate { ciphertext: none(), secret: none().into() },
        Opcode::Sign => Operation::Sign {
            message: none(),
            parameters: SignatureParameters::default(),
            out: none(),
        },
        Opcode::Verify => Operation::verify(none(), none(), none()),
        Opcode::PublicEncrypt => Operation::public_encrypt(none(), none(), 0),
        Opcode::PrivateDecrypt => Operation::private_decrypt(none(), 0),
        Opcode::Random => Operation::random(0),
        Opcode::Derive => Operation::derive(Cost::Md5Crypt, none().into(), none(), 0),
        Opcode::VerifyPassword => Operation::VerifyPassword {
            effort: Effort::Recall,
            cost: Cost::Md5Crypt,
            entry: none(),
            password: none().into(),
            salt: none(),
            expected: none(),
        },
    })
}
