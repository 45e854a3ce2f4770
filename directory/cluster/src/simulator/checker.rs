//! What must hold, and what was seen.

use std::collections::{HashMap, HashSet};

use super::op::Ack;
use super::options::Report;
use super::store::Store;
use crate::message::{Digest, MemberId, Reign};

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

    /// A member is promoted whose store is this one.
    pub fn promoted(&mut self, store: &Store, reign: Option<Reign>) {
        self.report.reigns += 1;
        self.highest = self.highest.max(reign);
        let has: HashSet<u64> = store.rows.iter().filter_map(|row| row.write()).collect();
        self.passed_over
            .extend(self.acked.iter().map(|ack| ack.write).filter(|id| !has.contains(id)));
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
            if etcd {
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
