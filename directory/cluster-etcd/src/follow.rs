//! The feed, followed from a point: in order, without gaps, through changes of leaders and compaction.
//!
//! Rows are read in ranges up to the end, and then watched. All judgement is the range's, which sees rows and the end of
//! the feed at one moment: a watch that ends, that leaves something out or that is silent although there is more leads
//! back to it.

use crate::connection::Messages;
use crate::error::Error;
use crate::etcd::Etcd;
use crate::limits::{PAUSE, ROWS_BYTES_AIM, ROWS_MAX, ROWS_MIN};
use crate::row::{Point, Row};
use crate::wire::{self, Watched};
use keyway_cluster::message::Digest;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// After so long without a row a majority is asked for the end of the feed: a watch at a member of etcd that is cut off
/// is silent.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// What a follower learns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Followed {
    /// The next row. It follows the one before it by its position and by its digest.
    Row(Row),
    /// There is no further row now.
    Idle,
    /// The next row was trimmed: a base is needed, at least as far as the row before `first`.
    Compacted {
        /// The first position that is there, or would be next.
        first: u64,
    },
    /// A row in the midst of the feed is missing: this is not etcd's doing.
    Gap {
        /// Its position.
        missing: u64,
    },
    /// The feed has another row at the follower's position, or the next row follows another one.
    Diverged {
        /// The follower's point.
        here: Point,
        /// What the feed has there.
        there: Digest,
    },
    /// The feed ends before the follower's point: etcd was restored from an older copy. Its end; `None` if there is no
    /// feed.
    Rewound(Option<Point>),
}

enum Mode {
    /// There may be rows in etcd that are not read.
    Reads,
    /// All rows up to a revision are read: this is the first that is not.
    Waits { revision: u64 },
    /// Messages are on their way.
    Watches(Messages),
}

/// A follower of the feed.
pub struct Follower {
    etcd: Etcd,
    /// The last row that was given out or is in `rows`.
    last: Point,
    rows: VecDeque<Row>,
    mode: Mode,
    heard: Instant,
    /// Whether the last watch ended with an error.
    has_failed: bool,
    /// Rows that the next question asks for.
    count: usize,
}

impl Etcd {
    /// Follows the feed behind a point. Nothing is read yet.
    pub fn follow(&self, after: Point) -> Follower {
        let etcd = self.clone();
        let (rows, mode) = (VecDeque::new(), Mode::Reads);
        let (heard, has_failed, count) = (Instant::now(), false, ROWS_MIN);
        Follower { etcd, last: after, rows, mode, heard, has_failed, count }
    }
}

impl Follower {
    /// Waits for the next row, for about as long as `limit` says; a call to etcd that has begun is not given up for it.
    /// After anything but a row it may be called again, and looks again.
    ///
    /// # Errors
    /// Those of a call. The point is kept.
    pub fn next(&mut self, limit: Duration) -> Result<Followed, Error> {
        let runtime = self.etcd.runtime.clone();
        let end = Instant::now() + limit;
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Followed::Row(row));
            }
            let learnt = runtime.block_on(self.step(end))?;
            match learnt {
                // Rows first: the next look finds it again.
                _ if !self.rows.is_empty() => {}
                Some(learnt) => return Ok(learnt),
                None if Instant::now() >= end => return Ok(Followed::Idle),
                None => {}
            }
        }
    }

    /// Whether all rows were given out that etcd had when it was looked at last.
    pub fn has_all(&self) -> bool {
        self.rows.is_empty() && !matches!(self.mode, Mode::Reads)
    }

    async fn step(&mut self, end: Instant) -> Result<Option<Followed>, Error> {
        match &mut self.mode {
            Mode::Reads => self.read().await,
            Mode::Waits { revision } => {
                let revision = *revision;
                // If it fails, all is looked at again.
                self.mode = Mode::Reads;
                if self.has_failed {
                    sleep(PAUSE).await;
                }
                self.mode = Mode::Watches(self.watch(revision).await?);
                Ok(None)
            }
            Mode::Watches(messages) => {
                let now = Instant::now();
                let ask = self.heard + SILENCE_MAX;
                let wait = end.min(ask).saturating_duration_since(now);
                match timeout(wait, messages.next()).await {
                    Ok(message) => {
                        self.heard = Instant::now();
                        self.has_failed = message.is_err();
                        if !message.is_ok_and(|message| self.take(&message)) {
                            self.mode = Mode::Reads;
                        }
                        Ok(None)
                    }
                    Err(_) if Instant::now() < ask => Ok(Some(Followed::Idle)),
                    Err(_) => self.check().await.map(|()| None),
                }
            }
        }
    }

    /// Looks for the end of the feed, since the watch was silent.
    async fn check(&mut self) -> Result<(), Error> {
        let head = self.etcd.read_head().await?;
        self.heard = Instant::now();
        if head != Some(self.last) {
            self.mode = Mode::Reads;
        }
        Ok(())
    }

    /// Reads the next rows, with the last one that is known and the end of the feed.
    async fn read(&mut self) -> Result<Option<Followed>, Error> {
        let found = self.etcd.find(self.last.position, self.count).await?;
        self.heard = Instant::now();
        let bytes: usize = found.rows.iter().map(|row| row.bytes().len()).sum();
        let each = (bytes / found.rows.len().max(1)).max(1);
        self.count = (ROWS_BYTES_AIM / each).clamp(ROWS_MIN, ROWS_MAX);
        // Whether the row of the point is seen, or one behind it.
        let mut is_joined = false;
        for row in found.rows {
            let Point { position, digest } = row.point();
            let next = self.last.position.saturating_add(1);
            if position == self.last.position {
                if digest != self.last.digest {
                    return Ok(Some(Followed::Diverged { here: self.last, there: digest }));
                }
            } else if position != next {
                return Ok(Some(match is_joined {
                    false => Followed::Compacted { first: position },
                    true => Followed::Gap { missing: next },
                }));
            } else if let Some(other) = self.push(row) {
                return Ok(Some(other));
            }
            is_joined = true;
        }
        if !found.is_all {
            return Ok(None);
        }
        // All rows are read, so the feed has to end here.
        match found.head {
            Some(head) if head == self.last => {
                self.mode = Mode::Waits { revision: found.revision.saturating_add(1) };
                Ok(None)
            }
            // Rows first; the next look says it.
            _ if !self.rows.is_empty() => Ok(None),
            Some(head) if head.position > self.last.position && is_joined => {
                let (end, last) = (head.position, self.last.position);
                Err(Error::Damaged(format!(
                    "the feed is said to end at position {end}, and its last row is {last}"
                )))
            }
            Some(head) if head.position > self.last.position => {
                Ok(Some(Followed::Compacted { first: head.position.saturating_add(1) }))
            }
            Some(head) if head.position == self.last.position => {
                Ok(Some(Followed::Diverged { here: self.last, there: head.digest }))
            }
            head => Ok(Some(Followed::Rewound(head))),
        }
    }

    /// Takes a row if it is the next one, and says otherwise what is there.
    fn push(&mut self, row: Row) -> Option<Followed> {
        if row.before() != self.last {
            return Some(Followed::Diverged { here: self.last, there: row.before().digest });
        }
        self.last = row.point();
        self.rows.push_back(row);
        None
    }

    async fn watch(&self, revision: u64) -> Result<Messages, Error> {
        let keys = &self.etcd.keys;
        let request = wire::watch(&keys.row(0), &keys.rows_end(), revision);
        self.etcd.client.stream("/v3/watch", &request, self.etcd.call_limit).await
    }

    /// Takes the rows of a message. `false` if it is not simply the next ones: a range tells what it is.
    fn take(&mut self, message: &Watched) -> bool {
        if message.canceled {
            return false;
        }
        message.events.iter().all(|event| {
            let position = self.etcd.keys.position(&event.kv.key);
            let row = position.map(|position| Row::from_value(position, &event.kv.value));
            row.is_some_and(|row| row.is_ok_and(|row| self.push(row).is_none()))
        })
    }
}
