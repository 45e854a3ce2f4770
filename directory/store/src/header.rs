//! A look at the head of the data file before LMDB maps it.
//!
//! LMDB believes what it reads: a page beyond the end of the file would kill the process. The
//! layout is that of `MDB_page` and `MDB_meta` in LMDB 0.9's `mdb.c`, in the machine's byte order.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::OpenError;

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
/// Page header and the part of the meta page that is used.
const HEAD_BYTES: usize = 152;
const NO_PAGE: u64 = u64::MAX;

/// One of the two meta pages.
struct Meta {
    page_bytes: u64,
    roots: [u64; 2],
    last_page: u64,
    transaction: u64,
}

/// Checks the head of the data file, and gives the file the length it says.
///
/// True if the file had been shorter. That may be right (the last pages may be free and never
/// written) or damage, so the caller has to check the whole store then.
pub(crate) fn check(path: &Path) -> Result<bool, OpenError> {
    let attempt = |e| OpenError::system("opening the store's data file", e);
    let file = File::options().read(true).write(true).open(path).map_err(attempt)?;
    let bytes = file.metadata().map_err(attempt)?.len();
    let meta = newest(&file).map_err(attempt)?.ok_or_else(|| damaged("its head is not LMDB's"))?;
    let reachable = meta.roots.iter().all(|&root| root == NO_PAGE || root <= meta.last_page);
    let wanted = meta.last_page.checked_add(1).and_then(|n| n.checked_mul(meta.page_bytes));
    let Some(wanted) = wanted.filter(|&n| reachable && i64::try_from(n).is_ok()) else {
        return Err(damaged("its head contradicts itself"));
    };
    if bytes >= wanted {
        return Ok(false);
    }
    if meta.roots.iter().any(|&root| root != NO_PAGE && (root + 1) * meta.page_bytes > bytes) {
        return Err(damaged(&format!("the data file has {bytes} bytes and needs {wanted}")));
    }
    file.set_len(wanted).map_err(attempt)?;
    Ok(true)
}

fn damaged(what: &str) -> OpenError {
    OpenError::Damaged { what: what.into() }
}

fn newest(file: &File) -> io::Result<Option<Meta>> {
    let Some(first) = read(file, 0)? else { return Ok(None) };
    let Some(second) = read(file, first.page_bytes)? else { return Ok(None) };
    if second.page_bytes != first.page_bytes {
        return Ok(None);
    }
    Ok(Some(if second.transaction > first.transaction { second } else { first }))
}

fn read(file: &File, offset: u64) -> io::Result<Option<Meta>> {
    let mut head = [0; HEAD_BYTES];
    match file.read_exact_at(&mut head, offset) {
        Ok(()) => Ok(parse(&head)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(head: &[u8; HEAD_BYTES]) -> Option<Meta> {
    if short(head, 16)? != MAGIC || short(head, 20)? != VERSION {
        return None;
    }
    let page_bytes = short(head, 40)?;
    if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
        return None;
    }
    Some(Meta {
        page_bytes: page_bytes.into(),
        roots: [long(head, 80)?, long(head, 128)?],
        last_page: long(head, 136)?,
        transaction: long(head, 144)?,
    })
}

fn short(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?))
}

fn long(head: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*head.get(at..)?.first_chunk()?))
}
