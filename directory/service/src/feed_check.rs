//! The feed, made again: whether its changes, done in an empty store, lead to the entries that there are.

use crate::scratch::Scratch;
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_host::output::grouped;
use keyway_store::{Error, Options, Read, Store};
use std::fmt;
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
/// store is removed. `tell` hears of positions. Returns what is wrong with the feed, if anything is.
///
/// # Errors
/// If there is no feed, or no store to compare with can be made; then nothing is known of the feed.
pub fn check(
    store: &Store,
    folder: &Path,
    tell: &mut dyn FnMut(&'static str, u64),
) -> Result<Result<FeedChecked, String>, Failure> {
    let read = store.read().map_err(|why| Failure::new(format!("cannot read the store: {why}")))?;
    let head = match read.view().feed_head() {
        Ok(Some(head)) => head,
        Ok(None) => {
            let text = "this store has no feed of changes: it has not been opened with feed.enabled = true yet";
            return Err(Failure::new(text));
        }
        Err(why) => return Ok(Err(format!("the feed cannot be read: {why}"))),
    };
    let is_replayed = head.is_whole();
    let checked =
        FeedChecked { commits: head.position + 1 - head.first, first: head.first, is_replayed };
    let outcome = match is_replayed {
        true => replay(&read, &Scratch::make(&folder.join(name::FEED_CHECK))?, tell)?,
        false => follow(&read, head.first, tell),
    };
    Ok(outcome.map(|()| checked))
}

/// Reads all rows, each of which has to follow the one before it.
fn follow(read: &Read, first: u64, tell: &mut dyn FnMut(&'static str, u64)) -> Result<(), String> {
    let unreadable = |why: keyway_store::Error| format!("the feed cannot be read: {why}");
    for row in read.view().feed_after(first - 1).map_err(unreadable)? {
        told(tell, row.map_err(unreadable)?.position);
    }
    Ok(())
}

/// Makes all changes again, and compares.
fn replay(
    read: &Read,
    scratch: &Scratch,
    tell: &mut dyn FnMut(&'static str, u64),
) -> Result<Result<(), String>, Failure> {
    let options = Options { sync: false, feed: false, ..Options::default() };
    let replayed =
        Store::open(scratch.path(), options).map_err(|why| cannot(scratch, "make", &why))?;
    let differs = replayed
        .replay(read, &mut |position| told(tell, position))
        .and_then(|()| read.view().difference(replayed.read()?.view()));
    match differs {
        Ok(None) => Ok(Ok(())),
        Ok(Some(what)) => {
            Ok(Err(format!("the feed does not lead to the entries that there are: {what}")))
        }
        Err(why @ (Error::DiskFull | Error::MapFull { .. } | Error::System { .. })) => {
            Err(cannot(scratch, "fill", &why))
        }
        Err(why) => Ok(Err(format!("the feed cannot be made again: {why}"))),
    }
}

fn told(tell: &mut dyn FnMut(&'static str, u64), position: u64) {
    if position % 1024 == 1 {
        tell("feed", position);
    }
}

fn cannot(scratch: &Scratch, what: &str, why: &dyn fmt::Display) -> Failure {
    let place = scratch.path().display();
    Failure::new(format!("{place}: cannot {what} a store to compare the feed with: {why}"))
}
