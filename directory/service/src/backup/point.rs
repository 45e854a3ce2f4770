//! The moment to which is restored.

use keyway_server::ChangeNote;
use std::fmt;

/// A moment in the history of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// Behind the commit of this position.
    Position(u64),
    /// Behind the last commit that was made up to this time: the beginning of one of RFC 3339 (UTC), such as
    /// `2026-11-24T08`.
    Time(String),
}

impl Point {
    /// Whether a backup that has come to this position and was begun at this time (RFC 3339, UTC) is not behind it.
    pub(super) fn takes_backup(&self, position: u64, begun: &str) -> bool {
        match self {
            Point::Position(last) => position <= *last,
            Point::Time(last) => begun <= last.as_str(),
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
                notes.all(|note| ChangeNote::decode(note).is_none_or(|note| note.time() <= *last))
            }
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Position(position) => write!(f, "position {position}"),
            Point::Time(time) => f.write_str(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_takes_all_up_to_its_end() {
        let to = |text: &str| Point::Time(text.to_owned());
        assert!(to("2026-11-24T08").takes_backup(7, "2026-11-24T07:59:59Z"));
        assert!(!to("2026-11-24T08").takes_backup(7, "2026-11-24T08:00:00Z"));
        assert!(to("2026-11-24T08:00:00Z").takes_backup(7, "2026-11-24T08:00:00Z"));
        assert!(Point::Position(7).takes_backup(7, "") && !Point::Position(6).takes_backup(7, ""));
    }
}
