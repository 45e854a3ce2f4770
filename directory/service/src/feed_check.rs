//! The feed, made again: whether its changes, done in an empty store, lead to the entries that there are.

use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_host::output::grouped;
use keyway_store::{Options, Store};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// The outcome for a feed that is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedChecked {
    /// Commits that it keeps, each of which follows the one before it.
    pub commits: u64,
    /// The position of the first.
    pub first: u64,
    /// Whether they lead to the entries that there are. They do not begin with the first change of the store
    /// otherwise, and cannot be made again.
    pub is_replayed: bool,
}

impl fmt::Display for FeedChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commits = grouped(self.commits);
        match self.is_replayed {
            true => {
                write!(f, "{commits} commits of the feed, made again, lead to the same entries")
            }
            false => write!(
                f,
                "{commits} commits of the feed follow each other; they begin with position {}, so that they cannot \
                 be made again from nothing",
                self.first
            ),
        }
    }
}

/// Makes all changes that the feed has again, in a store of its own in the data folder, and compares the two. That
/// store is removed. `tell` hears of positions.
///
/// # Errors
/// If there is no feed, if it is damaged or does not lead to the entries, and the system's.
pub fn check(
    store: &Store,
    folder: &Path,
    tell: &mut dyn FnMut(&'static str, u64),
) -> Result<FeedChecked, Failure> {
    let unreadable =
        |why: keyway_store::Error| Failure::new(format!("cannot read the feed: {why}"));
    let read = store.read().map_err(unreadable)?;
    let Some(head) = read.view().feed_head().map_err(unreadable)? else {
        let text = "this store has no feed of changes: it has not been opened with feed.enabled = true yet";
        return Err(Failure::new(text));
    };
    let is_replayed = head.is_whole();
    let checked =
        FeedChecked { commits: head.position + 1 - head.first, first: head.first, is_replayed };
    if !is_replayed {
        for (rows, row) in read.view().feed_after(head.first - 1).map_err(unreadable)?.enumerate() {
            let row = row.map_err(unreadable)?;
            if rows % 1024 == 0 {
                tell("feed", row.position);
            }
        }
        return Ok(checked);
    }
    let scratch = folder.join(name::FEED_CHECK);
    let cannot = |what: &str, why: &dyn std::fmt::Display| {
        Failure::new(format!("{}: cannot {what} a store to compare with: {why}", scratch.display()))
    };
    remove(&scratch).map_err(|why| cannot("remove", &why))?;
    let options = Options { sync: false, feed: false, ..Options::default() };
    let replayed = Store::open(&scratch, options).map_err(|why| cannot("make", &why))?;
    let differs = replayed.replay(&read, &mut |position| {
        if position % 1024 == 1 {
            tell("feed", position);
        }
    });
    let differs = differs.and_then(|()| read.view().difference(replayed.read()?.view()));
    drop(replayed);
    remove(&scratch).map_err(|why| cannot("remove", &why))?;
    match differs.map_err(|why| Failure::new(format!("the feed cannot be made again: {why}")))? {
        None => Ok(checked),
        Some(what) => Err(Failure::new(format!(
            "the feed does not lead to the entries that there are: {what}"
        ))),
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
