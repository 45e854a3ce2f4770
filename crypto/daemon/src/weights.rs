//! How many times the time of others clients get.

use crate::keys::{Caller, Who};
use crate::limits::WEIGHT_MAX;
use keyway_ring::control::{Key, Step};

/// Weights of clients, by who they are and by the keys that they name. One of which nothing is said has
/// weight 1, one that fits several has the greatest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Weights of clients: users, groups, programs.
    pub clients: Vec<(Who, u32)>,
    /// Weights of requests in sessions with the daemon's keys, by the keys' names.
    pub keys: Vec<(String, u32)>,
}

impl Weights {
    /// A client's.
    pub fn of_client(&self, caller: &Caller) -> u32 {
        let fitting = self.clients.iter().filter(|(who, _)| who.is(caller));
        greatest(fitting.map(|(_, weight)| *weight))
    }

    /// The weight of requests in a session of these steps.
    pub fn of_session(&self, steps: &[Step]) -> u32 {
        let is_named = |name: &str| {
            steps.iter().any(|step| matches!(&step.key, Key::Named(named) if named == name))
        };
        let fitting = self.keys.iter().filter(|(name, _)| is_named(name));
        greatest(fitting.map(|(_, weight)| *weight))
    }
}

fn greatest(weights: impl Iterator<Item = u32>) -> u32 {
    weights.max().unwrap_or(1).clamp(1, WEIGHT_MAX)
}
