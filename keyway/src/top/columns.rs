//! The columns of a line, what they are called for programs, and which of them there is room for.

use super::tally::time;
use keyway_meter::{FIGURES, Figure};
use keyway_watch::ServerDelta;

/// How a number is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is, or with a letter for its thousands.
    Count,
    /// With one digit behind the point.
    Tenths,
    /// Nanoseconds.
    Time,
}

/// A column.
pub struct Column {
    /// What people read.
    pub title: &'static str,
    /// What programs read.
    pub name: &'static str,
    pub width: usize,
    /// The smaller, the sooner it is shown.
    pub rank: u8,
    pub form: Form,
    figure: Figure,
}

const fn column(
    title: &'static str,
    name: &'static str,
    width: usize,
    rank: u8,
    form: Form,
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
    column("total", "total", 7, 0, Form::Count),
    column("bind", "bind", 6, 0, Form::Count),
    column("search", "search", 7, 0, Form::Count),
    column("cmp", "compare", 5, 3, Form::Count),
    column("add", "add", 5, 1, Form::Count),
    column("del", "delete", 5, 1, Form::Count),
    column("mod", "modify", 5, 1, Form::Count),
    column("mdn", "modify_dn", 4, 3, Form::Count),
    column("ext", "extended", 5, 3, Form::Count),
    column("err", "errors", 5, 0, Form::Count),
    column("p50", "p50_us", 6, 0, Form::Time),
    column("p99", "p99_us", 6, 0, Form::Time),
    column("max", "max_us", 6, 1, Form::Time),
    column("conn", "connections", 6, 0, Form::Count),
    column("tls/s", "tls_handshakes", 6, 2, Form::Count),
    column("inq", "queue", 5, 1, Form::Count),
    column("txn/s", "commits", 6, 2, Form::Count),
    column("grp", "changes_a_commit", 5, 2, Form::Tenths),
    column("sync99", "sync_p99_us", 7, 2, Form::Time),
    column("dirty", "changes_waiting", 6, 3, Form::Count),
    column("eng/s", "engine_operations", 7, 2, Form::Count),
    column("hash", "hashes_running", 5, 3, Form::Count),
    column("of", "hash_threads", 4, 3, Form::Count),
    column("hq", "hashes_waiting", 4, 3, Form::Count),
    column("busy", "busy", 5, 2, Form::Count),
    column("entr/s", "entries_sent", 7, 3, Form::Count),
    column("KB/s", "kilobytes_out", 6, 3, Form::Count),
];

impl Column {
    /// What it shows, for people.
    pub fn shown(&self, change: &ServerDelta<'_>) -> String {
        shown(self.form, self.figure.value(&change.interval()))
    }

    /// The number for programs.
    pub fn number(&self, change: &ServerDelta<'_>) -> f64 {
        self.figure.number(&change.interval())
    }
}

/// A number in its form.
pub fn shown(form: Form, value: f64) -> String {
    match form {
        Form::Count => count(value),
        Form::Tenths => format!("{value:.1}"),
        Form::Time if value == 0.0 => "-".to_owned(),
        Form::Time => time(value as u64),
    }
}

/// A number in five characters.
pub fn count(value: f64) -> String {
    for (from, by, letter) in
        [(99_949.5e9, 1e12, 'T'), (99_949.5e6, 1e9, 'G'), (99_949.5e3, 1e6, 'M')]
    {
        if value >= from {
            return format!("{:.0}{letter}", value / by);
        }
    }
    if value >= 99_999.5 { format!("{:.0}k", value / 1e3) } else { format!("{value:.0}") }
}

/// Those that there is room for, so many characters, each with a gap before it.
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
        assert!(COLUMNS.iter().all(|it| (it.form == Form::Time) == it.figure.is_time()));
    }

    #[test]
    fn numbers_are_five_characters() {
        let shown = [0.0, 7.4, 99_999.0, 100_000.0, 99_949_400.0, 1e8, 3e11, 5e14].map(count);
        assert_eq!(shown, ["0", "7", "99999", "100k", "99949k", "100M", "300G", "500T"]);
        assert_eq!(super::shown(Form::Time, 0.0), "-");
    }
}
