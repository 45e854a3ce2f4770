//! The way back to a snapshot.
//!
//! The new store is made beside the snapshots, and changes places with the data folder's in one step: whenever a kill or
//! a cut of power comes, the folder has the one or the other. The store of before then becomes a snapshot where it lies;
//! if that is cut off, the next command that looks at snapshots does the rest.

use super::meta::Meta;
use super::place::{
    DATA, DISCARDING, KEEPING, STORE, Snapshots, check_name, compact, remove, sync,
};
use crate::instance;
use crate::lineage;
use crate::plain_file;
use keyway_config::Configuration;
use keyway_config::applied::META_CONFIGURATION;
use keyway_folder::data::{self, Folder, StoreId, name};
use keyway_folder::history::Done;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::Timestamp;
use keyway_schema::operational::ENTRY_UUID;
use keyway_server::{Directory, Settings};
use keyway_store::{Options, Store, copy_file};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The outcome.
#[derive(Clone, Debug)]
pub struct RolledBack {
    /// The state of the snapshot.
    pub meta: Meta,
    /// The snapshot of the store of before; `None` if that was discarded.
    pub kept: Option<String>,
    /// The identity of the store from now on, in hexadecimal digits.
    pub incarnation: String,
    /// How often it or a store before it was restored.
    pub epoch: u64,
}

/// The store of before.
struct Before {
    meta: Meta,
    /// The configuration that was in force last: it stays as it is, and so is not compared with an older one.
    configuration: Option<Vec<u8>>,
    /// The identity of its directory.
    directory: String,
}

/// Puts a snapshot in the place of a data folder's store, which becomes a snapshot itself unless it is to be discarded.
/// `progress` hears of bytes, and how many there are.
///
/// # Errors
/// If a process uses the folder, there is no such snapshot, it is damaged, or the store of before cannot be kept. Then
/// the store is as it was.
pub fn rollback(
    folder: &Path,
    snapshot: &str,
    is_discarded: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<RolledBack, Failure> {
    check_name(snapshot)?;
    let begun = Instant::now();
    let folder = Folder::open_existing(folder, Timestamp::now())?;
    let snapshots = Snapshots::lock(folder.path())?;
    let now = Timestamp::now();
    let meta = snapshots.find(snapshot)?.meta;
    let meta =
        meta.map_err(|why| Failure::new(format!("snapshot {snapshot} is damaged: {why}")))?;
    is_plain(&folder.file(name::STORE))?;
    let before = match is_discarded {
        true => before(&folder, now).ok(),
        false => Some(before(&folder, now).map_err(|why| cannot_keep(folder.path(), &why))?),
    };
    let kept =
        (!is_discarded).then(|| snapshots.free_name(&format!("before-rollback-{}", compact(now))));
    let draft = kept.as_ref().map_or(DISCARDING.to_owned(), |kept| format!("{KEEPING}{kept}"));
    let settings = &Configuration::load(&folder)?.directory;
    let draft = snapshots.draft(&draft)?;
    let new = Replacement { source: snapshots.at(snapshot).join(DATA), draft: draft.clone() };
    let exchanged =
        new.make(snapshot, &meta, before.as_ref(), settings, progress).and_then(|made| {
            if let Some(before) = before.as_ref().filter(|_| !is_discarded) {
                before.meta.write(&draft)?;
            }
            new.exchange(&folder).map(|()| made)
        });
    let (incarnation, epoch) = match exchanged {
        Ok(made) => made,
        Err(why) => {
            // The next one does it if this fails, too.
            let _ = remove(&draft);
            return Err(why);
        }
    };
    // The next start notes it if this does not.
    if let Err(why) = folder.note_store(incarnation) {
        output::note(format_args!("warning: the folder does not remember its store: {why}"));
    }
    let tidied = match &kept {
        Some(kept) => snapshots.keep(&draft, kept),
        None => remove(&draft).map_err(|why| Failure::system("remove", &draft, &why)),
    };
    if let Err(why) = tidied {
        output::note(format_args!(
            "warning: {why}; the rollback is done, and the next keyway snapshot does the rest"
        ));
    }
    let mut done = Done::new("rollback", Some(&snapshots.at(snapshot)));
    (done.entries, done.seconds) = (Some(meta.entries), begun.elapsed().as_secs_f64());
    done.with("whole", None).record(folder.path());
    Ok(RolledBack { meta, kept, incarnation: data::shown(incarnation), epoch })
}

/// Refuses a link in the store's place: the folder that it leads to is on another disk, perhaps, and cannot change places.
fn is_plain(store: &Path) -> Result<(), Failure> {
    match fs::symlink_metadata(store) {
        Ok(found) if !found.is_dir() => Err(Failure::new(format!(
            "{} is no folder, and a rollback puts one in its place: put the store itself there",
            store.display()
        ))),
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            Err(Failure::system("look at", store, &why))
        }
        _ => Ok(()),
    }
}

/// Reads what is there of the present store.
fn before(folder: &Folder, now: Timestamp) -> Result<Before, Failure> {
    instance::has_store(folder.path())?;
    let path = folder.file(name::STORE);
    let store = Store::open_to_read(&path, &Options::default())
        .map_err(|why| instance::cannot_open(folder.path(), &why))?;
    let read = || -> Result<Before, keyway_store::Error> {
        let meta = Meta::of(&store.snapshot()?, now)?;
        let read = store.read()?;
        let row = read.view().meta_get(META_CONFIGURATION)?;
        Ok(Before { meta, configuration: row.map(<[u8]>::to_vec), directory: String::new() })
    };
    let mut before = read().map_err(|why| Failure::new(format!("{}: {why}", path.display())))?;
    before.directory = lineage::directory(&store)?;
    let data = path.join(DATA);
    let length = fs::metadata(&data).map_err(|why| Failure::system("look at", &data, &why))?;
    // The file itself is kept, which may be longer than its last state.
    before.meta.length = length.len();
    Ok(before)
}

fn cannot_keep(folder: &Path, why: &Failure) -> Failure {
    Failure::new(format!(
        "the present store cannot be read, and so cannot be kept as a snapshot: {why}; copy {} elsewhere if it \
         may be of use, and repeat this with --discard",
        folder.join(name::STORE).display()
    ))
}

/// The store that is to take the other's place.
struct Replacement {
    /// The snapshot's data file.
    source: PathBuf,
    /// The folder that it is made in.
    draft: PathBuf,
}

impl Replacement {
    fn store(&self) -> PathBuf {
        self.draft.join(STORE)
    }

    /// Makes it, on the disk. Returns its incarnation and its epoch.
    fn make(
        &self,
        snapshot: &str,
        meta: &Meta,
        before: Option<&Before>,
        settings: &Settings,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(StoreId, u64), Failure> {
        let store = self.store();
        let system = |why: io::Error| Failure::system("write", &store, &why);
        let gone = || Failure::new(format!("{} is gone", self.source.display()));
        let (from, _) = plain_file::open(&self.source)?.ok_or_else(gone)?;
        DirBuilder::new().mode(0o700).create(&store).map_err(system)?;
        let path = store.join(DATA);
        let to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let to = to.map_err(system)?;
        copy_file(&from, &to, &mut |done| progress(done, meta.length)).map_err(system)?;
        to.sync_all().map_err(system)?;
        let configuration = before.and_then(|before| before.configuration.as_deref());
        let rows: Vec<_> =
            configuration.map(|text| (META_CONFIGURATION, text)).into_iter().collect();
        let cannot = |why: &dyn std::fmt::Display| {
            Failure::new(format!("cannot make a store of snapshot {snapshot}: {why}"))
        };
        let made = keyway_store::restored(&store, &rows).map_err(|why| cannot(&why))?;
        let feed = meta.position.is_some();
        let options = Options { feed, identity: Some(ENTRY_UUID), ..Options::default() };
        let opened = Store::open(&store, options).map_err(|why| cannot(&why))?;
        lineage::add(&opened, meta.store()?, meta.position)?;
        let own = lineage::directory(&opened)?;
        if before.is_some_and(|before| before.directory != own) {
            return Err(Failure::new(format!("snapshot {snapshot} is of another directory")));
        }
        // Opened as the next start does it, and looked through as keyway directory check does.
        let engine = keyway_drivers::engine();
        let directory = Directory::open(opened.clone(), settings, engine);
        let directory = directory.map_err(|why| cannot(&why))?;
        let checked = directory.check(&mut |_, _| ()).map_err(|why| {
            let why = instance::describe(&why);
            Failure::new(format!("snapshot {snapshot} is damaged: {why}; the store is as it was"))
        })?;
        drop(directory);
        if checked.entries != meta.entries {
            let (had, has) = (meta.entries, checked.entries);
            return Err(cannot(&format_args!("it had {had} entries, and has {has}")));
        }
        opened.close().map_err(|why| cannot(&why))?;
        sync(&store).map_err(system)?;
        Ok(made)
    }

    /// Puts it in the place of the data folder's store, which comes to where this was.
    fn exchange(&self, folder: &Folder) -> Result<(), Failure> {
        let (new, store) = (self.store(), folder.file(name::STORE));
        let noted = data::store_of(folder.path())?;
        let system = |why: io::Error| Failure::system("put in place", &store, &why);
        sync(&self.draft).map_err(system)?;
        // Whenever this ends, neither of the two is another one than the folder's.
        folder.forget_store()?;
        let flags = match store.exists() {
            true => RenameFlags::EXCHANGE,
            false => RenameFlags::empty(),
        };
        if let Err(why) = renameat_with(CWD, &new, CWD, &store, flags) {
            // Nothing depends on it as long as the store is there.
            let _ = noted.map(|noted| folder.note_store(noted));
            return Err(match why {
                Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => Failure::new(format!(
                    "the file system of {} cannot exchange two folders in one step; move the data folder to one \
                     that can (ext4, XFS, Btrfs)",
                    store.display()
                )),
                Errno::XDEV | Errno::BUSY => Failure::new(format!(
                    "{} and {} are on two file systems, and cannot change places",
                    store.display(),
                    new.display()
                )),
                why => system(why.into()),
            });
        }
        // The store of before is nowhere lost: its new place is on the disk first.
        let synced = sync(&self.draft).and_then(|()| sync(folder.path()));
        if let Err(why) = synced {
            let why = system(why);
            output::note(format_args!("warning: {why}; a cut of power may undo the rollback"));
        }
        Ok(())
    }
}
