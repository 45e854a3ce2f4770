//! How long and how much a security association may be used (RFC 4301 § 4.4.2.1).

use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds of any clock that never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// One limit of each kind; `None` is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Bytes of what is inside: in tunnel mode IP packets, in transport mode what is behind their headers.
    pub bytes: Option<u64>,
    /// Packets.
    pub packets: Option<u64>,
    /// Seconds since the security association was made.
    pub seconds: Option<u64>,
}

/// The limits of a security association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Past these it is time for another one.
    pub soft: Limit,
    /// Past these no packet goes through.
    pub hard: Limit,
}

/// Packets that have gone through a security association, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Bytes of what is inside.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

/// The state of a security association's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Below its soft limits.
    Fresh,
    /// A soft limit is reached.
    Soft,
    /// A hard limit is reached, or the sequence numbers are used up: no packet goes through.
    Ended,
}

/// Counts the use of a security association against its limits.
pub(crate) struct Counted {
    lifetime: Lifetime,
    created: Time,
    bytes: AtomicU64,
    packets: AtomicU64,
}

impl Counted {
    pub fn new(lifetime: Lifetime, created: Time) -> Self {
        Counted { lifetime, created, bytes: AtomicU64::new(0), packets: AtomicU64::new(0) }
    }

    pub fn now(&self) -> Use {
        let (bytes, packets) = (&self.bytes, &self.packets);
        Use { bytes: bytes.load(Ordering::Relaxed), packets: packets.load(Ordering::Relaxed) }
    }

    pub fn life(&self, now: Time) -> Life {
        let used = self.now();
        let seconds = now.0.saturating_sub(self.created.0) / 1_000_000_000;
        let reached = |limit: &Limit| {
            let reached = |limit: Option<u64>, used| limit.is_some_and(|limit| used >= limit);
            reached(limit.bytes, used.bytes)
                || reached(limit.packets, used.packets)
                || reached(limit.seconds, seconds)
        };
        if reached(&self.lifetime.hard) {
            Life::Ended
        } else if reached(&self.lifetime.soft) {
            Life::Soft
        } else {
            Life::Fresh
        }
    }

    /// Counts as many packets of these sizes as the hard limits let through, from the front. A packet that begins below
    /// the limit of bytes goes through. Returns how many packets and bytes these are.
    pub fn take(&self, sizes: &[usize]) -> Use {
        let all = sizes.len() as u64;
        let packets = match self.lifetime.hard.packets {
            None => {
                self.packets.fetch_add(all, Ordering::Relaxed);
                all
            }
            Some(most) => up_to(&self.packets, all, most),
        };
        let sizes = sizes.get(..packets as usize).unwrap_or(sizes);
        let Some(most) = self.lifetime.hard.bytes else {
            let bytes = sum(sizes);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            return Use { bytes, packets };
        };
        let mut taken = Use::default();
        let take = |before: u64| {
            taken = Use::default();
            for size in sizes {
                if before + taken.bytes >= most {
                    break;
                }
                taken.bytes += *size as u64;
                taken.packets += 1;
            }
            Some(before + taken.bytes)
        };
        // It always gives a value.
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        self.packets.fetch_sub(packets - taken.packets, Ordering::Relaxed);
        taken
    }

    /// Takes back packets of these sizes, which were counted and have not gone through.
    pub fn give_back(&self, sizes: &[usize]) {
        self.bytes.fetch_sub(sum(sizes), Ordering::Relaxed);
        self.packets.fetch_sub(sizes.len() as u64, Ordering::Relaxed);
    }
}

fn sum(sizes: &[usize]) -> u64 {
    sizes.iter().map(|size| *size as u64).sum()
}

/// Adds `more`, or what is left to `most`, and returns how much that was.
fn up_to(counter: &AtomicU64, more: u64, most: u64) -> u64 {
    let add = |now: u64| Some(now + more.min(most.saturating_sub(now)));
    let before = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    more.min(most.saturating_sub(before.unwrap_or(most)))
}
