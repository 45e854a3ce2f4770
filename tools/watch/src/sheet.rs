//! A table that is sorted, scrolled and cut to a window.

use crate::text::cut;
use std::cmp::Ordering;

/// A table.
pub struct Sheet {
    /// Said above it.
    pub title: String,
    /// Its columns, from the left.
    pub columns: Vec<Heading>,
    /// A cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Said below the title.
    pub notes: Vec<String>,
    /// Which column it is sorted by, unless the user chooses another, the greatest first; `None` for as it is.
    pub sort: Option<usize>,
}

/// A column's title.
pub struct Heading {
    /// Said above the column.
    pub title: &'static str,
    /// Characters.
    pub width: usize,
    /// Whether it is set flush right.
    pub is_number: bool,
}

/// The text in a column of a row, and the number that it is sorted by.
#[derive(Clone)]
pub struct Cell {
    /// Shown.
    pub text: String,
    /// Sorted by, if it is a number.
    pub key: Option<f64>,
}

/// A column of words, as wide as this; the last one is as wide as there is room.
pub const fn words(title: &'static str, width: usize) -> Heading {
    Heading { title, width, is_number: false }
}

/// A column of numbers.
pub const fn numbers(title: &'static str, width: usize) -> Heading {
    Heading { title, width, is_number: true }
}

impl Cell {
    /// Words.
    pub fn words(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), key: None }
    }

    /// A number, and how it is shown.
    pub fn number(text: impl Into<String>, key: f64) -> Cell {
        Cell { text: text.into(), key: Some(key) }
    }
}

/// The order that the user chose.
#[derive(Clone, Copy, Default)]
pub struct Order {
    /// The column; `None` for the sheet's own.
    pub column: Option<usize>,
    /// Whether the least number or the last word comes first.
    pub is_reversed: bool,
}

impl Sheet {
    /// The column that it is sorted by.
    pub fn sorted_by(&self, order: Order) -> Option<usize> {
        order.column.filter(|column| *column < self.columns.len()).or(self.sort)
    }

    /// Sorts its rows: numbers from the greatest on, words from A on.
    pub fn sort(&mut self, order: Order) {
        let Some(column) = self.sorted_by(order) else { return };
        self.rows.sort_by(|one, other| {
            let ordering = match (one.get(column), other.get(column)) {
                (Some(one), Some(other)) => compare(one, other),
                _ => Ordering::Equal,
            };
            if order.is_reversed { ordering.reverse() } else { ordering }
        });
    }

    /// Its title, and how it is sorted.
    pub fn headline(&self, order: Order) -> String {
        let Some(by) = self.sorted_by(order).and_then(|at| self.columns.get(at)) else {
            return self.title.clone();
        };
        let reversed = if order.is_reversed { ", reversed" } else { "" };
        format!("{} (by {}{reversed})", self.title, by.title)
    }

    /// The line of titles.
    pub fn header(&self, room: usize) -> String {
        let titles: Vec<_> = self.columns.iter().map(|heading| heading.title.to_owned()).collect();
        self.line(&titles, room)
    }

    /// A row as a line.
    pub fn row(&self, row: &[Cell], room: usize) -> String {
        self.line(&row.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>(), room)
    }

    fn line(&self, texts: &[String], room: usize) -> String {
        let mut line = String::new();
        let last = self.columns.len().saturating_sub(1);
        for (at, (heading, text)) in self.columns.iter().zip(texts).enumerate() {
            if at > 0 {
                line.push(' ');
            }
            let text = printable(text);
            let width = heading.width;
            match heading.is_number {
                _ if at == last && !heading.is_number => line += &text,
                true => line += &format!("{:>width$}", cut(&text, width)),
                false => line += &format!("{:<width$}", cut(&text, width)),
            }
        }
        cut(&line, room)
    }
}

fn compare(one: &Cell, other: &Cell) -> Ordering {
    match (one.key, other.key) {
        (Some(one), Some(other)) => other.total_cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.text.cmp(&other.text),
    }
}

/// Nothing that moves the cursor: a name may have any character in it.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let row = |name: &str, number: f64| {
            vec![Cell::number(number.to_string(), number), Cell::words(name)]
        };
        Sheet {
            title: "test".into(),
            columns: vec![numbers("number", 6), words("name", 4)],
            rows: vec![row("b", 1.0), row("long\x1b[2J", 30.0), row("a", 2.0)],
            notes: Vec::new(),
            sort: Some(0),
        }
    }

    #[test]
    fn it_is_sorted_by_any_column_either_way() {
        let names = |order| {
            let mut sheet = sheet();
            sheet.sort(order);
            sheet.rows.iter().map(|row| row[1].text.chars().next().unwrap()).collect::<String>()
        };
        assert_eq!(names(Order::default()), "lab");
        assert_eq!(names(Order { column: None, is_reversed: true }), "bal");
        assert_eq!(names(Order { column: Some(1), is_reversed: false }), "abl");
        assert_eq!(names(Order { column: Some(9), is_reversed: false }), "lab");
    }

    #[test]
    fn lines_are_as_wide_as_the_window_and_move_no_cursor() {
        let sheet = sheet();
        assert_eq!(sheet.header(80), "number name");
        assert_eq!(sheet.row(&sheet.rows[1], 80), "    30 long?[2J");
        assert_eq!(sheet.row(&sheet.rows[1], 9), "    30 lo");
        assert_eq!(sheet.headline(Order::default()), "test (by number)");
    }
}
