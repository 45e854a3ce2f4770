//! Counters that cost an instruction or two to add to, and nothing to be watched.
//!
//! A process has one page of counters. It lives in a file ([`open`]) that other processes map
//! read-only ([`Reader`]), or on the heap while nobody asked for a file. Every thread adds to a
//! shard of its own, so that no counter is a cache line that two processors fight over; whoever
//! reads sums the shards.
//!
//! ```
//! let searches = keyway_meter::counter("ldap.search");
//! searches.increment();
//! assert_eq!(searches.value(), 1);
//! ```
//!
//! What may not enter: clocks beyond the start stamp, formatting, anything that allocates or waits
//! when a counter is added to, and events that are not in [`EVENTS`].
#![deny(unsafe_code)]

mod counter;
mod error;
mod events;
mod layout;
pub mod limits;
#[allow(unsafe_code)]
mod page;
mod reader;

pub use counter::{Counter, counter, open};
pub use error::{Error, Fault};
pub use events::{EVENTS, Event};
pub use reader::{Reader, Snapshot};
