//! Lines on paper, both axes logarithmic, as an SVG that is readable on light and on dark.

use std::fmt::{self, Formatter};

/// A picture; [`fmt::Display`] writes it as SVG 1.1.
pub struct Plot {
    /// The plot's subject.
    pub title: String,
    /// The quantity of the axis to the right, with its unit.
    pub x: &'static str,
    /// The quantity of the axis upwards, with its unit.
    pub y: &'static str,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// One line.
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// From left to right; what is not above 0 is left out.
    pub points: Vec<(f64, f64)>,
    /// Index of its colour, of which there are [`Line::COLOURS`]: lines that belong together share
    /// one.
    pub colour: usize,
    /// Index of its dashes; 0 is a line that is drawn through.
    pub dashes: usize,
}

const WIDTH: f64 = 860.0;
const PLOT_WIDTH: f64 = 740.0;
const PLOT_HEIGHT: f64 = 400.0;
/// Where the plot begins, and what is below it before the legend.
const LEFT: f64 = 90.0;
const TOP: f64 = 50.0;
const BELOW: f64 = 70.0;
const LEGEND_LINE: f64 = 20.0;

/// Colours that stand out from white and from black (after Okabe and Ito, who chose them for those
/// who see colours otherwise).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES: [&str; 4] = ["none", "8 4", "2 3", "8 4 2 4"];

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#222}
.paper{fill:#fff}.grid{stroke:#ddd}.axis{stroke:#222;fill:none}.title{font-size:16px}
.line{fill:none;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#16181c}.grid{stroke:#3a3d44}.axis{stroke:#ddd}}";

/// A logarithmic axis from one power of its base to another.
struct Axis {
    base: f64,
    low: i32,
    high: i32,
    /// Powers from one labelled line to the next.
    step: usize,
}

impl Axis {
    fn new(base: f64, values: impl Iterator<Item = f64>) -> Axis {
        let powers: Vec<f64> = values.map(|value| value.log(base)).collect();
        let low = powers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = powers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Axis { base, low: 0, high: 1, step: 1 };
        }
        // A power that is met but for rounding is met.
        let (low, high) = ((low + 1e-9).floor() as i32, (high - 1e-9).ceil() as i32);
        let high = high.max(low + 1);
        Axis { base, low, high, step: 1 + (high - low) as usize / 10 }
    }

    /// How far along a value lies, 0 to 1.
    fn along(&self, value: f64) -> f64 {
        (value.log(self.base) - f64::from(self.low)) / f64::from(self.high - self.low)
    }

    /// The values with a line and a label.
    fn marks(&self) -> impl Iterator<Item = f64> {
        (self.low..=self.high).step_by(self.step).map(|power| self.base.powi(power))
    }
}

/// A value of an axis in few characters: 1,024 or 0.01.
fn label(value: f64) -> String {
    if value < 1.0 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}").into_bytes();
    let groups = digits.rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// The text, with the characters escaped that XML would read as its own.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Plot {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines.iter().flat_map(Line::drawable)
    }
}

impl Line {
    /// How many colours there are; further indices begin again.
    pub const COLOURS: usize = COLOURS.len();

    fn drawable(&self) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0 && (x * y).is_finite())
    }
}

impl fmt::Display for Plot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let x = Axis::new(2.0, self.points().map(|(x, _)| x));
        let y = Axis::new(10.0, self.points().map(|(_, y)| y));
        let at_x = |value| LEFT + PLOT_WIDTH * x.along(value);
        let at_y = |value| TOP + PLOT_HEIGHT * (1.0 - y.along(value));
        let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
        let height = bottom + BELOW + LEGEND_LINE * self.lines.len() as f64;
        let (middle, half) = (LEFT + PLOT_WIDTH / 2.0, TOP + PLOT_HEIGHT / 2.0);
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"28\">{title}</text>",
            title = escaped(&self.title)
        )?;
        for value in x.marks() {
            let (x, below) = (at_x(value), bottom + 18.0);
            writeln!(
                f,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{}</text>",
                label(value)
            )?;
        }
        for value in y.marks() {
            let (y, before) = (at_y(value), LEFT - 8.0);
            writeln!(
                f,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text x=\"{before}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                y + 4.0,
                label(value)
            )?;
        }
        writeln!(
            f,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\n\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(18 {half}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            bottom + 40.0,
            escaped(self.x),
            escaped(self.y)
        )?;
        for (index, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[line.colour % COLOURS.len()];
            let dash = DASHES[line.dashes % DASHES.len()];
            let style = format!("class=\"line\" stroke=\"{colour}\" stroke-dasharray=\"{dash}\"");
            let points: Vec<_> =
                line.drawable().map(|(x, y)| format!("{:.1},{:.1}", at_x(x), at_y(y))).collect();
            writeln!(f, "<polyline {style} points=\"{}\"/>", points.join(" "))?;
            for (x, y) in line.drawable() {
                let (x, y) = (at_x(x), at_y(y));
                writeln!(f, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")?;
            }
            let (y, end) = (bottom + BELOW + LEGEND_LINE * index as f64, LEFT + 36.0);
            let (level, name) = (y - 4.0, escaped(&line.name));
            writeln!(
                f,
                "<line {style} x1=\"{LEFT}\" y1=\"{level}\" x2=\"{end}\" y2=\"{level}\"/>\
                 <text x=\"{}\" y=\"{y}\">{name}</text>",
                end + 8.0
            )?;
        }
        writeln!(f, "</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> String {
        let lines = vec![Line { name: "a<b".to_owned(), points, colour: 0, dashes: 0 }];
        Plot { title: "t".to_owned(), x: "bytes", y: "ns", lines }.to_string()
    }

    #[test]
    fn points_lie_between_the_powers_around_them() {
        let svg = plot(vec![(16.0, 10.0), (64.0, 1_000.0)]);
        // The corners of the plot.
        assert!(svg.contains("points=\"90.0,450.0 830.0,50.0\""), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains(">1,000<") && svg.contains(">32<"));
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        for points in [vec![], vec![(0.0, 1.0)], vec![(1.0, f64::NAN)], vec![(5.0, 5.0)]] {
            let svg = plot(points);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.ends_with("</svg>\n"));
        }
    }
}
