//! Where LDIF comes from.

use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, absolute};
use std::rc::Rc;
use std::sync::Arc;

/// A file or standard input, open.
pub struct Source {
    reader: Box<dyn Read>,
    /// The file again, if it can be read twice.
    file: Option<Arc<File>>,
    /// Its name in messages.
    pub shown: String,
    /// Its absolute name; an import that is not finished is known by it.
    pub path: String,
    is_foreign: bool,
    /// How many entries are in it, if that is known beforehand.
    pub entries: Option<u64>,
    /// Its length, if known.
    pub bytes: Option<u64>,
    /// How much of it has been read.
    read_bytes: Rc<Cell<u64>>,
}

impl Source {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be opened, or is a folder.
    pub fn open(path: &Path) -> Result<Source, Failure> {
        Source::new(path, open(path)?)
    }

    /// One of so many entries that is made while it is read: `shown` in messages, and `path` once it is not
    /// finished.
    pub fn made(reader: impl Read + 'static, shown: String, path: String, entries: u64) -> Source {
        Source {
            reader: Box::new(reader),
            file: None,
            shown,
            path,
            is_foreign: false,
            entries: Some(entries),
            bytes: None,
            read_bytes: Rc::default(),
        }
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
                file: None,
                shown: name,
                path: "-".to_owned(),
                is_foreign: true,
                entries: None,
                bytes: None,
                read_bytes: Rc::default(),
            });
        };
        let bad = |why: io::Error| bad(path, &why);
        let metadata = file.metadata().map_err(bad)?;
        let full = absolute(path).map_err(bad)?;
        let file = Arc::new(file);
        Ok(Source {
            reader: Box::new(file.clone()),
            file: metadata.is_file().then_some(file),
            shown: path.display().to_string(),
            path: full.display().to_string(),
            is_foreign: true,
            entries: None,
            bytes: metadata.is_file().then_some(metadata.len()),
            read_bytes: Rc::default(),
        })
    }
}

impl Source {
    /// All of it from its beginning, whatever has been read; `None` if it can be read only once. It is not
    /// opened again: this process may have lost the right to that.
    pub fn again(&self) -> Option<impl Read + use<>> {
        Some(Again { file: self.file.clone()?, at: 0 })
    }

    /// Whether it comes from outside, so that it may have been cut off or changed on the way.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// How much of it has been read, in bytes: what is counted while it is.
    pub fn read_bytes(&self) -> Rc<Cell<u64>> {
        self.read_bytes.clone()
    }
}

/// A file that is read without moving where others read it.
struct Again {
    file: Arc<File>,
    at: u64,
}

impl Read for Again {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at += read as u64;
        Ok(read)
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
    say_waiting(path);
    let file = File::open(path).map_err(|why| bad(path, &why))?;
    match file.metadata().map_err(|why| bad(path, &why))?.is_dir() {
        true => Err(bad(path, &ErrorKind::IsADirectory.into())),
        false => Ok(Some(file)),
    }
}

/// Says so, if to open a file waits for a process at its other end.
pub fn say_waiting(path: &Path) {
    if path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        output::note(format_args!("waiting until a process writes to {}", path.display()));
    }
}

fn bad(path: &Path, why: &io::Error) -> Failure {
    Failure::new(format!("{}: {}", path.display(), plain(why)))
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(out)?;
        self.read_bytes.set(self.read_bytes.get() + read as u64);
        Ok(read)
    }
}
