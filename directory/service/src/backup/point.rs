//! The moment to which is restored.

use keyway_host::timestamp::show_unix_us;
use keyway_server::ChangeNote;
use std::fmt;

/// A moment in the history of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Behind the commit of this position.
    Position(u64),
    /// Behind the last commit that was made up to this time, in microseconds since 1970.
    Time(u64),
}

impl Point {
    /// Whether a backup that has come to this position, and has all that was made up to this time, is not behind it.
    pub(super) fn takes_backup(&self, position: u64, taken_unix_us: u64) -> bool {
        match self {
            Point::Position(last) => position <= *last,
            Point::Time(last) => taken_unix_us <= *last,
        }
    }

    /// Whether a commit with these notes belongs to what was before it. One without a note has no time, and goes with
    /// those beside it.
    pub(super) fn takes_commit<'n>(
        &self,
        position: u64,
        mut notes: impl Iterator<Item = &'n [u8]>,
    ) -> bool {
        match self {
            Point::Position(last) => position <= *last,
            Point::Time(last) => {
                notes.all(|note| ChangeNote::decode(note).is_none_or(|note| note.at <= *last))
            }
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Position(position) => write!(f, "position {position}"),
            Point::Time(unix_us) => f.write_str(&show_unix_us(*unix_us)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_taken_if_all_of_it_was_there() {
        assert!(Point::Time(8).takes_backup(7, 8) && !Point::Time(8).takes_backup(7, 9));
        assert!(Point::Position(7).takes_backup(7, 9) && !Point::Position(6).takes_backup(7, 0));
    }
}
