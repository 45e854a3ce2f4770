//! One queue pair, and a region cut in slots, one for each request that can be under way.

use super::connection::{Connection, QueuePair};
use super::error::failed;
use super::large::{Large, LargeRegions};
use super::lent::{self, Lent};
use crate::limits::SLOT_BYTES;
use keyway_engine::{Error, NONCE_BYTES, Operation, Request};
use keyway_ring::descriptor::{Completion, RegionHandle, Segment, SessionHandle};
use keyway_ring::{ClientEnd, Doorbell, SharedMemory, Window};
use keyway_wire::{self as wire, Space};
use std::time::Duration;

/// Longest sleep without a look at whether the daemon is alive: one that was killed wakes no thread.
const SLICE: Duration = Duration::from_millis(20);

const CUT: Error = failed("the device of the virtual machine went while its result was read");

/// One thread's at a time.
pub(super) struct Channel {
    /// Its number.
    pub queue: u32,
    /// The region of the slots.
    pub region: RegionHandle,
    /// How many requests can be under way.
    pub slots: u16,
    pub end: ClientEnd,
    bell: Doorbell,
    memory: SharedMemory,
}

/// A request under way: where its bytes lie.
#[derive(Default)]
pub(super) struct Placed {
    segments: [Segment; 3],
    location: Location,
}

/// Where the bytes lie.
#[derive(Default)]
enum Location {
    /// In the slot.
    #[default]
    Slot,
    /// In a region of its own.
    Large(Box<Large>),
    /// Where they were.
    Lent(Lent),
}

impl Channel {
    pub fn new(connection: &Connection, pair: QueuePair) -> Result<Channel, Error> {
        let QueuePair { queue, entries, end, bell } = pair;
        let slots = u16::try_from(entries).unwrap_or(u16::MAX);
        let (memory, region) = connection.region(usize::from(slots) * SLOT_BYTES)?;
        Ok(Channel { queue, region, slots, end, bell, memory })
    }

    /// Puts a request into a free slot and publishes it. The caller rings when it has put in all.
    ///
    /// # Errors
    /// [`Error::Busy`] if there is no room for a large one at present.
    #[inline]
    pub fn begin(
        &mut self,
        regions: &LargeRegions,
        slot: u16,
        session: SessionHandle,
        request: &Request<'_>,
        lent: Option<Lent>,
    ) -> Result<Placed, Error> {
        if let Some(lent) = lent
            && let Some(placed) = self.begin_lent(slot, session, request, lent)
        {
            return Ok(placed);
        }
        let start = usize::from(slot) * SLOT_BYTES;
        let mut space = Space::new(self.memory.window(start..start + SLOT_BYTES));
        let Some(mut descriptor) = wire::encode(request, &mut space) else {
            return self.begin_large(regions, slot, session, request);
        };
        descriptor.session = session;
        descriptor.region = self.region;
        descriptor.cookie = slot.into();
        self.end.submit(&descriptor);
        Ok(Placed { segments: descriptor.segments, location: Location::Slot })
    }

    #[cold]
    fn begin_large(
        &mut self,
        regions: &LargeRegions,
        slot: u16,
        session: SessionHandle,
        request: &Request<'_>,
    ) -> Result<Placed, Error> {
        let large = regions.take(wire::bytes_max(request))?;
        let mut space = Space::new(large.memory.whole());
        let Some(mut descriptor) = wire::encode(request, &mut space) else {
            regions.give_back(large);
            return Err(Error::invalid_request("a length of it is out of bounds"));
        };
        descriptor.session = session;
        descriptor.region = large.region;
        descriptor.cookie = slot.into();
        self.end.submit(&descriptor);
        let location = Location::Large(Box::new(large));
        Ok(Placed { segments: descriptor.segments, location })
    }

    /// `None` if what it has beside its data does not fit there.
    fn begin_lent(
        &mut self,
        slot: u16,
        session: SessionHandle,
        request: &Request<'_>,
        lent: Lent,
    ) -> Option<Placed> {
        let mut descriptor = wire::encode(request, &mut lent.space())?;
        descriptor.session = session;
        descriptor.region = lent.region;
        descriptor.cookie = slot.into();
        self.end.submit(&descriptor);
        Some(Placed { segments: descriptor.segments, location: Location::Lent(lent) })
    }

    /// After requests were published: rings, if the daemon sleeps.
    #[inline]
    pub fn ring(&self) {
        if self.end.must_ring() {
            self.bell.ring();
        }
    }

    /// Takes the result of a request that was done. Where the session makes its own nonces, `nonce`
    /// is the one that it made.
    #[inline]
    pub fn take(
        &self,
        placed: &Placed,
        completion: &Completion,
        request: &mut Request<'_>,
    ) -> Result<usize, Error> {
        let (memory, lent) = self.place(placed);
        let result = wire::decode(completion, &placed.segments, memory, lent, request);
        match self.end.is_lost() {
            false => result,
            // The device of a virtual machine went between the completion and its bytes, which are none then.
            true if wire::changes_data(request) => Err(CUT),
            true => Err(Error::Gone),
        }
    }

    /// The nonce that the daemon made for a text that it sealed.
    pub fn nonce(&self, placed: &Placed) -> Option<[u8; NONCE_BYTES]> {
        let (mut nonce, [_, _, at]) = ([0; NONCE_BYTES], placed.segments);
        self.place(placed).0.read(at.offset as usize, &mut nonce).ok()?;
        (!self.end.is_lost()).then_some(nonce)
    }

    /// A request is over: its secrets leave shared memory, and its region is free.
    #[inline]
    pub fn finish(&self, regions: &LargeRegions, placed: Placed, request: &Request<'_>) {
        wire::wipe(request, &placed.segments, self.place(&placed).0);
        if let Location::Large(large) = placed.location {
            regions.give_back(*large);
        }
    }

    #[inline]
    fn place<'p>(&'p self, placed: &'p Placed) -> (Window<'p>, bool) {
        match &placed.location {
            Location::Slot => (self.memory.whole(), false),
            Location::Large(large) => (large.memory.whole(), false),
            Location::Lent(lent) => (lent.window(), true),
        }
    }

    /// Sleeps until a completion may be there, or the time is over; not for long.
    pub fn sleep(&self, most: Duration) {
        self.end.sleep(most.min(SLICE));
    }
}

impl Placed {
    /// Whether the daemon works on the consumer's own bytes.
    pub fn is_lent(&self) -> bool {
        matches!(self.location, Location::Lent(_))
    }

    /// No thread waits for it any more, but the daemon may still work on it: what it can reach is not
    /// used again.
    pub fn give_up(self, regions: &LargeRegions, operation: &mut Operation) {
        match self.location {
            Location::Slot => {}
            Location::Large(large) => regions.forget(large.region),
            Location::Lent(_) => lent::give_up(operation),
        }
    }
}
