//! A row of the feed as etcd has it: its own digest, and what the feed's store has at its position.

use crate::error::Error;
use crate::limits::ROW_BYTES_MAX;
use keyway_cluster::message::Digest;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A point of the feed: a position, and the digest of the row there, which is the SHA-256 of the position (8 B BE) and the
/// row, as the feed's store makes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The position; 0 before the first row.
    pub position: u64,
    /// The digest of its row.
    pub digest: Digest,
}

impl Point {
    /// Before the first row.
    pub const START: Point = Point { position: 0, digest: Digest([0; 32]) };

    /// `position (8 B BE) | digest (32 B)`
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [&self.position.to_be_bytes()[..], &self.digest.0].concat()
    }

    /// `None` if it makes no sense: it is as good as lost then.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Point> {
        let (position, digest) = bytes.split_first_chunk()?;
        let digest = Digest(digest.try_into().ok()?);
        Some(Point { position: u64::from_be_bytes(*position), digest })
    }
}

/// A row of the feed in its stored form: `checksum (4 B) | digest of the row before (32 B) | …`.
#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    point: Point,
    before: Digest,
    bytes: Vec<u8>,
}

const CHECKSUM_BYTES: usize = 4;

impl Row {
    /// A row of the feed's store, which is not looked into any further.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above [`ROW_BYTES_MAX`]; [`Error::Config`] if it is too short for a row, or its position is 0.
    pub fn new(position: u64, bytes: Vec<u8>) -> Result<Row, Error> {
        if bytes.len() > ROW_BYTES_MAX {
            let length = bytes.len();
            return Err(Error::TooLarge(format!(
                "a row of {length} bytes, and {ROW_BYTES_MAX} are the most"
            )));
        }
        let before = bytes.get(CHECKSUM_BYTES..).and_then(|rest| rest.first_chunk());
        let before = before.filter(|_| position != 0).map(|before| Digest(*before));
        let before = before
            .ok_or_else(|| Error::Config(format!("position {position} has no row of the feed")))?;
        let digest = Sha256::new().chain_update(position.to_be_bytes()).chain_update(&bytes);
        let point = Point { position, digest: Digest(digest.finalize().into()) };
        Ok(Row { point, before, bytes })
    }

    /// Its position and digest.
    pub fn point(&self) -> Point {
        self.point
    }

    /// The point of the row that it follows.
    pub fn before(&self) -> Point {
        Point { position: self.point.position - 1, digest: self.before }
    }

    /// The stored form.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The stored form.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The value in etcd: `digest (32 B) | row`.
    pub(crate) fn to_value(&self) -> Vec<u8> {
        [&self.point.digest.0[..], &self.bytes].concat()
    }

    /// Reads a value of etcd, and checks its digest.
    pub(crate) fn from_value(position: u64, value: &[u8]) -> Result<Row, Error> {
        let bad = |why: &str| Error::Damaged(format!("position {position} of the feed {why}"));
        let (digest, bytes) = value.split_first_chunk().ok_or_else(|| bad("is too short"))?;
        let row = Row::new(position, bytes.to_vec()).map_err(|why| bad(&why.to_string()))?;
        match row.point.digest == Digest(*digest) {
            true => Ok(row),
            false => Err(bad("has another digest than it says")),
        }
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its bytes are as secret as the store.
        write!(f, "Row({} {}, {} bytes)", self.point.position, self.point.digest, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_and_a_spoilt_one_does_not() {
        let row = Row::new(7, vec![5; 100]).unwrap();
        let value = row.to_value();
        assert_eq!(Row::from_value(7, &value).unwrap(), row);
        assert_eq!(row.before(), Point { position: 6, digest: Digest([5; 32]) });
        assert!(Row::from_value(8, &value).is_err());
        for length in [0, 31, 32, 67, value.len() - 1] {
            assert!(Row::from_value(7, &value[..length]).is_err(), "{length}");
        }
        let point = row.point();
        assert_eq!(Point::from_bytes(&point.to_bytes()), Some(point));
        assert_eq!(Point::from_bytes(&point.to_bytes()[1..]), None);
    }

    #[test]
    fn rows_of_no_feed_are_refused() {
        assert!(matches!(Row::new(0, vec![0; 100]), Err(Error::Config(_))));
        assert!(matches!(Row::new(1, vec![0; 35]), Err(Error::Config(_))));
        assert!(matches!(Row::new(1, vec![0; ROW_BYTES_MAX + 1]), Err(Error::TooLarge(_))));
    }
}
