//! The sealed files of a repository, read and found.

use crate::disk;
use crate::error::{Error, Fault};
use crate::limits::{MANIFEST_BYTES_MAX, NAME_BYTES, PIECE_BYTES, SEGMENT_BYTES_MAX};
use crate::manifest::Manifest;
use crate::name::{self, BackupName, Name, Segment};
use crate::sealed::{CHUNK_OVERHEAD_BYTES, Kind, OVERHEAD_BYTES_MAX, Vault};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The files of a repository, and the keys to them.
pub(crate) struct Objects {
    pub folder: PathBuf,
    pub vault: Vault,
}

impl Objects {
    /// A file of the repository.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    /// The system refused `what` (a verb and its object) with a file.
    pub fn system<'a>(
        &'a self,
        what: &'static str,
        path: &'a Path,
    ) -> impl Fn(io::Error) -> Error + use<'a> {
        move |why| Error::system(&self.folder, what, path, why)
    }

    fn read(
        &self,
        path: &Path,
        (kind, label): (Kind, &[u8]),
        bytes_max: usize,
    ) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let bytes = disk::read(&self.at(path), bytes_max + OVERHEAD_BYTES_MAX)?;
        self.vault.open(kind, label, bytes, bytes_max)
    }

    /// The text of a chunk of this kind.
    pub fn read_chunk(&self, kind: Kind, name: &Name) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let text = self.read(&name.path(), (kind, &name.0), PIECE_BYTES)?;
        match self.vault.name(kind, &text) {
            Ok(found) if found == *name => Ok(text),
            Ok(_) => Err(Fault::Unfit("its content is not that of its name")),
            Err(why) => Err(Fault::Unreadable(why.to_string())),
        }
    }

    /// Whether there is a file that could be this chunk. It is not read; but one that lost all its bytes, as files
    /// do where a disk was full or a copy ended early, is none.
    pub fn has_chunk(&self, name: &Name) -> bool {
        fs::symlink_metadata(self.at(name.path()))
            .is_ok_and(|it| it.is_file() && it.len() > CHUNK_OVERHEAD_BYTES)
    }

    /// The names in a list.
    pub fn read_list(&self, name: &Name) -> Result<Vec<Name>, Fault> {
        let text = self.read_chunk(Kind::List, name)?;
        let (names, rest) = text.as_chunks::<NAME_BYTES>();
        match rest {
            [] => Ok(names.iter().map(|name| Name(*name)).collect()),
            _ => Err(Fault::Unfit("it is no list of names")),
        }
    }

    /// The text of a manifest.
    pub fn read_manifest_text(&self, name: &BackupName) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let name = name.to_string();
        let path = Path::new(name::MANIFESTS).join(&name);
        self.read(&path, (Kind::Manifest, name.as_bytes()), MANIFEST_BYTES_MAX)
    }

    pub fn read_manifest(&self, name: &BackupName) -> Result<Manifest, Fault> {
        Manifest::parse(&self.read_manifest_text(name)?)
    }

    pub fn read_segment(&self, segment: &Segment) -> Result<Zeroizing<Vec<u8>>, Fault> {
        self.read(&segment.path(), (Kind::Segment, &segment.label()), SEGMENT_BYTES_MAX)
    }

    /// The backups' names, in the order in which they were made.
    pub fn backups(&self) -> Result<Vec<BackupName>, Error> {
        let folder = self.at(name::MANIFESTS);
        let names = disk::names(&folder).map_err(self.system("list", &folder))?;
        let mut names: Vec<_> = names.iter().filter_map(|name| BackupName::parse(name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The chunks in one of the 256 folders.
    pub fn chunks(&self, of: u8) -> Result<Vec<Name>, Error> {
        let folder = self.at(name::CHUNKS).join(name::hex(&[of]));
        let names = match disk::names(&folder) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(self.system("list", &folder))?,
        };
        let names = names.iter().filter_map(|name| name::from_hex(name).map(Name));
        Ok(names.filter(|name| name.folder() == of).collect())
    }

    /// The pieces of the feeds of all histories, sorted.
    pub fn segments(&self) -> Result<Vec<Segment>, Error> {
        let folder = self.at(name::SEGMENTS);
        let mut segments = Vec::new();
        for history in disk::names(&folder).map_err(self.system("list", &folder))? {
            let Some(id) = name::from_hex(&history) else { continue };
            let folder = folder.join(history);
            let names = disk::names(&folder).map_err(self.system("list", &folder))?;
            segments.extend(names.iter().filter_map(|name| Segment::parse(id, name)));
        }
        segments.sort_unstable();
        Ok(segments)
    }
}
