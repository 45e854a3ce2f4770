//! A card in time. Nothing here asks a clock: nanoseconds come in and never run backwards.
//!
//! A request is in the ring from when it is accepted until an interrupt announces it. The unit
//! works on one at a time, in order of arrival; the next begins when the one before has ended,
//! whether the host looked or not.
//!
//! ```text
//! accepted ── waits ──▶ begin ── occupies the unit ──▶ end ── coalescing, bus, interrupt ──▶ announced
//! ```
//!
//! All of a request's times are known when it is accepted, but for one: an interrupt may come
//! earlier than the timer would raise it, because the batch was filled or closed.

use super::card::Card;
use std::collections::VecDeque;

/// The two halves of a card, each with a ring of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Symmetric,
    PublicKey,
}

pub(super) const HALVES: [Half; 2] = [Half::Symmetric, Half::PublicKey];

/// An accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub half: Half,
    /// Its number, counted from 0 on its half.
    pub number: u64,
    /// When the unit begins it.
    pub begin: u64,
}

#[derive(Debug)]
pub(super) struct Device {
    units: [Unit; 2],
    pub now: u64,
    /// When it ceases to work, and when that is known; far off while it is well.
    stops_at: u64,
    dead_at: u64,
    /// How many requests it does before it dies.
    lifetime: u64,
    watchdog: u64,
    pub accepted: u64,
    pub bytes: u64,
    /// How often a ring was found full.
    pub refused: u64,
}

#[derive(Debug)]
struct Unit {
    capacity: usize,
    latency: u64,
    coalesce: u64,
    coalesce_ns: u64,
    /// When each of the ring is announced, as far as is known now.
    ring: VecDeque<u64>,
    /// Number of the ring's first.
    announced: u64,
    /// When the last of the ring ends.
    free_at: u64,
    /// The last so many of the ring wait for one interrupt that has no cause yet but the timer,
    /// which ran since the end of the first of them.
    open: u64,
    open_since: u64,
    /// Work accepted so far.
    work: u64,
    interrupts: u64,
    last_interrupt: u64,
}

const NEVER: u64 = u64::MAX;

impl Device {
    pub fn new(card: &Card) -> Self {
        Device {
            units: HALVES.map(|_| Unit::new(card)),
            now: 0,
            stops_at: NEVER,
            dead_at: NEVER,
            lifetime: NEVER,
            watchdog: card.watchdog_ns,
            accepted: 0,
            bytes: 0,
            refused: 0,
        }
    }

    /// Lets time pass. Says whether something happened that makes room or ends the waiting for it.
    pub fn advance(&mut self, now: u64) -> bool {
        self.now = self.now.max(now);
        let until = self.now.min(self.stops_at);
        let mut happened = self.is_dead();
        for unit in &mut self.units {
            happened |= unit.announce(until);
        }
        happened
    }

    /// Puts a request that occupies its half for so long into the ring, or finds it full.
    pub fn accept(&mut self, half: Half, service: u64, bytes: usize) -> Option<Slot> {
        let unit = &mut self.units[half as usize];
        if unit.ring.len() >= unit.capacity {
            self.refused += 1;
            return None;
        }
        let number = unit.announced + unit.ring.len() as u64;
        let begin = if self.now < self.stops_at {
            unit.accept(self.now, service)
        } else {
            // It hangs: the ring fills and nothing moves.
            unit.ring.push_back(NEVER);
            NEVER
        };
        if self.accepted == self.lifetime {
            self.stop(begin, 0);
        }
        self.accepted += 1;
        self.bytes += bytes as u64;
        Some(Slot { half, number, begin })
    }

    /// Ends a batch: the accepted requests wait for no further requests.
    pub fn close(&mut self) {
        if self.now < self.stops_at {
            for unit in &mut self.units {
                unit.close(self.now);
            }
        }
    }

    /// Whether an interrupt has announced it.
    pub fn is_announced(&self, slot: &Slot) -> bool {
        slot.number < self.announced(slot.half)
    }

    /// Requests of this half that have been announced.
    pub fn announced(&self, half: Half) -> u64 {
        self.units[half as usize].announced
    }

    /// Whether the unit has begun it, or had when it stopped.
    pub fn has_begun(&self, slot: &Slot) -> bool {
        slot.begin <= self.now && slot.begin < self.stops_at
    }

    /// When it will be announced as far as is known now, or the card's death; in the past if that
    /// is over.
    pub fn announces_at(&self, slot: &Slot) -> u64 {
        let unit = &self.units[slot.half as usize];
        match slot.number.checked_sub(unit.announced) {
            Some(index) => self.or_death(unit.ring.get(index as usize)),
            None => 0,
        }
    }

    /// When the ring has capacity, or the card's death; in the past if that is over.
    pub fn capacity_at(&self, half: Half) -> u64 {
        let unit = &self.units[half as usize];
        if unit.ring.len() < unit.capacity { 0 } else { self.or_death(unit.ring.front()) }
    }

    fn or_death(&self, announced: Option<&u64>) -> u64 {
        match announced {
            Some(at) if *at <= self.stops_at => *at,
            _ => self.dead_at,
        }
    }

    pub fn is_dead(&self) -> bool {
        self.dead_at <= self.now
    }

    /// It is gone, now and visibly.
    pub fn kill(&mut self) {
        self.stop(self.now, 0);
    }

    /// It does nothing any more, and the host has to find that out.
    pub fn hang(&mut self) {
        self.stop(self.now, self.watchdog);
    }

    /// It dies as it turns to the next request after so many, counted from the first it ever took.
    pub fn kill_after(&mut self, requests: u64) {
        if self.accepted > requests {
            self.kill();
        } else {
            self.lifetime = requests;
        }
    }

    fn stop(&mut self, at: u64, unnoticed: u64) {
        self.stops_at = self.stops_at.min(at);
        self.dead_at = self.dead_at.min(at.saturating_add(unnoticed));
    }

    pub fn interrupts(&self) -> u64 {
        self.units.iter().map(|unit| unit.interrupts).sum()
    }

    /// Nanoseconds that this half has worked until now.
    pub fn busy(&self, half: Half) -> u64 {
        // Work ahead of now was accepted without a gap.
        let unit = &self.units[half as usize];
        unit.work.saturating_sub(unit.free_at.saturating_sub(self.now.min(self.stops_at)))
    }
}

impl Unit {
    fn new(card: &Card) -> Self {
        Unit {
            capacity: card.ring.max(1),
            latency: card.latency_ns,
            coalesce: card.coalesce.max(1),
            coalesce_ns: card.coalesce_ns,
            ring: VecDeque::new(),
            announced: 0,
            free_at: 0,
            open: 0,
            open_since: 0,
            work: 0,
            interrupts: 0,
            last_interrupt: NEVER,
        }
    }

    /// Plans a request, and returns when it begins.
    fn accept(&mut self, now: u64, service: u64) -> u64 {
        let begin = self.free_at.max(now);
        let end = begin.saturating_add(service);
        self.free_at = end;
        self.work += service;
        if self.open > 0 && self.open_since + self.coalesce_ns < end {
            // The timer is first.
            self.open = 0;
        }
        if self.open == 0 {
            self.open_since = end;
        }
        self.open += 1;
        self.ring.push_back(self.open_since + self.coalesce_ns + self.latency);
        if self.open == self.coalesce {
            self.close(now);
        }
        begin
    }

    /// Has the open ones announced as soon as the last of them has ended.
    fn close(&mut self, now: u64) {
        let first = self.ring.len().saturating_sub(self.open as usize);
        for announced in self.ring.range_mut(first..) {
            *announced = (*announced).min(self.free_at.max(now) + self.latency);
        }
        self.open = 0;
    }

    /// Raises the interrupts that are due.
    fn announce(&mut self, until: u64) -> bool {
        let before = self.announced;
        while let Some(at) = self.ring.pop_front_if(|at| *at <= until) {
            self.announced += 1;
            if at != self.last_interrupt {
                (self.interrupts, self.last_interrupt) = (self.interrupts + 1, at);
            }
        }
        // Those of one interrupt go together.
        self.open = self.open.min(self.ring.len() as u64);
        self.announced > before
    }
}

#[cfg(test)]
mod tests {
    use super::Half::{PublicKey, Symmetric};
    use super::*;
    use proptest::prelude::*;

    /// Four places, 10 ns of delay, an interrupt for every two or after 100 ns.
    fn card() -> Card {
        Card {
            ring: 4,
            latency_ns: 10,
            coalesce: 2,
            coalesce_ns: 100,
            watchdog_ns: 1_000,
            ..Card::hifn_7751()
        }
    }

    fn put(device: &mut Device, service: u64) -> Slot {
        device.accept(Symmetric, service, 1).unwrap()
    }

    #[test]
    fn the_next_begins_when_the_one_before_ends_whether_the_host_looks_or_not() {
        let mut device = Device::new(&Card { coalesce: 1, ..card() });
        device.advance(1_000);
        let begins = [300, 200, 50].map(|service| put(&mut device, service).begin);
        assert_eq!(begins, [1_000, 1_300, 1_500]);
        // The ring has run dry since 1,550: that time is lost.
        device.advance(5_000);
        assert_eq!(put(&mut device, 7).begin, 5_000);
        assert_eq!((device.announced(Symmetric), device.interrupts()), (3, 3));
        assert_eq!(device.busy(Symmetric), 550);
        device.advance(5_003);
        assert_eq!(device.busy(Symmetric), 553);
        // The other half has its own time.
        assert_eq!(device.accept(PublicKey, 1, 1).unwrap().begin, 5_003);
        assert_eq!((device.accepted, device.bytes, device.refused), (5, 5, 0));
    }

    #[test]
    fn an_interrupt_comes_with_a_full_batch_or_the_timer_or_the_end_of_a_batch() {
        let mut device = Device::new(&card());
        // Ends at 30, 60, 90: the first two go together with the second.
        let slots = [0, 1, 2].map(|_| put(&mut device, 30));
        assert_eq!(slots.map(|slot| device.announces_at(&slot)), [70, 70, 200]);
        assert!(!device.advance(69));
        assert!(device.advance(70));
        assert_eq!((device.announced(Symmetric), device.interrupts()), (2, 1));
        // The third waits for a full batch, and the timer, which runs from 90 to 190, is before it.
        let late = put(&mut device, 101);
        assert_eq!(late.begin, 90);
        assert_eq!([slots[2], late].map(|slot| device.announces_at(&slot)), [200, 301]);
        // A closed batch does not wait.
        device.close();
        assert_eq!(device.announces_at(&late), 201);
        device.advance(200);
        assert_eq!((device.announced(Symmetric), device.interrupts()), (3, 2));
        device.advance(201);
        assert_eq!((device.announced(Symmetric), device.interrupts()), (4, 3));
        // A batch that is filled in time brings the interrupt forward.
        let first = put(&mut device, 9);
        assert_eq!(device.announces_at(&first), 210 + 100 + 10);
        put(&mut device, 11);
        assert_eq!(device.announces_at(&first), 221 + 10);
        // A request that ended before its batch was closed is announced from then on.
        device.advance(231);
        let single = put(&mut device, 9);
        device.advance(250);
        device.close();
        assert_eq!(device.announces_at(&single), 260);
    }

    #[test]
    fn a_place_is_free_again_when_an_interrupt_has_come() {
        let mut device = Device::new(&card());
        let slots = [0, 1, 2, 3].map(|_| put(&mut device, 100));
        assert_eq!((device.accept(Symmetric, 1, 1), device.refused), (None, 1));
        assert_eq!(device.capacity_at(Symmetric), 210);
        assert_eq!(device.capacity_at(PublicKey), 0);
        device.advance(209);
        assert_eq!(device.accept(Symmetric, 1, 1), None);
        assert!(device.advance(210));
        assert_eq!(device.capacity_at(Symmetric), 0);
        assert!(device.is_announced(&slots[1]) && !device.is_announced(&slots[2]));
        assert_eq!(put(&mut device, 1).number, 4);
        assert_eq!(put(&mut device, 1).number, 5);
        assert_eq!((device.accept(Symmetric, 1, 1), device.refused), (None, 3));
    }

    #[test]
    fn a_dead_card_announces_no_more_and_a_hanging_one_is_found_out() {
        let fill = || {
            let mut device = Device::new(&Card { coalesce: 1, ..card() });
            let slots = [0, 1, 2, 3].map(|_| put(&mut device, 100));
            device.advance(215);
            (device, slots)
        };
        let (mut device, slots) = fill();
        device.kill();
        assert!(device.advance(10_000) && device.is_dead());
        assert_eq!(slots.map(|slot| device.is_announced(&slot)), [true, true, false, false]);
        assert_eq!(slots.map(|slot| device.has_begun(&slot)), [true, true, true, false]);
        assert_eq!((device.busy(Symmetric), device.announces_at(&slots[2])), (215, 215));

        let (mut device, slots) = fill();
        device.hang();
        assert!(!device.advance(1_214));
        let stuck = put(&mut device, 5);
        assert!(device.accept(Symmetric, 5, 1).is_some() && !device.has_begun(&stuck));
        assert_eq!(device.accept(Symmetric, 5, 1), None);
        assert_eq!((device.announces_at(&slots[2]), device.capacity_at(Symmetric)), (1_215, 1_215));
        assert!(!device.is_dead());
        assert!(device.advance(1_215) && device.is_dead());
        assert_eq!((device.announced(Symmetric), device.busy(Symmetric)), (2, 215));
    }

    #[test]
    fn a_lifetime_counts_requests() {
        let mut device = Device::new(&Card { coalesce: 1, ..card() });
        device.kill_after(2);
        let slots = [0, 1, 2, 3].map(|_| put(&mut device, 100));
        device.advance(199);
        assert!(!device.is_dead());
        device.advance(1_000);
        assert!(device.is_dead());
        // The second had ended and was on its way.
        assert_eq!(slots.map(|slot| device.is_announced(&slot)), [true, false, false, false]);
        let mut device = Device::new(&card());
        put(&mut device, 1);
        device.kill_after(0);
        assert!(device.is_dead());
    }

    /// Bits a second that a card does in model time, its ring never empty and looked at seldom.
    fn rate(card: &Card, bytes: usize, service: u64) -> f64 {
        let mut device = Device::new(card);
        while device.accepted < 1_000 {
            while device.accept(Symmetric, service, bytes).is_some() {}
            device.advance(device.capacity_at(Symmetric) + 3 * service);
        }
        let worked = device.busy(Symmetric);
        assert_eq!(worked, device.now, "it was idle");
        (worked / service * bytes as u64 * 8) as f64 * 1e9 / worked as f64
    }

    #[test]
    fn every_card_reaches_its_rated_speed_at_16_kib_with_a_full_ring() {
        use keyway_engine::Direction::{Protect, Unprotect};
        let cards = [
            (Card::hifn_7751(), 83, 62, 83),
            (Card::hifn_7811(), 250, 250, 250),
            (Card::hifn_7951(), 83, 62, 83),
            (Card::broadcom_5805(), 120, 120, 120),
            (Card::broadcom_5820(), 310, 310, 310),
            (Card::broadcom_5822(), 410, 410, 410),
        ];
        for (card, cipher, protect, unprotect) in cards {
            for (chain, rated) in
                [(None, cipher), (Some(Protect), protect), (Some(Unprotect), unprotect)]
            {
                let service = card.symmetric_ns(16_384, chain);
                let reached = rate(&card, 16_384, service) / 1e6;
                let part = reached / rated as f64;
                assert!((0.99..=1.0).contains(&part), "{rated}: {reached}");
            }
        }
    }

    #[test]
    fn a_5820_signs_800_times_a_second_with_1024_bits_and_an_eighth_of_it_with_2048() {
        let card = Card::broadcom_5820();
        assert_eq!(card.signature_ns(128), 1_250_000 + card.operation_ns);
        assert_eq!(card.signature_ns(256), 10_000_000 + card.operation_ns);
    }

    proptest! {
        /// Whatever comes when: announcements come in order, none is early, none is later than the
        /// end of its work, the timer and the delay, and nothing is due in the past.
        #[test]
        fn nothing_stalls_and_nothing_is_early(
            steps in prop::collection::vec((0_u64..300, 0_u64..200, any::<bool>()), 1..200),
        ) {
            let card = card();
            let mut device = Device::new(&card);
            let mut pending = VecDeque::new();
            for (pause, service, close) in steps {
                device.advance(device.now + pause);
                if let Some(slot) = device.accept(Symmetric, service, 1) {
                    pending.push_back((slot, slot.begin + service));
                }
                if close {
                    device.close();
                }
                let mut before = 0;
                while let Some((_, end)) = pending.pop_front_if(|(slot, _)| device.is_announced(slot)) {
                    prop_assert!(end + card.latency_ns <= device.now);
                }
                for (slot, end) in &pending {
                    let at = device.announces_at(slot);
                    prop_assert!(at >= before && at > device.now);
                    prop_assert!(at >= end + card.latency_ns);
                    prop_assert!(at <= end.max(&device.now) + card.coalesce_ns + card.latency_ns);
                    before = at;
                }
            }
            let last = pending.back().map_or(0, |(slot, _)| device.announces_at(slot));
            device.advance(last);
            prop_assert_eq!(device.announced(Symmetric), device.accepted);
            prop_assert!(device.interrupts() <= device.accepted);
        }
    }
}
