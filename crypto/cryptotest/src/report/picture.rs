//! The picture of tables.

use crate::bench::Table;
use crate::plot::{Line, Plot};

/// A picture of tables, a line for each driver of each.
#[must_use]
pub fn plot(tables: &[Table]) -> Plot {
    let lines = tables.iter().flat_map(|table| table.lines(tables.len() > 1)).enumerate();
    let lines =
        lines.map(|(index, line)| Line { colour: index, dashes: index / Line::COLOURS, ..line });
    Plot {
        title: match tables {
            [only] => only.title(),
            _ => "Time for one operation".to_owned(),
        },
        x: "bytes an operation works on",
        y: "nanoseconds an operation",
        lines: lines.collect(),
    }
}
