//! A model of etcd: a tail of rows, a lease, transactions, snapshots.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::store::Row;
use crate::append::{Appended, Fence};
use crate::lease::{Ask, StoreId, Told};
use crate::message::Digest;

/// etcd.
#[derive(Clone)]
pub struct Etcd {
    pub store: u64,
    pub revision: u64,
    pub key: Option<(Fence, Duration, Duration)>,
    pub rows: BTreeMap<u64, Rc<Row>>,
    pub is_up: bool,
    pub snapshot: Option<Box<Etcd>>,
}

/// A call.
pub enum Call {
    Lease(Ask),
    Append(Fence, Rc<Row>),
    Follow(u64),
    Trim(u64),
}

/// Its answer.
pub enum Heard {
    Lease(Told),
    Append(Appended),
    Rows(Vec<Rc<Row>>, Option<(u64, Digest)>),
    Compacted,
    Trimmed,
}

impl Etcd {
    pub fn new(store: u64) -> Etcd {
        Etcd { store, revision: 1, key: None, rows: BTreeMap::new(), is_up: true, snapshot: None }
    }

    fn last(&self) -> Option<(u64, Digest)> {
        self.rows.last_key_value().map(|(position, row)| (*position, row.digest))
    }

    fn holds(&self, fence: &Fence) -> bool {
        self.key.is_some_and(|(key, ..)| key == *fence)
    }

    /// Does a call.
    pub fn call(&mut self, call: Call, now: Duration, nonce: u64, is_fenced: bool) -> Heard {
        if self.key.is_some_and(|(_, end, _)| end <= now) {
            self.key = None;
            self.revision += 1;
        }
        match call {
            Call::Lease(Ask::Look) => Heard::Lease(Told::State {
                store: StoreId(self.store),
                revision: self.revision,
                holder: self.key.map(|(fence, ..)| fence.member),
                last: self.last(),
            }),
            Call::Lease(Ask::Take { member, ttl }) => match self.key {
                Some(_) => Heard::Lease(Told::Refused),
                None => {
                    self.revision += 1;
                    let fence = Fence { revision: self.revision, member, nonce };
                    self.key = Some((fence, now + ttl, ttl));
                    Heard::Lease(Told::Taken(fence))
                }
            },
            Call::Lease(Ask::Renew(fence)) => match &mut self.key {
                Some((key, end, ttl)) if *key == fence => {
                    *end = now + *ttl;
                    let (store, revision) = (StoreId(self.store), self.revision);
                    Heard::Lease(Told::Renewed { store, revision })
                }
                _ => Heard::Lease(Told::Refused),
            },
            Call::Lease(Ask::Release(fence)) => {
                if self.holds(&fence) {
                    self.key = None;
                }
                Heard::Lease(Told::Refused)
            }
            Call::Append(fence, row) => {
                let is_free = !self.rows.contains_key(&row.position);
                let has_before = self.rows.contains_key(&(row.position - 1));
                if self.holds(&fence) && is_free && has_before || !is_fenced {
                    self.revision += 1;
                    self.rows.insert(row.position, row);
                    return Heard::Append(Appended::Done);
                }
                let is_there =
                    self.rows.get(&row.position).is_some_and(|it| it.digest == row.digest);
                Heard::Append(if is_there { Appended::Done } else { Appended::Fenced })
            }
            Call::Follow(after) => {
                let first = self.rows.first_key_value().map_or(1, |(position, _)| *position);
                let last = self.last();
                if after + 1 < first {
                    return Heard::Compacted;
                }
                Heard::Rows(
                    self.rows.range(after + 1..).take(64).map(|(_, row)| Rc::clone(row)).collect(),
                    last,
                )
            }
            Call::Trim(until) => {
                let last = self.last().map_or(0, |(position, _)| position);
                self.rows = self.rows.split_off(&(until + 1).min(last));
                self.revision += 1;
                Heard::Trimmed
            }
        }
    }
}
