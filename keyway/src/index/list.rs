//! `keyway directory indexes`.

use super::Indexes;
use crate::acl::look;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_server::{IndexReport, IndexStatus};
use keyway_service::instance::describe;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Lists the indexes of a data folder.
///
/// # Errors
/// If there is no directory, or it cannot be read.
pub fn run(arguments: &Indexes) -> Result<(), Failure> {
    let look = look::open_folder(&arguments.data.folder, None)?;
    let reports = look.directory.index_reports();
    let reports = reports.map_err(|why| Failure::new(describe(&why)))?;
    if arguments.data.json {
        let indexes: Vec<Value> = reports.iter().map(shown).collect();
        return output::json(&json!({ "event": "indexes", "indexes": indexes }));
    }
    let mut by_attribute: BTreeMap<&str, Vec<&IndexReport>> = BTreeMap::new();
    for report in &reports {
        by_attribute.entry(&report.attribute).or_default().push(report);
    }
    for (attribute, reports) in by_attribute {
        let kinds: Vec<String> = reports.into_iter().map(text).collect();
        output::text(format_args!("{attribute:<28} {}", kinds.join(", ")))?;
    }
    Ok(())
}

fn text(report: &IndexReport) -> String {
    match report.standing {
        IndexStatus::Whole => report.kind.to_string(),
        IndexStatus::Building(percent) => {
            format!("{} (being built: {percent} %)", report.kind)
        }
        IndexStatus::Dropping => format!("{} (being dropped)", report.kind),
        IndexStatus::Wanted => format!("{} (to be built after SIGHUP or a start)", report.kind),
        IndexStatus::Unwanted => {
            format!("{} (to be dropped after SIGHUP or a start)", report.kind)
        }
    }
}

fn shown(report: &IndexReport) -> Value {
    let (state, percent) = match report.standing {
        IndexStatus::Whole => ("whole", 100),
        IndexStatus::Building(percent) => ("building", percent),
        IndexStatus::Dropping => ("dropping", 0),
        IndexStatus::Wanted => ("wanted", 0),
        IndexStatus::Unwanted => ("unwanted", 100),
    };
    json!({
        "attribute": report.attribute,
        "kind": report.kind.name(),
        "state": state,
        "percent": percent,
    })
}
