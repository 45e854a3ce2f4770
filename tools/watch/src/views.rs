//! The tables that each view shows.

use crate::sheet::{Cell, Sheet, numbers, words};
use crate::text::{NumberFormat, count, shown, time};
use crate::{EngineWork, Facts, PageCounters, ServerDelta};
use keyway_meter::{Distribution, OPERATIONS};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The operations of the last interval, by kind.
pub fn operations(change: &ServerDelta<'_>) -> Sheet {
    let all: f64 = OPERATIONS.iter().map(|(_, name)| change.rate(name)).sum();
    let row = |(title, name): &(&'static str, &str)| {
        let rate = change.rate(name);
        let times = change.times(&format!("ldap.time.{}", name.trim_start_matches("ldap.")));
        let mut row = vec![Cell::words(*title), number(rate), percent(rate, all)];
        row.extend(percentiles(&times));
        row.push(Cell::number(change.total(name).to_string(), change.total(name) as f64));
        row
    };
    Sheet {
        title: "Operations".into(),
        columns: vec![
            words("operation", 10),
            numbers("/s", 8),
            numbers("share", 6),
            numbers("p50", 7),
            numbers("p99", 7),
            numbers("max", 7),
            numbers("since start", 14),
        ],
        rows: OPERATIONS.iter().map(row).collect(),
        notes: Vec::new(),
        sort: None,
    }
}

/// How the server is in its cluster, if it is in one.
fn cluster(change: &ServerDelta<'_>) -> Option<String> {
    let gauge = |name: &str| change.gauge(&format!("cluster.{name}"));
    let (lag, time) = (gauge("lag"), Duration::from_millis(gauge("lag_time") as u64));
    let told = match (gauge("writer") > 0.0, gauge("connected") > 0.0) {
        (true, _) => format!("writes for {} that follow", count(gauge("followers"))),
        (false, true) => {
            format!("follows, {} commits and {:.1} s behind", count(lag), time.as_secs_f64())
        }
        (false, false) => {
            format!("neither writes for others nor follows, for {:.0} s", time.as_secs_f64())
        }
    };
    let epoch = gauge("epoch");
    (epoch > 0.0).then(|| format!("epoch {}: {told}", count(epoch)))
}

/// The store: how large it is, and what commits take.
pub fn store(change: &ServerDelta<'_>) -> Sheet {
    let gauge = |name: &str| change.gauge(&format!("store.{name}"));
    let (bytes, used, max) = (gauge("bytes"), gauge("used"), gauge("bytes_max"));
    let (group, sync) = (change.times("store.group"), change.times("store.sync"));
    let counts = |values: &Distribution| match values.count {
        0 => "-".to_owned(),
        _ => {
            let [p50, p99] = [50.0, 99.0].map(|percent| values.percentile(percent));
            format!("p50 {p50}  p99 {p99}  max {}", values.max)
        }
    };
    let times = |values: &Distribution| match values.count {
        0 => "-".to_owned(),
        _ => {
            let [p50, p99] = [50.0, 99.0].map(|percent| time(values.percentile(percent)));
            format!("p50 {p50}  p99 {p99}  max {}", time(values.max))
        }
    };
    let waits = [gauge("readers"), gauge("reader_lag")].map(count);
    let mut rows = vec![
        ("entries", count_whole(gauge("entries"))),
        ("file", format!("{}, of at most {}", size(bytes), size(max))),
        ("  in use", format!("{} ({})", size(used), share(used, bytes))),
        ("  free again", size((bytes - used).max(0.0))),
        ("readers", format!("{}, the oldest {} commits behind", waits[0], waits[1])),
        ("commits", format!("{} /s", count(change.rate("store.commits")))),
        ("changes", format!("{} /s", count(change.rate("store.changes")))),
        ("changes a commit", counts(&group)),
        ("a commit and its sync", times(&sync)),
        ("accepted, not on the disk", count_whole(gauge("waiting"))),
        ("syncs that failed", count_whole(change.total("store.sync_errors") as f64)),
    ];
    rows.extend(cluster(change).map(|told| ("in the cluster", told)));
    let rows = rows.into_iter().map(|(what, value)| vec![Cell::words(what), Cell::words(value)]);
    Sheet {
        title: "Store".into(),
        columns: vec![words("what", 26), words("now, or in the last interval", 40)],
        rows: rows.collect(),
        notes: Vec::new(),
        sort: None,
    }
}

/// The engine's drivers, and the clients of the daemon.
pub fn crypto(change: &ServerDelta<'_>, before: &[Facts]) -> [Sheet; 2] {
    let pages = [
        ("ldapd", &change.directory, change.now.directory.as_ref()),
        ("cryptod", &change.cryptod, change.now.cryptod.as_ref()),
    ];
    let mut rows = Vec::new();
    for (process, between, now) in pages {
        let (counters, ever) =
            (PageCounters::of(between), now.map(PageCounters::of).unwrap_or_default());
        let gauge = |name: String| now.and_then(|page| page.gauge(&name)).unwrap_or_default();
        let all: u64 =
            counters.engine.values().flat_map(BTreeMap::values).map(|it| it.operations).sum();
        for (driver, algorithms) in &ever.engine {
            for (algorithm, ever) in algorithms.iter().filter(|(_, ever)| ever.operations > 0) {
                let none = EngineWork::default();
                let work =
                    counters.engine.get(driver).and_then(|it| it.get(algorithm)).unwrap_or(&none);
                let rate = work.operations as f64 / change.seconds;
                let run =
                    work.times.get("run").filter(|run| run.count > 0).or(ever.times.get("run"));
                let queue = work.times.get("queue").cloned().unwrap_or_default();
                let predicted = gauge(format!("engine.{driver}.{algorithm}.predicted"));
                let failed = gauge(format!("engine.{driver}.{algorithm}.last_failure"));
                let [p50, p99, _] = percentiles(run.unwrap_or(&Distribution::default()));
                rows.push(vec![
                    number(rate),
                    number(work.bytes as f64 / change.seconds / 1024.0),
                    percent(work.operations as f64, all as f64),
                    p50,
                    p99,
                    spent(predicted),
                    spent(queue.percentile(99.0)),
                    ago(failed),
                    Cell::words(format!("{driver} {algorithm}")),
                    number(work.busy as f64 / change.seconds),
                    Cell::words(process),
                ]);
            }
        }
    }
    let batch = change.cryptod.histogram("cryptod.batch").cloned().unwrap_or_default();
    let backlog = |name: &str| change.now.directory.as_ref().and_then(|page| page.gauge(name));
    let mut notes = Vec::new();
    if batch.count > 0 {
        notes.push(format!(
            "requests a batch of cryptod: {:.1}, at most {}",
            batch.mean(),
            batch.max
        ));
    }
    if let Some(backlog) = backlog("engine.cryptod.backlog").filter(|backlog| *backlog > 0) {
        notes.push(format!("work that waits for cryptod: {}", time(backlog)));
    }
    let drivers = Sheet {
        title: "Drivers".into(),
        columns: vec![
            numbers("op/s", 7),
            numbers("KB/s", 7),
            numbers("share", 5),
            numbers("p50", 5),
            numbers("p99", 5),
            numbers("expd", 5),
            numbers("q99", 5),
            numbers("failed", 6),
            words("driver, algorithm", 27),
            numbers("busy", 5),
            words("process", 7),
        ],
        rows,
        notes,
        sort: Some(0),
    };
    [drivers, clients(change, before)]
}

fn clients(change: &ServerDelta<'_>, before: &[Facts]) -> Sheet {
    let rows = change.now.lists.clients.iter().map(|client| {
        let same = |other: &&Facts| other.get("number") == client.get("number");
        let earlier = before.iter().find(same);
        let since = |name: &str| {
            let before = earlier.map_or(amount(client, name), |earlier| amount(earlier, name));
            (amount(client, name) - before).max(0.0) / change.seconds
        };
        vec![
            number(since("requests")),
            number(since("bytes") / 1024.0),
            fact_number(client, "weight"),
            number(since("throttled")),
            fact_number(client, "keys"),
            fact_number(client, "sessions"),
            fact_number(client, "refused"),
            fact_number(client, "pid"),
            Cell::words(fact(client, "name")),
        ]
    });
    Sheet {
        title: "Clients of cryptod".into(),
        columns: vec![
            numbers("op/s", 7),
            numbers("KB/s", 7),
            numbers("weight", 6),
            numbers("thrt/s", 6),
            numbers("keys", 5),
            numbers("sess", 5),
            numbers("refused", 7),
            numbers("pid", 8),
            words("client", 20),
        ],
        rows: rows.collect(),
        notes: missing(change),
        sort: Some(0),
    }
}

/// Who is connected.
pub fn connections(change: &ServerDelta<'_>, before: &[Facts]) -> Sheet {
    let known: BTreeMap<&str, f64> = before
        .iter()
        .filter_map(|one| Some((one.get("connection")?.as_str(), amount(one, "requests"))))
        .collect();
    let rows = change.now.lists.connections.iter().map(|one| {
        let requests = amount(one, "requests");
        let before = one.get("connection").and_then(|it| known.get(it.as_str()));
        let rate = before.map_or(0.0, |before| (requests - before).max(0.0)) / change.seconds;
        let idle = amount(one, "idle_ms");
        let tls = match fact(one, "tls").trim_start_matches("TLSv") {
            "" => "-".to_owned(),
            version => version.to_owned(),
        };
        let who = fact(one, "who");
        vec![
            fact_number(one, "connection"),
            number(rate),
            fact_number(one, "in_flight"),
            fact_number(one, "queued"),
            Cell::number(length(idle / 1_000.0), idle),
            Cell::words(fact(one, "from")),
            Cell::words(tls),
            Cell::words(if who.is_empty() { "anonymous".to_owned() } else { who }),
            number(requests),
            Cell::words(fact(one, "group")),
        ]
    });
    Sheet {
        title: format!("Connections: {}", change.now.lists.connections.len()),
        columns: vec![
            numbers("number", 7),
            numbers("op/s", 6),
            numbers("now", 4),
            numbers("inq", 4),
            numbers("idle", 5),
            words("from", 21),
            words("tls", 3),
            words("who", 30),
            numbers("ops", 8),
            words("group", 16),
        ],
        rows: rows.collect(),
        notes: missing(change),
        sort: Some(1),
    }
}

/// The cost of searches, by the shape of their filters, since the server was started.
pub fn filters(change: &ServerDelta<'_>) -> Sheet {
    let of = |page: &keyway_meter::Snapshot| {
        let mut shapes: BTreeMap<(String, String), [f64; 5]> = BTreeMap::new();
        let names = ["searches", "time", "candidates", "returned", "unindexed"];
        for (name, value) in &page.counters {
            let parts: Vec<&str> = name.split('.').collect();
            let ["search", "filter", scope, filter, what] = parts.as_slice() else { continue };
            let Some(at) = names.iter().position(|name| name == what) else { continue };
            let shape = shapes.entry(((*scope).to_owned(), (*filter).to_owned())).or_default();
            if let Some(place) = shape.get_mut(at) {
                *place = *value as f64;
            }
        }
        shapes
    };
    let was_asked = |_: &(String, String), [searches, ..]: &mut [f64; 5]| *searches > 0.0;
    let mut now = change.now.directory.as_ref().map(of).unwrap_or_default();
    now.retain(was_asked);
    let between = of(&change.directory);
    let all: f64 = now.values().map(|[_, time, ..]| time).sum();
    let index = |scope: &str, filter: &str| {
        let mut told = change.now.lists.filters.iter();
        let found = told.find(|one| fact(one, "scope") == scope && fact(one, "filter") == filter);
        found.map(|one| fact(one, "index")).unwrap_or_default()
    };
    let rows =
        now.iter().map(|((scope, filter), [searches, spent_ns, candidates, returned, lacking])| {
            let rate = between
                .get(&(scope.clone(), filter.clone()))
                .map_or(0.0, |[searches, ..]| *searches);
            let each = |sum: &f64| sum / searches.max(1.0);
            let way = match index(scope, filter) {
                way if way.is_empty() && *lacking > 0.0 => "none".to_owned(),
                way => way,
            };
            vec![
                percent(*spent_ns, all),
                number(rate / change.seconds),
                number(*searches),
                spent(each(spent_ns) as u64),
                Cell::number(tenths(each(candidates)), each(candidates)),
                Cell::number(tenths(each(returned)), each(returned)),
                percent(*lacking, *searches),
                Cell::words(format!("{scope} {filter}")),
                Cell::words(way),
            ]
        });
    Sheet {
        title: "Filters by cost, since the start".into(),
        columns: vec![
            numbers("time", 5),
            numbers("now/s", 6),
            numbers("count", 7),
            numbers("each", 5),
            numbers("cand", 6),
            numbers("retd", 6),
            numbers("no ix", 5),
            words("scope and filter", 60),
            words("index", 14),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
        sort: Some(0),
    }
}

/// The slowest operations of the last minutes, and those that are under way for long.
pub fn slow(change: &ServerDelta<'_>) -> Sheet {
    let lists = &change.now.lists;
    let now_us =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as f64;
    let row = |one: &Facts, runs: bool| {
        let taken = amount(one, "time_us");
        let at = match runs {
            true => Cell::number("now", 0.0),
            false => {
                let seconds = (now_us - amount(one, "at_us")).max(0.0) / 1e6;
                Cell::number(length(seconds), seconds)
            }
        };
        let filter = fact(one, "filter");
        let what = match filter.is_empty() {
            true => fact(one, "dn"),
            false => format!("{filter} {}", fact(one, "dn")),
        };
        vec![
            spent((taken * 1e3) as u64),
            at,
            Cell::words(fact(one, "operation")),
            fact_number(one, "connection"),
            Cell::words(stages(one)),
            fact_number(one, "candidates"),
            fact_number(one, "returned"),
            Cell::words(what),
            Cell::words(format!("{} {}", fact(one, "index"), fact(one, "who"))),
        ]
    };
    let running = lists.running.iter().map(|one| row(one, true));
    let rows = running.chain(lists.slow.iter().map(|one| row(one, false))).collect();
    Sheet {
        title: "Slow operations, running and of the last five minutes".into(),
        columns: vec![
            numbers("took", 5),
            numbers("ago", 4),
            words("what", 7),
            numbers("conn", 6),
            words("mostly", 12),
            numbers("cand", 6),
            numbers("retd", 5),
            words("filter, entry", 40),
            words("index, who", 20),
        ],
        rows,
        notes: missing(change),
        sort: Some(0),
    }
}

/// The stage that most of the time went to.
fn stages(one: &Facts) -> String {
    let stages = ["queue", "plan", "store", "crypto", "write"];
    let all = amount(one, "time_us").max(1.0);
    let of = |stage: &&str| amount(one, &format!("{stage}_us"));
    let longest = stages.iter().max_by(|one, other| of(one).total_cmp(&of(other)));
    longest.map(|stage| format!("{stage} {:.0}%", of(stage) * 100.0 / all)).unwrap_or_default()
}

fn missing(change: &ServerDelta<'_>) -> Vec<String> {
    change.now.lists.missing.iter().cloned().collect()
}

fn fact(facts: &Facts, name: &str) -> String {
    facts.get(name).cloned().unwrap_or_default()
}

fn amount(facts: &Facts, name: &str) -> f64 {
    facts.get(name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn fact_number(facts: &Facts, name: &str) -> Cell {
    match facts.get(name) {
        Some(value) => Cell::number(value.clone(), value.parse().unwrap_or_default()),
        None => Cell::number("-", -1.0),
    }
}

fn number(value: f64) -> Cell {
    Cell::number(shown(NumberFormat::Count, value), value)
}

fn count_whole(value: f64) -> String {
    keyway_host::output::grouped(value as u64)
}

fn spent(nanoseconds: u64) -> Cell {
    Cell::number(shown(NumberFormat::Time, nanoseconds as f64), nanoseconds as f64)
}

fn percentiles(times: &Distribution) -> [Cell; 3] {
    [times.percentile(50.0), times.percentile(99.0), times.max].map(spent)
}

fn tenths(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { count(value) }
}

fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0}%", part * 100.0 / whole) } else { "-".to_owned() }
}

fn percent(part: f64, whole: f64) -> Cell {
    Cell::number(share(part, whole), part / whole.max(f64::MIN_POSITIVE))
}

/// How long ago a time in seconds since 1970 is.
fn ago(unix_s: u64) -> Cell {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match unix_s {
        0 => Cell::number("-", -1.0),
        at => Cell::number(length(now.saturating_sub(at) as f64), at as f64),
    }
}

/// A length of time in four characters or so.
pub fn length(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 99.5 => format!("{seconds:.0}s"),
        seconds if seconds < 99.5 * 60.0 => format!("{:.0}m", seconds / 60.0),
        seconds if seconds < 99.5 * 3_600.0 => format!("{:.0}h", seconds / 3_600.0),
        seconds => format!("{:.0}d", seconds / 86_400.0),
    }
}

/// A number of bytes.
fn size(bytes: f64) -> String {
    let (mut value, mut units) = (bytes, ["KiB", "MiB", "GiB", "TiB"].into_iter());
    let mut unit = "B";
    while value >= 1_024.0
        && let Some(next) = units.next()
    {
        (value, unit) = (value / 1_024.0, next);
    }
    let digits = usize::from(unit != "B" && value < 99.5);
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_sizes_are_short() {
        let lengths = [0.4, 99.0, 100.0, 7_000.0, 400_000.0, 1e7].map(length);
        assert_eq!(lengths, ["0s", "99s", "2m", "2h", "5d", "116d"]);
        let sizes = [0.0, 1_023.0, 1_536.0, 3e9, 1e15].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KiB", "2.8 GiB", "909 TiB"]);
        assert_eq!(share(1.0, 0.0), "-");
    }

    #[test]
    fn most_of_the_time_went_somewhere() {
        let facts = [("time_us", "200"), ("plan_us", "20"), ("store_us", "160")];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(stages(&facts.into()), "store 80%");
    }
}
