//! Whole clusters, run from a seed: servers with the logic of this crate, model stores and a model etcd, clients behind a
//! relay, faults, and a checker.
//!
//! All is decided by the seed, so a seed that fails fails again. Servers decide by the modules beside this one; what is
//! modelled here is what surrounds them: disks, networks, clocks, persons.

mod calls;
mod checker;
mod client;
mod etcd;
mod event;
mod events;
mod faults;
mod follow;
mod growth;
mod heal;
mod holder;
mod holding;
mod network;
mod op;
mod options;
mod process;
mod promoting;
mod promotion;
mod random;
mod server;
mod serving;
mod store;
mod wire;
mod world;

use std::fmt::{self, Display, Formatter};

pub use growth::{Growth, growth};
pub use options::{Broken, Fault, Options, Report};

/// A run that broke a rule.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The run's seed.
    pub seed: u64,
    /// Which rule, and where.
    pub what: String,
    /// The last events before.
    pub trace: Vec<String>,
}

/// Runs a cluster from a seed.
///
/// # Errors
/// The rule that was broken.
pub fn run(seed: u64, options: &Options) -> Result<Report, Failure> {
    let mut world = world::World::begun(seed, options.clone());
    match world.run() {
        Ok(()) => Ok(world.checker.report),
        Err(what) => Err(Failure { seed, what, trace: world.trace() }),
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.what)?;
        self.trace.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}
