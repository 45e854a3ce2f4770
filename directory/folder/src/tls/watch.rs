//! Whether files of certificates have changed since they were read.

use super::settings::Settings;
use crate::data::{Folder, name};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The metadata of a file that changes when it is written or replaced; `None` if it is not there.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// The files that TLS is made of, and how they looked.
pub struct Watch {
    /// Those that are this program's to write come first.
    files: Vec<PathBuf>,
    own: usize,
    /// When they were read last.
    read: Vec<Stamp>,
    /// When they were looked at last.
    seen: Vec<Stamp>,
}

/// The result of a check of the files.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing, or a file is being written: what changes is left alone until it has stayed as it is from one
    /// look to the next.
    Wait,
    /// These have changed.
    Changed(Vec<PathBuf>),
    /// This one is gone.
    Gone(PathBuf),
}

impl Watch {
    /// Looks at the files of these settings for the first time; they are to be read after that.
    pub fn new(folder: &Folder, settings: &Settings) -> Watch {
        let own = match &settings.files {
            None => [name::SERVER_KEY, name::SERVER_CERTIFICATE, name::CA_CERTIFICATE]
                .map(|name| folder.file(name))
                .to_vec(),
            Some(_) => Vec::new(),
        };
        let mut files = own.clone();
        files.extend(settings.named().map(|file| folder.file_at(file)));
        if settings.client_ca.is_empty() && settings.files.is_some() {
            files.push(folder.file(name::CA_CERTIFICATE));
        }
        Watch { own: own.len(), ..Watch::of(files) }
    }

    /// Looks at these files, which are others' to write, for the first time.
    pub fn of(files: Vec<PathBuf>) -> Watch {
        let read = stamps(&files);
        Watch { own: 0, seen: read.clone(), files, read }
    }

    /// Notes that the state that was read has been written as well: its own files are as they are to be.
    pub fn own_written(&mut self) {
        for (at, file) in self.files.iter().enumerate().take(self.own) {
            (self.read[at], self.seen[at]) = (stamp(file), stamp(file));
        }
    }

    /// Looks again. It reports each finding once.
    pub fn look(&mut self) -> Look {
        let now = stamps(&self.files);
        let is_still = now == self.seen;
        self.seen = now;
        if !is_still || self.seen == self.read {
            return Look::Wait;
        }
        let before = std::mem::replace(&mut self.read, self.seen.clone());
        let files = self.files.iter().zip(before.iter().zip(&self.seen));
        let changed: Vec<_> = files.filter(|(_, (before, now))| before != now).collect();
        // A key that cryptod has taken is gone for good.
        let is_gone = |file: &Path, now: &Stamp| now.is_none() && !file.ends_with(name::SERVER_KEY);
        match changed.iter().find(|(file, (_, now))| is_gone(file, now)) {
            Some((file, _)) => Look::Gone((*file).clone()),
            None => Look::Changed(changed.into_iter().map(|(file, _)| file.clone()).collect()),
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    files.iter().map(|file| stamp(file)).collect()
}

fn stamp(file: &Path) -> Stamp {
    let file = fs::metadata(file).ok()?;
    Some((file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_said_once_and_when_it_is_over() {
        let place = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| place.path().join(name));
        fs::write(&one, "1").unwrap();
        fs::write(&other, "1").unwrap();
        let mut watch = Watch::of(vec![one.clone(), other.clone()]);
        assert_eq!(watch.look(), Look::Wait);
        fs::write(&one, "22").unwrap();
        assert_eq!(watch.look(), Look::Wait);
        fs::write(&one, "333").unwrap();
        assert_eq!(watch.look(), Look::Wait);
        assert_eq!(watch.look(), Look::Changed(vec![one.clone()]));
        assert_eq!(watch.look(), Look::Wait);
        fs::rename(&one, place.path().join("aside")).unwrap();
        watch.look();
        assert_eq!(watch.look(), Look::Gone(one.clone()));
        assert_eq!(watch.look(), Look::Wait);
        fs::write(&one, "1").unwrap();
        watch.look();
        assert_eq!(watch.look(), Look::Changed(vec![one]));
    }
}
