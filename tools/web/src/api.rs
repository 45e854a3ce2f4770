//! The page's questions about servers.

use crate::history::{Times, event_of};
use crate::limits::ANSWER_NAMES_MAX;
use crate::monitor::{Detail, MonitorTarget, Seen};
use keyway_meter::{Event, Snapshot};
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The servers that are monitored, and whether they can be reached.
pub(crate) fn hosts(monitored: &[MonitorTarget]) -> Value {
    let host = |target: &MonitorTarget| {
        let seen = target.seen();
        json!({
            "name": target.name(),
            "up": seen.now.is_some(),
            "why": seen.why,
            "missing": seen.missing,
            "started_unix_ms": seen.now.as_ref().map(|look| look.started_unix_ms),
        })
    };
    json!({ "hosts": monitored.iter().map(host).collect::<Vec<_>>() })
}

/// Its looks from a number on. `page` is this process's number.
pub(crate) fn now(target: &MonitorTarget, after: u64, page: u64) -> Value {
    let seen = target.seen();
    // A server of another kind counts less; what it does not is not nothing.
    let known = seen.missing.as_ref().and(seen.now.as_ref()).map(|look| {
        let names = look.counters.iter().map(|(name, _)| name.as_str());
        names.filter(|name| name.starts_with("ldap.")).collect::<Vec<_>>()
    });
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A page that has numbers of another process wants all.
    let after = if after > seen.history.next() { 0 } else { after };
    json!({
        "history": page.to_string(),
        "up": seen.now.is_some(),
        "why": seen.why,
        "known": known,
        "now_unix_ms": u64::try_from(unix.as_millis()).unwrap_or(u64::MAX),
        "next": seen.history.next(),
        "points": seen.history.from(after).collect::<Vec<_>>(),
    })
}

/// Counters whose names begin with one of these, and what the server says beside them.
pub(crate) fn about(target: &MonitorTarget, prefixes: &[&str], detail: Option<Detail>) -> Value {
    let mut all = Map::new();
    if let Some(detail) = detail {
        match target.detail(detail) {
            Ok(Value::Object(said)) => all.extend(said),
            Ok(said) => drop(all.insert("said".into(), said)),
            Err(why) => drop(all.insert("why".into(), why.into())),
        }
    }
    let seen = target.seen();
    all.insert("up".into(), seen.now.is_some().into());
    if let Some(why) = &seen.why {
        all.insert("why".into(), why.clone().into());
    }
    if let Some(now) = seen.now.as_ref().filter(|_| !prefixes.is_empty()) {
        all.insert("counters".into(), counters(&seen, now, prefixes));
    }
    all.into()
}

fn counters(seen: &Seen, now: &Snapshot, prefixes: &[&str]) -> Value {
    let between = seen.before.as_ref().map(|before| now.since(before));
    let is_asked = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let (mut counts, mut gauges, mut times) = (Map::new(), Map::new(), Map::new());
    let asked = now.counters.iter().enumerate().filter(|(_, (name, _))| is_asked(name));
    for (at, (name, value)) in asked.take(ANSWER_NAMES_MAX) {
        if event_of(name).is_some_and(Event::is_gauge) {
            gauges.insert(name.clone(), (*value).into());
            continue;
        }
        // Names are only ever added, so a name stays where it is.
        let came = between.as_ref().and_then(|between| between.counters.get(at));
        let came = came.map_or(0, |(_, came)| *came);
        counts.insert(name.clone(), json!([value, came]));
    }
    let asked = now.histograms.iter().enumerate().filter(|(_, (name, _))| is_asked(name));
    for (at, (name, values)) in asked.take(ANSWER_NAMES_MAX) {
        let came = between.as_ref().and_then(|between| between.histograms.get(at));
        let interval = came.and_then(|(_, came)| Times::of(came));
        let since_start = Times::of(values);
        times.insert(name.clone(), json!({ "interval": interval, "since_start": since_start }));
    }
    json!({
        "seconds": seen.seconds,
        "started_unix_ms": now.started_unix_ms,
        "counts": counts,
        "now": gauges,
        "times": times,
    })
}
