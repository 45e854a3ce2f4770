//! Rows of the feed, read from a position on, with its end at the same moment.

use crate::error::Error;
use crate::etcd::Etcd;
use crate::keys::Keys;
use crate::limits::{ROWS_MAX, ROWS_MIN};
use crate::row::{Point, Row};
use crate::wire::{KeyValue, Transacted, range, range_to, reads};
use keyway_cluster::message::ClusterId;

/// Rows that are there, each with the digest that it says; whether they follow one another is not looked at.
pub(crate) struct Found {
    pub rows: Vec<Row>,
    /// Whether there are no more.
    pub is_all: bool,
    /// The end of the feed.
    pub head: Option<Point>,
    /// The revision of etcd in which this is so.
    pub revision: u64,
}

impl Found {
    fn read(keys: &Keys, mut answer: Transacted, count: usize) -> Result<Found, Error> {
        let head = answer.one(1).and_then(|head| Point::from_bytes(&head.value));
        let found = answer.found(0);
        let is_all = found.len() < count;
        let row = |found: &KeyValue| {
            let none = || Error::Damaged("the key of a row makes no sense".into());
            Row::from_value(keys.position(&found.key).ok_or_else(none)?, &found.value)
        };
        let rows = found.iter().map(row).collect::<Result<_, _>>()?;
        Ok(Found { rows, is_all, head, revision: answer.header.revision })
    }
}

/// Reads the JSON in which etcd answers a question for rows of a cluster and the end of its feed.
///
/// # Errors
/// [`Error::Answer`].
pub fn read_rows(cluster: ClusterId, json: &[u8]) -> Result<(Vec<Row>, Option<Point>), Error> {
    let answer = serde_json::from_slice(json).map_err(|why| Error::Answer(why.to_string()))?;
    let found = Found::read(&Keys::new(cluster), answer, ROWS_MAX)?;
    Ok((found.rows, found.head))
}

impl Etcd {
    /// Reads so many rows from a position on, and fewer where they are more than an answer may have.
    pub(crate) async fn find(&self, position: u64, count: usize) -> Result<Found, Error> {
        match self.find_exactly(position, count).await {
            Err(Error::Answer(_) | Error::TooLarge(_) | Error::Refused(_)) if count > ROWS_MIN => {
                self.find_exactly(position, ROWS_MIN).await
            }
            result => result,
        }
    }

    async fn find_exactly(&self, position: u64, count: usize) -> Result<Found, Error> {
        let rows = reads(range_to(&self.keys.row(position), &self.keys.rows_end(), count));
        let head = reads(range(&self.keys.head()));
        let answer = self.transact(vec![], vec![rows, head], vec![]).await?;
        Found::read(&self.keys, answer, count)
    }
}
