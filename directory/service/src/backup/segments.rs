//! Rows of the feed on their way into a repository, and out of it.

use super::point::Point;
use crate::limits::SEGMENT_BYTES;
use keyway_backup::{Repository, Segment};
use keyway_host::failure::Failure;
use keyway_store::{Error, RawRow, Store};

/// Bytes of a row's length, little-endian, before the row.
const LENGTH_BYTES: usize = size_of::<u32>();

/// How far the feed came.
pub enum Shipped {
    /// All rows up to this position are in the repository.
    To(u64),
    /// The feed does not have the first of those that are missing there any more.
    Trimmed,
}

/// Puts the rows of a store's feed behind a position into the repository.
///
/// # Errors
/// If the store cannot be read, or the repository not be written.
pub fn ship(store: &Store, repository: &Repository, after: u64) -> Result<Shipped, Failure> {
    let unreadable = |why: Error| Failure::new(format!("cannot read the store: {why}"));
    let mut last = after;
    loop {
        let mut segment = Vec::new();
        let first = last + 1;
        // Each piece is read in a transaction of its own, so that no page of the store is held while it is written.
        let read = store.read().map_err(unreadable)?;
        let rows = match read.view().feed_after(last) {
            Err(Error::FeedTrimmed { .. }) => return Ok(Shipped::Trimmed),
            rows => rows.map_err(unreadable)?,
        };
        for row in rows.raw() {
            let row = row.map_err(unreadable)?;
            let length = u32::try_from(row.bytes().len()).map_err(|_| too_long(row.position()))?;
            segment.extend(length.to_le_bytes());
            segment.extend(row.bytes());
            last = row.position();
            if segment.len() >= SEGMENT_BYTES {
                break;
            }
        }
        drop(read);
        if segment.is_empty() {
            return Ok(Shipped::To(last));
        }
        let history = store.incarnation();
        repository.put_segment(Segment { history, first, last }, &segment).map_err(Failure::new)?;
    }
}

fn too_long(position: u64) -> Failure {
    Failure::new(format!("position {position} of the feed is too long for a backup"))
}

/// Makes the changes of a repository's segments again that a restored store lacks, up to a point. Returns the last
/// position that the store has then.
///
/// # Errors
/// If segments are missing or damaged, or do not come so far as a position that was asked for.
pub fn apply(
    store: &Store,
    repository: &Repository,
    (history, after): ([u8; 16], u64),
    point: &Point,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Failure> {
    let mut last = after;
    let segments = repository.segments(history).map_err(Failure::new)?;
    'segments: for segment in segments.into_iter().filter(|segment| segment.last > after) {
        let bytes = repository.read_segment(&segment).map_err(Failure::new)?;
        let mut rest = &bytes[..];
        let mut position = segment.first;
        while let Some((length, more)) = rest.split_first_chunk::<LENGTH_BYTES>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((row, more)) = more.split_at_checked(length) else {
                return Err(bad(&segment));
            };
            rest = more;
            if position > last {
                let row = RawRow::parse(position, row).map_err(|_| bad(&segment))?;
                if !point.takes_commit(position, row.notes()) {
                    break 'segments;
                }
                if position > last + 1 {
                    let (first, missing) = (last + 1, position - 1);
                    return Err(Failure::new(format!(
                        "changes {first} to {missing} are missing in the repository, and {point} is behind them: from \
                         this backup on it has all changes up to position {last}"
                    )));
                }
                store.apply_row(&row).map_err(|why| {
                    Failure::new(format!(
                        "cannot make position {position} of the feed again: {why}"
                    ))
                })?;
                last = position;
                progress(position);
            }
            position += 1;
        }
        if !rest.is_empty() || position != segment.last + 1 {
            return Err(bad(&segment));
        }
    }
    match point {
        Point::Position(wanted) if last < *wanted => Err(Failure::new(format!(
            "position {wanted} is not in these backups: from this one on they have all changes up to position {last}"
        ))),
        _ => Ok(last),
    }
}

fn bad(segment: &Segment) -> Failure {
    Failure::new(format!(
        "the segment with positions {} to {} has something else in it than rows of the feed",
        segment.first, segment.last
    ))
}
