//! `keyway top` without a terminal: a line each interval.

mod of_page;
mod of_servers;

pub use of_page::of_page;
pub use of_servers::of_servers;

use std::time::Duration;

/// The form of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Words and numbers, with a header now and then.
    Text,
    /// An object each.
    Json,
    /// A table: names in the first line, then values with commas between them.
    Csv,
}

/// Which lines are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Their form.
    pub form: Form,
    /// From line to line.
    pub interval: Duration,
    /// How many; `None` for no end.
    pub count: Option<u64>,
}
