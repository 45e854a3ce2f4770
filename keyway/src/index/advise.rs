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
use keyway_server::{IndexKind, IndexReport, IndexStatus};
use keyway_service::index_advice::{Advice, advice};
use keyway_service::instance::describe;
use serde_json::json;

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
    if arguments.data.json {
        return say_json(&snapshot, &advice, &reports);
    }
    say(&snapshot, &advice, &reports)
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
        let text = match (line, one.standing(reports)) {
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
            "is_there": one.standing(reports) == Some(IndexStatus::Whole),
        })
    });
    output::json(&json!({
        "event": "advised",
        "since_unix_ms": snapshot.started_unix_ms,
        "lacking": shown.collect::<Vec<_>>(),
    }))
}
