//! `keyway top` without a terminal, of servers that are looked at over LDAP: a line each interval.

use super::columns::COLUMNS;
use super::host::{Host, hosts_header, name_width, of_host, watch, why_not};
use super::source::Source;
use crate::cli::Top;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::signals::Second;
use keyway_host::stop::Stop;
use keyway_host::timestamp::Timestamp;
use keyway_watch::ServerDelta;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How wide lines are where nobody says.
const WIDTH: usize = 120;
/// Lines between two headers.
const HEADER_LINES: u64 = 20;
const LOOK: Duration = Duration::from_millis(50);

/// Shows lines until there are enough, or Ctrl-C.
///
/// # Errors
/// If none of the servers can be looked at, or nobody reads the lines.
pub fn run(
    sources: Vec<(String, Source)>,
    interval: Duration,
    arguments: &Top,
) -> Result<(), Failure> {
    let stop = Stop::watch(Second::Ends)?;
    let mut hosts: Vec<Host> = sources.iter().map(|(name, _)| Host::new(name.clone())).collect();
    let seen = watch(sources, interval, &Arc::new(AtomicBool::new(false)));
    if arguments.csv {
        output::text(csv_header())?;
    }
    let mut lines = 0;
    while !stop.is_asked() {
        let Ok((number, snapshot)) = seen.recv_timeout(LOOK) else { continue };
        let Some(host) = hosts.get_mut(number) else { continue };
        let was_gone = host.gone.is_some();
        host.seen(snapshot);
        if let (Some(why), false) = (&host.gone, was_gone) {
            output::note(format_args!("{}: {why}", host.name));
        }
        if hosts.iter().all(|host| host.now.is_none() && host.gone.is_some()) {
            return Err(why_not(&hosts));
        }
        let names = name_width(hosts.iter().map(|host| host.name.as_str()), WIDTH);
        let Some(host) = hosts.get(number).filter(|host| host.gone.is_none()) else { continue };
        let Some(change) = host.change() else { continue };
        match (arguments.json, arguments.csv) {
            (true, _) => output::json(&json_line(&host.name, &change))?,
            (_, true) => output::text(csv_line(&host.name, &change))?,
            _ => {
                if lines % HEADER_LINES == 0 {
                    output::text(hosts_header(names, WIDTH))?;
                }
                output::text(of_host(host, names, WIDTH))?;
            }
        }
        lines += 1;
        if arguments.count.is_some_and(|count| lines >= count) {
            break;
        }
    }
    Ok(())
}

/// The names of the values of [`csv_line`].
pub fn csv_header() -> String {
    let names = COLUMNS.iter().map(|column| column.name);
    ["time", "server"].into_iter().chain(names).collect::<Vec<_>>().join(",")
}

/// All columns, for programs that read tables.
pub fn csv_line(server: &str, change: &ServerDelta<'_>) -> String {
    let numbers = COLUMNS.iter().map(|column| column.number(change).to_string());
    let server = match server.contains([',', '"', '\n']) {
        true => format!("\"{}\"", server.replace('"', "\"\"")),
        false => server.to_owned(),
    };
    [Timestamp::now().to_string(), server].into_iter().chain(numbers).collect::<Vec<_>>().join(",")
}

/// All columns by their names.
pub fn figures(change: &ServerDelta<'_>) -> Value {
    let pairs = COLUMNS.iter().map(|it| (it.name.to_owned(), json!(it.number(change))));
    pairs.collect::<Map<_, _>>().into()
}

fn json_line(server: &str, change: &ServerDelta<'_>) -> Value {
    json!({
        "time": Timestamp::now().to_string(),
        "server": server,
        "kind": change.now.kind,
        "interval_s": (change.seconds * 1e6).round() / 1e6,
        "figures": figures(change),
        "operations": operations(change),
    })
}

/// How long each kind of operation took, in microseconds.
pub fn operations(change: &ServerDelta<'_>) -> Value {
    let times = change.directory.histograms.iter();
    let times = times.filter_map(|(name, times)| Some((name.strip_prefix("ldap.time.")?, times)));
    let one = |(name, times): (&str, &keyway_meter::Distribution)| {
        let us = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let value = json!({
            "count": times.count,
            "p50_us": us(times.percentile(50.0)),
            "p95_us": us(times.percentile(95.0)),
            "p99_us": us(times.percentile(99.0)),
            "max_us": us(times.max),
        });
        (name.to_owned(), value)
    };
    times.map(one).collect::<Map<_, _>>().into()
}
