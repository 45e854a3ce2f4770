//! Which indexes the searches of a running server lack, by its counters, and what that costs.

use keyway_meter::Snapshot;
use keyway_server::{IndexKind, IndexReport, IndexSetting, IndexStatus};
use std::collections::{BTreeMap, BTreeSet};

/// Counters of searches that lacked an index: this, the attribute, the kind, what is counted.
const PREFIX: &str = "search.unindexed.";
/// Counter of the time that all searches took.
const TIME: &str = "search.time";

/// Searches that lacked the same index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lacking {
    /// How many there were.
    pub searches: u64,
    /// How many entries they looked at.
    pub entries: u64,
    /// How long they took, in nanoseconds.
    pub time_ns: u64,
}

/// An index that searches lacked: its attribute, its kind, and the line for `[indexes]` that makes it.
pub type Line = (String, String, String);

/// The lines that would make the indexes which searches lacked.
pub fn lines(snapshot: &Snapshot, indexes: &[IndexSetting]) -> Vec<Line> {
    let lines = advice(snapshot, indexes).into_iter();
    lines.filter_map(|one| Some((one.attribute, one.kind?.to_string(), one.line?))).collect()
}

/// An index that was lacking.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The attribute.
    pub attribute: String,
    /// `None` if no index could help.
    pub kind: Option<IndexKind>,
    /// Searches that lacked it.
    pub lacking: Lacking,
    /// Its percentage of the time that all searches took.
    pub percent: u64,
    /// The line for `[indexes]`; `None` if it is there already.
    pub line: Option<String>,
}

impl Advice {
    /// The standing of the index, if the configuration has it.
    pub fn standing(&self, reports: &[IndexReport]) -> Option<IndexStatus> {
        let is_it = |report: &&IndexReport| {
            Some(report.kind) == self.kind && report.attribute.eq_ignore_ascii_case(&self.attribute)
        };
        let found = reports.iter().find(is_it).map(|report| report.standing);
        found.filter(|_| self.line.is_none())
    }
}

/// The indexes that were lacking, the one whose searches took longest first.
pub fn advice(snapshot: &Snapshot, indexes: &[IndexSetting]) -> Vec<Advice> {
    let all_ns = snapshot.value(TIME).unwrap_or_default().max(1);
    let advice = lacking(snapshot).into_iter().map(|((attribute, index), lacking)| {
        let kind = IndexKind::from_name(&index);
        let line = kind.and_then(|kind| line(&attribute, kind, indexes));
        let percent = lacking.time_ns.saturating_mul(100) / all_ns;
        Advice { attribute, kind, lacking, percent: percent.min(100), line }
    });
    let mut advice: Vec<Advice> = advice.collect();
    advice.sort_by_key(|one| std::cmp::Reverse(one.lacking.time_ns));
    advice
}

fn lacking(snapshot: &Snapshot) -> BTreeMap<(String, String), Lacking> {
    let mut all: BTreeMap<(String, String), Lacking> = BTreeMap::new();
    for (name, value) in &snapshot.counters {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let parts: Vec<&str> = rest.split('.').collect();
        let [attribute, index, what] = parts.as_slice() else { continue };
        let one = all.entry(((*attribute).to_owned(), (*index).to_owned())).or_default();
        match *what {
            "searches" => one.searches = *value,
            "entries" => one.entries = *value,
            "time" => one.time_ns = *value,
            _ => {}
        }
    }
    all
}

/// The line with this kind in it; `None` if it says so already, or the name stands for several.
fn line(attribute: &str, kind: IndexKind, indexes: &[IndexSetting]) -> Option<String> {
    let own = indexes.iter().find(|one| one.attribute.eq_ignore_ascii_case(attribute));
    let mut kinds: BTreeSet<IndexKind> = own.map(|one| one.kinds.clone()).unwrap_or_default();
    if attribute == "other" || !kinds.insert(kind) {
        return None;
    }
    let kinds: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
    let name = own.map_or(attribute, |one| one.attribute.as_str());
    Some(format!("{name} = [{}]", kinds.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_kinds_there_are_and_the_one_that_is_lacking() {
        let indexes = [IndexSetting::new("mail", &[IndexKind::Equality])];
        let line = |name, kind| line(name, kind, &indexes);
        let expected = "mail = [\"equality\", \"substring\"]";
        assert_eq!(line("mail", IndexKind::Substring).as_deref(), Some(expected));
        assert_eq!(line("Mail", IndexKind::Equality), None);
        let expected = "l = [\"equality\"]";
        assert_eq!(line("l", IndexKind::Equality).as_deref(), Some(expected));
        assert_eq!(line("other", IndexKind::Equality), None);
    }

    #[test]
    fn what_took_longest_comes_first() {
        let counter = |name: &str, value| (name.to_owned(), value);
        let snapshot = Snapshot {
            pid: 1,
            started_unix_ms: 0,
            counters: vec![
                counter("search.time", 1_000),
                counter("search.unindexed.l.equality.searches", 2),
                counter("search.unindexed.l.equality.time", 100),
                counter("search.unindexed.mail.substring.entries", 77),
                counter("search.unindexed.mail.substring.time", 410),
                counter("search.unindexed.any.none.time", 5),
            ],
            histograms: Vec::new(),
        };
        let advice = advice(&snapshot, &[]);
        let found: Vec<_> =
            advice.iter().map(|one| (one.attribute.as_str(), one.percent)).collect();
        assert_eq!(found, [("mail", 41), ("l", 10), ("any", 0)]);
        assert_eq!((advice[0].lacking.entries, advice[1].lacking.searches), (77, 2));
    }
}
