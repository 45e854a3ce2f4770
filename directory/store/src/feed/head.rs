//! The row of the table `meta` that says how far the feed has come.

use std::fmt;

use crate::Error;

/// SHA-256 of a row of the feed: of its position (8 B BE) and its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedDigest(pub [u8; FeedDigest::BYTES]);

impl FeedDigest {
    /// Its length.
    pub const BYTES: usize = 32;
}

impl fmt::Display for FeedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for FeedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How far the feed has come, and what is kept of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedHead {
    /// The position of the last commit; 0 if there was none.
    pub position: u64,
    /// The position of the first row that is kept; one more than `position` if none is.
    pub first: u64,
    /// How many changes there were up to `position`, whether their rows are kept or not.
    pub changes: u64,
    /// The bytes of the rows that are kept, with their keys.
    pub bytes: u64,
    /// Of the last row. All zeros if the last commit had none.
    pub digest: FeedDigest,
}

/// The head of a store that was created with a feed: all that was ever done in it will have a row.
pub(crate) const FIRST_OF_A_NEW_STORE: FeedHead = FeedHead {
    position: 0,
    first: 1,
    changes: 0,
    bytes: 0,
    digest: FeedDigest([0; FeedDigest::BYTES]),
};

impl FeedHead {
    /// The head of a store that has none yet: it may have changes already, which have no rows. They
    /// are taken for one commit.
    pub(crate) fn of_an_older_store() -> FeedHead {
        FIRST_OF_A_NEW_STORE.without_a_row()
    }

    /// The head after a commit that has no row.
    pub(crate) fn without_a_row(self) -> FeedHead {
        let position = self.position + 1;
        FeedHead {
            position,
            first: position + 1,
            changes: self.changes,
            bytes: 0,
            digest: FeedDigest::default(),
        }
    }

    /// Whether no row is kept.
    pub fn is_empty(&self) -> bool {
        self.first > self.position
    }

    /// Whether all changes since the store was created are kept.
    pub fn is_whole(&self) -> bool {
        self.first == 1
    }
}

const ROW_BYTES: usize = 4 * 8 + FeedDigest::BYTES;

/// `position | first | changes | bytes (8 B BE each) | digest (32 B)`
pub(crate) fn head_row(head: &FeedHead) -> [u8; ROW_BYTES] {
    let mut row = [0; ROW_BYTES];
    let numbers = [head.position, head.first, head.changes, head.bytes];
    let (front, digest) = row.split_at_mut(4 * 8);
    for (place, number) in front.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    digest.copy_from_slice(&head.digest.0);
    row
}

pub(crate) fn read_head(row: &[u8]) -> Result<FeedHead, Error> {
    let head = || {
        let (numbers, digest) = row.split_at_checked(4 * 8)?;
        let (numbers, []) = numbers.as_chunks::<8>() else { return None };
        let [position, first, changes, bytes] = numbers else { return None };
        let number = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
        Some(FeedHead {
            position: number(position),
            first: number(first),
            changes: number(changes),
            bytes: number(bytes),
            digest: FeedDigest(digest.try_into().ok()?),
        })
    };
    let sound =
        |head: &FeedHead| head.position < u64::MAX && (1..=head.position + 1).contains(&head.first);
    head().filter(sound).ok_or_else(|| Error::damaged("the head of the feed makes no sense"))
}
