//! Files that are read.

use crate::limits::LIST_BYTES_MAX;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file's bytes, if they are not more than a template may name.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LIST_BYTES_MAX {
        true => Err(io::Error::other(format!("it has more than {LIST_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}
