//! Counts of a pump for all its clients together.

use keyway_meter::{Counter, Histogram, counter, histogram};

pub struct Meters {
    pub requests: Counter,
    pub bytes: Counter,
    pub refused: Counter,
    pub busy: Counter,
    pub throttled: Counter,
    pub slow: Counter,
    pub too_costly: Counter,
    pub dropped: Counter,
    pub batches: Counter,
    pub doorbells: Counter,
    pub wakeups: Counter,
    pub sleeps: Counter,
    pub batch: Histogram,
}

impl Meters {
    pub fn new() -> Self {
        Meters {
            requests: counter("cryptod.requests"),
            bytes: counter("cryptod.bytes"),
            refused: counter("cryptod.refused"),
            busy: counter("cryptod.busy"),
            throttled: counter("cryptod.throttled"),
            slow: counter("cryptod.slow"),
            too_costly: counter("cryptod.slow.too_costly"),
            dropped: counter("cryptod.slow.dropped"),
            batches: counter("cryptod.batches"),
            doorbells: counter("cryptod.doorbells"),
            wakeups: counter("cryptod.wakeups"),
            sleeps: counter("cryptod.sleeps"),
            batch: histogram("cryptod.batch"),
        }
    }
}
