//! Why a follower stops until a person has mended it.

use std::fmt::{self, Display, Formatter};

use crate::message::Refusal;

/// Why a follower has stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The writer has refused, or a row shows what the writer would have said.
    Refused(Refusal),
    /// A row is missing.
    Gap {
        /// The last that came.
        position: u64,
        /// The next one that came.
        came: u64,
    },
    /// The writer's epoch is older than that of the rows before.
    Epoch {
        /// Where.
        position: u64,
        /// The epoch before.
        epoch: u64,
        /// The epoch that came.
        came: u64,
    },
}

impl Display for Stop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Refused(why) => write!(f, "following has stopped: {why}"),
            Stop::Gap { position, came } => write!(
                f,
                "following has stopped: after position {position} the writer sent {came}; \
                 to take its contents anew: `keyway cluster rejoin`"
            ),
            Stop::Epoch { position, epoch, came } => write!(
                f,
                "following has stopped: at position {position} the writer went from epoch {epoch} to {came}, the older \
                 one; see `keyway cluster status` on all members, then `keyway cluster rejoin` here"
            ),
        }
    }
}

impl std::error::Error for Stop {}
