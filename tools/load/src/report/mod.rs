//! A result as one page of HTML that needs nothing else: tables and pictures, on light and on dark.

mod escape;
mod find;
mod picture;

use crate::format::{grouped, time};
use crate::result::{FIND, histogram};
use escape::{escaped, number, texts};
use picture::picture;
use serde_json::Value;
use std::fmt::Write as _;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#222;--paper:#fff;--grid:#ddd;--soft:#666}\
@media (prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#16181c;--grid:#3a3d44;--soft:#999}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:960px;\
margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;margin-bottom:0}h2{font-size:1.1rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%}td,th{padding:.2rem .6rem;text-align:right;\
border-bottom:1px solid var(--grid);font-variant-numeric:tabular-nums}\
td:first-child,th:first-child{text-align:left}td+td{white-space:nowrap}\
.note{border-left:4px solid #d55e00;padding-left:.8rem}.soft{color:var(--soft)}\
svg{width:100%;height:auto;margin:.5rem 0}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}\
svg .grid{stroke:var(--grid)}svg .knee{stroke:#009e73;stroke-dasharray:5 4}svg .line{fill:none;stroke-width:1.8}\
pre{overflow:auto;border:1px solid var(--grid);padding:.8rem}";

/// The page. Texts of a result are escaped, so that their content stays text.
#[must_use]
pub fn html(result: &Value) -> String {
    let name = escaped(result["name"].as_str().unwrap_or("load"));
    let urls: Vec<String> = texts(&result["urls"]);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{name}</title>\
         <style>{STYLE}</style>\n<h1>{name}</h1>\n<p class=\"soft\">{} · {} · seed {} · \
         keyway load {}</p>\n",
        escaped(&urls.join(", ")),
        length(result),
        result["seed"],
        escaped(result["version"].as_str().unwrap_or_default()),
    );
    if result["kind"] == FIND {
        find::found(result, &mut page);
    } else {
        of_run(result, &mut page);
    }
    // Into memory it cannot fail.
    let scenario = escaped(result["scenario"].as_str().unwrap_or_default());
    let _ = writeln!(page, "<h2>Scenario</h2>\n<pre>{scenario}</pre>\n</html>");
    page
}

/// How long it took.
fn length(result: &Value) -> String {
    match result["kind"] == FIND {
        true => format!("each rate held for {:.1} s", number(&result["hold_s"])),
        false => format!("{:.1} s recorded", number(&result["recorded_s"])),
    }
}

fn of_run(result: &Value, page: &mut String) {
    notes(result, page);
    jobs(result, page);
    failed(result, page);
    pictures(result, page);
    connections(&result["connections"], page);
    client(&result["client"], page);
}

fn notes(result: &Value, page: &mut String) {
    let mut note = |text: String| {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escaped(&text));
    };
    if let Some(limit) = result["client"]["limit"].as_str() {
        note(limit.to_owned());
    }
    if result["interrupted"] == true {
        note("The run was interrupted.".into());
    }
    if let Some(why) = result["ended_by"].as_str() {
        note(format!("The run ended early: {why}."));
    }
    if let Some(rule) = result["aborted_by"].as_str() {
        note(format!("The run ended early: the threshold '{rule}' was broken."));
    }
    for agent in result["agents"].as_array().into_iter().flatten() {
        if let Some(lost) = agent["lost"].as_str() {
            note(format!("{lost}; its missing reports are in no sum."));
        }
    }
    for why in texts(&result["unseen"]) {
        note(format!("A monitor did not see all: {why}"));
    }
    for threshold in result["thresholds"].as_array().into_iter().flatten() {
        let kept = if threshold["kept"] == true { "Kept" } else { "Broken" };
        note(format!("{kept}: {}", threshold["rule"].as_str().unwrap_or_default()));
    }
}

fn jobs(result: &Value, page: &mut String) {
    page.push_str(
        "<h2>Response times</h2>\n<p class=\"soft\">From the moment at which a sequence was to start, \
         so that waiting for a slow server counts. Service times, from a request to its answer, stand \
         below.</p>\n<table><tr><th>Job<th>Rate/s<th>Done<th>Errors<th>p50<th>p90<th>p95<th>p99<th>p99.9\
         <th>Max</tr>\n",
    );
    row("all", Some(result), &result["response"], page);
    for job in result["jobs"].as_array().into_iter().flatten() {
        row(job["name"].as_str().unwrap_or_default(), Some(job), &job["response"], page);
        for step in
            job["steps"].as_array().into_iter().flatten().filter(|step| step["kind"] != "wait")
        {
            let kind = step["kind"].as_str().unwrap_or_default();
            row(&format!("– {kind} (service)"), None, &step["service"], page);
        }
    }
    page.push_str("</table>\n");
}

fn row(name: &str, counts: Option<&Value>, times: &Value, page: &mut String) {
    let _ = write!(page, "<tr><td>{}", escaped(name));
    match counts {
        Some(counts) => {
            let _ = write!(
                page,
                "<td>{:.1}<td>{}<td>{}",
                number(&counts["rate"]),
                grouped(number(&counts["done"])),
                grouped(number(&counts["errors"])),
            );
        }
        None => {
            let _ = write!(page, "<td><td>{}<td>", grouped(number(&times["count"])));
        }
    }
    for key in ["p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"] {
        let _ = write!(page, "<td>{}", time(1e6 * number(&times[key])));
    }
    page.push_str("</tr>\n");
}

fn failed(result: &Value, page: &mut String) {
    let jobs = || result["jobs"].as_array().into_iter().flatten();
    if jobs().all(|job| job["failed"].as_array().is_none_or(Vec::is_empty)) {
        return;
    }
    page.push_str(
        "<h2>Errors</h2>\n<table><tr><th>What<th>Job<th>Step<th>Count<th>p50<th>Max</tr>\n",
    );
    for job in jobs() {
        for failed in job["failed"].as_array().into_iter().flatten() {
            let _ = writeln!(
                page,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
                escaped(failed["what"].as_str().unwrap_or_default()),
                escaped(job["name"].as_str().unwrap_or_default()),
                number(&failed["step"]) + 1.0,
                grouped(number(&failed["count"])),
                time(1e6 * number(&failed["response"]["p50_ms"])),
                time(1e6 * number(&failed["response"]["max_ms"])),
            );
        }
    }
    page.push_str("</table>\n");
}

fn connections(tally: &Value, page: &mut String) {
    page.push_str("<h2>Connections</h2>\n<table><tr><th>What<th>Count</tr>\n");
    for (key, what) in [
        ("open", "open at the beginning"),
        ("tls_full", "full TLS handshakes"),
        ("tls_resumed", "resumed TLS handshakes"),
        ("tls_slow", "slow TLS handshakes"),
        ("not_opened", "attempts that failed"),
        ("lost", "closed by the server"),
        ("late_answers", "answers after their time"),
        ("entries", "entries received"),
        ("bytes_in", "bytes received"),
        ("bytes_out", "bytes sent"),
    ] {
        let _ = writeln!(page, "<tr><td>{what}<td>{}</tr>", grouped(number(&tally[key])));
    }
    page.push_str("</table>\n");
}

fn client(client: &Value, page: &mut String) {
    let _ = writeln!(
        page,
        "<h2>The client</h2>\n<p>{:.1} us of processor time an operation; its own starts were late by \
         {} (p50) and {} (p99).</p>",
        number(&client["cpu_us_per_operation"]),
        time(1e6 * number(&client["lag"]["p50_ms"])),
        time(1e6 * number(&client["lag"]["p99_ms"])),
    );
}

fn pictures(result: &Value, page: &mut String) {
    let line = |key: &str, scale: f64| {
        let seconds = result["seconds"].as_array().into_iter().flatten();
        seconds
            .map(|second| (number(&second["second"]) + 1.0, scale * number(&second[key])))
            .collect()
    };
    page.push_str("<h2>Second by second</h2>\n");
    let rates =
        [("due", line("due", 1.0)), ("done", line("done", 1.0)), ("errors", line("errors", 1.0))];
    picture("sequences a second", "seconds", &rates, page);
    let times =
        [("p50", line("p50_ms", 1.0)), ("p99", line("p99_ms", 1.0)), ("max", line("max_ms", 1.0))];
    picture("response time in ms", "seconds", &times, page);
    let ours =
        [("busiest core, %", line("core_share", 100.0)), ("lag p99, ms", line("lag_ms", 1.0))];
    picture("the client", "seconds", &ours, page);
    let host = |key: &str, scale: f64| {
        let seconds = result["seconds"].as_array().into_iter().flatten();
        let seen = seconds.filter(|second| second["host"].is_object());
        let point = |second: &Value| {
            (number(&second["second"]) + 1.0, scale * number(&second["host"][key]))
        };
        seen.map(point).collect()
    };
    let busy = [("all cores, %", host("cpu_share", 100.0))];
    picture("this machine", "seconds", &busy, page);
    let moved = [
        ("written, MB/s", host("written_bytes", 1e-6)),
        ("received, MB/s", host("received_bytes", 1e-6)),
        ("sent, MB/s", host("sent_bytes", 1e-6)),
    ];
    picture("its disks and network", "seconds", &moved, page);
    monitors(result, page);
    let times = histogram(&result["response"]);
    let distribution = times.iter_recorded().map(|bucket| {
        // Nines to the right: 1 is 90 %, 2 is 99 %.
        let nines = -(1.0 - bucket.percentile() / 100.0).max(1e-6).log10();
        (nines, bucket.value_iterated_to() as f64 / 1e6)
    });
    page.push_str("<h2>Distribution</h2>\n");
    let lines = [("response", distribution.collect())];
    picture("response time in ms", "nines: 1 is p90, 2 is p99, 3 is p99.9", &lines, page);
}

/// A picture of each monitor.
fn monitors(result: &Value, page: &mut String) {
    let seconds = || result["seconds"].as_array().into_iter().flatten();
    let names = || seconds().flat_map(|second| second["monitors"].as_object());
    let mut all: Vec<&String> = names().flat_map(|monitors| monitors.keys()).collect();
    all.sort_unstable();
    all.dedup();
    for name in all {
        let point = |second: &Value| {
            let value = second["monitors"][name].as_f64()?;
            Some((number(&second["second"]) + 1.0, value.max(0.0)))
        };
        let name = escaped(name);
        picture(&name, "seconds", &[(&name, seconds().filter_map(point).collect())], page);
    }
}
