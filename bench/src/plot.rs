//! Lines on paper with both axes logarithmic, as SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One line.
pub struct Series {
    pub name: String,
    /// x and y, both above 0.
    pub points: Vec<(f64, f64)>,
    pub dashed: bool,
    /// Index of its colour: lines that belong together share one.
    pub colour: usize,
}

const COLOURS: [&str; 8] =
    ["#0b6fb8", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#be185d", "#0f766e", "#525252"];
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
/// Left, right, top, bottom.
const MARGIN: (f64, f64, f64, f64) = (70.0, 210.0, 40.0, 50.0);

/// Draws them, into the folder, which is made if it is not there.
///
/// # Errors
/// What the system says.
pub fn lines(
    folder: &Path,
    file: &str,
    title: &str,
    (x_label, y_label): (&str, &str),
    all: &[Series],
) -> Result<(), String> {
    let points = || all.iter().flat_map(|series| &series.points);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (x_low, x_high) =
        range(&mut points().flat_map(|(x, _)| [x.log2().floor(), x.log2().ceil()]));
    let (y_low, y_high) =
        range(&mut points().flat_map(|(_, y)| [y.log10().floor(), y.log10().ceil()]));
    let (left, right, top, bottom) = MARGIN;
    let share = |value: f64, low: f64, high: f64| (value - low) / (high - low).max(1.0);
    let at_x = |x: f64| left + share(x, x_low, x_high) * (WIDTH - left - right);
    let at_y = |y: f64| HEIGHT - bottom - share(y, y_low, y_high) * (HEIGHT - top - bottom);

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"22\" font-size=\"14\">{title}</text>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{x_label}</text>\n\
         <text x=\"16\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {2})\">{y_label}</text>\n",
        (left + WIDTH - right) / 2.0,
        HEIGHT - 12.0,
        (top + HEIGHT - bottom) / 2.0,
    );
    let grid = |svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)| {
        let _ = writeln!(
            svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>"
        );
    };
    for power in (x_low as i32)..=(x_high as i32) {
        let x = at_x(f64::from(power));
        grid(&mut svg, (x, top), (x, HEIGHT - bottom));
        let (y, value) = (HEIGHT - bottom + 16.0, 2f64.powi(power));
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{value}</text>");
    }
    for power in (y_low as i32)..=(y_high as i32) {
        let y = at_y(f64::from(power));
        grid(&mut svg, (left, y), (WIDTH - right, y));
        let (x, y, value) = (left - 6.0, y + 4.0, 10f64.powi(power));
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{value}</text>");
    }
    for (index, series) in all.iter().enumerate() {
        let colour = COLOURS[series.colour % COLOURS.len()];
        let dash = if series.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}");
        let place = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", at_x(x.log2()), at_y(y.log10()));
        let path: Vec<_> = series.points.iter().map(place).collect();
        let _ = writeln!(svg, "<polyline points=\"{}\" {style}/>", path.join(" "));
        let (x, y) = (WIDTH - right + 14.0, top + 14.0 + 20.0 * index as f64);
        let _ = writeln!(svg, "<path d=\"M{x} {}h26\" {style}/>", y - 4.0);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{y}\">{}</text>", x + 32.0, series.name);
    }
    svg.push_str("</svg>\n");
    let path = folder.join(file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, svg))
        .map_err(|why| format!("{}: {why}", path.display()))
}
