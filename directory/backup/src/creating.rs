//! A backup while it is made.
//!
//! Pieces are stored in batches of 8 MiB: while threads name, compress, seal, write and sync one, the next is
//! read. A piece whose name is in the repository costs the hash alone.

use crate::disk;
use crate::error::{Error, Fault};
use crate::limits::{BATCH_PIECES, FILES_MAX, MANIFEST_BYTES_MAX, PIECE_BYTES, THREADS};
use crate::list::Builder;
use crate::lock::Lock;
use crate::manifest::{FeedPosition, Manifest, Paths, StoredFile};
use crate::name::{self, BackupName, Name};
use crate::objects::Objects;
use crate::parallel;
use crate::sealed::{Compressor, Kind};
use keyway_host::timestamp::Timestamp;
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// The counts of a file that was stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// Its length.
    pub bytes: u64,
    /// Its pieces.
    pub chunks: u64,
    /// Chunks that were not in the repository before, lists too.
    pub new_chunks: u64,
    /// The bytes that these take there, compressed and sealed.
    pub new_bytes: u64,
}

/// A backup that is not whole yet. Dropped, it leaves no backup; its chunks serve the next one.
pub struct Creating<'a> {
    objects: &'a Objects,
    _lock: Lock,
    name: BackupName,
    now: Timestamp,
    /// The chunks of this backup: about 50 bytes of memory each.
    known: Mutex<HashSet<Name>>,
    /// The folders of the chunks that this backup names.
    used: [bool; 256],
    paths: Paths,
    files: Vec<StoredFile>,
    failed: bool,
}

/// The chunks of a part of a batch, stored.
#[derive(Default)]
struct Stored {
    names: Vec<Name>,
    new_chunks: u64,
    new_bytes: u64,
}

impl<'a> Creating<'a> {
    /// Removes what killed ones have left. The caller has the lock.
    pub(crate) fn begin(
        objects: &'a Objects,
        lock: Lock,
        now: Timestamp,
    ) -> Result<Creating<'a>, Error> {
        let drafts = objects.at(name::DRAFTS);
        for draft in disk::names(&drafts).map_err(objects.system("list", &drafts))? {
            let draft = drafts.join(draft);
            disk::remove_if_there(&draft).map_err(objects.system("remove", &draft))?;
        }
        let all = objects.backups()?;
        let name = BackupName::after(all.last(), now);
        let unfit = || {
            let newest =
                all.last().map(|newest| format!(" after {newest}, or")).unwrap_or_default();
            Error::Unfit(format!(
                "no backup can be named{newest} for {now}: if the clock is right, move that file out of {}",
                objects.at(name::MANIFESTS).display()
            ))
        };
        let name = name.ok_or_else(unfit)?;
        Ok(Creating {
            objects,
            _lock: lock,
            name,
            now,
            known: Mutex::default(),
            used: [false; 256],
            paths: Paths::default(),
            files: Vec::new(),
            failed: false,
        })
    }

    /// The name that the backup will have.
    pub fn name(&self) -> &BackupName {
        &self.name
    }

    /// Stores a file: what `reader` gives until its end. `path` is relative, see
    /// [`StoredFile::path`], and `mode` its rights as in `chmod`. `progress` is told after each batch how many
    /// bytes of this file are stored.
    ///
    /// # Errors
    /// If the path does not fit, `reader` fails, or a chunk cannot be stored; then no other file can be stored,
    /// and the backup not be finished.
    pub fn put(
        &mut self,
        path: &str,
        mode: u32,
        reader: &mut dyn Read,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Put, Error> {
        self.is_usable()?;
        self.failed = true;
        if self.files.len() == FILES_MAX {
            return Err(Error::Limit { of: "files", most: FILES_MAX });
        }
        if mode > 0o7777 {
            return Err(Error::Unfit(format!("a file cannot have the rights {mode:o}")));
        }
        self.paths.add(path)?;
        let put = self.store_file(path, mode, reader, progress)?;
        self.failed = false;
        Ok(put)
    }

    fn is_usable(&self) -> Result<(), Error> {
        match self.failed {
            true => Err(Error::Unfit("the backup has failed before; begin another".to_owned())),
            false => Ok(()),
        }
    }

    fn store_file(
        &mut self,
        path: &str,
        mode: u32,
        reader: &mut dyn Read,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Put, Error> {
        let unread = |why| Error::Source { path: path.to_owned(), why };
        let (mut put, mut builder, mut used) = (Put::default(), Builder::default(), self.used);
        let (mut batch, mut next) = (Zeroizing::default(), Zeroizing::default());
        let mut lists = Compressor::new()?;
        fill(&mut batch, reader).map_err(unread)?;
        while !batch.is_empty() {
            let pieces: Vec<&[u8]> = batch.chunks(PIECE_BYTES).collect();
            let store = |pieces: &[&[u8]]| self.store(&mut Compressor::new()?, Kind::Piece, pieces);
            let (stored, filled) = parallel::parts(&pieces, store, || fill(&mut next, reader));
            for stored in stored {
                let stored = stored?;
                put.add(&stored);
                for name in &stored.names {
                    used[usize::from(name.folder())] = true;
                    builder.push(name, &mut |list| {
                        self.store_list(&mut lists, list, &mut put, &mut used)
                    })?;
                }
            }
            put.bytes += batch.len() as u64;
            put.chunks += pieces.len() as u64;
            progress(put.bytes);
            filled.map_err(unread)?;
            mem::swap(&mut batch, &mut next);
        }
        let (levels, names) =
            builder.finish(&mut |list| self.store_list(&mut lists, list, &mut put, &mut used))?;
        self.used = used;
        self.files.push(StoredFile {
            path: path.to_owned(),
            mode,
            bytes: put.bytes,
            levels,
            names,
        });
        Ok(put)
    }

    fn store_list(
        &self,
        compressor: &mut Compressor,
        list: &[u8],
        put: &mut Put,
        used: &mut [bool; 256],
    ) -> Result<Name, Error> {
        let stored = self.store(compressor, Kind::List, &[list])?;
        put.add(&stored);
        let [name] = stored.names[..] else {
            return Err(Error::Unfit("a list has no name".to_owned()));
        };
        used[usize::from(name.folder())] = true;
        Ok(name)
    }

    /// Stores chunks, unless they are there.
    fn store(
        &self,
        compressor: &mut Compressor,
        kind: Kind,
        texts: &[&[u8]],
    ) -> Result<Stored, Error> {
        let (mut stored, mut drafts) = (Stored::default(), Vec::new());
        for text in texts {
            let name = self.objects.vault.name(kind, text)?;
            stored.names.push(name);
            let is_new = self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
            if !is_new || self.objects.has_chunk(&name) {
                continue;
            }
            let bytes = self.objects.vault.seal(compressor, kind, &name.0, text)?;
            let draft = self.objects.at(name::DRAFTS).join(name.to_string());
            let file =
                disk::write_new(&draft, &[&bytes]).map_err(self.objects.system("write", &draft))?;
            stored.new_chunks += 1;
            stored.new_bytes += bytes.len() as u64;
            drafts.push((file, draft, name));
        }
        // All are written before the first is waited for.
        for (file, draft, name) in drafts {
            let path = self.objects.at(name.path());
            let placed = file.sync_all().and_then(|()| fs::rename(&draft, &path));
            placed.map_err(self.objects.system("write", &path))?;
        }
        Ok(stored)
    }

    /// Makes the backup whole: from here on it is there, also after a power cut. `meta` is any JSON, of at most
    /// [`META_BYTES_MAX`](crate::limits::META_BYTES_MAX) bytes, and `feed` says where the store's feed stood.
    ///
    /// # Errors
    /// If it cannot be written, or a file could not be stored before.
    pub fn finish(self, meta: Value, feed: Option<FeedPosition>) -> Result<BackupName, Error> {
        self.is_usable()?;
        let sum = |of: fn(&StoredFile) -> u64| self.files.iter().map(of).sum();
        let manifest = Manifest {
            created_unix_s: self.now.unix_s(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            bytes: sum(|file| file.bytes),
            pieces: sum(StoredFile::pieces),
            feed,
            files: self.files.clone(),
            meta,
        };
        let text = Zeroizing::new(manifest.to_bytes()?);
        if text.len() > MANIFEST_BYTES_MAX {
            return Err(Error::Limit {
                of: "bytes in its list of files",
                most: MANIFEST_BYTES_MAX,
            });
        }
        // Metadata may be nested more deeply than it can be read.
        Manifest::parse(&text).map_err(|fault| {
            Error::Unfit(format!("the backup could not be read again: {fault}"))
        })?;
        self.sync_folders()?;
        let name = self.name.to_string();
        let vault = &self.objects.vault;
        let bytes = vault.seal(&mut Compressor::new()?, Kind::Manifest, name.as_bytes(), &text)?;
        let path = self.objects.at(name::MANIFESTS).join(&name);
        let draft = self.objects.at(name::DRAFTS).join(&name);
        disk::put(&draft, &path, &bytes).map_err(self.objects.system("write", &path))?;
        // It is what a restore will read.
        let found = self.objects.read_manifest_text(&self.name);
        match found.and_then(|found| if found == text { Ok(()) } else { Err(Fault::Altered) }) {
            Ok(()) => Ok(self.name.clone()),
            Err(fault) => Err(Error::Damaged { path, fault }),
        }
    }

    /// Makes the names of all chunks durable that the backup names: also of those that a killed create left.
    fn sync_folders(&self) -> Result<(), Error> {
        let used = (0..=u8::MAX).filter(|folder| self.used[usize::from(*folder)]);
        let folders: Vec<PathBuf> = used
            .map(|folder| self.objects.at(Path::new(name::CHUNKS).join(name::hex(&[folder]))))
            .collect();
        let sync = |folders: &[PathBuf]| -> Result<(), Error> {
            for folder in folders {
                disk::sync_folder(folder)
                    .map_err(self.objects.system("sync the folder", folder))?;
            }
            Ok(())
        };
        parallel::parts(&folders, sync, || ()).0.into_iter().collect()
    }
}

impl Drop for Creating<'_> {
    /// Drafts are of use to no process. The next create removes what this one cannot.
    fn drop(&mut self) {
        let drafts = self.objects.at(name::DRAFTS);
        for draft in disk::names(&drafts).unwrap_or_default() {
            let _ = disk::remove_if_there(&drafts.join(draft));
        }
    }
}

impl Put {
    fn add(&mut self, stored: &Stored) {
        self.new_chunks += stored.new_chunks;
        self.new_bytes += stored.new_bytes;
    }
}

/// Reads a batch; a shorter one is the last.
fn fill(batch: &mut Zeroizing<Vec<u8>>, reader: &mut dyn Read) -> io::Result<()> {
    const BYTES: usize = BATCH_PIECES * PIECE_BYTES;
    const _: () = assert!(BATCH_PIECES >= THREADS);
    batch.resize(BYTES, 0);
    let mut filled = 0;
    while filled < BYTES {
        match reader.read(&mut batch[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    batch.truncate(filled);
    Ok(())
}
