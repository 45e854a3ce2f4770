//! The names of a file's pieces, in lists where they are many.
//!
//! Names at level 0 are those of pieces. A list, a chunk of its own kind, has the names of 2,048 chunks of the
//! level below, fewer only in the last list of its level. So a piece that changes changes one list of each
//! level, and all others are stored already.

use crate::error::{Error, Fault};
use crate::limits::{INLINE_NAMES_MAX, LEVELS_MAX, LIST_NAMES, PIECE_BYTES};
use crate::manifest::{StoredFile, span};
use crate::name::Name;
use crate::objects::Objects;

/// Stores a list, and says its name.
pub(crate) type Store<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Name, Error>;

/// Takes the names of a file's pieces, one after the other.
#[derive(Default)]
pub(crate) struct Builder {
    /// The names of each level that are in no list yet.
    levels: Vec<Vec<u8>>,
}

impl Builder {
    pub fn push(&mut self, name: &Name, store: Store<'_>) -> Result<(), Error> {
        self.add(0, *name, store)
    }

    fn add(&mut self, level: u8, name: Name, store: Store<'_>) -> Result<(), Error> {
        if level > LEVELS_MAX {
            return Err(Error::Limit { of: "levels of names in a file", most: LEVELS_MAX.into() });
        }
        let at = usize::from(level);
        if self.levels.len() == at {
            self.levels.push(Vec::new());
        }
        self.levels[at].extend_from_slice(&name.0);
        if self.levels[at].len() == PIECE_BYTES {
            return self.close(level, store);
        }
        Ok(())
    }

    fn close(&mut self, level: u8, store: Store<'_>) -> Result<(), Error> {
        let list = std::mem::take(&mut self.levels[usize::from(level)]);
        let name = store(&list)?;
        self.add(level + 1, name, store)
    }

    /// The names that the manifest has, and their level.
    pub fn finish(mut self, store: Store<'_>) -> Result<(u8, Vec<Name>), Error> {
        let mut level = 0;
        loop {
            let at = usize::from(level);
            let Some(names) = self.levels.get(at) else { return Ok((0, Vec::new())) };
            let (names, _) = names.as_chunks();
            let is_top = self.levels.len() == at + 1;
            if is_top && names.len() <= INLINE_NAMES_MAX {
                return Ok((level, names.iter().map(|name| Name(*name)).collect()));
            }
            if !names.is_empty() {
                self.close(level, store)?;
            }
            level += 1;
        }
    }
}

/// A chunk that a file needs.
pub(crate) enum Needed {
    /// A piece of this length.
    Piece(Name, usize),
    /// A list. Next come the chunks that it names, unless [`Walk::skip_list`] is called.
    List(Name),
}

/// The chunks of a file, in the order of its bytes. A list that cannot be read is an item too, and what it would
/// name is left out.
pub(crate) struct Walk<'a> {
    objects: &'a Objects,
    pieces: u64,
    bytes: u64,
    /// How many pieces lie before the next one.
    at: u64,
    /// The names of each level that are still to come.
    stack: Vec<(u8, std::vec::IntoIter<Name>)>,
    /// A list that is read next, and its level.
    pending: Option<(Name, u8)>,
}

impl<'a> Walk<'a> {
    pub fn new(objects: &'a Objects, file: &StoredFile) -> Self {
        let stack = vec![(file.levels, file.names.clone().into_iter())];
        Walk { objects, pieces: file.pieces(), bytes: file.bytes, at: 0, stack, pending: None }
    }

    /// Leaves out what the last list names.
    pub fn skip_list(&mut self) {
        if let Some((_, level)) = self.pending.take() {
            self.at = self.pieces.min(self.at + span(level));
        }
    }

    fn enter(&mut self, name: Name, level: u8) -> Result<(), Fault> {
        let names = self.objects.read_list(&name)?;
        let wanted = (self.pieces - self.at).div_ceil(span(level - 1)).min(LIST_NAMES as u64);
        if names.len() as u64 != wanted {
            return Err(Fault::Unfit("it has more or fewer names than its place asks for"));
        }
        self.stack.push((level - 1, names.into_iter()));
        Ok(())
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Needed, (Name, Fault)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((name, level)) = self.pending
            && let Err(fault) = self.enter(name, level)
        {
            self.skip_list();
            return Some(Err((name, fault)));
        }
        self.pending = None;
        loop {
            let (level, names) = self.stack.last_mut()?;
            match (*level, names.next()) {
                (0, Some(name)) => {
                    let left = self.bytes.saturating_sub(self.at * PIECE_BYTES as u64);
                    self.at += 1;
                    return Some(Ok(Needed::Piece(name, left.min(PIECE_BYTES as u64) as usize)));
                }
                (level, Some(name)) => {
                    self.pending = Some((name, level));
                    return Some(Ok(Needed::List(name)));
                }
                (_, None) => {
                    self.stack.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Header, Secret};
    use crate::limits::NAME_BYTES;
    use crate::name::CHUNKS;
    use crate::sealed::{Compressor, Kind, Vault};
    use zeroize::Zeroizing;

    /// A name that says which piece it is.
    fn numbered(piece: u64) -> Name {
        let mut name = [0; NAME_BYTES];
        name[..8].copy_from_slice(&piece.to_be_bytes());
        Name(name)
    }

    #[test]
    fn names_come_back_in_order_from_lists_of_every_depth() {
        let scratch = tempfile::tempdir().unwrap();
        let engine = keyway_drivers::engine();
        let secret = Secret::KeyFile(Zeroizing::new([1; 32]));
        let (header, root) = Header::new(&engine, &secret).unwrap();
        let vault = Vault::new(&engine, &header.id, &root).unwrap();
        let objects = Objects { folder: scratch.path().to_owned(), vault };
        let mut compressor = Compressor::new().unwrap();
        let mut lists = 0;
        let mut store = |list: &[u8]| {
            lists += 1;
            let name = objects.vault.name(Kind::List, list)?;
            let bytes = objects.vault.seal(&mut compressor, Kind::List, &name.0, list)?;
            let path = objects.at(name.path());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
            Ok(name)
        };
        for (pieces, levels, names) in [
            (0, 0, 0),
            (1, 0, 1),
            (16, 0, 16),
            (17, 1, 1),
            (2048, 1, 1),
            (2049, 1, 2),
            (16 * 2048, 1, 16),
            (16 * 2048 + 1, 2, 1),
            (2048 * 2048 + 5, 2, 2),
        ] {
            let mut builder = Builder::default();
            for piece in 0..pieces {
                builder.push(&numbered(piece), &mut store).unwrap();
            }
            let (level, top) = builder.finish(&mut store).unwrap();
            assert_eq!((level, top.len()), (levels, names), "{pieces}");
            // The last piece has one byte.
            let bytes = (pieces * PIECE_BYTES as u64).saturating_sub(PIECE_BYTES as u64 - 1);
            let path = String::new();
            let file = StoredFile { path, mode: 0, bytes, levels: level, names: top };
            let mut at = 0;
            for needed in Walk::new(&objects, &file) {
                match needed.unwrap_or_else(|(name, fault)| panic!("{name}: {fault}")) {
                    Needed::Piece(name, length) => {
                        let wanted = if at + 1 == pieces { 1 } else { PIECE_BYTES };
                        assert_eq!((name, length), (numbered(at), wanted));
                        at += 1;
                    }
                    Needed::List(_) => {}
                }
            }
            assert_eq!(at, pieces);
            // Without what the first list names.
            let (mut walk, mut last) = (Walk::new(&objects, &file), None);
            if let Some(Ok(Needed::List(_))) = walk.next() {
                walk.skip_list();
                for needed in walk {
                    if let Ok(Needed::Piece(name, length)) = needed {
                        last = Some((name, length));
                    }
                }
                let has_more = names > 1;
                assert_eq!(last, has_more.then(|| (numbered(pieces - 1), 1)));
            }
        }
        assert!(lists > 2048 && scratch.path().join(CHUNKS).is_dir());
    }
}
