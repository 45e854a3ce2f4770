//! What must hold, and what was seen.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::op::Ack;
use super::options::Report;
use super::store::Store;
use crate::follower::Stop;
use crate::message::{Digest, MemberId, Reign};
use crate::role::{STILL_MIN, STILL_WAIT};

/// The checker.
#[derive(Default)]
pub struct Checker {
    pub report: Report,
    acked: Vec<Ack>,
    digests: HashMap<(Reign, u64), (Digest, u64)>,
    writers: HashMap<Reign, usize>,
    /// Writers of an epoch.
    epochs: HashMap<u64, Reign>,
    /// Members whose folder was copied or replaced by an older copy.
    pub tainted: HashSet<MemberId>,
    /// Writes in LDIF that a rejoin has written.
    pub ldif: HashSet<u64>,
    /// Writes of disks that a person replaced by older copies.
    pub destroyed: HashSet<u64>,
    /// Those that no other member had: their positions may be given again.
    pub gone: HashSet<u64>,
    highest: Option<Reign>,
    /// Writes that a promoted member did not have.
    pub passed_over: HashSet<u64>,
    /// Whether no two members may ever write in one epoch.
    pub is_strict: bool,
    /// Whether nothing goes wrong but promotions that ask the others, several at one moment as well. Then nothing that
    /// was acknowledged is lost or only in LDIF, no two members begin one epoch, and no member ever has to rejoin, the
    /// replaced writers included.
    pub is_careful: bool,
    /// Whether nothing goes wrong but such promotions and pauses: see [`Checker::confirmed`].
    pub is_heard_of: bool,
    begun: Vec<Begun>,
    pauses: HashMap<usize, Vec<Pause>>,
}

/// A reign that has begun.
struct Begun {
    reign: Reign,
    server: usize,
    at: Duration,
}

/// A time for which a server stands still.
struct Pause {
    from: Duration,
    until: Duration,
}

impl Checker {
    /// A client was told that its write is done.
    pub fn acknowledged(&mut self, ack: Ack) -> Result<(), String> {
        self.report.acknowledged += 1;
        self.acked.push(ack);
        let Some(reign) = ack.reign else { return Ok(()) };
        if Some(reign) < self.highest {
            self.passed_over.insert(ack.write);
        }
        let made = (ack.digest, ack.write);
        let before = self.digests.entry((reign, ack.position)).or_insert(made);
        if self.gone.contains(&before.1) {
            *before = made;
        }
        let before = before.0;
        let writer = *self.writers.entry(reign).or_insert(ack.server);
        let first = *self.epochs.entry(reign.epoch).or_insert(reign);
        if self.is_strict && first != reign {
            return Err(format!(
                "two writers acknowledge in epoch {}: {first:?}, {reign:?}",
                reign.epoch
            ));
        }
        if self.tainted.contains(&reign.writer) {
            return Ok(());
        }
        if writer != ack.server {
            return Err(format!("servers {writer} and {} acknowledge in {reign:?}", ack.server));
        }
        if before != ack.digest {
            return Err(format!("position {} of {reign:?} has two digests", ack.position));
        }
        Ok(())
    }

    /// A server begins a reign by a promotion. Its store lacks this acknowledged write, if one.
    pub fn begins(
        &mut self,
        (reign, lacked): (Reign, Option<u64>),
        server: usize,
        at: Duration,
    ) -> Result<(), String> {
        let other = self.begun.iter().find(|other| other.reign.epoch == reign.epoch);
        if let Some(other) = other.filter(|_| self.is_careful) {
            return Err(format!("two members begin one epoch: {:?}, {reign:?}", other.reign));
        }
        if let Some(write) = lacked.filter(|_| self.is_careful) {
            return Err(format!("{reign:?} begins without the acknowledged write {write}"));
        }
        self.begun.push(Begun { reign, server, at });
        Ok(())
    }

    /// A member has to rejoin.
    pub fn stops(&mut self, server: usize, why: &Stop) -> Result<(), String> {
        match self.is_careful {
            true => Err(format!("server {server} has to rejoin: {why}")),
            false => Ok(()),
        }
    }

    /// A server stands still from now on, or longer than it did already.
    pub fn stands_still(&mut self, server: usize, now: Duration, until: Duration) {
        let pauses = self.pauses.entry(server).or_default();
        match pauses.last_mut().filter(|last| last.until > now) {
            Some(last) => last.until = until,
            None => pauses.push(Pause { from: now, until }),
        }
    }

    /// A writer acknowledges a commit. It does not if it stood still for [`STILL_MIN`] or more and a later reign had
    /// begun when it went on: the member that began that says so, if both run for [`STILL_WAIT`] then.
    ///
    /// A reign that begins after the answers of the others is not heard of: its member had asked while the writer stood
    /// still, and waits yet for what the others have, or for its disk.
    pub fn confirmed(&self, ack: &Ack, now: Duration) -> Result<(), String> {
        let pauses = self.pauses.get(&ack.server).filter(|_| self.is_heard_of);
        let is_long = |pause: &&Pause| pause.until - pause.from >= STILL_MIN && pause.until <= now;
        for pause in pauses.into_iter().flatten().filter(is_long) {
            let knows = |other: &&Begun| {
                Some(other.reign) > ack.reign
                    && other.at <= pause.until
                    && self.runs(other.server, pause.until)
                    && self.runs(ack.server, pause.until)
            };
            if let Some(other) = self.begun.iter().find(knows) {
                return Err(format!(
                    "{ack:?} is acknowledged after a pause, though {:?} had begun",
                    other.reign
                ));
            }
        }
        Ok(())
    }

    /// Whether a server runs from then on, for long enough to be asked and to answer.
    fn runs(&self, server: usize, since: Duration) -> bool {
        let stands = |pause: &Pause| pause.from < since + STILL_WAIT && pause.until > since;
        !self.pauses.get(&server).into_iter().flatten().any(stands)
    }

    fn is_tainted(&self, ack: &Ack) -> bool {
        ack.reign.is_some_and(|reign| self.tainted.contains(&reign.writer))
    }

    /// A client whose connection has made these writes reads in this store.
    pub fn reads(&mut self, store: &Store, wrote: &[Ack], server: usize) -> Result<(), String> {
        self.report.reads += 1;
        let is_excused = |ack: &Ack| self.is_tainted(ack) || self.gone.contains(&ack.write);
        let is_missing = |ack: &&Ack| !is_excused(ack) && !store.has(ack.position, ack.digest);
        match wrote.iter().rev().find(is_missing) {
            Some(ack) => Err(format!(
                "a read at server {server} (epoch {}, position {}) is older than its connection's write {ack:?}",
                store.epoch(),
                store.position()
            )),
            None => Ok(()),
        }
    }

    /// A member is promoted whose store is this one. Returns an acknowledged write that it lacks.
    pub fn promoted(&mut self, store: &Store, reign: Option<Reign>) -> Option<u64> {
        self.report.reigns += 1;
        self.highest = self.highest.max(reign);
        let has: HashSet<u64> = store.rows.iter().filter_map(|row| row.write()).collect();
        let lacked = self.acked.iter().map(|ack| ack.write).filter(|id| !has.contains(id));
        self.passed_over.extend(lacked.clone());
        lacked.min()
    }

    /// A store is given up for another one, with LDIF of what only it had.
    pub fn rejoined(&mut self, store: &Store, writer: &Store) {
        self.report.rejoins += 1;
        self.ldif.extend(store.only_here(writer));
    }

    /// All is healed, and all stores are this one.
    pub fn end(&mut self, store: &Store, etcd: bool) -> Result<(), String> {
        let has: HashSet<u64> = store.rows.iter().filter_map(|row| row.write()).collect();
        for ack in &self.acked {
            if has.contains(&ack.write) {
                continue;
            }
            if etcd || self.is_careful {
                return Err(format!("the acknowledged write {ack:?} is lost"));
            }
            if self.ldif.contains(&ack.write) {
                self.report.in_ldif += 1;
            } else if self.destroyed.contains(&ack.write) {
                self.report.destroyed += 1;
            } else {
                return Err(format!("the acknowledged write {ack:?} is lost and in no LDIF"));
            }
            let is_tainted = self.is_tainted(ack);
            if !self.passed_over.contains(&ack.write)
                && !self.destroyed.contains(&ack.write)
                && !is_tainted
            {
                return Err(format!(
                    "the write {ack:?} is only in LDIF, though each promoted member had it"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
