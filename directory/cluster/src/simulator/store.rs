//! A model of a server's store: rows, what they make, and a digest of that.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::random::mix;
use crate::follower::RowHeader;
use crate::message::{ClusterRow, Contents, Digest, History, Place, Reign};

/// How often contents are compared; servers do it at each thousandth position.
pub const CONTENTS_EVERY: u64 = 10;

/// A change.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// A write with a number of its own puts its number at a key.
    Put { key: u32, write: u64 },
    /// The cluster row.
    Cluster(Box<ClusterRow>),
}

/// A row of the feed.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub position: u64,
    pub before: Digest,
    pub digest: Digest,
    pub change: Change,
}

impl Row {
    pub fn header(&self) -> RowHeader {
        let reign = match &self.change {
            Change::Cluster(row) => Some(Reign { epoch: row.epoch, writer: row.writer }),
            Change::Put { .. } => None,
        };
        RowHeader { position: self.position, before: self.before, digest: self.digest, reign }
    }

    pub fn write(&self) -> Option<u64> {
        match self.change {
            Change::Put { write, .. } => Some(write),
            Change::Cluster(_) => None,
        }
    }
}

/// A store. All rows stay for the checker; those before `first_kept` are not given out.
#[derive(Clone, Debug)]
pub struct Store {
    pub history: History,
    pub rows: Vec<Rc<Row>>,
    pub first_kept: u64,
    pub map: BTreeMap<u32, u64>,
    pub cluster: Option<Rc<ClusterRow>>,
    sum: [u64; 2],
    last_contents: Option<Contents>,
}

impl Store {
    pub fn new(history: History) -> Store {
        Store {
            history,
            rows: Vec::new(),
            first_kept: 1,
            map: BTreeMap::new(),
            cluster: None,
            sum: [0; 2],
            last_contents: None,
        }
    }

    /// The store as it was after a position.
    pub fn at(&self, position: u64) -> Store {
        let mut store = Store::new(self.history);
        self.rows.iter().take(position as usize).for_each(|row| store.apply(row));
        store.first_kept = self.first_kept.min(position + 1);
        store
    }

    pub fn position(&self) -> u64 {
        self.rows.len() as u64
    }

    pub fn place(&self) -> Place {
        let position = self.position();
        let digest = self.digest_at(position).unwrap_or(Digest([0; 32]));
        let writer = self.reign().map(|reign| reign.writer);
        Place { history: self.history, epoch: self.epoch(), writer, position, digest }
    }

    pub fn epoch(&self) -> u64 {
        self.cluster.as_ref().map_or(0, |row| row.epoch)
    }

    pub fn reign(&self) -> Option<Reign> {
        self.cluster.as_ref().map(|row| Reign { epoch: row.epoch, writer: row.writer })
    }

    pub fn digest_at(&self, position: u64) -> Option<Digest> {
        match position.checked_sub(1) {
            None => Some(Digest([0; 32])),
            Some(index) => self.rows.get(index as usize).map(|row| row.digest),
        }
    }

    /// Whether this row is one of the store's.
    pub fn has(&self, position: u64, digest: Digest) -> bool {
        self.digest_at(position) == Some(digest)
    }

    /// The row that a change makes here. `salt` makes rows of two stores differ that have equal changes.
    pub fn next(&self, change: Change, salt: u64) -> Rc<Row> {
        let before = self.place();
        let position = before.position + 1;
        let mut state = salt;
        let mut take = |number: u64| {
            state = mix(state ^ number);
            state
        };
        before.digest.0.chunks_exact(8).for_each(|lane| {
            take(u64::from_le_bytes(lane.try_into().unwrap_or_default()));
        });
        match &change {
            Change::Put { key, write } => take(u64::from(*key) << 32 ^ *write),
            Change::Cluster(row) => take(row.epoch << 32 ^ row.writer.0),
        };
        let mut digest = [0; 32];
        for (lane, octets) in digest.chunks_exact_mut(8).enumerate() {
            octets.copy_from_slice(&take(position ^ lane as u64).to_le_bytes());
        }
        Rc::new(Row { position, before: before.digest, digest: Digest(digest), change })
    }

    /// Applies the next row; the caller has checked it.
    pub fn apply(&mut self, row: &Rc<Row>) {
        match &row.change {
            Change::Put { key, write } => {
                if let Some(old) = self.map.insert(*key, *write) {
                    self.count(*key, old, false);
                }
                self.count(*key, *write, true);
            }
            Change::Cluster(cluster) => self.cluster = Some(Rc::new((**cluster).clone())),
        }
        self.rows.push(Rc::clone(row));
        if row.position.is_multiple_of(CONTENTS_EVERY) {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&self.sum[0].to_le_bytes());
            digest[8..16].copy_from_slice(&self.sum[1].to_le_bytes());
            self.last_contents = Some(Contents { position: row.position, digest: Digest(digest) });
        }
    }

    fn count(&mut self, key: u32, write: u64, comes: bool) {
        for (lane, sum) in self.sum.iter_mut().enumerate() {
            let part = mix(mix(u64::from(key) ^ (lane as u64) << 40) ^ write);
            *sum = if comes { sum.wrapping_add(part) } else { sum.wrapping_sub(part) };
        }
    }

    pub fn contents(&self) -> Option<Contents> {
        self.last_contents
    }

    pub fn sum(&self) -> [u64; 2] {
        self.sum
    }

    /// Writes that are here and not in another store.
    pub fn only_here(&self, other: &Store) -> Vec<u64> {
        let theirs: HashSet<u64> = other.rows.iter().filter_map(|row| row.write()).collect();
        self.rows
            .iter()
            .filter_map(|row| row.write())
            .filter(|write| !theirs.contains(write))
            .collect()
    }
}
