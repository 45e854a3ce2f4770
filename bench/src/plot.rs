//! Pictures of what was measured.

use keyway_cryptotest::{Line, Plot};
use std::fs;
use std::path::Path;

/// A line. Those that belong together share a colour, and are told apart by dashes.
pub fn line(name: String, points: Vec<(f64, f64)>, colour: usize, dashed: bool) -> Line {
    let dashes = usize::from(dashed) + 2 * (colour / Line::COLOURS);
    Line { name, points, colour, dashes }
}

/// Draws lines into a file of the folder, which is made if it is not there.
///
/// # Errors
/// The system's answer.
pub fn draw(
    folder: &Path,
    file: &str,
    title: &str,
    (x, y): (&'static str, &'static str),
    lines: Vec<Line>,
) -> Result<(), String> {
    let plot = Plot { title: title.to_owned(), x, y, lines };
    let path = folder.join(file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, plot.to_string()))
        .map_err(|why| format!("{}: {why}", path.display()))
}
