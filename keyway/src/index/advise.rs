//! `keyway directory advise`: which indexes a running server's searches lack, and what that costs.

use super::Advise;
use crate::acl::look;
use keyway_config::Configuration;
use keyway_config::Given;
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::timestamp::Timestamp;
use keyway_meter::{Reader, Snapshot};
use keyway_server::{IndexKind, IndexReport, IndexSetting, IndexStatus};
use keyway_service::instance::describe;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Counters of searches that lacked an index: this, the attribute, the kind, what is counted.
const PREFIX: &str = "search.unindexed.";
/// Counter of the time that all searches took.
const TIME: &str = "search.time";

/// Searches that lacked the same index.
#[derive(Clone, Copy, Default)]
struct Lacking {
    searches: u64,
    entries: u64,
    time_ns: u64,
}

/// Says what was lacking since the server was started.
///
/// # Errors
/// If no server runs on the data folder, or its configuration cannot be read.
pub fn run(arguments: &Advise) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    data::may_look(folder)?;
    let page = Reader::open(&folder.join(name::METER)).ok().filter(Reader::alive);
    let snapshot = page.and_then(|page| page.snapshot().ok()).ok_or_else(|| {
        let shown = folder.display();
        Failure::new(format!("no server runs on {shown}; name its folder with --data DIR"))
    })?;
    let configuration = Configuration::ahead(folder, &Given::none())?;
    let advice = advice(&snapshot, &configuration.directory.indexes);
    let reports = look::open_folder(folder, None)?.directory.index_reports();
    let reports = reports.map_err(|why| Failure::new(describe(&why)))?;
    if arguments.json {
        return say_json(&snapshot, &advice, &reports);
    }
    say(&snapshot, &advice, &reports)
}

/// The standing of an index that the configuration has.
fn standing(advice: &Advice, reports: &[IndexReport]) -> Option<IndexStatus> {
    let is_it = |report: &&IndexReport| {
        Some(report.kind) == advice.kind && report.attribute.eq_ignore_ascii_case(&advice.attribute)
    };
    let found = reports.iter().find(is_it).map(|report| report.standing);
    found.filter(|_| advice.line.is_none())
}

/// An index that searches lacked: its attribute, its kind, and the line for `[indexes]` that makes it.
type Line = (String, String, String);

/// The lines that would make the indexes which searches lacked.
pub fn lines(snapshot: &Snapshot, indexes: &[IndexSetting]) -> Vec<Line> {
    let lines = advice(snapshot, indexes).into_iter();
    lines.filter_map(|one| Some((one.attribute, one.kind?.to_string(), one.line?))).collect()
}

/// An index that was lacking.
struct Advice {
    attribute: String,
    /// `None` if no index could help.
    kind: Option<IndexKind>,
    lacking: Lacking,
    /// Its percentage of the time that all searches took.
    percent: u64,
    /// The line for `[indexes]`; `None` if it is there already.
    line: Option<String>,
}

/// The indexes that were lacking, the one whose searches took longest first.
fn advice(snapshot: &Snapshot, indexes: &[IndexSetting]) -> Vec<Advice> {
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

fn say(snapshot: &Snapshot, advice: &[Advice], reports: &[IndexReport]) -> Result<(), Failure> {
    let since = Timestamp::from_unix_s((snapshot.started_unix_ms / 1_000).cast_signed());
    if advice.is_empty() {
        return output::text(format_args!("no search has lacked an index since {since}"));
    }
    output::text(format_args!("searches that no index helped, since {since}:"))?;
    for one in advice {
        let Advice { attribute, kind, lacking, percent, line } = one;
        let what = match kind {
            Some(kind) => format!("index {attribute} for {kind}"),
            None => "no index can help: negations, parts under three letters and the like".into(),
        };
        output::text(format_args!("{percent:>4} % of the search time: {what}"))?;
        let (searches, entries) = (grouped(lacking.searches), grouped(lacking.entries));
        let seconds = lacking.time_ns as f64 / 1e9;
        output::text(format_args!(
            "       {searches} searches looked at {entries} entries in {seconds:.1} s"
        ))?;
        let text = match (line, standing(one, reports)) {
            (Some(line), _) => format!("[indexes]  {line}"),
            (None, Some(IndexStatus::Whole)) => {
                "it is there now, and searches use it: these came before".to_owned()
            }
            (None, Some(IndexStatus::Building(percent))) => {
                format!("it is being built: {percent} %")
            }
            (None, _) if kind.is_some() && attribute != "other" => {
                "keyway.toml has it: SIGHUP has it built".to_owned()
            }
            (None, _) => continue,
        };
        output::text(format_args!("       {text}"))?;
    }
    Ok(())
}

fn say_json(
    snapshot: &Snapshot,
    advice: &[Advice],
    reports: &[IndexReport],
) -> Result<(), Failure> {
    let shown = advice.iter().map(|one| {
        json!({
            "attribute": one.attribute,
            "kind": one.kind.map(IndexKind::name),
            "searches": one.lacking.searches,
            "entries": one.lacking.entries,
            "seconds": one.lacking.time_ns as f64 / 1e9,
            "percent": one.percent,
            "line": one.line,
            "is_there": standing(one, reports) == Some(IndexStatus::Whole),
        })
    });
    output::json(&json!({
        "event": "advised",
        "since_unix_ms": snapshot.started_unix_ms,
        "lacking": shown.collect::<Vec<_>>(),
    }))
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
