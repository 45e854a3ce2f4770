//! The columns of a line, what they are called for programs, and which of them there is room for.

use crate::snapshot::ServerDelta;
use crate::text::{NumberFormat, shown};
use keyway_meter::{FIGURES, Figure};

/// A column.
pub struct Column {
    /// Its title for people.
    pub title: &'static str,
    /// Its name for programs.
    pub name: &'static str,
    /// How wide it is, in characters.
    pub width: usize,
    /// The smaller, the sooner it is shown.
    pub rank: u8,
    /// How its numbers are shown.
    pub form: NumberFormat,
    figure: Figure,
}

const fn column(
    title: &'static str,
    name: &'static str,
    width: usize,
    rank: u8,
    form: NumberFormat,
) -> Column {
    Column { title, name, width, rank, form, figure: figure(name) }
}

/// The figure of a name. There is one, or this does not compile.
const fn figure(name: &str) -> Figure {
    let mut at = 0;
    while !is_same(FIGURES[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    FIGURES[at]
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) => *a == *b && is_same(one, other),
        _ => false,
    }
}

/// All of them, in their order.
pub const COLUMNS: [Column; FIGURES.len()] = [
    column("total", "total", 7, 0, NumberFormat::Count),
    column("bind", "bind", 6, 0, NumberFormat::Count),
    column("search", "search", 7, 0, NumberFormat::Count),
    column("cmp", "compare", 5, 3, NumberFormat::Count),
    column("add", "add", 5, 1, NumberFormat::Count),
    column("del", "delete", 5, 1, NumberFormat::Count),
    column("mod", "modify", 5, 1, NumberFormat::Count),
    column("mdn", "modify_dn", 4, 3, NumberFormat::Count),
    column("ext", "extended", 5, 3, NumberFormat::Count),
    column("err", "errors", 5, 0, NumberFormat::Count),
    column("p50", "p50_us", 6, 0, NumberFormat::Time),
    column("p99", "p99_us", 6, 0, NumberFormat::Time),
    column("max", "max_us", 6, 1, NumberFormat::Time),
    column("conn", "connections", 6, 0, NumberFormat::Count),
    column("tls/s", "tls_handshakes", 6, 2, NumberFormat::Count),
    column("inq", "queue", 5, 1, NumberFormat::Count),
    column("txn/s", "commits", 6, 2, NumberFormat::Count),
    column("grp", "changes_a_commit", 5, 2, NumberFormat::Tenths),
    column("sync99", "sync_p99_us", 7, 2, NumberFormat::Time),
    column("dirty", "changes_waiting", 6, 3, NumberFormat::Count),
    column("eng/s", "engine_operations", 7, 2, NumberFormat::Count),
    column("hash", "hashes_running", 5, 3, NumberFormat::Count),
    column("of", "hash_threads", 4, 3, NumberFormat::Count),
    column("hq", "hashes_waiting", 4, 3, NumberFormat::Count),
    column("busy", "busy", 5, 2, NumberFormat::Count),
    column("entr/s", "entries_sent", 7, 3, NumberFormat::Count),
    column("KB/s", "kilobytes_out", 6, 3, NumberFormat::Count),
];

impl Column {
    /// Its number for people.
    #[must_use]
    pub fn shown(&self, change: &ServerDelta<'_>) -> String {
        shown(self.form, self.figure.value(&change.interval()))
    }

    /// Its number for programs.
    #[must_use]
    pub fn number(&self, change: &ServerDelta<'_>) -> f64 {
        self.figure.number(&change.interval())
    }
}

/// The columns that there is room for, in characters, each with a gap before it.
#[must_use]
pub fn fitting(room: usize) -> Vec<&'static Column> {
    let mut left = room;
    let mut shown = [false; COLUMNS.len()];
    for rank in 0..=3 {
        for (column, shown) in COLUMNS.iter().zip(&mut shown) {
            if column.rank == rank && column.width < left {
                left -= column.width + 1;
                *shown = true;
            }
        }
    }
    COLUMNS.iter().zip(shown).filter(|(_, shown)| *shown).map(|(column, _)| column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_columns_as_there_is_room_for() {
        for room in 0..300 {
            let columns = fitting(room);
            let width: usize = columns.iter().map(|column| column.width + 1).sum();
            assert!(width <= room);
        }
        let eighty: Vec<_> = fitting(71).iter().map(|column| column.title).collect();
        assert!(
            ["total", "bind", "search", "err", "p50", "p99", "conn"]
                .iter()
                .all(|it| eighty.contains(it))
        );
        assert_eq!(fitting(200).len(), COLUMNS.len());
    }

    #[test]
    fn times_are_shown_as_times() {
        assert!(COLUMNS.iter().all(|it| (it.form == NumberFormat::Time) == it.figure.is_time()));
    }
}
