//! A promotion of a member and its promises to others: what a process holds of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::message::{ClusterRow, Reign, Status};
use crate::promise::PromiseId;

/// A promotion of this member.
pub struct Promotion {
    pub reign: Reign,
    /// Which promotion it is: of two of one member both may be of one reign.
    pub number: u64,
    pub promise: PromiseId,
    /// How often its member had stood still when it began.
    pub stills: u64,
    pub step: Step,
}

pub enum Step {
    Asking(Asking),
    CatchingUp { until: Duration, epoch: u64, position: u64 },
    Beginning(Box<ClusterRow>),
}

pub struct Asking {
    pub until: Duration,
    /// Questions that are not answered yet.
    pub open: BTreeMap<u64, usize>,
    /// Members that are asked again, and when.
    pub again: Vec<(Duration, usize)>,
    pub promised: Vec<Status>,
}

/// What this member has promised to others.
#[derive(Default)]
pub struct Promised {
    /// By the promotions that it was promised to.
    pub to: BTreeMap<u64, PromiseId>,
    /// Promotions that have ended. A question that comes later is one of a connection that is closed.
    pub ended: BTreeSet<u64>,
    /// Questions that are answered when all changes that were taken before are on the disk.
    pub questions: Vec<Question>,
}

pub struct Question {
    pub from: usize,
    pub boot: u64,
    pub id: u64,
}

impl Promotion {
    /// Whether its row is on the way to the disk.
    pub fn is_beginning(&self) -> bool {
        matches!(self.step, Step::Beginning(_))
    }
}
