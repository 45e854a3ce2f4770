//! A log's file: put aside when it is full, and the oldest dropped.

use crate::limits::LOG_LOOK_BACK_BYTES;
use crate::settings::folder_mode;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
    mode: u32,
    open: Option<Open>,
    /// A name in the folder is newer than what of the folder is on the disk.
    renamed: bool,
}

struct Open {
    file: File,
    bytes: u64,
    /// Others (a terminal, a pipe, a device) are never put aside.
    is_regular: bool,
    /// Device and inode.
    identity: (u64, u64),
}

impl Rotating {
    /// One that is opened when it is needed.
    pub fn new(folder: &Path, name: &str, sizes: Sizes, mode: u32) -> Rotating {
        Rotating {
            path: folder.join(format!("{name}.log")),
            sizes,
            reserve: 0,
            mode,
            open: None,
            renamed: true,
        }
    }

    /// With space reserved for a full disk, in bytes.
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
        let mut options = OpenOptions::new();
        // To open a FIFO would wait for a reader.
        options
            .append(true)
            .create(true)
            .mode(self.mode)
            .custom_flags(OFlags::NONBLOCK.bits() as i32);
        let append = || options.open(&self.path);
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut file = match append() {
            Err(why) if why.kind() == ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(folder_mode(self.mode)).create(folder)?;
                append()?
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        // Whatever the umask is, and those that were made with another mode. They may be another's.
        if metadata.is_file() && metadata.mode() & 0o777 != self.mode {
            let _ = file.set_permissions(Permissions::from_mode(self.mode));
        }
        let (now, wanted) = (fs::metadata(folder)?.mode() & 0o7777, folder_mode(self.mode));
        if now & wanted != wanted {
            let _ = fs::set_permissions(folder, Permissions::from_mode(now | wanted));
        }
        if metadata.is_file() && !ends_a_line(&self.path) {
            // A cut of power has left a part of a line, or zeros in its place.
            file.write_all(b"\n")?;
        }
        let metadata = file.metadata()?;
        if self.reserve > 0 {
            // Behind its end. Where that cannot be had, the disk is as full as it is.
            let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, metadata.len(), self.reserve);
        }
        self.open = Some(Open {
            file,
            bytes: metadata.len(),
            is_regular: metadata.is_file(),
            identity: (metadata.dev(), metadata.ino()),
        });
        Ok(())
    }

    /// Whether the file has no longer its name: it was removed, moved or replaced by another. Then the next
    /// lines go to the file of that name, which is made anew.
    pub fn leave_if_gone(&mut self) -> bool {
        let Some(open) = self.open.as_ref().filter(|open| open.is_regular) else { return false };
        let named = fs::metadata(&self.path).map(|metadata| (metadata.dev(), metadata.ino()));
        let is_gone = match named {
            Ok(named) => named != open.identity,
            Err(why) => matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        if is_gone {
            (self.open, self.renamed) = (None, true);
        }
        is_gone
    }

    /// Brings what was written to the disk, with the file's name.
    ///
    /// # Errors
    /// The system's; then nothing is known of what was written.
    pub fn sync(&mut self) -> io::Result<()> {
        if let Some(open) = &self.open {
            open.file.sync_data()?;
        }
        if self.renamed {
            File::open(self.path.parent().unwrap_or(&self.path))?.sync_all()?;
            self.renamed = false;
        }
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
        // The part of a line that did not fit is taken back, where that is possible.
        let _ = open.file.set_len(open.bytes + whole as u64);
        Err((whole, why))
    }

    /// `NAME.log` becomes `NAME.log.1`, and so on; the last one goes.
    fn put_aside(&mut self) -> io::Result<()> {
        self.sync()?;
        (self.open, self.renamed) = (None, true);
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

/// Whether a file ends with a whole line, as far as that can be told.
fn ends_a_line(path: &Path) -> bool {
    let mut last = [b'\n'];
    if let Ok(mut file) = File::open(path)
        && file.seek(SeekFrom::End(-1)).is_ok()
    {
        let _ = file.read_exact(&mut last);
    }
    last == [b'\n']
}

/// The last lines of a log, of the file and the one before it, each with its end.
pub fn last_lines(folder: &Path, name: &str) -> HashSet<Vec<u8>> {
    let mut lines = HashSet::new();
    for name in [format!("{name}.log.1"), format!("{name}.log")] {
        let Ok(mut file) = File::open(folder.join(name)) else { continue };
        let end = file.metadata().map_or(0, |metadata| metadata.len());
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(end.saturating_sub(LOG_LOOK_BACK_BYTES)))
            .and_then(|_| file.take(LOG_LOOK_BACK_BYTES).read_to_end(&mut bytes));
        // Lines that cannot be read are written once more.
        if read.is_ok() {
            lines.extend(bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
    }
    lines
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
