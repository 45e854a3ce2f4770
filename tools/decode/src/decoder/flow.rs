//! One connection: packets that come too early wait, streams are put together, and their octets go to the
//! session.

use crate::direction::Side;
use crate::error::Error;
use crate::limits::{DEFERRED_NS_MAX, DEFERRED_PACKETS_MAX};
use crate::network::Segment;
use crate::operation::Sink;
use crate::session::Session;
use crate::tcp::{Delivery, Stream};
use std::net::SocketAddr;

/// One connection: two streams of segments, and what they say.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) session: Session,
    /// The streams of the session's `First` and `Second`.
    streams: [Stream; 2],
    first: SocketAddr,
    /// When its last packet was, and which of all it was.
    time_ns: u64,
    pub(super) used: u64,
    pub(super) held_bytes: usize,
    pub(super) is_closed: bool,
    /// The ends that have nothing more to send, where that is all that is looked at.
    ended: [bool; 2],
    /// Packets whose sender had received what is not in the capture yet, and those after them.
    deferred: Vec<Deferred>,
}

#[derive(Debug)]
struct Deferred {
    time_ns: u64,
    /// Without its payload.
    segment: Segment<'static>,
    payload: Vec<u8>,
}

impl Deferred {
    fn new(time_ns: u64, segment: &Segment<'_>) -> Self {
        let payload = segment.payload.to_vec();
        Deferred { time_ns, segment: Segment { payload: &[], ..*segment }, payload }
    }

    fn segment(&self) -> Segment<'_> {
        Segment { payload: &self.payload, ..self.segment }
    }
}

impl Flow {
    /// One that begins; `first` is the end that its session calls so.
    pub(super) fn new(session: Session, first: SocketAddr) -> Self {
        Flow {
            session,
            streams: [Stream::default(), Stream::default()],
            first,
            time_ns: 0,
            used: 0,
            held_bytes: 0,
            is_closed: false,
            ended: [false; 2],
            deferred: Vec::new(),
        }
    }

    /// Whether a segment may be a further one of its sender's stream.
    pub(super) fn is_continued_by(&self, segment: &Segment<'_>) -> bool {
        self.streams[self.side(segment.from)].is_continued_by(segment)
    }

    fn side(&self, sender: SocketAddr) -> usize {
        usize::from(sender != self.first)
    }

    /// Takes a segment, or keeps it until what its sender answers is there; how many octets are found
    /// to be missing.
    pub(super) fn take(
        &mut self,
        time_ns: u64,
        segment: &Segment<'_>,
        sink: &mut impl Sink,
    ) -> Result<u64, Error> {
        let side = self.side(segment.from);
        if self.session.is_ignored() {
            self.time_ns = time_ns;
            self.ended[side] |= segment.fin;
            let is_over = segment.rst || self.ended == [true, true];
            return if is_over { self.finish(true, sink) } else { Ok(0) };
        }
        let has_answered = |one: &Deferred| time_ns.saturating_sub(one.time_ns) > DEFERRED_NS_MAX;
        let waits = !self.deferred.is_empty() && !self.streams[side].is_due(segment);
        let lacks = segment.acknowledgement.is_some_and(|it| self.streams[1 - side].lacks(it));
        if waits || lacks {
            let is_late = self.deferred.first().is_some_and(has_answered);
            self.deferred.push(Deferred::new(time_ns, segment));
            if !is_late && self.deferred.len() <= DEFERRED_PACKETS_MAX {
                return Ok(0);
            }
            return self.give_up_and_go_on(sink);
        }
        let missing = self.take_now(time_ns, segment, sink)?;
        // The awaited packet may be there by now.
        let can_go_on = self.deferred.first().is_some_and(|first| {
            let other = 1 - usize::from(first.segment.from != self.first);
            !first.segment.acknowledgement.is_some_and(|it| self.streams[other].lacks(it))
        });
        if can_go_on { Ok(missing + self.go_on(sink)?) } else { Ok(missing) }
    }

    /// The packet that the first waiting one answers will not come.
    fn give_up_and_go_on(&mut self, sink: &mut impl Sink) -> Result<u64, Error> {
        let Some(first) = self.deferred.first() else { return Ok(0) };
        let (time_ns, acknowledgement) = (first.time_ns, first.segment.acknowledgement);
        let side = self.side(first.segment.from);
        let mut missing = 0;
        if let Some(acknowledgement) = acknowledgement {
            let Flow { session, streams, .. } = self;
            let mut give = giver(session, time_ns, &mut missing, sink);
            let sender = if side == 0 { Side::Second } else { Side::First };
            streams[1 - side]
                .give_up_before(acknowledgement, &mut |delivery| give(sender, delivery))?;
        }
        Ok(missing + self.go_on(sink)?)
    }

    /// Takes what waits, of which the first can be taken.
    fn go_on(&mut self, sink: &mut impl Sink) -> Result<u64, Error> {
        let mut missing = 0;
        for (index, one) in std::mem::take(&mut self.deferred).into_iter().enumerate() {
            missing += match index {
                0 => self.take_now(one.time_ns, &one.segment(), sink)?,
                _ => self.take(one.time_ns, &one.segment(), sink)?,
            };
        }
        Ok(missing)
    }

    fn take_now(
        &mut self,
        time_ns: u64,
        segment: &Segment<'_>,
        sink: &mut impl Sink,
    ) -> Result<u64, Error> {
        if self.is_closed {
            return Ok(0);
        }
        self.time_ns = time_ns;
        let side = self.side(segment.from);
        let mut missing = 0;
        {
            let Flow { session, streams, .. } = self;
            let sender = if side == 0 { Side::First } else { Side::Second };
            let mut give = giver(session, time_ns, &mut missing, sink);
            streams[side].take(segment, &mut |delivery| give(sender, delivery))?;
        }
        let streams = &self.streams;
        let [own, other] = [&streams[side], &streams[1 - side]];
        let is_over = own.is_ended() && (other.is_ended() || !other.is_begun());
        if segment.rst || is_over {
            missing += self.finish(true, sink)?;
        }
        Ok(missing)
    }

    pub(super) fn finish(&mut self, closed: bool, sink: &mut impl Sink) -> Result<u64, Error> {
        let mut missing = 0;
        while !self.deferred.is_empty() && !self.is_closed {
            missing += self.give_up_and_go_on(sink)?;
        }
        if self.is_closed {
            return Ok(missing);
        }
        self.is_closed = true;
        let Flow { session, streams: [first, second], time_ns, .. } = self;
        {
            let mut give = giver(session, *time_ns, &mut missing, sink);
            first.finish(&mut |delivery| give(Side::First, delivery))?;
            second.finish(&mut |delivery| give(Side::Second, delivery))?;
        }
        session.finish(*time_ns, closed, sink)?;
        Ok(missing)
    }

    pub(super) fn held(&self) -> usize {
        let streams: usize = self.streams.iter().map(Stream::held_bytes).sum();
        let deferred: usize = self.deferred.iter().map(|one| one.payload.len()).sum();
        streams + deferred + self.session.held_bytes()
    }

    pub(super) fn repeated(&self) -> u64 {
        self.streams.iter().map(Stream::repeated_bytes).sum()
    }
}

/// Hands what a stream delivers to the session, and counts what is missing.
fn giver<S: Sink>(
    session: &mut Session,
    time_ns: u64,
    missing: &mut u64,
    sink: &mut S,
) -> impl FnMut(Side, Delivery<'_>) -> Result<(), Error> {
    move |side, delivery| match delivery {
        Delivery::Octets(octets) => session.octets(side, time_ns, octets, sink),
        Delivery::Gap(bytes) => {
            *missing += bytes;
            session.gap(side, time_ns, bytes, sink)
        }
    }
}
