//! The events that a run reports to its caller while it is under way.

use crate::outcome::Second;

/// An event of a run under way.
#[derive(Debug)]
pub enum Event<'e> {
    /// Connections are open.
    Begun {
        /// Threads at work.
        threads: usize,
        /// Connections that are open.
        open: usize,
        /// Those that were wanted.
        wanted: usize,
        /// Why the others are not.
        why_not: Option<String>,
    },
    /// A second is over.
    Second(&'e Second),
    /// An agent is gone.
    Lost(&'e str),
    /// A monitor sees nothing any more, or sees again.
    Monitor(&'e str),
}
