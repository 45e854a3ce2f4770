//! One direction of a TCP connection: segments in whatever order, octets in theirs.

use crate::limits::{WAITING_BYTES_MAX, WAITING_SEGMENTS_MAX};
use crate::network::Segment;
use std::collections::BTreeMap;

/// A delivery of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery<'a> {
    /// The octets that come next.
    Octets(&'a [u8]),
    /// So many octets are not in the capture; the next octets follow them.
    Gap(u64),
}

/// Positions count octets of the stream. Their lower 32 bits are sequence numbers; they begin
/// here, so that none is negative.
const ORIGIN: u64 = 1 << 32;

#[derive(Debug)]
struct Piece {
    octets: Vec<u8>,
    /// How many octets that were cut off follow these.
    missing: usize,
}

impl Piece {
    fn length(&self) -> u64 {
        (self.octets.len() + self.missing) as u64
    }
}

/// The state of one direction.
#[derive(Debug, Default)]
pub struct Stream {
    /// The position of the octet that is due, once anything is known.
    due: Option<u64>,
    waiting: BTreeMap<u64, Piece>,
    waiting_bytes: usize,
    /// How far the receiver has acknowledged.
    acknowledged: u64,
    end: Option<u64>,
    /// Octets that came more than once.
    repeated: u64,
}

impl Stream {
    /// Whether its beginning was seen.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.due.is_some()
    }

    /// How many bytes it holds back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// How many octets came again.
    #[must_use]
    pub fn repeated_bytes(&self) -> u64 {
        self.repeated
    }

    /// Whether everything up to its end was delivered.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!((self.end, self.due), (Some(end), Some(due)) if due >= end)
    }

    /// Whether a segment with SYN is of this connection and not of a later one.
    #[must_use]
    pub fn is_continued_by(&self, segment: &Segment<'_>) -> bool {
        let first = segment.sequence.wrapping_add(1);
        self.due.is_none_or(|due| due.abs_diff(position(due, first)) < 1 << 20)
    }

    /// Whether a segment has octets that are due.
    #[must_use]
    pub fn is_due(&self, segment: &Segment<'_>) -> bool {
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        let length = (segment.payload.len() + segment.missing) as u64;
        self.due.is_some_and(|due| {
            let at = position(due, first);
            at <= due && at + length > due
        })
    }

    /// Takes a segment of this direction, and delivers what is in order now.
    ///
    /// # Errors
    /// As `deliver`.
    pub fn take<E>(
        &mut self,
        segment: &Segment<'_>,
        deliver: &mut impl FnMut(Delivery<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        let due = match self.due {
            Some(due) => due,
            None if segment.syn || !segment.payload.is_empty() || segment.missing > 0 => {
                let due = ORIGIN | u64::from(first);
                self.due = Some(due);
                self.acknowledged = due;
                due
            }
            None => return Ok(()),
        };
        let at = position(due, first);
        let length = (segment.payload.len() + segment.missing) as u64;
        if segment.fin {
            self.end = Some(at + length);
        }
        if at == due && self.waiting.is_empty() {
            self.deliver(segment.payload, segment.missing, deliver)
        } else {
            self.keep(due, at, segment.payload, segment.missing);
            self.drain(deliver)?;
            while self.waiting_bytes > WAITING_BYTES_MAX
                || self.waiting.len() > WAITING_SEGMENTS_MAX
            {
                self.give_up(deliver)?;
            }
            Ok(())
        }
    }

    /// The receiver says that it has everything before this sequence number: whether something of
    /// that is missing here.
    pub fn lacks(&mut self, acknowledgement: u32) -> bool {
        let Some(due) = self.due else { return false };
        let acknowledged = position(due, acknowledgement);
        self.acknowledged = self.acknowledged.max(acknowledged);
        // A FIN counts as one octet.
        due < self.end.map_or(acknowledged, |end| end.min(acknowledged))
    }

    /// Octets missing before this sequence number will not come.
    ///
    /// # Errors
    /// As `deliver`.
    pub fn give_up_before<E>(
        &mut self,
        acknowledgement: u32,
        deliver: &mut impl FnMut(Delivery<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.lacks(acknowledgement)
            && let Some(due) = self.due
        {
            let acknowledged = position(due, acknowledgement);
            let acknowledged = self.end.map_or(acknowledged, |end| end.min(acknowledged));
            let next = self.waiting.keys().next().copied().unwrap_or(acknowledged);
            self.skip_to(next.min(acknowledged), deliver)?;
            self.drain(deliver)?;
        }
        Ok(())
    }

    /// No more comes: delivers what waits, with the gaps before it.
    ///
    /// # Errors
    /// As `deliver`.
    pub fn finish<E>(
        &mut self,
        deliver: &mut impl FnMut(Delivery<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !self.waiting.is_empty() {
            self.give_up(deliver)?;
        }
        match (self.due, self.end) {
            // Octets that the receiver had and the capture has not.
            (Some(due), end) if end.unwrap_or(self.acknowledged) > due => {
                self.skip_to(end.unwrap_or(self.acknowledged), deliver)
            }
            _ => Ok(()),
        }
    }

    /// Octets missing before the waiting ones will not come.
    fn give_up<E>(
        &mut self,
        deliver: &mut impl FnMut(Delivery<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(next) = self.waiting.keys().next().copied() {
            self.skip_to(next, deliver)?;
        }
        self.drain(deliver)
    }

    fn skip_to<E>(
        &mut self,
        next: u64,
        deliver: &mut impl FnMut(Delivery<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let due = self.due.replace(next).unwrap_or(next);
        if next > due { deliver(Delivery::Gap(next - due)) } else { Ok(()) }
    }

    /// Keeps the new octets of a segment. Where segments overlap, the octets that came first are kept.
    fn keep(&mut self, due: u64, at: u64, octets: &[u8], missing: usize) {
        let (mut at, mut octets, mut missing) = (at, octets, missing);
        let before = self.waiting.range(..=at).next_back();
        let known = before.map_or(due, |(start, piece)| start + piece.length()).max(due);
        if at < known {
            let skip = usize::try_from(known - at).unwrap_or(usize::MAX);
            self.repeated += skip.min(octets.len()) as u64;
            missing = missing.saturating_sub(skip.saturating_sub(octets.len()));
            octets = octets.get(skip..).unwrap_or_default();
            at = known;
        }
        // Pieces that begin within it, one after another.
        while !octets.is_empty() || missing > 0 {
            let length = (octets.len() + missing) as u64;
            let next =
                self.waiting.range(at..).next().map(|(start, piece)| (*start, piece.length()));
            let Some((start, next_length)) = next.filter(|(start, _)| *start < at + length) else {
                return self.insert(at, octets, missing);
            };
            let room = usize::try_from(start - at).unwrap_or(usize::MAX);
            let head = octets.get(..room.min(octets.len())).unwrap_or_default();
            let head_missing = (room - head.len()).min(missing);
            if room > 0 {
                self.insert(at, head, head_missing);
            }
            let skip = room + usize::try_from(next_length).unwrap_or(usize::MAX);
            missing = missing.saturating_sub(skip.saturating_sub(octets.len()));
            octets = octets.get(skip..).unwrap_or_default();
            at = start + next_length;
        }
    }

    fn insert(&mut self, at: u64, octets: &[u8], missing: usize) {
        self.waiting_bytes += octets.len();
        self.waiting.insert(at, Piece { octets: octets.to_vec(), missing });
    }

    fn drain<E>(
        &mut self,
        deliver: &mut impl FnMut(Delivery<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(due) = self.due
            && let Some(first) = self.waiting.first_entry()
            && *first.key() <= due
        {
            let piece = first.remove();
            self.waiting_bytes -= piece.octets.len();
            self.deliver(&piece.octets, piece.missing, deliver)?;
        }
        Ok(())
    }

    fn deliver<E>(
        &mut self,
        octets: &[u8],
        missing: usize,
        deliver: &mut impl FnMut(Delivery<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(due) = &mut self.due {
            *due += (octets.len() + missing) as u64;
        }
        if !octets.is_empty() {
            deliver(Delivery::Octets(octets))?;
        }
        if missing > 0 { deliver(Delivery::Gap(missing as u64)) } else { Ok(()) }
    }
}

/// The position of a sequence number that is less than 2 GiB away from `due`.
fn position(due: u64, sequence: u32) -> u64 {
    let distance = sequence.wrapping_sub(due as u32).cast_signed();
    due.saturating_add_signed(i64::from(distance))
}
