//! Bytes of one file into another at the same place: shared where the file system can do that, else copied.
//!
//! XFS, Btrfs and others let two files have the same blocks until one of them is written (`copy_file_range` does that by
//! itself where it can). Elsewhere the system copies, or, where it refuses to, this process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, copy_file_range, seek};
use rustix::io::Errno;

/// Bytes that the system is asked for at once, so that progress is seen.
const STEP_BYTES: u64 = 16 << 20;
/// Bytes that this process copies at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Copies a file that no process writes into an empty one, and leaves holes where it has some. `progress` hears how
/// many of its bytes are done.
///
/// # Errors
/// The system's, for either of the two.
pub fn copy_file(from: &File, to: &File, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
    let bytes = from.metadata()?.len();
    let mut at = 0;
    while let Some((start, end)) = next_data(from, at, bytes)? {
        copy_range(from, to, start, end, progress)?;
        at = end;
    }
    to.set_len(bytes)?;
    progress(bytes);
    Ok(())
}

/// The next part of a file that is no hole; a file system that knows none has no other parts.
fn next_data(file: &File, at: u64, bytes: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= bytes {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(at)) {
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some((at, bytes))),
        start => start?,
    };
    Ok((start < bytes).then_some((start, seek(file, SeekFrom::Hole(start))?.min(bytes))))
}

/// Copies the bytes from `at` to `end`. `progress` hears up to where it is done.
pub(crate) fn copy_range(
    from: &File,
    to: &File,
    mut at: u64,
    end: u64,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    while at < end {
        let (mut read_at, mut write_at) = (at, at);
        let step = (end - at).min(STEP_BYTES) as usize;
        match copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), step) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(copied) => at += copied as u64,
            Err(Errno::INTR) => {}
            // Two file systems, one that cannot, or a filter of system calls.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                return copy_here(from, to, at, end, progress);
            }
            Err(why) => return Err(why.into()),
        }
        progress(at);
    }
    Ok(())
}

/// Does it without the system.
fn copy_here(
    from: &File,
    to: &File,
    mut at: u64,
    end: u64,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES.min((end - at) as usize)];
    while at < end {
        let left = buffer.len().min((end - at) as usize);
        let Some(piece) = buffer.get_mut(..left) else { break };
        from.read_exact_at(piece, at)?;
        to.write_all_at(piece, at)?;
        at += left as u64;
        progress(at);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_is_equal_and_keeps_holes() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).truncate(true);
            options.open(dir.path().join(name)).unwrap()
        };
        let (from, to, here) = (open("from"), open("to"), open("here"));
        from.write_all_at(&[1; 5000], 0).unwrap();
        from.write_all_at(&[2; 100], 40 << 20).unwrap();
        from.set_len(64 << 20).unwrap();
        let mut told = Vec::new();
        copy_file(&from, &to, &mut |at| told.push(at)).unwrap();
        assert!(told.is_sorted() && told.last() == Some(&(64 << 20)), "{told:?}");
        copy_here(&from, &here, 0, 64 << 20, &mut |_| ()).unwrap();
        let all = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
        assert!(all("from") == all("to") && all("from") == all("here"));
        assert!(to.metadata().unwrap().blocks() <= from.metadata().unwrap().blocks().max(64));
        let empty = open("empty");
        copy_file(&open("nothing"), &empty, &mut |_| ()).unwrap();
        assert_eq!(empty.metadata().unwrap().len(), 0);
        let cut = copy_range(&from, &to, 0, (64 << 20) + 1, &mut |_| ());
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
