//! How large a store is, and which readers hold it up.

use keyway_lock::Unpoisoned;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::disk::LMDB_LOCK;
use crate::shared::Shared;
use crate::{Error, lmdb};

/// How large a store is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Entries in it.
    pub entries: u64,
    /// Length of the data as LMDB counts it, in bytes: up to the last page that was ever used.
    pub bytes: u64,
    /// The bytes of the tables; the rest is free for later changes, but for pages that a reader still
    /// sees.
    pub used: u64,
    /// The bytes that it may grow to.
    pub bytes_max: u64,
    /// Read transactions that are open.
    pub readers: u64,
    /// Commits since the state that the oldest of them sees. Pages freed since cannot be used again.
    pub reader_lag: u64,
}

pub(crate) fn of(shared: &Shared) -> Result<Size, Error> {
    // Other processes may read the store, and one that was killed would hold up pages for ever.
    shared.env.clear_stale_readers().map_err(|e| shared.error("looking at readers", e))?;
    let (readers, idle) = shared.idle.beside(|idle| (readers(shared), idle));
    let readers = readers.map_err(|e| Error::system("reading the table of readers", e))?;
    let reading = |e| shared.error("measuring the store", e);
    let info = shared.env.info();
    let txn = shared.env.read_txn().map_err(reading)?;
    let (mut used, mut page_bytes) = (0, 0);
    for table in shared.tables.all() {
        let stat = table.stat(&txn).map_err(reading)?;
        page_bytes = u64::from(stat.page_size);
        used += (stat.branch_pages + stat.leaf_pages + stat.overflow_pages) as u64 * page_bytes;
    }
    let last = info.last_txn_id as u64;
    let oldest = readers.iter().min().copied().unwrap_or(last);
    Ok(Size {
        entries: shared.tables.entry.len(&txn).map_err(reading)?,
        bytes: (info.last_page_number as u64 + 1) * page_bytes,
        used,
        bytes_max: info.map_size as u64,
        readers: readers.len().saturating_sub(idle) as u64,
        reader_lag: last.saturating_sub(oldest),
    })
}

/// The states that readers see, by the numbers of their transactions.
///
/// LMDB has them at the end of its lock file, where every process that uses the store finds them: 64 bytes
/// for each reader, which begin with its transaction's number (all ones for none) and its process (0 for
/// none).
fn readers(shared: &Shared) -> io::Result<Vec<u64>> {
    let mut held = shared.reader_table.lock().unpoisoned();
    let file = match &mut *held {
        Some(file) => file,
        none => none.insert(File::open(shared.dir().join(LMDB_LOCK))?),
    };
    let header_bytes = file.metadata()?.len().saturating_sub(lmdb::READERS_BYTES);
    let mut bytes = vec![0; shared.env.info().number_of_readers as usize * lmdb::READER_BYTES];
    file.read_exact_at(&mut bytes, header_bytes)?;
    Ok(bytes.as_chunks().0.iter().filter_map(reader).collect())
}

fn reader(slot: &[u8; lmdb::READER_BYTES]) -> Option<u64> {
    let state = u64::from_ne_bytes(*slot.first_chunk()?);
    let process = u32::from_ne_bytes(*slot.get(8..)?.first_chunk()?);
    (process != 0 && state != u64::MAX).then_some(state)
}

#[cfg(test)]
mod tests {
    use crate::{Entry, EntryId, Options, Store, Write};

    #[test]
    fn the_oldest_reader_is_seen_and_what_it_holds_up() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() };
        let store = Store::open(dir.path(), options).unwrap();
        let add = |name: &'static [u8]| {
            store
                .write_now(move |w: &mut Write<'_>| {
                    w.insert(EntryId::ROOT, name, &Entry::default(), &[])
                })
                .unwrap()
        };
        add(b"a");
        let before = store.size().unwrap();
        assert_eq!((before.entries, before.readers, before.reader_lag), (1, 0, 0));
        assert!(before.used > 0 && before.used <= before.bytes && before.bytes <= before.bytes_max);
        let read = store.read().unwrap();
        add(b"b");
        add(b"c");
        let held = store.size().unwrap();
        assert_eq!((held.entries, held.readers, held.reader_lag), (3, 1, 2));
        let other = store.read().unwrap();
        assert_eq!(store.size().unwrap().readers, 2);
        drop(read);
        let after = store.size().unwrap();
        assert_eq!((after.readers, after.reader_lag), (1, 0));
        drop(other);
        store.close().unwrap();
    }
}
