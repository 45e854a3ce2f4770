//! A log's file: put aside when it is full, and the oldest dropped.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// How large a log may get.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Size of a file at which it is put aside, in bytes.
    pub bytes_max: u64,
    /// How many that were put aside are kept.
    pub kept: u32,
}

/// `NAME.log`; `NAME.log.1` is the last that was put aside.
pub struct Rotating {
    path: PathBuf,
    sizes: Sizes,
    /// Room for so many bytes that is kept behind what is written, for when the disk is full.
    reserve: u64,
    open: Option<Open>,
}

struct Open {
    file: File,
    bytes: u64,
    /// Others (a terminal, a pipe, a device) are never put aside.
    is_regular: bool,
}

impl Rotating {
    /// One that is opened when it is needed.
    pub fn new(folder: &Path, name: &str, sizes: Sizes) -> Rotating {
        Rotating { path: folder.join(format!("{name}.log")), sizes, reserve: 0, open: None }
    }

    /// The same with room that is kept for when the disk is full, in bytes.
    pub fn with_reserve(self, reserve: u64) -> Rotating {
        Rotating { reserve, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it, made with its folder if there is none.
    ///
    /// # Errors
    /// The system's.
    pub fn open(&mut self) -> io::Result<()> {
        if self.open.is_some() {
            return Ok(());
        }
        let append =
            || OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(&self.path);
        let file = match append() {
            Err(why) if why.kind() == ErrorKind::NotFound => {
                let folder = self.path.parent().unwrap_or(&self.path);
                DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
                append()?
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        if self.reserve > 0 {
            // Behind its end. Where that cannot be had, the disk is as full as it is.
            let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, metadata.len(), self.reserve);
        }
        self.open = Some(Open { file, bytes: metadata.len(), is_regular: metadata.is_file() });
        Ok(())
    }

    /// Appends whole lines. Those that could not be are given back with the reason; a line is there
    /// whole or not at all.
    pub fn put<'a>(&mut self, mut lines: &'a [u8]) -> Result<(), (&'a [u8], io::Error)> {
        while !lines.is_empty() {
            match self.put_some(lines) {
                Ok(bytes) => lines = &lines[bytes..],
                Err((bytes, why)) => {
                    // Opened anew the next time: it may be gone, or another's by then.
                    self.open = None;
                    return Err((&lines[bytes..], why));
                }
            }
        }
        Ok(())
    }

    /// Appends what fits into this file, at least a line. Says how much, also with an error.
    fn put_some(&mut self, lines: &[u8]) -> Result<usize, (usize, io::Error)> {
        self.open().map_err(|why| (0, why))?;
        let Some(open) = &mut self.open else { return Ok(0) };
        let capacity = self.sizes.bytes_max.saturating_sub(open.bytes);
        let fits = match usize::try_from(capacity) {
            Ok(capacity) if capacity < lines.len() && open.is_regular => {
                end_of_line(&lines[..capacity])
            }
            _ => lines.len(),
        };
        let fits = match fits {
            0 if open.bytes > 0 => {
                self.put_aside().map_err(|why| (0, why))?;
                return Ok(0);
            }
            0 => lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| at + 1),
            fits => fits,
        };
        let (written, result) = write(&mut open.file, &lines[..fits]);
        let Err(why) = result else {
            open.bytes += written as u64;
            return Ok(fits);
        };
        let whole = end_of_line(&lines[..written]);
        // What is there of a line that did not fit is taken back, where that is possible.
        let _ = open.file.set_len(open.bytes + whole as u64);
        Err((whole, why))
    }

    /// `NAME.log` becomes `NAME.log.1`, and so on; the last one goes.
    fn put_aside(&mut self) -> io::Result<()> {
        self.open = None;
        let aside = |number: u32| match number {
            0 => self.path.clone(),
            number => PathBuf::from(format!("{}.{number}", self.path.display())),
        };
        for number in (0..self.sizes.kept).rev() {
            match fs::rename(aside(number), aside(number + 1)) {
                Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
                _ => {}
            }
        }
        if self.sizes.kept == 0 {
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }
}

/// The length of the whole lines at the beginning.
fn end_of_line(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Writes all of it; says how much was written also where that was not all.
fn write(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return (written, Err(why)),
        }
    }
    (written, Ok(()))
}
