//! The way of a base into a data folder: it is made in a folder below that, and moved up when it is whole, the store last
//! of what a start looks for. Whatever cuts that off, the folder holds a directory only if all of it is there.

use crate::scratch::Scratch;
use keyway_folder::data::{self, State, name};
use keyway_folder::member;
use keyway_host::failure::Failure;
use keyway_store::Store;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder, below the data folder, that all of it happens in.
const PLACE: &str = ".joining";
/// Names that are being moved up, one a line: what a join that was cut off has left is removed by it.
const MOVING: &str = ".joining/moving";
/// Files that an administrator may have put into the folder before: they are this host's, and win over the base's.
const OF_THIS_HOST: [&str; 3] = [name::CONFIGURATION, name::SERVER_CERTIFICATE, name::SERVER_KEY];

/// A data folder that is to be filled. No other process fills it meanwhile.
pub struct Placing {
    folder: PathBuf,
    scratch: Scratch,
    _lock: File,
}

/// Whether a data folder is a member's, with its store.
pub fn has_joined(folder: &Path) -> bool {
    member::is_member(folder) && Store::is_at(&folder.join(name::STORE))
}

impl Placing {
    /// Takes a folder, which is made if it is not there; `None` if it is a member's already.
    ///
    /// # Errors
    /// If something is in it.
    pub fn begin(folder: &Path) -> Result<Option<Placing>, Failure> {
        data::may_look(folder)?;
        make(folder)?;
        let lock = data::lock_edits(folder)?;
        if has_joined(folder) {
            return Ok(None);
        }
        if data::has_had_store(folder)? {
            return Err(Failure::new(format!(
                "{} holds a directory that is no member of a cluster: to make a follower name an empty folder with \
                 --data DIR; to have others follow this one use keyway cluster token",
                folder.display()
            )));
        }
        tidy(folder)?;
        if data::look(folder)? == State::Ours {
            return Err(Failure::new(format!(
                "{} was made for a directory of its own; name an empty folder with --data DIR",
                folder.display()
            )));
        }
        let scratch = Scratch::make(&folder.join(PLACE))?;
        Ok(Some(Placing { folder: folder.to_owned(), scratch, _lock: lock }))
    }

    /// Where the base is to be made.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Moves all of it up.
    ///
    /// # Errors
    /// If something is in the way. Then the next join removes what was moved.
    pub fn place(self) -> Result<(), Failure> {
        let Placing { folder, scratch, _lock } = self;
        let system = |why: io::Error| Failure::system("put in place", &folder, &why);
        let mut names = Vec::new();
        for found in fs::read_dir(scratch.path()).map_err(system)? {
            let name = found.map_err(system)?.file_name().to_string_lossy().into_owned();
            let is_there = fs::symlink_metadata(folder.join(&name)).is_ok();
            if !(is_there && OF_THIS_HOST.contains(&name.as_str())) {
                names.push(name);
            }
        }
        // A start takes the folder for one with a directory when it has a store, and for Keyway's by its version.
        names.sort_by_key(|one| [name::STORE, name::VERSION].contains(&one.as_str()));
        names.sort_by_key(|one| one == name::VERSION);
        data::write(&folder, MOVING, names.join("\n").as_bytes())?;
        for name in &names {
            let (from, to) = (scratch.path().join(name), folder.join(name));
            move_up(&from, &to)?;
        }
        sync(&folder).map_err(system)?;
        fs::remove_file(folder.join(MOVING)).map_err(system)
    }
}

fn move_up(from: &Path, to: &Path) -> Result<(), Failure> {
    // What begins with nothing in it may have been made for it; an empty folder gives way by itself.
    let is_in_the_way =
        to.is_dir() && fs::read_dir(to).is_ok_and(|mut found| found.next().is_some());
    if is_in_the_way {
        return Err(Failure::new(format!(
            "{} is not empty, and the base has one of its own: move it away and join again",
            to.display()
        )));
    }
    fs::rename(from, to).map_err(|why| match why.kind() {
        ErrorKind::PermissionDenied => Failure::new(format!(
            "cannot put {} in place: it is another user's, as it is where cryptod is one of its own; a follower and its \
             writer need one user for both (--cryptod-user)",
            to.display()
        )),
        _ => Failure::system("put in place", to, &why),
    })
}

/// Removes what a join that was cut off has left.
fn tidy(folder: &Path) -> Result<(), Failure> {
    let moving = folder.join(MOVING);
    if moving.exists() {
        for name in data::read(&moving)?.lines().filter(|name| !name.contains('/')) {
            let path = folder.join(name);
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            match removed {
                Err(why) if why.kind() != ErrorKind::NotFound => {
                    return Err(Failure::system("remove", &path, &why));
                }
                _ => {}
            }
        }
    }
    match fs::remove_dir_all(folder.join(PLACE)) {
        Err(why) if why.kind() != ErrorKind::NotFound => {
            Err(Failure::system("remove", &folder.join(PLACE), &why))
        }
        _ => Ok(()),
    }
}

fn make(folder: &Path) -> Result<(), Failure> {
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => {
            Err(Failure::system("make the data folder", folder, &why))
        }
        _ => data::is_private(folder),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(folder: &Path) -> Placing {
        Placing::begin(folder).unwrap().unwrap()
    }

    #[test]
    fn what_was_cut_off_is_gone_at_the_next_try_and_an_administrators_files_stay() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        make(&folder).unwrap();
        fs::write(folder.join("keyway.toml"), "mine").unwrap();
        let placing = begin(&folder);
        for name in ["keyway.toml", "ca.pem", "version"] {
            fs::write(placing.path().join(name), "theirs").unwrap();
        }
        // Killed when it had moved one of them.
        fs::write(folder.join(MOVING), "ca.pem\nversion").unwrap();
        fs::rename(placing.path().join("ca.pem"), folder.join("ca.pem")).unwrap();
        let Placing { scratch, _lock, .. } = placing;
        drop(_lock);
        std::mem::forget(scratch);
        assert!(data::look(&folder).is_err(), "a start does not take it for a new one");
        let placing = begin(&folder);
        assert!(!folder.join("ca.pem").exists());
        assert_eq!(fs::read_dir(placing.path()).unwrap().count(), 0);
        fs::create_dir(placing.path().join("cluster")).unwrap();
        for name in ["keyway.toml", "ca.pem", "cluster/member.json"] {
            fs::write(placing.path().join(name), "theirs").unwrap();
        }
        placing.place().unwrap();
        assert_eq!(fs::read_to_string(folder.join("keyway.toml")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(folder.join("ca.pem")).unwrap(), "theirs");
        assert!(!folder.join(PLACE).exists());
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        make(&place.path().join("data")).unwrap();
        fs::write(place.path().join("data/letter"), "").unwrap();
        assert!(Placing::begin(&place.path().join("data")).is_err());
        fs::remove_file(place.path().join("data/letter")).unwrap();
        fs::write(place.path().join("data/version"), "keyway-data 1\n").unwrap();
        assert!(Placing::begin(&place.path().join("data")).is_err());
    }
}
