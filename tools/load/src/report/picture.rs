//! A picture: lines between two axes.

use crate::format::grouped;
use std::fmt::Write as _;

/// Colours that stand out from white and from black, for those who see colours otherwise, too (after
/// Okabe and Ito).
pub(super) const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// Lines on paper, both axes from 0.
pub(super) fn picture(y: &str, x: &str, lines: &[(&str, Vec<(f64, f64)>)], page: &mut String) {
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
