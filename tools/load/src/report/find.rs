//! A search for the knee: the rates that were tried, and what came of them.

use super::picture::COLOURS;
use super::{escaped, number, texts};
use crate::format::{grouped, time};
use serde_json::Value;
use std::fmt::Write as _;

/// The part of the page that is about it.
pub(super) fn found(result: &Value, page: &mut String) {
    let text = |key: &str| escaped(result[key].as_str().unwrap_or_default());
    // Into memory it cannot fail.
    let _ = writeln!(page, "<p class=\"note\">{}</p>", text("verdict"));
    for agent in result["agents"].as_array().into_iter().flatten() {
        let name = escaped(agent["name"].as_str().unwrap_or_default());
        let _ = writeln!(page, "<p class=\"soft\">Agent {name}</p>");
    }
    let _ = writeln!(
        page,
        "<p>Rates from {} to {} a second, until {}.</p>",
        grouped(number(&result["from"])),
        grouped(number(&result["to"])),
        text("until")
    );
    page.push_str("<h2>Latency at each rate</h2>\n");
    picture(result, page);
    tried(result, page);
    failed(result, page);
    for why in probes(result).flat_map(|probe| texts(&probe["unseen"])) {
        let _ =
            writeln!(page, "<p class=\"soft\">A monitor did not see all: {}</p>", escaped(&why));
    }
}

fn probes(result: &Value) -> impl Iterator<Item = &Value> {
    result["probes"].as_array().into_iter().flatten()
}

/// The rates, in the order in which they were tried.
fn tried(result: &Value, page: &mut String) {
    page.push_str(
        "<h2>Rates tried</h2>\n<table><tr><th>Rate/s<th>Reached/s<th>Errors<th>p50<th>p99<th>Max\
         <th>Verdict</tr>\n",
    );
    for probe in probes(result) {
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}",
            grouped(number(&probe["rate"])),
            grouped(number(&probe["reached"])),
            grouped(number(&probe["errors"]))
        );
        for key in ["p50_ms", "p99_ms", "max_ms"] {
            let shown = probe[key].as_f64().map_or("–".to_owned(), |ms| time(1e6 * ms));
            let _ = write!(page, "<td>{shown}");
        }
        let limit = if probe["client_limit"].is_string() {
            " (the client may have been the limit)"
        } else {
            ""
        };
        let verdict = escaped(probe["verdict"].as_str().unwrap_or_default());
        let _ = writeln!(page, "<td>{verdict}{limit}</tr>");
    }
    page.push_str("</table>\n");
}

fn failed(result: &Value, page: &mut String) {
    if probes(result).all(|probe| probe["failed"].as_array().is_none_or(Vec::is_empty)) {
        return;
    }
    page.push_str("<h2>Errors</h2>\n<table><tr><th>What<th>Job<th>At rate/s<th>Count</tr>\n");
    for probe in probes(result) {
        for failed in probe["failed"].as_array().into_iter().flatten() {
            let _ = writeln!(
                page,
                "<tr><td>{}<td>{}<td>{}<td>{}</tr>",
                escaped(failed["what"].as_str().unwrap_or_default()),
                escaped(failed["job"].as_str().unwrap_or_default()),
                grouped(number(&probe["rate"])),
                grouped(number(&failed["count"])),
            );
        }
    }
    page.push_str("</table>\n");
}

/// Where rates and times, which both go over decades, are on paper.
struct Paper {
    x: (f64, f64),
    y: (f64, f64),
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 24.0;

impl Paper {
    fn x(&self, rate: f64) -> f64 {
        LEFT + (WIDTH - LEFT) * part(rate, self.x)
    }

    fn y(&self, ms: f64) -> f64 {
        TOP + HEIGHT * (1.0 - part(ms, self.y))
    }
}

/// How far between two ends, by logarithms.
fn part(value: f64, (low, high): (f64, f64)) -> f64 {
    ((value / low).ln() / (high / low).ln()).clamp(0.0, 1.0)
}

/// Ends of an axis that all values lie between, 1, 2 or 5 times a power of ten.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    (high > 0.0).then(|| {
        let marks = marks((low / 10.0, high * 10.0));
        let below = marks.iter().rev().find(|mark| **mark <= low).copied().unwrap_or(low);
        let above = marks.iter().find(|mark| **mark >= high).copied().unwrap_or(high);
        if above > below { (below, above) } else { (below, 2.0 * below) }
    })
}

/// 1, 2 and 5 times powers of ten.
fn marks((low, high): (f64, f64)) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let marks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)));
    marks.filter(|mark| (low * 0.999..=high * 1.001).contains(mark)).collect()
}

/// Latencies over rates, with the knee between the highest rate that was good and the lowest that was not.
fn picture(result: &Value, page: &mut String) {
    let held = || probes(result).filter(|probe| number(&probe["rate"]) > 0.0);
    let series = [("p50", "p50_ms"), ("p99", "p99_ms"), ("max", "max_ms")];
    let times = held().flat_map(|probe| series.map(|(_, key)| number(&probe[key])));
    let (Some(x), Some(y)) = (ends(held().map(|probe| number(&probe["rate"]))), ends(times)) else {
        return;
    };
    let paper = Paper { x, y };
    let bottom = TOP + HEIGHT;
    let _ = write!(
        page,
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"response time over rate\">\
         <text x=\"0\" y=\"14\">response time</text>\
         <text x=\"{LEFT}\" y=\"{}\">sequences a second</text>",
        WIDTH + 20.0,
        bottom + 40.0,
        bottom + 34.0
    );
    for mark in marks(y) {
        let level = paper.y(mark);
        let _ = write!(
            page,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{level:.1}\" x2=\"{WIDTH}\" y2=\"{level:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            level + 4.0,
            time(1e6 * mark)
        );
    }
    for mark in marks(x) {
        let _ = write!(
            page,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            paper.x(mark),
            bottom + 16.0,
            grouped(mark)
        );
    }
    knee(result, &paper, page);
    let mut sorted: Vec<&Value> = held().collect();
    sorted.sort_by(|one, other| number(&one["rate"]).total_cmp(&number(&other["rate"])));
    for ((name, key), (place, colour)) in series.iter().zip(COLOURS.iter().enumerate()) {
        let points: Vec<(f64, f64)> = sorted
            .iter()
            .filter(|probe| number(&probe[*key]) > 0.0)
            .map(|probe| (paper.x(number(&probe["rate"])), paper.y(number(&probe[*key]))))
            .collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let label = LEFT + 200.0 + 160.0 * place as f64;
        let _ = write!(
            page,
            "<polyline class=\"line\" stroke=\"{colour}\" points=\"{}\"/>\
             <text x=\"{label}\" y=\"14\" style=\"fill:{colour}\">{name}</text>",
            path.join(" ")
        );
        for (x, y) in points {
            let _ = write!(page, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
    }
    page.push_str("</svg>\n");
}

/// A line at the knee.
fn knee(result: &Value, paper: &Paper, page: &mut String) {
    let Some(good) = result["good"].as_f64() else { return };
    let x = paper.x(good);
    let what = match (result["confirmed"] == true, result["bad"].is_number()) {
        (true, true) => "the knee",
        (_, true) => "near the knee",
        (_, false) => "the highest that was good",
    };
    let (anchor, beside) = if x > WIDTH / 2.0 { ("end", -6.0) } else { ("start", 6.0) };
    let _ = write!(
        page,
        "<line class=\"knee\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\"/>\
         <text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{what}: {}/s</text>",
        TOP + HEIGHT,
        x + beside,
        TOP + 14.0,
        grouped(good)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(ends([130.0, 7_800.0].into_iter()), Some((100.0, 10_000.0)));
        assert_eq!(ends([100.0].into_iter()), Some((100.0, 200.0)));
        assert_eq!(ends([0.0].into_iter()), None);
        assert_eq!(marks((0.5, 5.0)), [0.5, 1.0, 2.0, 5.0]);
        assert_eq!(part(10.0, (1.0, 100.0)), 0.5);
    }
}
