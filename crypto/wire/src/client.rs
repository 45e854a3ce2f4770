//! The client's half: a request into a descriptor and the bytes that it names, and a completion
//! back into the request.
//!
//! The input is copied into the daemon's sight, and the output is copied back only when the request
//! was done. Until then it is as it was, and can be run elsewhere. Nothing is allocated.

use crate::values;
use keyway_engine::{Effort, Error, MASK_BYTES, NONCE_BYTES, Request};
use keyway_ring::Window;
use keyway_ring::descriptor::{Completion, Descriptor, Opcode, PART_BYTES, Segment};

/// The room that one segment may need beside its bytes, to lie where it should.
const ALIGN: usize = 64;

/// Where in shared memory a request's bytes go: a slot, a region of its own, or what lies beside
/// lent data.
pub struct Space<'a> {
    window: Window<'a>,
    /// The free part of it begins here.
    next: usize,
    /// Where the data lies that is worked on, if it lies in that memory already.
    lent: Option<Segment>,
}

impl<'a> Space<'a> {
    /// For all of a request's bytes.
    #[inline]
    pub fn new(window: Window<'a>) -> Self {
        Space { window, next: window.start(), lent: None }
    }

    /// For everything but the data, which lies elsewhere in that memory.
    #[inline]
    pub fn beside(window: Window<'a>, data: Segment) -> Self {
        Space { lent: Some(data), ..Self::new(window) }
    }
}

impl Space<'_> {
    /// Room for so many bytes, at the next line of the cache if they fill one. `None` if there is
    /// none.
    #[inline]
    fn room(&mut self, bytes: usize) -> Option<Segment> {
        let align = if bytes < ALIGN { size_of::<u64>() } else { ALIGN };
        let offset = self.next.next_multiple_of(align);
        let end = offset.checked_add(bytes)?;
        if end > self.window.end() {
            return None;
        }
        self.next = end;
        Some(Segment { offset: u32::try_from(offset).ok()?, bytes: u32::try_from(bytes).ok()? })
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Option<Segment> {
        let segment = self.room(bytes.len())?;
        self.window.write(segment.offset as usize, bytes).ok()?;
        Some(segment)
    }

    /// The parts, one after the other.
    fn join<'b>(&mut self, parts: impl Iterator<Item = &'b [u8]> + Clone) -> Option<Segment> {
        let segment = self.room(parts.clone().map(<[u8]>::len).sum())?;
        let mut at = segment.offset as usize;
        for part in parts {
            self.window.write(at, part).ok()?;
            at += part.len();
        }
        Some(segment)
    }

    /// The data that is worked on.
    #[inline]
    fn data(&mut self, data: &[u8]) -> Option<Segment> {
        match self.lent {
            Some(there) => Some(there),
            None => self.put(data),
        }
    }

    /// Puts a segment in parts, which lie there already if there is one.
    fn parts(&mut self, parts: &[&[u8]]) -> Option<Segment> {
        match self.lent {
            Some(there) => Some(there),
            None => self.join(parts.iter().copied()),
        }
    }
}

/// Bytes that are enough for [`encode`].
pub fn bytes_max(request: &Request<'_>) -> usize {
    let sum =
        |parts: &[&[u8]]| parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()));
    let lengths = match request {
        Request::Seal { aad, data, .. } => [aad.len(), data.len(), NONCE_BYTES],
        Request::Open { aad, data, .. } => [aad.len(), data.len(), 0],
        Request::Protect { packet, .. } | Request::Unprotect { packet, .. } => [packet.len(), 0, 0],
        Request::Mask { .. } => [0; 3],
        Request::Encrypt { data, .. } | Request::Decrypt { data, .. } => [data.len(), 0, 0],
        Request::Compress { data, out } | Request::Decompress { data, out } => {
            [data.len(), out.len(), 0]
        }
        Request::Chain { data, parts, .. } => [parts.len() * PART_BYTES, data.len(), 0],
        Request::Digest { data: parts, out }
        | Request::Mac { data: parts, out }
        | Request::Expand { info: parts, out } => [sum(parts), out.len(), 0],
        Request::PublicKey { out } | Request::Random { out } => [out.len(), 0, 0],
        Request::Agree { peer, out } => [peer.len(), out.len(), 0],
        Request::Encapsulate { peer, ciphertext, secret } => {
            [peer.len(), ciphertext.len(), secret.len()]
        }
        Request::Decapsulate { ciphertext, secret } => [ciphertext.len(), secret.len(), 0],
        Request::Sign { message, out, .. } => [message.len(), out.len(), 0],
        Request::Verify { public_key, message, signature, .. } => {
            [public_key.len(), message.len(), signature.len()]
        }
        Request::PublicEncrypt { public_key, message, label, out, .. } => {
            [public_key.len(), message.len().saturating_add(label.len()), out.len()]
        }
        Request::PrivateDecrypt { ciphertext, label, out, .. } => {
            [ciphertext.len(), out.len(), label.len()]
        }
        Request::Derive { password, salt, out, .. } => [password.len(), salt.len(), out.len()],
        Request::VerifyPassword { entry, password, salt, expected, .. } => {
            [password.len(), entry.len(), salt.len().saturating_add(expected.len())]
        }
    };
    lengths.iter().fold(0, |sum, length| sum.saturating_add(*length).saturating_add(ALIGN))
}

/// Writes the input to `space`, and says where. The caller knows the session it is for and the
/// region it lies in. `None` if it does not fit there.
#[inline]
pub fn encode(request: &Request<'_>, space: &mut Space<'_>) -> Option<Descriptor> {
    let none = Segment::default();
    let mut extra = 0;
    let mut parameters = [0; _];
    let (opcode, segments) = match request {
        Request::Seal { nonce, aad, data, .. } => {
            parameters = values::front(nonce);
            (Opcode::Seal, [space.put(aad)?, space.data(data)?, space.room(NONCE_BYTES)?])
        }
        Request::Open { nonce, aad, data } => {
            parameters = values::front(nonce);
            (Opcode::Open, [space.put(aad)?, space.data(data)?, none])
        }
        Request::Protect { number, header_bytes, packet } => {
            parameters = values::front(&number.to_ne_bytes());
            extra = u32::try_from(*header_bytes).ok()?;
            (Opcode::Protect, [none, space.data(packet)?, none])
        }
        Request::Unprotect { largest, number_at, packet, .. } => {
            parameters = values::put_largest(*largest);
            extra = u32::try_from(*number_at).ok()?;
            (Opcode::Unprotect, [none, space.data(packet)?, none])
        }
        Request::Mask { sample, .. } => {
            parameters = **sample;
            (Opcode::Mask, [none; 3])
        }
        Request::Encrypt { iv, data } => {
            parameters = **iv;
            (Opcode::Encrypt, [none, space.data(data)?, none])
        }
        Request::Decrypt { iv, data } => {
            parameters = **iv;
            (Opcode::Decrypt, [none, space.data(data)?, none])
        }
        Request::Compress { data, out } => {
            (Opcode::Compress, [space.put(data)?, space.room(out.len())?, none])
        }
        Request::Decompress { data, out } => {
            (Opcode::Decompress, [space.put(data)?, space.room(out.len())?, none])
        }
        Request::Chain { direction, data, length, parts } => {
            parameters = values::put_index(*length);
            extra = values::put_direction(*direction);
            let there = space.room(parts.len().checked_mul(PART_BYTES)?)?;
            for (index, part) in parts.iter().enumerate() {
                let at = there.offset as usize + index * PART_BYTES;
                space.window.write(at, &values::put_part(part)).ok()?;
            }
            (Opcode::Chain, [there, space.data(data)?, none])
        }
        Request::Digest { data, out } => {
            (Opcode::Digest, [space.parts(data)?, space.room(out.len())?, none])
        }
        Request::Mac { data, out } => {
            (Opcode::Mac, [space.parts(data)?, space.room(out.len())?, none])
        }
        Request::Expand { info, out } => {
            (Opcode::Expand, [space.join(info.iter().copied())?, space.room(out.len())?, none])
        }
        Request::PublicKey { out } => (Opcode::PublicKey, [none, space.room(out.len())?, none]),
        Request::Agree { peer, out } => {
            (Opcode::Agree, [space.put(peer)?, space.room(out.len())?, none])
        }
        Request::Encapsulate { peer, ciphertext, secret } => {
            let (peer, ciphertext) = (space.put(peer)?, space.room(ciphertext.len())?);
            (Opcode::Encapsulate, [peer, ciphertext, space.room(secret.len())?])
        }
        Request::Decapsulate { ciphertext, secret } => {
            (Opcode::Decapsulate, [space.put(ciphertext)?, space.room(secret.len())?, none])
        }
        Request::Sign { message, parameters: how, out } => {
            parameters = values::put_signature(how);
            (Opcode::Sign, [space.put(message)?, space.room(out.len())?, none])
        }
        Request::Verify { public_key, message, parameters: how, signature } => {
            parameters = values::put_signature(how);
            let (public_key, message) = (space.put(public_key)?, space.put(message)?);
            (Opcode::Verify, [public_key, message, space.put(signature)?])
        }
        Request::PublicEncrypt { public_key, message, parameters: how, label, out } => {
            parameters = values::put_oaep(how);
            extra = u32::try_from(label.len()).ok()?;
            let public_key = space.put(public_key)?;
            let message = space.join([*label, *message].into_iter())?;
            (Opcode::PublicEncrypt, [public_key, space.room(out.len())?, message])
        }
        Request::PrivateDecrypt { ciphertext, parameters: how, label, out } => {
            parameters = values::put_oaep(how);
            let (ciphertext, out) = (space.put(ciphertext)?, space.room(out.len())?);
            (Opcode::PrivateDecrypt, [ciphertext, out, space.put(label)?])
        }
        Request::Random { out } => (Opcode::Random, [none, space.room(out.len())?, none]),
        Request::Derive { cost, password, salt, out } => {
            parameters = values::put_cost(*cost, Effort::Full);
            let (password, salt) = (space.put(password)?, space.put(salt)?);
            (Opcode::Derive, [password, space.room(out.len())?, salt])
        }
        Request::VerifyPassword { effort, cost, entry, password, salt, expected } => {
            parameters = values::put_cost(*cost, *effort);
            extra = u32::try_from(salt.len()).ok()?;
            let (password, entry) = (space.put(password)?, space.put(entry)?);
            let stored = space.join([*salt, *expected].into_iter())?;
            (Opcode::VerifyPassword, [password, entry, stored])
        }
    };
    let opcode = opcode as u8;
    Some(Descriptor { opcode, parameters, extra, segments, ..Descriptor::default() })
}

/// Takes what a request that was done has put out, and returns how many bytes that is. `lent` says
/// that the data was worked on where it lies.
///
/// # Errors
/// [`Error::Driver`] if the daemon says what cannot be.
#[inline]
pub fn decode(
    completion: &Completion,
    segments: &[Segment; 3],
    memory: Window<'_>,
    lent: bool,
    request: &mut Request<'_>,
) -> Result<usize, Error> {
    let used = completion.used as usize;
    let [_, b, c] = *segments;
    let read = |segment: Segment, out: &mut [u8]| {
        memory.read(segment.offset as usize, out).map_err(|_| NONSENSE)
    };
    // Data that is worked on in place comes back whole; else as much as was put out.
    let in_place = |data: &mut [u8]| match lent {
        true => Ok(()),
        false => read(b, data),
    };
    let front =
        |segment: Segment, out: &mut [u8]| read(segment, out.get_mut(..used).ok_or(NONSENSE)?);
    match request {
        Request::Seal { data, tag, .. } => {
            **tag = completion.result;
            in_place(data)?;
        }
        Request::Open { data, .. } => match lent {
            true => {}
            false => front(b, data)?,
        },
        Request::Protect { packet, .. } => in_place(packet)?,
        Request::Unprotect { packet, opened, .. } => {
            let found = values::opened(&completion.result).ok_or(NONSENSE)?;
            // The payload lies behind the header: the consumer relies on that.
            match found.header_bytes.checked_add(used) {
                Some(end) if end <= packet.len() => **opened = found,
                _ => return Err(NONSENSE),
            }
            in_place(packet)?;
        }
        Request::Mask { out, .. } => **out = values::first::<MASK_BYTES>(&completion.result),
        Request::Encrypt { data, .. } | Request::Decrypt { data, .. } => in_place(data)?,
        Request::Chain { data, .. } => in_place(data)?,
        Request::Compress { out, .. }
        | Request::Decompress { out, .. }
        | Request::Digest { out, .. }
        | Request::Mac { out, .. }
        | Request::Expand { out, .. }
        | Request::PublicKey { out }
        | Request::Agree { out, .. }
        | Request::Sign { out, .. }
        | Request::PublicEncrypt { out, .. }
        | Request::PrivateDecrypt { out, .. }
        | Request::Random { out }
        | Request::Derive { out, .. } => front(b, out)?,
        Request::Decapsulate { secret, .. } => front(b, secret)?,
        Request::Encapsulate { ciphertext, secret, .. } => {
            read(b, ciphertext)?;
            read(c, secret)?;
        }
        Request::Verify { .. } | Request::VerifyPassword { .. } => {}
    }
    match used <= room(request) {
        true => Ok(used),
        false => Err(NONSENSE),
    }
}

/// The most that a request's result can be.
#[inline]
fn room(request: &Request<'_>) -> usize {
    match request {
        Request::Seal { data, .. }
        | Request::Open { data, .. }
        | Request::Encrypt { data, .. }
        | Request::Decrypt { data, .. }
        | Request::Chain { data, .. } => data.len(),
        Request::Protect { packet, .. } | Request::Unprotect { packet, .. } => packet.len(),
        Request::Encapsulate { ciphertext, .. } => ciphertext.len(),
        Request::Mask { .. } => MASK_BYTES,
        Request::VerifyPassword { .. } => 1,
        // These were looked at when they were read.
        _ => usize::MAX,
    }
}

const NONSENSE: Error = Error::Driver {
    driver: "remote",
    why: "the daemon says that more was put out than there was room for",
};

/// Takes passwords and secrets out of shared memory when their request is over. The consumer of the
/// request has all other bytes there too.
#[inline]
pub fn wipe(request: &Request<'_>, segments: &[Segment; 3], memory: Window<'_>) {
    let [a, b, c] = *segments;
    match request {
        Request::Expand { .. }
        | Request::Agree { .. }
        | Request::Decapsulate { .. }
        | Request::PrivateDecrypt { .. }
        | Request::Random { .. } => zero(memory, b),
        Request::Encapsulate { .. } | Request::PublicEncrypt { .. } => zero(memory, c),
        Request::Derive { .. } => {
            zero(memory, a);
            zero(memory, b);
        }
        Request::VerifyPassword { .. } => zero(memory, a),
        _ => {}
    }
}

fn zero(memory: Window<'_>, segment: Segment) {
    const ZEROS: [u8; 256] = [0; 256];
    let (mut at, end) = (segment.offset as usize, segment.end() as usize);
    while at < end {
        let bytes = ZEROS.len().min(end - at);
        // A segment lies in its memory.
        let _ = memory.write(at, &ZEROS[..bytes]);
        at += bytes;
    }
}

/// Whether the result takes the place of the request's data, so that the request cannot be done again once some of it was
/// taken.
pub fn changes_data(request: &Request<'_>) -> bool {
    matches!(
        request,
        Request::Seal { .. }
            | Request::Open { .. }
            | Request::Protect { .. }
            | Request::Unprotect { .. }
            | Request::Encrypt { .. }
            | Request::Decrypt { .. }
            | Request::Chain { .. }
    )
}
