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
        Source::new(path, open(path)?)
    }

    /// One that is made while it is read: `shown` in messages, and `path` once it is not finished.
    pub fn made(reader: impl Read + 'static, shown: String, path: String) -> Source {
        Source { reader: Box::new(reader), shown, path, bytes: None, read_bytes: 0 }
    }

    /// One that was [opened](open()).
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn new(path: &Path, file: Option<File>) -> Result<Source, Failure> {
        let Some(file) = file else {
            let name = "standard input".to_owned();
            let reader = Box::new(io::stdin());
            return Ok(Source {
                reader,
                shown: name,
                path: "-".to_owned(),
                bytes: None,
                read_bytes: 0,
            });
        };
        let bad = |why: io::Error| bad(path, &why);
        let metadata = file.metadata().map_err(bad)?;
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

/// Opens a file; `None` for `-`, which is standard input.
///
/// # Errors
/// If it cannot be opened, or is a folder.
pub fn open(path: &Path) -> Result<Option<File>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let file = File::open(path).map_err(|why| bad(path, &why))?;
    match file.metadata().map_err(|why| bad(path, &why))?.is_dir() {
        true => Err(bad(path, &ErrorKind::IsADirectory.into())),
        false => Ok(Some(file)),
    }
}

fn bad(path: &Path, why: &io::Error) -> Failure {
    Failure::new(format!("{}: {}", path.display(), plain(why)))
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(out)?;
        self.read_bytes += read as u64;
        Ok(read)
    }
}
