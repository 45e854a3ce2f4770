//! Reads of one's own writes: a connection that wrote reads nothing older, at whichever server it reads.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use crate::message::ClusterRow;

/// How a read is to be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// From this server's store, now.
    Now,
    /// When this position is applied here; to be asked again then, and at `until` at the latest.
    Wait {
        /// The position.
        position: u64,
        /// When not to wait any longer.
        until: Duration,
    },
    /// By the writer. If that cannot be, the read fails as unavailable: it is never answered from an older state.
    Forward,
    /// Not at all: the change was made by a writer that was replaced before another member had it. The connection is closed
    /// so that its client does not go on with what is no more.
    Lost,
}

/// Where this server stands when it decides how to read.
#[derive(Clone, Copy, Debug)]
pub struct Here<'r> {
    /// The last position that reads see.
    pub applied: u64,
    /// The cluster row as of then; `None` without a cluster.
    pub row: Option<&'r ClusterRow>,
    /// Whether it is connected to a writer, so that positions come.
    pub is_following: bool,
}

/// What one connection, or one address, has written.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct OwnWrites {
    epoch: u64,
    position: u64,
}

impl OwnWrites {
    /// A write was answered with this position, made in this epoch (0 without a cluster). A position of a later epoch
    /// includes those of earlier ones, or says that these are lost.
    pub fn wrote(&mut self, epoch: u64, position: u64) {
        if (epoch, position) > (self.epoch, self.position) {
            (self.epoch, self.position) = (epoch, position);
        }
    }

    /// Epoch and position; zeros if nothing was written. A read that is forwarded carries them.
    pub fn last(&self) -> (u64, u64) {
        (self.epoch, self.position)
    }

    /// How to answer a read that came at `asked`, at most `wait` later.
    pub fn reading(
        &self,
        here: &Here<'_>,
        asked: Duration,
        now: Duration,
        wait: Duration,
    ) -> Reading {
        let until = asked.saturating_add(wait);
        let epoch = here.row.map_or(0, |row| row.epoch);
        if here.row.is_some_and(|row| row.has_lost(self.epoch, self.position)) {
            Reading::Lost
        } else if self.position <= here.applied && self.epoch <= epoch {
            Reading::Now
        } else if here.is_following && now < until {
            Reading::Wait { position: self.position, until }
        } else {
            Reading::Forward
        }
    }
}

/// What the clients of each address have written, for clients that open a connection for each operation.
///
/// It holds at most so many addresses. Those that are forgotten leave the latest that one of them has written, and all that
/// are not known are taken to have written it. So none reads what is too old, and for lack of room some only wait.
#[derive(Debug)]
pub struct Addresses {
    most: usize,
    known: HashMap<IpAddr, Note>,
    by_use: BTreeMap<u64, IpAddr>,
    uses: u64,
    forgotten: OwnWrites,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    own: OwnWrites,
    used: u64,
}

impl Addresses {
    /// For at most `most` addresses.
    pub fn new(most: usize) -> Addresses {
        let (known, by_use) = (HashMap::new(), BTreeMap::new());
        Addresses { most, known, by_use, uses: 0, forgotten: OwnWrites::default() }
    }

    /// [`OwnWrites::wrote`] by an address.
    pub fn wrote(&mut self, address: IpAddr, epoch: u64, position: u64) {
        let mut own = self.of(address);
        own.wrote(epoch, position);
        self.uses += 1;
        let note = Note { own, used: self.uses };
        if let Some(before) = self.known.insert(address, note) {
            self.by_use.remove(&before.used);
        }
        self.by_use.insert(note.used, address);
        while self.known.len() > self.most {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(note) = self.known.remove(&oldest) {
                self.forgotten.wrote(note.own.epoch, note.own.position);
            }
        }
    }

    /// Forgets what needs no note any more: what reads see here, and what is lost (an address is not told of that). To be
    /// called now and then.
    pub fn applied(&mut self, here: &Here<'_>) {
        let none = Duration::ZERO;
        let is_needed = |own: OwnWrites| {
            !matches!(own.reading(here, none, none, none), Reading::Now | Reading::Lost)
        };
        let by_use = &mut self.by_use;
        self.known.retain(|_, note| {
            let is_needed = is_needed(note.own);
            if !is_needed {
                by_use.remove(&note.used);
            }
            is_needed
        });
        if !is_needed(self.forgotten) {
            self.forgotten = OwnWrites::default();
        }
    }

    /// Whether no address has written what reads here may not see.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.forgotten == OwnWrites::default()
    }

    /// The last that clients of the address may have written.
    pub fn of(&self, address: IpAddr) -> OwnWrites {
        self.known.get(&address).map_or(self.forgotten, |note| note.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ClusterId, MemberId};

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn row() -> ClusterRow {
        let (cluster, writer) = (ClusterId([1; 16]), MemberId(1));
        ClusterRow { cluster, epoch: 1, writer, members: Vec::new(), began: Vec::new(), etcd: None }
    }

    #[test]
    fn a_read_waits_for_its_write_and_is_forwarded_then() {
        let row = row();
        let mut own = OwnWrites::default();
        let follower = Here { applied: 5, row: Some(&row), is_following: true };
        let read = |own: &OwnWrites, here: &Here<'_>, now| own.reading(here, at(0), at(now), at(2));
        assert_eq!(read(&own, &follower, 0), Reading::Now);
        own.wrote(1, 7);
        own.wrote(1, 6);
        assert_eq!(read(&own, &follower, 1), Reading::Wait { position: 7, until: at(2) });
        assert_eq!(read(&own, &follower, 2), Reading::Forward);
        assert_eq!(read(&own, &Here { is_following: false, ..follower }, 0), Reading::Forward);
        assert_eq!(read(&own, &Here { applied: 7, ..follower }, 0), Reading::Now);
    }

    #[test]
    fn a_position_of_another_epoch_is_not_taken_for_ones_own() {
        let old = row();
        let new = old.next(2, MemberId(2), 9);
        let newest = new.next(3, MemberId(1), 13);
        let read = |own: &OwnWrites, applied, row| {
            own.reading(&Here { applied, row: Some(row), is_following: false }, at(0), at(0), at(2))
        };
        let mut own = OwnWrites::default();
        own.wrote(1, 8);
        assert_eq!(read(&own, 9, &new), Reading::Now);
        own.wrote(1, 10);
        assert_eq!(read(&own, 12, &new), Reading::Lost);
        assert_eq!(read(&own, 12, &newest), Reading::Lost);
        own.wrote(2, 10);
        assert_eq!(read(&own, 10, &new), Reading::Now);
        assert_eq!(read(&own, 12, &old), Reading::Forward, "rows that were replaced");
    }

    #[test]
    fn an_address_that_is_forgotten_reads_nothing_older() {
        let row = row();
        let mut addresses = Addresses::new(2);
        addresses.wrote(address(1), 1, 10);
        addresses.wrote(address(2), 1, 11);
        addresses.wrote(address(1), 1, 9);
        addresses.wrote(address(3), 1, 12);
        assert_eq!(addresses.of(address(1)).last(), (1, 10));
        assert_eq!(addresses.of(address(2)).last(), (1, 11), "forgotten, but not its position");
        assert_eq!(addresses.of(address(4)).last(), (1, 11));
        addresses.applied(&Here { applied: 11, row: Some(&row), is_following: true });
        assert_eq!(addresses.of(address(4)).last(), (0, 0));
        assert_eq!(addresses.of(address(1)).last(), (0, 0));
        assert_eq!(addresses.of(address(3)).last(), (1, 12));
        assert_eq!((addresses.known.len(), addresses.by_use.len()), (1, 1));
    }
}
