//! Where LDIF comes from.

use crate::failure::{Failure, plain};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, absolute};

/// A file or standard input, open.
pub struct Source {
    reader: Box<dyn Read>,
    /// What it is called in messages.
    pub shown: String,
    /// What it is called from anywhere; an import that is not finished is known by it.
    pub path: String,
    /// Its length, if anybody knows.
    pub bytes: Option<u64>,
    /// How much of it has been read.
    pub read_bytes: u64,
}

impl Source {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be opened, or is a folder.
    pub fn open(path: &Path) -> Result<Source, Failure> {
        if path.as_os_str() == "-" {
            let name = "standard input".to_owned();
            let reader = Box::new(io::stdin());
            return Ok(Source {
                reader,
                shown: name,
                path: "-".to_owned(),
                bytes: None,
                read_bytes: 0,
            });
        }
        let bad = |why: io::Error| Failure::new(format!("{}: {}", path.display(), plain(&why)));
        let file = File::open(path).map_err(bad)?;
        let metadata = file.metadata().map_err(bad)?;
        if metadata.is_dir() {
            return Err(bad(ErrorKind::IsADirectory.into()));
        }
        let full = absolute(path).map_err(bad)?;
        Ok(Source {
            reader: Box::new(file),
            shown: path.display().to_string(),
            path: full.display().to_string(),
            bytes: metadata.is_file().then_some(metadata.len()),
            read_bytes: 0,
        })
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(out)?;
        self.read_bytes += read as u64;
        Ok(read)
    }
}
