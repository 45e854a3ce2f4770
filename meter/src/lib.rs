//! Counters that cost an instruction or two to add to, histograms for what is sampled, and nothing
//! to pay for being watched.
//!
//! A process has one page of both. It lives in a file ([`open`]) that other processes map read-only
//! ([`Reader`]), or on the heap until a file is asked for. Every thread adds to a shard of its own, so
//! that no counter is a cache line that two processors fight over; a reader sums the shards. Histograms
//! have no shards: their values are sampled, or they have several places in the page ([`striped`]),
//! which a reader adds up.
//!
//! ```
//! let searches = keyway_meter::counter("ldap.search");
//! searches.increment();
//! assert_eq!(searches.value(), 1);
//!
//! let queued = keyway_meter::histogram("engine.software.aes-128-gcm.queue");
//! queued.record(1_200);
//! assert_eq!((queued.read().count, queued.read().percentile(99.0)), (1, 1_200));
//! ```
//!
//! This crate has no clocks beyond the start stamp, no formatting, no code that allocates or waits when
//! a counter or histogram is added to, and no events that are not in [`EVENTS`].
#![deny(unsafe_code)]

mod buckets;
mod counter;
mod distribution;
mod error;
mod events;
mod figures;
mod gauge;
mod histogram;
mod layout;
pub mod limits;
#[allow(unsafe_code)]
mod page;
mod reader;

pub use counter::{Counter, counter, open};
pub use distribution::Distribution;
pub use error::{Error, Fault};
pub use events::{EVENTS, Event};
pub use figures::{FIGURES, Figure, Interval, OPERATIONS};
pub use gauge::{Gauge, gauge};
pub use histogram::{Histogram, Striped, histogram, striped};
pub use reader::{Reader, Snapshot};
