//! A run on several machines: agents call a hub, which gives them orders and gathers their reports. Both
//! have certificates of one authority; all other callers are refused.

mod agent;
mod hub;
mod link;
mod workers;

pub use agent::answer;
pub use hub::{Called, Hub};

use crate::tally::SecondTally;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// The form of what is said; both have to have the same.
const FORM: u32 = 2;

/// The messages between hub and agent.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// From an agent: its name.
    Hello { form: u32, name: String },
    /// From the hub: whether it is there, and what its clock says.
    Ping,
    /// The answer, in nanoseconds from 1970 on.
    Pong(u64),
    /// The scenario, and the agent's number of so many; perhaps with one rate that is held for so many
    /// nanoseconds, instead of the scenario's phases.
    Scenario { text: String, agent: u64, agents: u64, held: Option<(f64, u64)> },
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
    /// From the hub: there is nothing more to be done.
    Bye,
}

/// Nanoseconds from 1970 on, by this machine's clock.
fn clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_nanos() as u64
}

/// A message, read and written again; `None` if the bytes are not a message.
///
/// For those who look for bytes that break it.
#[doc(hidden)]
#[must_use]
pub fn said_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let message: Message = postcard::from_bytes(bytes).ok()?;
    postcard::to_allocvec(&message).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::tally::Fault;
    use std::path::Path;

    #[test]
    fn what_is_said_is_heard() {
        let text = "[target]\nurls = [\"ldap://h\"]\n[[job]]\nsteps = [{ search = {} }]\n";
        let scenario = Scenario::parse(text, "test", Path::new("")).unwrap();
        let mut tally = SecondTally::new(1, 7, &scenario);
        let job = tally.job(&scenario, 0, 0);
        (job.due, job.started) = (3, 2);
        job.response.record(123_456).unwrap();
        job.fail(0, Fault::Code(49), 5_000_000_000);
        tally.lag.record_n(77, 3).unwrap();
        let bytes = postcard::to_allocvec(&Message::Second(Box::new(tally))).unwrap();
        assert_eq!(said_again(&bytes).as_ref(), Some(&bytes));
        let Ok(Message::Second(heard)) = postcard::from_bytes::<Message>(&bytes) else {
            panic!("another message");
        };
        assert!(heard.fits(&scenario));
        let job = &heard.phases[0].as_ref().unwrap().jobs[0];
        assert_eq!((job.due, job.response.len(), job.errors()), (3, 1, 1));
        assert!(job.response.value_at_quantile(0.5).abs_diff(123_456) < 124);
        // A tally of another scenario is none of this one.
        let other = text.replace("search = {} }", "search = {} }, { search = {} }");
        assert!(!heard.fits(&Scenario::parse(&other, "test", Path::new("")).unwrap()));
    }
}
