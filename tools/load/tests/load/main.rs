//! Load on a server of our own, whose faults are known.

mod agents;
mod faults;
mod finds;
mod loops;
mod monitors;
mod probes;
mod races;
mod scenarios;
mod secure;
mod steps;
mod stub;
mod templates;

use keyway_load::{Error, Event, Interrupt, Outcome, Scenario, run};
use std::path::Path;
use std::sync::Arc;

/// Runs a scenario's text.
pub fn outcome(text: &str) -> Result<Outcome, Error> {
    with(text, &Interrupt::default(), &mut |_| ())
}

/// Runs a scenario's text, and hears what is said meanwhile.
pub fn with(
    text: &str,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    let scenario = Scenario::parse(text, "test", Path::new(""))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    run(&scenario, &provider, interrupt, said)
}

/// A scenario of one job.
pub fn scenario(url: &str, settings: &str, phase: &str, steps: &str) -> String {
    format!(
        "{settings}\n[target]\nurls = [\"{url}\"]\nbase = \"dc=example,dc=com\"\n\
         [data]\nuser = {{ range = [0, 99] }}\n[[phase]]\n{phase}\n\
         [[job]]\nname = \"job\"\nsteps = [{steps}]\n"
    )
}

/// A step that finds one entry.
pub const SEARCH: &str =
    "{ search = { filter = \"(uid=user.{user})\", expect = { entries = 1 } } }";
