//! A result as one page of HTML that needs nothing else: tables and pictures, on light and on dark.

use crate::result::histogram;
use crate::summary::{grouped, time};
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
td:first-child,th:first-child{text-align:left}\
.note{border-left:4px solid #d55e00;padding-left:.8rem}.soft{color:var(--soft)}\
svg{width:100%;height:auto;margin:.5rem 0}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}\
svg .grid{stroke:var(--grid)}svg .line{fill:none;stroke-width:1.8}\
pre{overflow:auto;border:1px solid var(--grid);padding:.8rem}";

/// Colours that stand out from white and from black, for those who see colours otherwise, too (after
/// Okabe and Ito).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// The page. What a result's texts say is shown as text, whatever is in it.
#[must_use]
pub fn html(result: &Value) -> String {
    let name = escaped(result["name"].as_str().unwrap_or("load"));
    let urls: Vec<String> = texts(&result["urls"]);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{name}</title>\
         <style>{STYLE}</style>\n<h1>{name}</h1>\n<p class=\"soft\">{} · {:.1} s recorded · seed {} · \
         keyway load {}</p>\n",
        escaped(&urls.join(", ")),
        number(&result["recorded_s"]),
        result["seed"],
        escaped(result["version"].as_str().unwrap_or_default()),
    );
    notes(result, &mut page);
    jobs(result, &mut page);
    failed(result, &mut page);
    pictures(result, &mut page);
    connections(&result["connections"], &mut page);
    client(&result["client"], &mut page);
    // Into memory it cannot fail.
    let scenario = escaped(result["scenario"].as_str().unwrap_or_default());
    let _ = writeln!(page, "<h2>Scenario</h2>\n<pre>{scenario}</pre>\n</html>");
    page
}

fn notes(result: &Value, page: &mut String) {
    let mut note = |text: String| {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escaped(&text));
    };
    if let Some(limit) = result["client"]["limit"].as_str() {
        note(limit.to_owned());
    }
    if result["interrupted"] == true {
        note("Somebody ended the run early.".into());
    }
    if let Some(rule) = result["aborted_by"].as_str() {
        note(format!("The run ended early: the threshold '{rule}' was broken."));
    }
    for agent in result["agents"].as_array().into_iter().flatten() {
        if let Some(lost) = agent["lost"].as_str() {
            note(format!("{lost}; what it did not report is in no sum."));
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
         below.</p>\n<table><tr><th>Job<th>Rate/s<th>Done<th>Errors<th>p50<th>p90<th>p99<th>p99.9\
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
    for key in ["p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"] {
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

/// Lines on paper, both axes from 0.
fn picture(y: &str, x: &str, lines: &[(&str, Vec<(f64, f64)>)], page: &mut String) {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 220.0;
    const LEFT: f64 = 70.0;
    const TOP: f64 = 24.0;
    let points = || lines.iter().flat_map(|(_, points)| points);
    let most = |values: &dyn Fn(&(f64, f64)) -> f64| points().map(values).fold(0.0, f64::max);
    let (x_max, y_max) = (round_up(most(&|point| point.0)), round_up(most(&|point| point.1)));
    let at =
        |(x, y): &(f64, f64)| (LEFT + (WIDTH - LEFT) * x / x_max, TOP + HEIGHT * (1.0 - y / y_max));
    let _ = write!(
        page,
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{y}\"><text x=\"0\" y=\"14\">{y}</text>",
        WIDTH + 20.0,
        TOP + HEIGHT + 40.0
    );
    for step in 0..=4 {
        let part = f64::from(step) / 4.0;
        let (right, level) = at(&(x_max, y_max * part));
        let (along, bottom) = at(&(x_max * part, 0.0));
        let _ = write!(
            page,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{level:.1}\" x2=\"{right}\" y2=\"{level:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{along:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT - 6.0,
            level + 4.0,
            short(y_max * part),
            bottom + 16.0,
            short(x_max * part),
        );
    }
    let _ = write!(page, "<text x=\"{LEFT}\" y=\"{}\">{x}</text>", TOP + HEIGHT + 34.0);
    for (index, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let path: Vec<String> =
            points.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let label = LEFT + 200.0 + 160.0 * index as f64;
        let _ = write!(
            page,
            "<polyline class=\"line\" stroke=\"{colour}\" points=\"{}\"/>\
             <text x=\"{label}\" y=\"14\" style=\"fill:{colour}\">{name}</text>",
            path.join(" ")
        );
    }
    page.push_str("</svg>\n");
}

/// The next number that is 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-6).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

fn short(value: f64) -> String {
    match value {
        _ if value >= 10.0 => grouped(value),
        _ => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// What HTML would read as its own.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
