//! A repository: made, opened, and what can be done with it.

use crate::backup::Backup;
use crate::creating::Creating;
use crate::disk;
use crate::error::{Error, Fault};
use crate::header::{Header, Secret};
use crate::limits::{HEADER_BYTES_MAX, SEGMENT_BYTES_MAX};
use crate::lock;
use crate::manifest::Manifest;
use crate::name::{self, BackupName, Segment};
use crate::objects::Objects;
use crate::protection::Protection;
use crate::prune::{self, Keep, Pruned};
use crate::sealed::{Compressor, Kind, Vault};
use crate::verify::{self, Damage, Verified};
use keyway_engine::Engine;
use keyway_host::timestamp::Timestamp;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A folder of backups, open.
pub struct Repository {
    objects: Objects,
    /// The bytes of its header.
    header: Vec<u8>,
}

/// A backup in a list.
#[derive(Debug)]
pub struct Listed {
    /// Its name.
    pub name: BackupName,
    /// Its contents, or why they cannot be read.
    pub manifest: Result<Manifest, Error>,
}

/// The folders of a repository.
const FOLDERS: [&str; 5] =
    [name::CHUNKS, name::MANIFESTS, name::SEGMENTS, name::DRAFTS, name::DAMAGED];
/// The locks of a repository. They are made with it: on a full disk, old backups can still be removed.
const LOCKS: [&str; 3] = [name::LOCK, name::READERS, name::SEGMENTS_LOCK];

impl Repository {
    /// The kind of secret that opens the repository in this folder.
    ///
    /// # Errors
    /// [`Error::NoRepository`] if there is none, [`Error::NoHeader`], [`Error::Damaged`], [`Error::System`].
    pub fn protection(folder: &Path) -> Result<Protection, Error> {
        Ok(find_header(folder)?.protection())
    }

    /// Makes a repository in a folder that is empty, or not there; the folder above it has to be.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Occupied`], or if it cannot be written or sealed.
    pub fn create(
        folder: &Path,
        engine: &Engine,
        secret: &Secret<'_>,
    ) -> Result<Repository, Error> {
        let refused = |why| Error::system(folder, "make the folder", folder, why);
        if disk::make_folder(folder).map_err(refused)? {
            let above = folder.parent().filter(|it| !it.as_os_str().is_empty());
            disk::sync_folder(above.unwrap_or(Path::new("."))).map_err(refused)?;
        }
        is_free(folder)?;
        let _lock = lock::writer(folder)?;
        // Another process may have been faster.
        is_free(folder)?;
        let (header, root) = Header::new(engine, secret)?;
        for lock in LOCKS {
            let path = folder.join(lock);
            disk::open_lock(&path).map_err(|why| Error::system(folder, "write", &path, why))?;
        }
        make_folders(folder)?;
        let repository = Repository {
            objects: Objects {
                folder: folder.to_owned(),
                vault: Vault::new(engine, &header.id, &root)?,
            },
            header: header.to_bytes()?,
        };
        repository.put_headers()?;
        Ok(repository)
    }

    /// Opens the repository in this folder.
    ///
    /// # Errors
    /// [`Error::NoRepository`] if there is none, [`Error::WrongSecret`], [`Error::OtherSecret`],
    /// [`Error::Held`], [`Error::Damaged`] if neither header nor copy can be read.
    pub fn open(folder: &Path, engine: &Engine, secret: &Secret<'_>) -> Result<Repository, Error> {
        let header = find_header(folder)?;
        let root = header.unseal(engine, secret, folder)?;
        for name in FOLDERS {
            match disk::is_folder(folder, &folder.join(name)) {
                // Those that are empty may be lost where a repository was copied.
                Err(Error::System { why, .. }) if why.kind() == io::ErrorKind::NotFound => {}
                checked => checked?,
            }
        }
        let vault = Vault::new(engine, &header.id, &root)?;
        let objects = Objects { folder: folder.to_owned(), vault };
        Ok(Repository { objects, header: header.to_bytes()? })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.objects.folder
    }

    /// Begins a backup. Until it is dropped, no other process writes to the repository. A header that is damaged
    /// is written anew.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process writes, or the system refuses.
    pub fn begin(&self, now: Timestamp) -> Result<Creating<'_>, Error> {
        let lock = lock::writer(self.folder())?;
        make_folders(self.folder())?;
        self.put_headers()?;
        Creating::begin(&self.objects, lock, now)
    }

    /// All backups, in the order in which they were made. One that is damaged is among them.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn backups(&self) -> Result<Vec<Listed>, Error> {
        let listed = |name: BackupName| {
            let manifest = self.manifest(&name);
            Listed { name, manifest }
        };
        Ok(self.objects.backups()?.into_iter().map(listed).collect())
    }

    /// Opens the backup of this name, or the `latest`. Until it is dropped, no file of the repository is removed,
    /// unless this process may not write to it.
    ///
    /// # Errors
    /// [`Error::NoBackup`], [`Error::Damaged`]; [`Error::InUse`] while another process removes backups.
    pub fn backup(&self, name: &str) -> Result<Backup<'_>, Error> {
        let lock = lock::reader(self.folder())?;
        let none = || Error::NoBackup { folder: self.folder().to_owned(), name: name.to_owned() };
        let names = self.objects.backups()?;
        let found = match name {
            name::LATEST => names.into_iter().next_back(),
            _ => names.into_iter().find(|found| found.to_string() == name),
        };
        let name = found.ok_or_else(none)?;
        let manifest = self.manifest(&name)?;
        Ok(Backup::new(&self.objects, lock, name, manifest))
    }

    fn manifest(&self, name: &BackupName) -> Result<Manifest, Error> {
        self.objects.read_manifest(name).map_err(|fault| Error::Damaged {
            path: self.objects.at(name::MANIFESTS).join(name.to_string()),
            fault,
        })
    }

    /// Stores a piece of the feed, durable, in the place of an earlier one of these positions.
    ///
    /// # Errors
    /// [`Error::Unfit`] if the positions are in the wrong order, [`Error::Limit`], or if it cannot be written.
    pub fn put_segment(&self, segment: Segment, bytes: &[u8]) -> Result<(), Error> {
        if segment.first > segment.last {
            return Err(Error::Unfit("a piece of the feed ends before it begins".to_owned()));
        }
        if bytes.len() > SEGMENT_BYTES_MAX {
            return Err(Error::Limit {
                of: "bytes in a piece of the feed",
                most: SEGMENT_BYTES_MAX,
            });
        }
        let objects = &self.objects;
        let (kind, label) = (Kind::Segment, segment.label());
        let sealed = objects.vault.seal(&mut Compressor::new()?, kind, &label, bytes)?;
        let _lock = lock::segments(self.folder())?;
        let above = objects.at(name::SEGMENTS);
        make_folder(self.folder(), &above)?;
        let folder = above.join(name::hex(&segment.history));
        make_folder(self.folder(), &folder)?;
        let path = objects.at(segment.path());
        disk::put(&folder.join(SEGMENT_DRAFT), &path, &sealed)
            .map_err(objects.system("write", &path))
    }

    /// The pieces of the feed of a history, sorted.
    ///
    /// # Errors
    /// If a folder cannot be listed.
    pub fn segments(&self, history: [u8; 16]) -> Result<Vec<Segment>, Error> {
        let mut segments = self.objects.segments()?;
        segments.retain(|segment| segment.history == history);
        Ok(segments)
    }

    /// The bytes of a piece of the feed.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn read_segment(&self, segment: &Segment) -> Result<Zeroizing<Vec<u8>>, Error> {
        let damaged = |fault| Error::Damaged { path: self.objects.at(segment.path()), fault };
        self.objects.read_segment(segment).map_err(damaged)
    }

    /// Reads everything, each chunk once, those that no backup names too, and says what is damaged. `progress` is told how many bytes of the
    /// files were read, and how many there are, and says whether to go on.
    ///
    /// # Errors
    /// If a folder cannot be listed; [`Error::InUse`] while another process removes backups; [`Error::Stopped`].
    pub fn verify(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
        tell: &mut dyn FnMut(Damage),
    ) -> Result<Verified, Error> {
        let _lock = lock::reader(self.folder())?;
        verify::verify(&self.objects, &self.header, progress, tell)
    }

    /// Moves damaged files below `damaged/`. A chunk that is not in its place any more is stored anew by the
    /// next backup of a file that still has it, which heals the earlier ones; a backup without its manifest no
    /// longer keeps [`Repository::prune`] from removing chunks. How many files were moved.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::BeingRead`], or if the system refuses.
    pub fn set_aside(&self, damages: &[Damage]) -> Result<u64, Error> {
        let _locks = self.lock_all()?;
        make_folders(self.folder())?;
        let mut moved = 0;
        for damage in damages {
            moved += u64::from(verify::set_aside(&self.objects, damage)?);
        }
        Ok(moved)
    }

    /// Removes backups that are not to be kept, then chunks and pieces of feeds that no kept one needs. With
    /// `is_trial` it only says what it would remove.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process writes, [`Error::BeingRead`] while another reads, [`Error::Unfit`] if
    /// nothing would be kept, or if the system refuses.
    pub fn prune(&self, keep: Keep, is_trial: bool) -> Result<Pruned, Error> {
        let _locks = self.lock_all()?;
        prune::prune(&self.objects, keep, is_trial)
    }

    fn lock_all(&self) -> Result<[lock::Lock; 3], Error> {
        let folder = self.folder();
        Ok([lock::writer(folder)?, lock::no_readers(folder)?, lock::segments(folder)?])
    }

    /// Writes the header and its copy where they are not what they should be.
    fn put_headers(&self) -> Result<(), Error> {
        let draft = self.objects.at(name::DRAFTS).join(name::HEADER);
        // The header is last: with it the folder is a repository.
        for file in [name::COPY, name::HEADER] {
            let path = self.objects.at(file);
            if !matches!(disk::read(&path, HEADER_BYTES_MAX), Ok(bytes) if bytes == self.header) {
                disk::put(&draft, &path, &self.header)
                    .map_err(self.objects.system("write", &path))?;
            }
        }
        Ok(())
    }
}

/// The name of a piece of the feed until it is whole.
const SEGMENT_DRAFT: &str = "draft";

/// Reads the header, or its copy where that is damaged.
fn find_header(folder: &Path) -> Result<Header, Error> {
    let path = folder.join(name::HEADER);
    let read = |path: &Path| disk::read(path, HEADER_BYTES_MAX).and_then(|it| Header::parse(&it));
    match (read(&path), read(&folder.join(name::COPY))) {
        // Taken for the right one, it would be written in the place of the other.
        (Ok(header), Ok(copy)) if header != copy => {
            const TWO: &str = "it and its copy, keyway-backup.copy, are of two repositories; move away the one that does \
                               not belong to these backups";
            Err(Error::Damaged { path, fault: Fault::Unfit(TWO) })
        }
        (Ok(header), _) | (_, Ok(header)) => Ok(header),
        (Err(Fault::Missing), Err(Fault::Missing)) => {
            // A create that was killed may have left anything else.
            Err(match has_backups(folder) {
                false => Error::NoRepository(folder.to_owned()),
                true => Error::NoHeader(folder.to_owned()),
            })
        }
        (Err(fault), _) => Err(Error::Damaged { path, fault }),
    }
}

/// Whether there are files that are called as backups are.
fn has_backups(folder: &Path) -> bool {
    let names = disk::names(&folder.join(name::MANIFESTS)).unwrap_or_default();
    names.iter().any(|name| BackupName::parse(name).is_some())
}

/// That a new repository can begin in a folder.
fn is_free(folder: &Path) -> Result<(), Error> {
    match find_header(folder) {
        Ok(_) | Err(Error::Damaged { .. }) => return Err(Error::Exists(folder.to_owned())),
        Err(_) => {}
    }
    let refused = |path: &Path, why| Error::system(folder, "list", path, why);
    if has_backups(folder) {
        return Err(Error::NoHeader(folder.to_owned()));
    }
    // A create that was killed leaves these, and a new file system has the last.
    let is_known =
        |name: &&str| FOLDERS.contains(name) || LOCKS.contains(name) || *name == "lost+found";
    let names = disk::names(folder).map_err(|why| refused(folder, why))?;
    match names.into_iter().find(|name| !is_known(&name.as_str())) {
        Some(name) => Err(Error::Occupied { folder: folder.to_owned(), name }),
        None => Ok(()),
    }
}

/// Makes the folders that are not there.
fn make_folders(folder: &Path) -> Result<(), Error> {
    for name in FOLDERS {
        make_folder(folder, &folder.join(name))?;
    }
    let chunks = folder.join(name::CHUNKS);
    let refused = |path: PathBuf| move |why| Error::system(folder, "make the folder", &path, why);
    let mut is_new = false;
    for part in 0..=u8::MAX {
        let path = chunks.join(name::hex(&[part]));
        is_new |= disk::make_folder(&path).map_err(refused(path.clone()))?;
        disk::is_folder(folder, &path)?;
    }
    if is_new {
        disk::sync_folder(&chunks).map_err(refused(chunks.clone()))?;
    }
    Ok(())
}

/// Makes a folder, durable, if it is not there.
fn make_folder(folder: &Path, path: &Path) -> Result<(), Error> {
    let refused = |why| Error::system(folder, "make the folder", path, why);
    if disk::make_folder(path).map_err(refused)? {
        disk::sync_folder(path.parent().unwrap_or(folder)).map_err(refused)?;
    }
    disk::is_folder(folder, path)
}
