//! `<ref>`: how many entries a line refers to, and which.

use crate::list::Pick;
use crate::random::Random;

/// The target of `<ref>`.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) kind: usize,
    /// How many there are.
    pub(crate) total: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// How the sizes between are distributed.
    pub(crate) sizes: Pick,
}

/// A walk through the entries that a line refers to, none of which it meets twice.
#[derive(Clone, Copy, Default)]
pub(crate) struct Walk {
    start: u64,
    step: u64,
}

impl Reference {
    /// How many are referred to.
    pub(crate) fn times(&self, random: &mut Random) -> u64 {
        let span = self.most.saturating_sub(self.least).saturating_add(1);
        (self.least + self.sizes.choose(span, 0, random)).min(self.total)
    }

    pub(crate) fn walk(&self, random: &mut Random) -> Walk {
        let start = random.below(self.total);
        let mut step = random.below(self.total).max(1);
        while common_divisor(step, self.total) != 1 {
            step += 1;
        }
        Walk { start, step }
    }

    /// The entry that the so-many-th value refers to.
    pub(crate) fn at(&self, walk: Walk, copy: u64) -> u64 {
        let far = u128::from(walk.start) + u128::from(walk.step) * u128::from(copy);
        (far % u128::from(self.total.max(1))) as u64
    }
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
