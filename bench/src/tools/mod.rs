//! The tools beside a server, each beside its peer: `keyway load` and UnboundID's searchrate on the
//! same server, `keyway data` and OpenDJ's makeldif on the same template, the proxy of `keyway decode`
//! and UnboundID's ldap-debugger before the same server.
//!
//! The peers come from Maven. They run by turns with ours; what is compared is the processor time of
//! whole processes, theirs counted once Java is warm.

mod arguments;
mod data;
mod decode;
mod load;
mod maven;
mod measured;

use crate::report::{Findings, Report};
pub use arguments::Arguments;
use std::time::Instant;

/// Measures one tool.
type Measure = fn(&Arguments) -> Result<Findings, String>;

const TOOLS: [(&str, Measure); 3] =
    [("load", load::measure), ("data", data::measure), ("decode", decode::measure)];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    if let Some(unknown) = arguments.only.iter().find(|name| TOOLS.iter().all(|(n, _)| n != name)) {
        let names: Vec<&str> = TOOLS.iter().map(|(name, _)| *name).collect();
        return Err(format!("--only {unknown}: there are {}", names.join(", ")));
    }
    let begun = Instant::now();
    let (mut all, mut missed) = (Findings::default(), Vec::new());
    for (name, measure) in TOOLS {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| only == name) {
            continue;
        }
        eprintln!("{:>4} s  {name}", begun.elapsed().as_secs());
        match measure(arguments) {
            Ok(found) => {
                all.claims.extend(found.claims);
                all.tables.extend(found.tables);
            }
            Err(why) => missed.push(format!("{name}: {why}")),
        }
    }
    let settings = serde_json::json!({
        "only": arguments.only, "rounds": arguments.rounds, "seconds": arguments.seconds,
    });
    let peers = [load::PEER, data::PEER, decode::PEER].map(str::to_owned);
    let peers = peers.into_iter().chain([maven::java()]).collect();
    let report = Report::new("tools", peers, settings, all.claims, all.tables);
    report.finish(arguments.json.as_deref())?;
    if missed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", missed.join("; "))) }
}
