//! A backup that is whole, read.

use crate::error::{Error, Fault};
use crate::list::{Needed, Walk};
use crate::lock::Lock;
use crate::manifest::{Manifest, StoredFile};
use crate::name::{BackupName, Name};
use crate::objects::Objects;
use crate::sealed::Kind;
use std::io::{self, ErrorKind, Read};
use zeroize::Zeroizing;

/// A backup. While it is open, no file of the repository is removed.
pub struct Backup<'a> {
    objects: &'a Objects,
    _lock: Option<Lock>,
    name: BackupName,
    manifest: Manifest,
}

impl<'a> Backup<'a> {
    pub(crate) fn new(
        objects: &'a Objects,
        lock: Option<Lock>,
        name: BackupName,
        manifest: Manifest,
    ) -> Self {
        Backup { objects, _lock: lock, name, manifest }
    }

    /// Its name.
    pub fn name(&self) -> &BackupName {
        &self.name
    }

    /// Its contents.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its files, in the order in which they were stored.
    pub fn files(&self) -> &[StoredFile] {
        &self.manifest.files
    }

    /// Reads a file. Each piece is checked before any of it is handed out: that it is authentic, that it is the
    /// one of this place, and its length. A read that fails has an [`Error`] in its [`io::Error`], and no read
    /// after it gives anything.
    ///
    /// # Errors
    /// [`Error::NoFile`].
    pub fn read(&self, path: &str) -> Result<Contents<'_>, Error> {
        let file = self.files().iter().find(|file| file.path == path).ok_or_else(|| {
            Error::NoFile { backup: self.name.to_string(), path: path.to_owned() }
        })?;
        Ok(Contents {
            objects: self.objects,
            walk: Walk::new(self.objects, file),
            piece: Zeroizing::default(),
            at: 0,
            left: file.bytes,
            failed: false,
        })
    }
}

/// The bytes of a file of a backup.
pub struct Contents<'a> {
    objects: &'a Objects,
    walk: Walk<'a>,
    piece: Zeroizing<Vec<u8>>,
    /// How much of the piece was handed out.
    at: usize,
    /// Bytes of the file behind this piece.
    left: u64,
    /// Whether a piece could not be read.
    failed: bool,
}

impl Contents<'_> {
    /// Reads the next piece; none is left at the end.
    fn next_piece(&mut self) -> Result<(), Error> {
        (self.at, self.piece) = (0, Zeroizing::default());
        if self.left == 0 {
            return Ok(());
        }
        if self.failed {
            return Err(Error::Unfit("a piece before this one could not be read".to_owned()));
        }
        self.failed = true;
        let damaged = |(name, fault): (Name, Fault)| {
            let path = self.objects.at(name.path());
            Error::Damaged { path, fault }
        };
        for needed in &mut self.walk {
            if let Needed::Piece(name, bytes) = needed.map_err(damaged)? {
                let piece = read_piece(self.objects, &name, bytes);
                self.piece = piece.map_err(|fault| damaged((name, fault)))?;
                self.left -= bytes as u64;
                self.failed = false;
                return Ok(());
            }
        }
        // A manifest and its lists were counted, so this does not happen.
        Err(Error::Unfit("the pieces of the file end early".to_owned()))
    }
}

/// The text of a piece that has to have this length.
pub(crate) fn read_piece(
    objects: &Objects,
    name: &Name,
    bytes: usize,
) -> Result<Zeroizing<Vec<u8>>, Fault> {
    let text = objects.read_chunk(Kind::Piece, name)?;
    match text.len() == bytes {
        true => Ok(text),
        false => Err(Fault::Unfit("it is longer or shorter than its place asks for")),
    }
}

impl Read for Contents<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if self.at == self.piece.len() {
            self.next_piece().map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
        }
        let rest = &self.piece[self.at..];
        let read = rest.len().min(out.len());
        out[..read].copy_from_slice(&rest[..read]);
        self.at += read;
        Ok(read)
    }
}
