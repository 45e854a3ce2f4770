//! Filters that match a wanted number of the entries, into a file.

use keyway_host::atomic_file::Target;
use keyway_host::failure::Failure;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes filters, a line each; `-` is standard output.
///
/// # Errors
/// If the file cannot be written, or is one of those that are read.
pub fn write_filters(
    path: &Path,
    filters: &[(String, u64)],
    inputs: &[PathBuf],
) -> Result<(), Failure> {
    let target = Target::open(path, inputs)?;
    let mut out = BufWriter::new(target.writer()?);
    let written = filters
        .iter()
        .try_for_each(|(filter, _)| writeln!(out, "{filter}"))
        .and_then(|()| out.flush());
    written.map_err(|why| target.cannot_write(&why))?;
    target.finish().map(drop)
}
