//! The head of the data file: which state is the last, and where its tables begin.
//!
//! LMDB believes what it reads: a page beyond the end of the file would kill the process. The
//! layout is that of `MDB_page`, `MDB_meta` and `MDB_db` in LMDB 0.9's `mdb.c`, in the machine's
//! byte order.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
/// Page header and the part of the meta page that is used.
const HEAD_BYTES: usize = 152;
const NO_PAGE: u64 = u64::MAX;
/// `P_META`
const META_PAGE: u16 = 0x08;
/// `MDB_INTEGERKEY`, which the list of free pages has and no table of ours.
const INTEGER_KEYS: u16 = 0x08;

/// One of the two meta pages.
pub(crate) struct Meta {
    pub page_bytes: u64,
    /// The list of free pages.
    pub free: Root,
    /// The list of tables.
    pub tables: Root,
    pub last_page: u64,
    pub transaction: u64,
}

/// Where a table begins, and what it is said to hold.
#[derive(Clone, Copy)]
pub(crate) struct Root {
    /// `None` if it is empty.
    pub page: Option<u64>,
    /// Levels from the root down to the leaves, both counted.
    pub levels: u16,
    pub branch_pages: u64,
    pub leaf_pages: u64,
    pub overflow_pages: u64,
    pub rows: u64,
    pub flags: u16,
}

impl Root {
    /// Bytes of a root in a meta page or in a row of the list of tables.
    pub const BYTES: usize = 48;

    pub fn parse(bytes: &[u8]) -> Option<Root> {
        let page = long(bytes, 40)?;
        Some(Root {
            flags: short(bytes, 4)?,
            levels: short(bytes, 6)?,
            branch_pages: long(bytes, 8)?,
            leaf_pages: long(bytes, 16)?,
            overflow_pages: long(bytes, 24)?,
            rows: long(bytes, 32)?,
            page: (page != NO_PAGE).then_some(page),
        })
    }
}

/// The names of the tables in the data file, in order: to tell whose it is before LMDB is let at
/// it. `None` if it is no file of LMDB's, or has more tables than fit on a page.
pub(crate) fn tables(path: &Path) -> io::Result<Option<Vec<Vec<u8>>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let Some(meta) = newest(&file)? else { return Ok(None) };
    let at = meta.tables.page.and_then(|page| page.checked_mul(meta.page_bytes));
    let Some(at) = at else { return Ok(None) };
    let mut page = vec![0; meta.page_bytes as usize];
    match file.read_exact_at(&mut page, at) {
        Ok(()) => Ok(names(&page)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The keys of a leaf (`MDB_page` and `MDB_node`).
fn names(page: &[u8]) -> Option<Vec<Vec<u8>>> {
    const LEAF: u16 = 2;
    const HEAD: usize = 16;
    let word = |at: usize| Some(u16::from_ne_bytes(*page.get(at..)?.first_chunk()?));
    if word(10)? != LEAF {
        return None;
    }
    let count = usize::from(word(12)?).checked_sub(HEAD)? / 2;
    let name = |number| {
        let node = usize::from(word(HEAD + 2 * number)?);
        let bytes = usize::from(word(node + 6)?);
        page.get(node + 8..node + 8 + bytes).map(<[u8]>::to_vec)
    };
    (0..count).map(name).collect()
}

impl Meta {
    /// How long the file has to be; `None` if it contradicts itself.
    pub fn file_bytes(&self) -> Option<u64> {
        let there = |root: &Root| root.page.is_none_or(|page| page <= self.last_page);
        let plain = self.free.flags == INTEGER_KEYS && self.tables.flags == 0;
        let wanted = self.last_page.checked_add(1)?.checked_mul(self.page_bytes)?;
        (plain && there(&self.free) && there(&self.tables) && i64::try_from(wanted).is_ok())
            .then_some(wanted)
    }
}

/// The two meta pages of the state that this transaction committed, made of the one that it has written; `None` if a
/// later one has overwritten that. The second has the number of its place, as LMDB wants both.
///
/// The number of the transaction is the last of what a commit writes there: a page that is being overwritten may still
/// have that of before. The caller finds out that the next but one commit had not begun.
pub(crate) fn of_transaction(
    file: &File,
    transaction: u64,
) -> io::Result<Option<(Meta, [Vec<u8>; 2])>> {
    let Some(first) = read(file, 0, 0)? else { return Ok(None) };
    let page_bytes = first.page_bytes;
    // Transactions write their heads by turns (`mdb_env_write_meta`).
    let place = transaction % 2;
    let mut page = vec![0; page_bytes as usize];
    file.read_exact_at(&mut page, place * page_bytes)?;
    let head = page.first_chunk::<HEAD_BYTES>();
    let meta = head.and_then(|head| parse(head, place));
    let Some(meta) = meta.filter(|meta| meta.transaction == transaction) else { return Ok(None) };
    let pages = [0_u64, 1].map(|number| {
        let mut page = page.clone();
        if let Some(place) = page.first_chunk_mut() {
            *place = number.to_ne_bytes();
        }
        page
    });
    Ok(Some((meta, pages)))
}

/// The later of two sound heads; LMDB wants both.
pub(crate) fn newest(file: &File) -> io::Result<Option<Meta>> {
    let Some(first) = read(file, 0, 0)? else { return Ok(None) };
    let Some(second) = read(file, first.page_bytes, 1)? else { return Ok(None) };
    if second.page_bytes != first.page_bytes {
        return Ok(None);
    }
    Ok(Some(later(first, second)))
}

fn later(first: Meta, second: Meta) -> Meta {
    if second.transaction > first.transaction { second } else { first }
}

/// The later of those heads that are sound, each by itself.
pub(crate) fn any(file: &File) -> io::Result<Option<Meta>> {
    let first = read(file, 0, 0)?.filter(|meta| meta.file_bytes().is_some());
    let mut second = None;
    // Where the first is spoilt, it does not say where the second is.
    for bits in 9..=16 {
        let page_bytes = 1 << bits;
        second = second.or(read(file, page_bytes, 1)?
            .filter(|meta| meta.page_bytes == page_bytes && meta.file_bytes().is_some()));
    }
    Ok(match (first, second) {
        (Some(first), Some(second)) => Some(later(first, second)),
        (first, second) => first.or(second),
    })
}

/// A head made up where none is left: pages have the size at which most of them state their number.
pub(crate) fn none(file: &File, file_bytes: u64) -> Meta {
    const LOOKED_AT: u64 = 1000;
    let is_page = |page_bytes: u64, number: u64| {
        let mut found = [0; 8];
        let read = file.read_exact_at(&mut found, number * page_bytes);
        read.is_ok() && u64::from_ne_bytes(found) == number
    };
    let pages = |page_bytes| (2..LOOKED_AT).filter(|&number| is_page(page_bytes, number)).count();
    let page_bytes = (9..=16).map(|bits| 1 << bits).max_by_key(|&size| pages(size)).unwrap_or(4096);
    let empty = Root {
        page: None,
        levels: 0,
        branch_pages: 0,
        leaf_pages: 0,
        overflow_pages: 0,
        rows: 0,
        flags: 0,
    };
    let last_page = (file_bytes / page_bytes).saturating_sub(1);
    Meta { page_bytes, free: empty, tables: empty, last_page, transaction: 0 }
}

fn read(file: &File, offset: u64, page: u64) -> io::Result<Option<Meta>> {
    let mut head = [0; HEAD_BYTES];
    match file.read_exact_at(&mut head, offset) {
        Ok(()) => Ok(parse(&head, page)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(head: &[u8; HEAD_BYTES], page: u64) -> Option<Meta> {
    if long(head, 0)? != page || short(head, 10)? & META_PAGE == 0 {
        return None;
    }
    if word(head, 16)? != MAGIC || word(head, 20)? != VERSION {
        return None;
    }
    let page_bytes = word(head, 40)?;
    if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
        return None;
    }
    Some(Meta {
        page_bytes: page_bytes.into(),
        free: Root::parse(head.get(40..)?)?,
        tables: Root::parse(head.get(40 + Root::BYTES..)?)?,
        last_page: long(head, 136)?,
        transaction: long(head, 144)?,
    })
}

pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// A meta page of this place and transaction.
    fn page(place: u64, transaction: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &place.to_ne_bytes());
        put(10, &META_PAGE.to_ne_bytes());
        put(16, &MAGIC.to_ne_bytes());
        put(20, &VERSION.to_ne_bytes());
        put(40, &(PAGE as u32).to_ne_bytes());
        put(44, &INTEGER_KEYS.to_ne_bytes());
        put(80, &NO_PAGE.to_ne_bytes());
        put(128, &NO_PAGE.to_ne_bytes());
        put(136, &1_u64.to_ne_bytes());
        put(144, &transaction.to_ne_bytes());
        page
    }

    #[test]
    fn both_heads_are_made_of_the_one_that_the_transaction_wrote() {
        let found = |pages: [u64; 2], transaction: u64| {
            let file = tempfile::tempfile().unwrap();
            let [first, second] = pages;
            file.write_all_at(&[page(0, first), page(1, second)].concat(), 0).unwrap();
            of_transaction(&file, transaction).unwrap()
        };
        for (pages, transaction) in [([0, 0], 0), ([0, 1], 1), ([4, 3], 4), ([4, 5], 4)] {
            let (meta, made) = found(pages, transaction).unwrap();
            assert_eq!((meta.transaction, meta.file_bytes()), (transaction, Some(2 * 4096)));
            assert_eq!(made, [page(0, transaction), page(1, transaction)]);
        }
        assert!(found([6, 5], 4).is_none() && found([6, 7], 5).is_none(), "overtaken");
        assert!(found([4, 3], 6).is_none(), "it is not there yet");
    }
}
