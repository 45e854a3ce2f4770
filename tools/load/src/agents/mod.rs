//! A run on several machines: agents call a hub, which tells them what to do, and gathers what they
//! say. Both have certificates of one authority, and nobody else gets in.

mod agent;
mod hub;
mod link;

pub use agent::answer;
pub use hub::{Called, Hub};

use crate::tally::SecondTally;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// The form of what is said; both have to have the same.
const FORM: u32 = 1;

/// What is said.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// From an agent: who it is.
    Hello { form: u32, name: String },
    /// From the hub: whether it is there, and what its clock says.
    Ping,
    /// The answer, in nanoseconds from 1970 on.
    Pong(u64),
    /// What is to be done, and the agent's number of so many.
    Scenario { text: String, agent: u64, agents: u64 },
    /// From an agent: its connections are open.
    Ready { threads: usize, open: usize, wanted: usize, why_not: Option<String> },
    /// From the hub: when to begin, by the agent's clock.
    Begin(u64),
    /// From an agent: what one of its threads has done.
    Second(Box<SecondTally>),
    /// It has done everything.
    End,
    /// From the hub: come to an end.
    Stop,
    /// From an agent: it cannot do it.
    Failed(String),
}

/// Nanoseconds from 1970 on, by this machine's clock.
fn clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_nanos() as u64
}

/// What one of the two said, read and written again; `None` if it is nothing that is said.
///
/// For those who look for bytes that break it.
#[doc(hidden)]
#[must_use]
pub fn said_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let message: Message = postcard::from_bytes(bytes).ok()?;
    postcard::to_allocvec(&message).ok()
}
