//! Drivers beside one another, over sizes.

use crate::bench::{Cell, Table};
use crate::load::Entry;
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::fmt::Write;

/// A table for people.
#[must_use]
pub fn table_text(table: &Table) -> String {
    let mut text = format!("{}\n{:>9}", table.title(), "");
    for driver in &table.drivers {
        let _ = write!(text, "  {driver:>29}");
    }
    let _ = write!(text, "\n{:>9}", "BYTES");
    for _ in &table.drivers {
        let _ = write!(text, "  {:>11} {:>9} {:>7}", "NS/OP", "MB/S", "SPREAD");
    }
    for (size, row) in table.sizes.iter().zip(&table.cells) {
        let _ = write!(text, "\n{:>9}", grouped(*size as u64));
        for cell in row {
            let _ = match cell {
                Some(cell) => write!(
                    text,
                    "  {:>11.1} {:>9.1} {:>6.1}%",
                    cell.nanoseconds,
                    cell.mb_per_second(*size),
                    100.0 * cell.spread
                ),
                None => write!(text, "  {:>11} {:>9} {:>7}", "-", "-", "-"),
            };
        }
    }
    text
}

/// The cells of a table for programs.
#[must_use]
pub fn cells_value(table: &Table) -> Vec<Value> {
    let rows = table.sizes.iter().zip(&table.cells);
    let cells =
        rows.flat_map(|(size, row)| row.iter().zip(&table.drivers).map(move |cell| (size, cell)));
    let value = |(size, (cell, driver)): (&usize, (&Option<Cell>, &String))| {
        let cell = (*cell)?;
        Some(json!({
            "work": table.work.to_string(),
            "operation": table.work.verb(),
            "in_flight": match table.entry {
                Entry::Direct => None,
                Entry::Queue(number) => Some(number),
            },
            "driver": driver,
            "bytes": size,
            "ns_per_operation": cell.nanoseconds,
            "mb_per_second": cell.mb_per_second(*size),
            "spread": cell.spread,
            "runs": cell.runs,
        }))
    };
    cells.filter_map(value).collect()
}
