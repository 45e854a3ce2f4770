//! A file that is put in place when it is whole, or what is written to instead of one.

use crate::failure::Failure;
use crate::same_file::is_no_input;
use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The end of a draft's name, behind the name of its file.
const DRAFT_END: &str = ".new";

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
        /// That file, and its lock: another process may be told to write the same.
        held: OnceCell<File>,
    },
}

impl Target {
    /// Looks at what is there; `-` is standard output. `inputs` are the files that the command reads.
    ///
    /// # Errors
    /// If it is a folder, or it or its draft is one of the inputs.
    pub fn open(path: &Path, inputs: &[PathBuf]) -> Result<Target, Failure> {
        is_no_input(path, inputs)?;
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
                draft.push(DRAFT_END);
                let draft = PathBuf::from(draft);
                is_no_input(&draft, inputs)?;
                Ok(Target::File { path: path.to_owned(), draft, held: OnceCell::new() })
            }
        }
    }

    /// Opens it. A file is for its owner (0600): what we write has passwords in it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn writer(&self) -> Result<Box<dyn Write>, Failure> {
        let opened = match self {
            Target::Standard => return Ok(Box::new(io::stdout())),
            Target::Special(path) => OpenOptions::new().write(true).open(path),
            Target::File { draft, held, .. } => make_draft(draft).and_then(|file| {
                // It is ours from here on.
                let file = held.get_or_init(|| file);
                file.try_clone()
            }),
        };
        opened.map(|file| Box::new(file) as Box<dyn Write>).map_err(|why| self.cannot_write(&why))
    }

    /// Gives a file that is being written these rights, as in `chmod`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_mode(&self, mode: u32) -> Result<(), Failure> {
        let Target::File { held, .. } = self else { return Ok(()) };
        let set = held.get().map(|file| file.set_permissions(Permissions::from_mode(mode)));
        set.unwrap_or(Ok(())).map_err(|why| self.cannot_write(&why))
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
        if let Target::File { draft, held, .. } = self
            && held.get().is_some_and(|file| is_at(file, draft))
        {
            // A file that could not be written is not worth a second complaint.
            let _ = fs::remove_file(draft);
        }
    }

    /// Puts a file in place, durable. Says whether it was one.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn finish(&self) -> Result<bool, Failure> {
        self.put(|draft, path| fs::rename(draft, path))
    }

    /// As [`Target::finish`], but a file that is there by now stays.
    ///
    /// # Errors
    /// If there is one, or the system refuses.
    pub fn finish_new(&self) -> Result<bool, Failure> {
        self.put(|draft, path| {
            match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
                // Some file systems cannot do it in one step.
                Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(path).is_err() => {
                    fs::rename(draft, path)
                }
                done => Ok(done?),
            }
        })
    }

    fn put(&self, rename: impl FnOnce(&Path, &Path) -> io::Result<()>) -> Result<bool, Failure> {
        let Target::File { path, draft, held } = self else { return Ok(false) };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let finished = match held.get() {
            Some(file) if is_at(file, draft) => file
                .sync_all()
                .and_then(|()| rename(draft, path))
                .and_then(|()| File::open(folder.unwrap_or(".".as_ref())))
                .and_then(|folder| folder.sync_all()),
            _ => Err(taken(draft)),
        };
        finished.map_err(|why| self.cannot_write(&why))?;
        Ok(true)
    }
}

/// Removes drafts from a folder that processes which are no more have left there, of files whose names end so.
pub fn discard_drafts(folder: &Path, end: &str) {
    let end = format!("{end}{DRAFT_END}");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().ends_with(end.as_bytes())
            && left(&entry.path()).is_some_and(|file| lock(&file, &entry.path()).is_ok())
        {
            // The next time it is tried again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The plain file that may have been left as a draft. No link is followed, and a pipe without a writer is not waited for.
fn left(draft: &Path) -> Option<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(draft).ok()?;
    file.metadata().is_ok_and(|it| it.is_file()).then_some(file)
}

fn lock(file: &File, draft: &Path) -> io::Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(taken(draft)),
        Err(why) => Err(why.into()),
    }
}

/// Makes a draft, in the place of one that a process which is no more has left.
fn make_draft(draft: &Path) -> io::Result<File> {
    let new = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft);
    let made = match new() {
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {
            if let Some(left) = left(draft) {
                lock(&left, draft)?;
            }
            fs::remove_file(draft)?;
            new()
        }
        made => made,
    }?;
    lock(&made, draft)?;
    Ok(made)
}

/// Whether a file is the one of this name.
fn is_at(file: &File, path: &Path) -> bool {
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (ours, there) = (file.metadata().map(place), fs::symlink_metadata(path).map(place));
    ours.is_ok_and(|ours| there.is_ok_and(|there| ours == there))
}

fn taken(draft: &Path) -> io::Error {
    let draft = draft.display();
    io::Error::other(format!("another process writes {draft}; wait for it, or name another file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_takes_the_place_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ldif");
        let target = Target::open(&path, &[]).unwrap();
        target.writer().unwrap().write_all(b"ours").unwrap();
        fs::write(&path, "theirs").unwrap();
        target.finish_new().unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the draft is gone");
        fs::remove_file(&path).unwrap();
        let target = Target::open(&path, &[]).unwrap();
        target.writer().unwrap().write_all(b"ours").unwrap();
        assert!(target.finish_new().unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"ours");
    }

    #[test]
    fn drafts_that_no_process_writes_are_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let target = Target::open(&at("written.ldif"), &[]).unwrap();
        let _writer = target.writer().unwrap();
        fs::write(at("left.ldif.new"), "").unwrap();
        fs::write(at("other.new"), "").unwrap();
        fs::write(at("kept"), "").unwrap();
        std::os::unix::fs::symlink(at("kept"), at("link.ldif.new")).unwrap();
        discard_drafts(folder.path(), ".ldif");
        assert!(!at("left.ldif.new").exists());
        for name in ["written.ldif.new", "other.new", "kept", "link.ldif.new"] {
            assert!(at(name).exists(), "{name}");
        }
    }
}
