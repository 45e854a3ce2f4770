//! Reads of one's own writes: a connection that wrote reads nothing older, at whichever server it reads.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use crate::message::{ClusterRow, Reign};

/// Reigns of which a connection's writes are kept.
const REIGNS_LIMIT: usize = 4;

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

/// What one connection, or one address, has written: the last position of each reign.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct OwnWrites {
    writes: [Option<Wrote>; REIGNS_LIMIT],
    /// It has written in more reigns than are kept; some writes may be lost.
    is_torn: bool,
}

/// A position that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrote {
    /// In which reign; `None` without a cluster.
    pub reign: Option<Reign>,
    /// The position.
    pub position: u64,
}

impl OwnWrites {
    /// A write was answered with this position, made in this reign (none without a cluster).
    pub fn wrote(&mut self, reign: Option<Reign>, position: u64) {
        for write in &mut self.writes {
            match write {
                Some(write) if write.reign == reign => {
                    write.position = write.position.max(position);
                    return;
                }
                Some(_) => {}
                None => {
                    *write = Some(Wrote { reign, position });
                    return;
                }
            }
        }
        self.is_torn = true;
    }

    /// What was written. A read that is forwarded carries it.
    pub fn all(&self) -> impl Iterator<Item = Wrote> {
        self.writes.iter().flatten().copied()
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
        let is_lost = |write: Wrote| {
            let lost =
                here.row.zip(write.reign).map(|(row, reign)| row.has_lost(reign, write.position));
            lost == Some(true)
        };
        if self.is_torn || self.all().any(is_lost) {
            return Reading::Lost;
        }
        let reign = here.row.map(ClusterRow::reign);
        let missing =
            self.all().filter(|write| write.position > here.applied || write.reign > reign);
        match missing.map(|write| write.position).max() {
            None => Reading::Now,
            Some(position) if here.is_following && now < until => Reading::Wait { position, until },
            Some(_) => Reading::Forward,
        }
    }

    /// Forgets what reads see here.
    fn applied(&mut self, here: &Here<'_>) {
        let none = Duration::ZERO;
        if matches!(self.reading(here, none, none, none), Reading::Now | Reading::Lost) {
            *self = OwnWrites::default();
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
    pub fn wrote(&mut self, address: IpAddr, reign: Option<Reign>, position: u64) {
        let mut own = self.of(address);
        own.wrote(reign, position);
        self.uses += 1;
        let note = Note { own, used: self.uses };
        if let Some(before) = self.known.insert(address, note) {
            self.by_use.remove(&before.used);
        }
        self.by_use.insert(note.used, address);
        while self.known.len() > self.most {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(note) = self.known.remove(&oldest) {
                note.own.all().for_each(|write| self.forgotten.wrote(write.reign, write.position));
            }
        }
    }

    /// Forgets what needs no note any more: what reads see here, and what is lost (an address is not told of that). To be
    /// called now and then.
    pub fn applied(&mut self, here: &Here<'_>) {
        let by_use = &mut self.by_use;
        self.known.retain(|_, note| {
            note.own.applied(here);
            let is_needed = note.own != OwnWrites::default();
            if !is_needed {
                by_use.remove(&note.used);
            }
            is_needed
        });
        self.forgotten.applied(here);
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

    fn reign(epoch: u64, writer: u64) -> Option<Reign> {
        Some(Reign { epoch, writer: MemberId(writer) })
    }

    fn last(addresses: &Addresses, of: u8) -> Option<u64> {
        addresses.of(address(of)).all().next().map(|write| write.position)
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
        own.wrote(reign(1, 1), 7);
        own.wrote(reign(1, 1), 6);
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
        own.wrote(reign(1, 1), 8);
        assert_eq!(read(&own, 9, &new), Reading::Now);
        own.wrote(reign(1, 1), 10);
        assert_eq!(read(&own, 12, &new), Reading::Lost);
        assert_eq!(read(&own, 12, &newest), Reading::Lost);
        let mut own = OwnWrites::default();
        own.wrote(reign(2, 2), 10);
        assert_eq!(read(&own, 10, &new), Reading::Now);
        assert_eq!(read(&own, 12, &old), Reading::Forward, "rows that were replaced");
    }

    #[test]
    fn a_change_of_a_reign_beside_ones_own_is_lost() {
        let first = row();
        let (mine, theirs) = (first.next(2, MemberId(2), 5), first.next(2, MemberId(3), 9));
        let later = theirs.next(3, MemberId(1), 20);
        let lost = |row: &ClusterRow, reign: Option<Reign>, position| {
            row.has_lost(reign.unwrap(), position)
        };
        assert!(!lost(&mine, reign(2, 2), 7) && !lost(&mine, reign(2, 3), 9));
        assert!(lost(&theirs, reign(2, 2), 7) && lost(&later, reign(2, 2), 7));
        assert!(!lost(&later, reign(1, 1), 8) && lost(&later, reign(1, 1), 9));
        assert!(!lost(&later, reign(2, 3), 19) && lost(&later, reign(2, 3), 20));
    }

    #[test]
    fn a_write_at_a_writer_that_was_replaced_is_not_forgotten_for_a_later_one() {
        let new = row().next(2, MemberId(2), 9);
        let here = Here { applied: 20, row: Some(&new), is_following: false };
        let mut own = OwnWrites::default();
        own.wrote(reign(2, 2), 10);
        assert_eq!(own.reading(&here, at(0), at(0), at(2)), Reading::Now);
        own.wrote(reign(1, 1), 12);
        assert_eq!(own.reading(&here, at(0), at(0), at(2)), Reading::Lost);
        let mut own = OwnWrites::default();
        (1..=REIGNS_LIMIT as u64 + 1).for_each(|writer| own.wrote(reign(2, writer), 1));
        assert_eq!(own.reading(&here, at(0), at(0), at(2)), Reading::Lost);
    }

    #[test]
    fn an_address_that_is_forgotten_reads_nothing_older() {
        let row = row();
        let mut addresses = Addresses::new(2);
        addresses.wrote(address(1), reign(1, 1), 10);
        addresses.wrote(address(2), reign(1, 1), 11);
        addresses.wrote(address(1), reign(1, 1), 9);
        addresses.wrote(address(3), reign(1, 1), 12);
        assert_eq!(last(&addresses, 1), Some(10));
        assert_eq!(last(&addresses, 2), Some(11), "forgotten, but not its position");
        assert_eq!(last(&addresses, 4), Some(11));
        addresses.applied(&Here { applied: 11, row: Some(&row), is_following: true });
        assert_eq!(last(&addresses, 4), None);
        assert_eq!(last(&addresses, 1), None);
        assert_eq!(last(&addresses, 3), Some(12));
        assert_eq!((addresses.known.len(), addresses.by_use.len()), (1, 1));
    }
}
