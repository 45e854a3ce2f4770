//! Load on any LDAP server, and what it does to it.
//!
//! A [`Scenario`] says what is asked, how often, and what must come of it; [`run()`] does that on a
//! few threads, each with an event loop of its own, and gives an [`Outcome`]. When a rate is given,
//! each sequence has a moment at which it is to start, whatever the server does meanwhile, and its
//! response time counts from then: a server that stalls cannot keep its clients from noticing (what
//! is called coordinated omission). The time from the request to its answer, the service time, is
//! kept beside that.
#![forbid(unsafe_code)]

mod advice;
mod agents;
mod client;
mod collector;
pub mod compare;
mod control;
mod entries;
mod error;
mod event;
mod find;
pub mod format;
mod host;
mod latencies;
pub mod limits;
mod monitor;
mod outcome;
mod probe;
pub mod report;
mod request;
pub mod result;
mod rule;
mod run;
mod samples;
mod scenario;
mod schedule;
mod server;
mod source;
mod start;
pub mod summary;
mod survey;
mod tally;
mod target;
mod text;
mod trust;
pub mod wait;
mod worker;

#[doc(hidden)]
pub use agents::said_again;
pub use agents::{Called, Hub, answer};
pub use control::{Interrupt, RateOverride};
pub use error::Error;
pub use event::Event;
pub use find::{Found, Probe, Verdict, find};
pub use host::{Host, HostUse};
pub use latencies::Latencies;
pub use outcome::{AgentUse, Limited, Outcome, Second, ThreadUse};
pub use probe::probe;
pub use rule::{Figure, Rule};
pub use run::{run, run_at};
pub use samples::{Adds, Knee, Options, SAMPLES, Sample, UserPassword, Users};
pub use scenario::section::duration;
pub use scenario::{Find, Scenario, Threshold};
pub use schedule::{Arrivals, Phase, Rate, Start, Starts};
pub use start::Barrier;
pub use survey::survey;
pub use tally::{ConnectionTally, Failed, Fault, JobTally, PhaseTally};
pub use target::{Endpoint, Url};
pub use trust::{AcceptAny, Identity, Trust, is_of_tls, tls_words};
