//! Changes that only a store has which is about to make room for the writer's: written out as LDIF.

use crate::changes::reading::{Reading, Refusal};
use keyway_folder::data::{Folder, name};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_store::{FeedDigest, Options, Store, View};
use std::path::{Path, PathBuf};

/// Octets of such changes that are written out: one file has them, for people to look at and to import again.
const LDIF_BYTES_MAX: usize = 1 << 30;

/// Changes that were written out.
#[derive(Clone, Debug)]
pub struct OwnChanges {
    /// The file.
    pub file: PathBuf,
    /// How many there are of entries.
    pub changes: u64,
    /// How many there are of the schema and of the cluster, without an entry; the file has comments on them.
    pub rows: u64,
    /// The last position that both stores have; `None` if none is known, and all that is kept was written out.
    pub common: Option<u64>,
}

/// Writes out what the store of a data folder has and another one in `new` does not, into a file of the folder that only
/// its user may read: there are passwords in it. `None` if there is nothing.
///
/// # Errors
/// If one of the stores cannot be read, or the file not be written.
pub(super) fn write_out(
    folder: &Folder,
    new: &Path,
    now: Timestamp,
) -> Result<Option<OwnChanges>, Failure> {
    let old = folder.file(name::STORE);
    if !Store::is_at(&old) {
        return Ok(None);
    }
    let unreadable =
        |why: &dyn std::fmt::Display| Failure::new(format!("cannot read the store: {why}"));
    let options = Options::default();
    let old = Store::open_to_read(&old, &options).map_err(|why| unreadable(&why))?;
    let mut reading = Reading::of(old, folder.path(), true)?;
    let new = Store::open_to_read(new, &options).map_err(|why| unreadable(&why))?;
    let last = reading.head()?.position;
    let common = {
        let old = reading.store.read().map_err(|why| unreadable(&why))?;
        let new = new.read().map_err(|why| unreadable(&why))?;
        last_common(old.view(), new.view()).map_err(|why| unreadable(&why))?
    };
    if common == Some(last) {
        return Ok(None);
    }
    if let Some(common) = common {
        reading.begin(common + 1);
    }
    let (mut out, mut changes, mut rows) = (Vec::new(), 0, 0);
    loop {
        match reading.next(last) {
            Ok(Some(described)) => {
                described.iter().for_each(|change| change.write_ldif(&mut out));
                for commit in described.chunk_by(|one, next| one.position == next.position) {
                    let entries = commit.iter().filter(|change| change.entry().is_some()).count();
                    changes += entries as u64;
                    // One change of the schema is several rows; rows beside an entry come again with it.
                    rows += u64::from(entries == 0);
                }
            }
            Ok(None) => break,
            Err(Refusal::Other(why)) => return Err(why),
            Err(Refusal::Trimmed { .. } | Refusal::Ahead { .. }) => break,
        }
        if out.len() > LDIF_BYTES_MAX {
            return Err(Failure::new(
                "what only this server has is more than 1 GiB of changes: take a backup of it first (keyway backup \
                 create), and begin with a new folder and a token",
            ));
        }
    }
    if changes == 0 && rows == 0 {
        return Ok(None);
    }
    let path = unused(folder, &format!("{}/own-changes-", name::CLUSTER), now, ".ldif");
    folder.write_secret(&path, &out)?;
    Ok(Some(OwnChanges { file: folder.file(&path), changes, rows, common }))
}

/// A name with a time in it that no file of a data folder has. The caller has the folder's lock.
pub(super) fn unused(folder: &Folder, before: &str, now: Timestamp, after: &str) -> String {
    let time: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let name = |number: u32| match number {
        1 => format!("{before}{time}{after}"),
        _ => format!("{before}{time}-{number}{after}"),
    };
    let free = (1..).map(name).find(|name| !folder.file(name).exists());
    free.unwrap_or_else(|| name(1))
}

/// The last position at which both feeds have one row; `None` if what is kept of them does not say.
fn last_common(old: View<'_>, new: View<'_>) -> Result<Option<u64>, keyway_store::Error> {
    let (Some(one), Some(other)) = (old.feed_head()?, new.feed_head()?) else { return Ok(None) };
    // Each row names the one before it, so that the first one that is kept says of one more.
    let (mut low, mut high) =
        (one.first.max(other.first).saturating_sub(1), one.position.min(other.position));
    let are_one = |position| -> Result<bool, keyway_store::Error> {
        Ok(digest_at(old, position)? == digest_at(new, position)?)
    };
    if low > high || !are_one(low)? {
        return Ok(None);
    }
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match are_one(middle)? {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    Ok(Some(low))
}

fn digest_at(view: View<'_>, position: u64) -> Result<Option<FeedDigest>, keyway_store::Error> {
    let head = view.feed_head()?;
    if let Some(head) = head.filter(|head| head.position == position) {
        return Ok(Some(head.digest));
    }
    match view.feed_after(position)?.raw().next() {
        Some(row) => Ok(Some(row?.before())),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_of_one_second_have_two_names() {
        let place = tempfile::tempdir().unwrap();
        let now = Timestamp::now();
        let folder = Folder::open(&place.path().join("data"), now).unwrap();
        let mut names = Vec::new();
        for _ in 0..3 {
            let name = unused(&folder, "kept-", now, ".ldif");
            folder.write_secret(&name, b"").unwrap();
            names.push(name);
        }
        assert_eq!(names[1], names[0].replace(".ldif", "-2.ldif"));
        assert_eq!(names[2], names[0].replace(".ldif", "-3.ldif"));
    }
}
