//! A data folder with its directory open: what every command but `top` works on.

use crate::cluster;
use keyway_codec::message::ResultCode;
use keyway_config::Configuration;
use keyway_config::{applied, definitions};
use keyway_engine::Engine;
use keyway_folder::data::{self, Folder, StoreId, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_schema::operational::ENTRY_UUID;
use keyway_server::{Directory, OpenError, Unfinished};
use keyway_store::{EntryId, Key, Options, Store};
use std::path::Path;
use std::sync::Arc;

/// The naming context of the server's own entries.
const SYSTEM_RDN: &str = "cn=keyway";

/// The store's row that says that the directory has been filled once.
const META_FILLED: &str = "filled";

/// An open directory.
pub struct Instance {
    /// The directory.
    pub directory: Arc<Directory>,
    /// The folder that it is in.
    pub store: Store,
}

impl Instance {
    /// Says what of the directory's schema is taken for something else than it says.
    pub fn say_schema_warnings(&self) {
        definitions::say(&self.directory.schema_warnings());
    }

    /// Opens the directory of a data folder, which is made if there is none; `locked_memory` is the
    /// process's. Indexes that are not those of the configuration are built first.
    ///
    /// # Errors
    /// Whatever keeps the store from being opened.
    pub fn open(
        folder: &Folder,
        configuration: &Configuration,
        engine: &Engine,
        locked_memory: bool,
    ) -> Result<Instance, Failure> {
        Instance::open_by(Directory::open, folder, configuration, engine, locked_memory)
    }

    /// Opens it to serve: indexes are to be built in the background.
    ///
    /// # Errors
    /// As [`Instance::open`].
    pub fn open_to_serve(
        folder: &Folder,
        configuration: &Configuration,
        engine: &Engine,
        locked_memory: bool,
    ) -> Result<Instance, Failure> {
        Instance::open_by(Directory::open_to_serve, folder, configuration, engine, locked_memory)
    }

    /// Opens it read-only, beside the server that has it open. The data file is not looked at: the
    /// server has done that.
    ///
    /// # Errors
    /// As [`Instance::open`], and if the configuration wants what the server has not made yet.
    pub fn open_to_read(
        folder: &Path,
        configuration: &Configuration,
        engine: &Engine,
    ) -> Result<Instance, Failure> {
        let path = folder.join(name::STORE);
        let bad = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
        let map_bytes_max = configuration.store_bytes_max;
        let options = Options { map_bytes_max, ..Options::default() };
        let store = Store::open_to_read(&path, &options).map_err(|why| bad(&why))?;
        let opened =
            Directory::open_to_read(store.clone(), &configuration.directory, engine.clone());
        Ok(Instance { directory: Arc::new(opened.map_err(|why| bad(&why))?), store })
    }

    /// Asks the directory of a data folder, which may be served meanwhile, whether it takes the configuration of
    /// a file.
    /// Returns whether there was one to ask: not if the folder has no store, or one that cannot be read, which is for
    /// other commands to say.
    ///
    /// # Errors
    /// Why it does not take it.
    pub fn check(
        folder: &Path,
        file: &Path,
        configuration: &Configuration,
    ) -> Result<bool, Failure> {
        let path = folder.join(name::STORE);
        if !Store::is_at(&path) {
            return Ok(false);
        }
        let Ok(store) = Store::open_to_read(&path, &Options::default()) else { return Ok(false) };
        match Directory::check_settings(store, &configuration.directory, keyway_drivers::engine()) {
            Ok(()) => Ok(true),
            Err(
                why @ (OpenError::Settings(_)
                | OpenError::UnknownAttribute(_)
                | OpenError::Schema(_)),
            ) => Err(configuration.explain(&why, file)),
            Err(_) => Ok(false),
        }
    }

    fn open_by(
        open: fn(Store, &keyway_server::Settings, Engine) -> Result<Directory, OpenError>,
        folder: &Folder,
        configuration: &Configuration,
        engine: &Engine,
        locked_memory: bool,
    ) -> Result<Instance, Failure> {
        let path = folder.file(name::STORE);
        let bad = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
        let options = Options {
            map_bytes_max: configuration.store_bytes_max,
            locked_memory,
            expected: data::store_of(folder.path())?,
            feed: configuration.feed,
            identity: Some(ENTRY_UUID),
            ..Options::default()
        };
        let store = Store::open(&path, options).map_err(|why| cannot_open(folder.path(), &why))?;
        // A full disk is no reason not to serve.
        if let Err(why) = folder.note_store(store.incarnation()) {
            output::note(format_args!("warning: the folder does not remember its store: {why}"));
        }
        applied::check(folder.path(), &store, &configuration.text)?;
        let has_etcd = !configuration.cluster.etcd.is_empty();
        store.follow(cluster::follows(folder.path(), &store, has_etcd)?);
        let opened = open(store.clone(), &configuration.directory, engine.clone());
        let directory = Arc::new(opened.map_err(|why| match why {
            OpenError::Settings(_) | OpenError::UnknownAttribute(_) => {
                configuration.explain(&why, &folder.file(name::CONFIGURATION))
            }
            OpenError::Schema(why) => Failure::new(why),
            why => bad(&why),
        })?);
        Ok(Instance { directory, store })
    }

    /// How many entries clients have in it; the server's own are not counted.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn entry_count(&self) -> Result<u64, Failure> {
        entry_count(&self.store)
    }

    /// Holds this suffix from now on, if it does not already.
    ///
    /// # Errors
    /// If it is no suffix, or cannot be noted.
    pub fn ensure_naming_context(&self, dn: &str) -> Result<(), Failure> {
        match self.directory.add_naming_context(dn) {
            Err(why) if why.code != ResultCode::EntryAlreadyExists => {
                Err(Failure::new(describe(&why)))
            }
            _ => Ok(()),
        }
    }

    /// The import that was not finished, if there is one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unfinished(&self) -> Result<Option<Unfinished>, Failure> {
        self.directory
            .unfinished_import()
            .map_err(|why| Failure::new(format!("cannot read the store: {}", describe(&why))))
    }

    /// Whether entries were ever put in. They may all have been deleted since.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn is_populated(&self) -> Result<bool, Failure> {
        let read = self.store.read().map_err(unreadable)?;
        let mark = read.view().meta_get(META_FILLED).map_err(unreadable)?;
        Ok(mark.is_some() || self.entry_count()? > 0)
    }

    /// Notes that entries were put in.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn mark_populated(&self) -> Result<(), Failure> {
        self.store
            .write_now(|write| write.local_put(META_FILLED, b"1"))
            .map_err(|why| Failure::new(format!("cannot write to the store: {why}")))
    }

    /// Answers what was accepted and brings everything to the disk.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn close(self) -> Result<(), Failure> {
        drop(self.directory);
        self.store.close().map_err(|why| Failure::new(format!("cannot close the store: {why}")))
    }
}

/// How many entries clients have in a directory; the server's own are not counted.
///
/// # Errors
/// If it cannot be read.
pub fn entry_count(store: &Store) -> Result<u64, Failure> {
    count(store).map_err(unreadable)
}

fn count(store: &Store) -> Result<u64, keyway_store::Error> {
    let read = store.read()?;
    let view = read.view();
    let mut own = 0;
    for top in view.postings(&Key::children(EntryId::ROOT), EntryId::ROOT)? {
        let top = top?;
        let is_own =
            view.entry(top)?.is_some_and(|entry| SYSTEM_RDN.eq_ignore_ascii_case(entry.rdn()));
        if is_own {
            own += view.count_at_most(&Key::subtree(top), usize::MAX)? as u64;
        }
    }
    Ok(view.entry_count()?.saturating_sub(own))
}

/// Why the store of a folder cannot be opened, and what can be done about it.
pub fn cannot_open(folder: &Path, why: &keyway_store::OpenError) -> Failure {
    let path = folder.join(name::STORE);
    let advice = match why {
        keyway_store::OpenError::Damaged { .. } => format!("; {}", what_to_do(folder)),
        keyway_store::OpenError::Missing => format!("; {}", where_is_it(folder, None)),
        keyway_store::OpenError::Another { found } => {
            format!("; {}", where_is_it(folder, Some(*found)))
        }
        _ => String::new(),
    };
    Failure::new(format!("{}: {why}{advice}", path.display()))
}

/// Advice on a store that is gone, or in whose place another one is.
pub fn where_is_it(folder: &Path, found: Option<StoreId>) -> String {
    let own = data::store_of(folder).ok().flatten().map(data::shown).unwrap_or_default();
    let version = folder.join(name::VERSION);
    let otherwise = match found {
        None => "to begin with an empty directory name a new folder with --data DIR".to_owned(),
        Some(found) => format!(
            "if this one ({}) is to be served from here, take the line \"store {own}\" out of {}",
            data::shown(found),
            version.display()
        ),
    };
    format!(
        "restore the one that {} was made for ({own}) from a backup, and start again; {otherwise}",
        folder.display()
    )
}

/// The advice for a damaged store.
pub fn what_to_do(folder: &Path) -> String {
    let data = output::shell(&folder.to_string_lossy());
    format!(
        "`keyway directory check --data {data}` lists what is wrong, `keyway directory export \
         --continue FILE --data {data}` writes all that can be read, to be imported into a new \
         folder"
    )
}

/// Refuses a data folder that has no store: one that had one, by that word.
///
/// # Errors
/// If it has none.
pub fn has_store(folder: &Path) -> Result<(), Failure> {
    if Store::is_at(&folder.join(name::STORE)) {
        return Ok(());
    }
    if data::store_of(folder)?.is_some() {
        return Err(cannot_open(folder, &keyway_store::OpenError::Missing));
    }
    Err(Failure::new(format!(
        "{} holds no directory yet; name the data folder with --data DIR, or fill one with keyway up or keyway \
         directory import",
        folder.display()
    )))
}

fn unreadable(why: keyway_store::Error) -> Failure {
    Failure::new(format!("cannot read the store: {why}"))
}

/// The directory's words, with the result code's name where there are none.
pub fn describe(why: &keyway_server::Failure) -> String {
    if why.diagnostic.is_empty() { why.code.name().to_owned() } else { why.diagnostic.clone() }
}
