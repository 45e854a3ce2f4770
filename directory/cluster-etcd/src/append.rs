//! Rows that the writer puts behind the feed, one transaction each.

use crate::connection::Failed;
use crate::error::Error;
use crate::etcd::Etcd;
use crate::fence::{holds, is_held};
use crate::row::{Point, Row};
use crate::wire::{created, deletes, puts, range, reads, valued};
use keyway_cluster::append::Fence;
use keyway_cluster::message::Digest;

/// How often a feed is begun whose end changes meanwhile, though only the writer puts one.
const BEGIN_TRIES: usize = 3;

/// The end of an append that etcd has answered, or that it may have done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Appended {
    /// The row is in the feed, and stays there.
    Done,
    /// This member is not the writer any more. The row is not in the feed, and will not be, unless the feed was trimmed
    /// beyond its position meanwhile.
    Fenced,
    /// The position has another row, with this digest.
    Conflict(Digest),
    /// The feed does not end where the row begins: it is not the feed that this member knows, or etcd was restored from an
    /// older copy. Its end; `None` if it has none.
    Apart(Option<Point>),
    /// Nothing is known, and why: append this row again, and no other one, until there is another answer.
    Unknown(Error),
}

impl Etcd {
    /// Puts the row behind the feed, if the lease is held and the feed ends with the row before it. A row that is there
    /// already is [`Appended::Done`], so this may be tried again. One at a time: etcd takes them in any order.
    ///
    /// # Errors
    /// The row is not in the feed and no try of this call will put it there: [`Error::TooLarge`], [`Error::Full`],
    /// [`Error::Unavailable`], [`Error::TooOld`] and others of a call.
    pub fn append(&self, fence: &Fence, row: &Row) -> Result<Appended, Error> {
        self.runtime.block_on(self.put_row(fence, row))
    }

    async fn put_row(&self, fence: &Fence, row: &Row) -> Result<Appended, Error> {
        let Point { position, digest } = row.point();
        let (writer, head) = (self.keys.writer(), self.keys.head());
        let key = self.keys.row(position);
        let mut compare = holds(&self.keys, fence);
        compare.push(created(&key, 0));
        // It has the digest too, so this is stronger than a look at the key of the row before, and holds when that was
        // trimmed.
        compare.push(valued(&head, &row.before().to_bytes()));
        let success = vec![puts(&key, &row.to_value(), 0), puts(&head, &row.point().to_bytes(), 0)];
        let failure = [&key, &writer, &head].map(|key| reads(range(key))).to_vec();
        let mut answer = match self.transact(compare, success, failure).await {
            Ok(answer) if answer.succeeded => return Ok(Appended::Done),
            Ok(answer) => answer,
            Err(Failed { error: full @ Error::Full(_), is_sent }) => {
                return self.find_row(row, full, is_sent).await;
            }
            Err(Failed { error, is_sent: true }) => return Ok(Appended::Unknown(error)),
            Err(Failed { error, is_sent: false }) => return Err(error),
        };
        let (there, writer, head) = (answer.one(0), answer.one(1), answer.one(2));
        let there = there.map(|there| Row::from_value(position, &there.value)).transpose()?;
        let there = there.map(|there| there.point().digest);
        if there == Some(digest) {
            return Ok(Appended::Done);
        }
        if !is_held(writer.as_ref(), fence) {
            return Ok(Appended::Fenced);
        }
        if let Some(there) = there {
            return Ok(Appended::Conflict(there));
        }
        let head = head.and_then(|head| Point::from_bytes(&head.value));
        match head == Some(row.before()) {
            false => Ok(Appended::Apart(head)),
            true => Err(Error::Answer("a row was refused that fits".into())),
        }
    }

    /// The end of an append that etcd answered by its lack of space: the transaction that first finds its quota used up is
    /// done all the same.
    async fn find_row(&self, row: &Row, full: Error, is_sent: bool) -> Result<Appended, Error> {
        let Point { position, digest } = row.point();
        let there = match self.one(&self.keys.row(position)).await {
            Ok(there) => there,
            Err(_) => return Ok(Appended::Unknown(full)),
        };
        let there = there.map(|there| Row::from_value(position, &there.value)).transpose()?;
        match there.map(|there| there.point().digest) {
            Some(there) if there == digest => Ok(Appended::Done),
            Some(there) => Ok(Appended::Conflict(there)),
            None if is_sent => Ok(Appended::Unknown(full)),
            None => Err(full),
        }
    }

    /// Begins the feed behind a point, which is the writer's, where etcd has no end of a feed: there is no feed yet, or its
    /// end was lost, and then its rows are removed. The end of the feed: that point, or another one if there is a feed.
    ///
    /// # Errors
    /// [`Error::Fenced`], and those of a call.
    pub fn begin(&self, fence: &Fence, point: Point) -> Result<Point, Error> {
        let begun = async {
            let (writer, head) = (self.keys.writer(), self.keys.head());
            let mut lost: Option<Vec<u8>> = None;
            for _ in 0..BEGIN_TRIES {
                let mut compare = holds(&self.keys, fence);
                compare.push(match &lost {
                    Some(value) => valued(&head, value),
                    None => created(&head, 0),
                });
                let rows = deletes(&self.keys.row(0), &self.keys.rows_end());
                let success = vec![rows, puts(&head, &point.to_bytes(), 0)];
                let failure = [&writer, &head].map(|key| reads(range(key))).to_vec();
                let mut answer = self.transact(compare, success, failure).await?;
                if answer.succeeded {
                    return Ok(point);
                }
                let (writer, head) = (answer.one(0), answer.one(1));
                if !is_held(writer.as_ref(), fence) {
                    return Err(Error::Fenced);
                }
                lost = head.map(|head| head.value);
                if let Some(end) = lost.as_deref().and_then(Point::from_bytes) {
                    return Ok(end);
                }
            }
            Err(Error::Damaged("the end of the feed changes by itself".into()))
        };
        self.runtime.block_on(begun)
    }

    /// Removes rows behind the end of the feed, which are left where that was set back.
    ///
    /// # Errors
    /// [`Error::Fenced`] also if the feed has another end; and those of a call.
    pub fn cut(&self, fence: &Fence, end: Point) -> Result<(), Error> {
        let mut compare = holds(&self.keys, fence);
        compare.push(valued(&self.keys.head(), &end.to_bytes()));
        let next = self.keys.row(end.position.saturating_add(1));
        let success = vec![deletes(&next, &self.keys.rows_end())];
        let answer = self.runtime.block_on(self.transact(compare, success, vec![]))?;
        if answer.succeeded { Ok(()) } else { Err(Error::Fenced) }
    }
}
