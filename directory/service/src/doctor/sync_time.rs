//! How long the disk takes to say that something is safe: each commit waits for that.

use crate::finding::Finding;
use keyway_folder::data::name;
use rustix::fs::{Mode, OFlags, fdatasync, open};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// So much is written each time, as much as a small commit writes, in bytes.
const PIECE_BYTES: u64 = 16 << 10;
/// The file's size in bytes: the pieces go round in it.
const FILE_BYTES: u64 = 1 << 20;
/// How often it is measured, and for how long at most.
const ROUNDS_MAX: u64 = 200;
const TIME_MAX: Duration = Duration::from_secs(3);
/// A disk that answers in less has not written it anywhere that is known.
const MEDIAN_MIN: Duration = Duration::from_micros(20);
/// With more, one client makes fewer than a hundred changes a second.
const MEDIAN_MAX: Duration = Duration::from_millis(10);
/// A pause that clients notice.
const LONGEST_MAX: Duration = Duration::from_secs(1);

/// Measures it where the store is.
pub(super) fn look(folder: &Path, tell: &mut dyn FnMut(u64, u64)) -> Finding {
    let store = folder.join(name::STORE);
    let place = if store.is_dir() { &store } else { folder };
    match measure(place, tell) {
        Ok(times) => judge(&times),
        Err(why) => {
            Finding::unknown("sync time", format!("{}: cannot measure it: {why}", place.display()))
        }
    }
}

/// The times of some syncs, in their order of length. The file has no name, and is gone with this process.
fn measure(place: &Path, tell: &mut dyn FnMut(u64, u64)) -> io::Result<Vec<Duration>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(place, flags, Mode::RUSR | Mode::WUSR)?);
    let piece = vec![0x5a; PIECE_BYTES as usize];
    let pieces = FILE_BYTES / PIECE_BYTES;
    (0..pieces).try_for_each(|at| file.write_all_at(&piece, at * PIECE_BYTES))?;
    file.sync_all()?;
    let (begun, mut times) = (Instant::now(), Vec::new());
    for round in 0..ROUNDS_MAX {
        if begun.elapsed() > TIME_MAX {
            break;
        }
        let at = Instant::now();
        file.write_all_at(&piece, round % pieces * PIECE_BYTES)?;
        fdatasync(&file)?;
        times.push(at.elapsed());
        tell(round + 1, ROUNDS_MAX);
    }
    times.sort_unstable();
    Ok(times)
}

fn judge(times: &[Duration]) -> Finding {
    let about = "sync time";
    let (Some(median), Some(longest)) = (times.get(times.len() / 2), times.last()) else {
        return Finding::unknown(about, "nothing was measured");
    };
    let found = format!(
        "16 KiB are safe on the disk of the store after {median:.1?} (median of {}; {longest:.1?} at most)",
        times.len()
    );
    match *median {
        median if median < MEDIAN_MIN => Finding::warning(
            about,
            format!(
                "{found}: too fast for any disk, so that it may be in a cache that a power cut empties"
            ),
            "see how the virtual machine's disk is cached (not cache=unsafe), and the disk's write cache",
        ),
        median if median > MEDIAN_MAX => Finding::warning(
            about,
            found,
            "put the store on an SSD with power loss protection: each commit waits so long",
        ),
        _ if *longest > LONGEST_MAX => Finding::warning(
            about,
            found,
            "see what else writes to this disk: changes wait for it meanwhile",
        ),
        _ => Finding::good(about, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Verdict;

    #[test]
    fn times_are_judged() {
        let verdict = |micros: &[u64]| {
            judge(&micros.iter().copied().map(Duration::from_micros).collect::<Vec<_>>()).verdict
        };
        assert_eq!(verdict(&[]), Verdict::Unknown);
        assert_eq!(verdict(&[1, 2, 3]), Verdict::Warning);
        assert_eq!(verdict(&[100, 200, 300]), Verdict::Good);
        assert_eq!(verdict(&[100, 20_000, 30_000]), Verdict::Warning);
        assert_eq!(verdict(&[100, 200, 2_000_000]), Verdict::Warning);
    }

    #[test]
    fn nothing_is_left_of_a_measurement() {
        let place = tempfile::tempdir().unwrap();
        let mut told = 0;
        let found = look(place.path(), &mut |_, _| told += 1);
        // Not every file system has files without a name.
        assert!(told > 0 || found.verdict == Verdict::Unknown, "{found:?}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
