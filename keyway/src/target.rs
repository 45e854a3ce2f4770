//! A file that is put in place when it is whole, or what is written to instead of one.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where output goes.
pub enum Target {
    /// Standard output.
    Standard,
    /// Something that is there and is no file to be replaced: a pipe, a device.
    Special(PathBuf),
    /// A file, which is put in place when it is whole.
    File {
        /// Where.
        path: PathBuf,
        /// Where it is until then.
        draft: PathBuf,
    },
}

impl Target {
    /// Looks at what is there; `-` is standard output.
    ///
    /// # Errors
    /// If it is a folder.
    pub fn open(path: &Path) -> Result<Target, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Target::Standard);
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                Err(Failure::system("write", path, &ErrorKind::IsADirectory.into()))
            }
            Ok(metadata) if !metadata.is_file() => Ok(Target::Special(path.to_owned())),
            _ => {
                let mut draft = path.as_os_str().to_owned();
                draft.push(".new");
                Ok(Target::File { path: path.to_owned(), draft: draft.into() })
            }
        }
    }

    /// Opens it. A file is for its owner (0600): what we write has passwords in it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn writer(&self) -> Result<Box<dyn Write>, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).mode(0o600);
        let opened = match self {
            Target::Standard => return Ok(Box::new(io::stdout())),
            Target::Special(path) => options.open(path),
            Target::File { draft, .. } => match fs::remove_file(draft) {
                Err(why) if why.kind() != ErrorKind::NotFound => Err(why),
                _ => options.create_new(true).open(draft),
            },
        };
        opened.map(|file| Box::new(file) as Box<dyn Write>).map_err(|why| self.cannot_write(&why))
    }

    /// Removes what is there of a file, and says why.
    pub fn cannot_write(&self, why: &io::Error) -> Failure {
        self.discard();
        match self {
            Target::Standard => Failure::output(why),
            Target::Special(path) | Target::File { path, .. } => {
                Failure::system("write", path, why)
            }
        }
    }

    /// Removes what is there of a file.
    pub fn discard(&self) {
        if let Target::File { draft, .. } = self {
            // What could not be written is not worth a second complaint.
            let _ = fs::remove_file(draft);
        }
    }

    /// Puts a file in place, durable. Says whether it was one.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn finish(&self) -> Result<bool, Failure> {
        let Target::File { path, draft } = self else { return Ok(false) };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        File::open(draft)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(draft, path))
            .and_then(|()| File::open(folder.unwrap_or(".".as_ref())))
            .and_then(|folder| folder.sync_all())
            .map_err(|why| self.cannot_write(&why))?;
        Ok(true)
    }
}
