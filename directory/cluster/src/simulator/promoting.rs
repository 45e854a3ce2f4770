//! Promotions. One without force asks the others to let it happen, waits for what they have, and begins the epoch.
//!
//! The look at the others before that is left out: it only refuses more. A promise ends with a message
//! of its own in the place of a connection, or with the time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::options::Broken;
use super::promotion::{Asking, Promotion, Question, Step};
use super::store::Change;
use super::wire::{Prepared, Rpc, RpcReply};
use super::world::World;
use crate::message::{ClusterRow, Refusal, Reign, RoleName, Status};

/// How long the others may take to answer, and how often one is asked again that has promised another member.
const ASK_WAIT: Duration = Duration::from_secs(3);
const AGAIN_EVERY: Duration = Duration::from_millis(100);
/// How long a promotion waits for what another member has.
const CATCH_UP_WAIT: Duration = Duration::from_secs(5);

impl World {
    /// A person asks a member to become the writer, if the others let it.
    pub fn promote_asking(&mut self, at: usize) {
        let now = self.clock(at);
        let (number, position) = (self.id(), self.servers[at].store.position());
        if self.servers[at].paused.is_some_and(|until| until > self.now) || self.options.etcd {
            return;
        }
        let Some(process) = &mut self.servers[at].process else { return };
        let Ok(row) = process.standing.promoted(position) else { return };
        let reign = Reign { epoch: row.epoch, writer: row.writer };
        let stills = process.standing.stills(now);
        if process.promotion.is_some() {
            return;
        }
        let Ok(promise) = process.standing.promise(reign, now) else { return };
        let until = now + ASK_WAIT;
        let asking =
            Asking { until, open: BTreeMap::new(), again: Vec::new(), promised: Vec::new() };
        process.promotion =
            Some(Promotion { reign, number, promise, stills, step: Step::Asking(asking) });
        self.note(|| format!("server {at} asks whether it may begin {reign:?}"));
        self.other_members(at).into_iter().for_each(|to| self.ask_promise(at, to));
    }

    fn other_members(&self, at: usize) -> Vec<usize> {
        let server = &self.servers[at];
        let members = server.store.cluster.iter().flat_map(|row| &row.members);
        let others = members.filter(|member| member.id != server.member);
        others.filter_map(|member| self.urls.get(&member.url).copied()).collect()
    }

    fn ask_promise(&mut self, at: usize, to: usize) {
        let Some(promotion) = self.promotion(at) else { return };
        let (number, reign) = (promotion.number, promotion.reign);
        let id = self.ask(at, to, Rpc::Prepare { number, reign });
        if let Some(Promotion { step: Step::Asking(asking), .. }) = self.promotion(at) {
            asking.open.insert(id, to);
        }
    }

    fn promotion(&mut self, at: usize) -> Option<&mut Promotion> {
        self.servers[at].process.as_mut()?.promotion.as_mut()
    }

    /// A member asks this one to let it begin a reign.
    pub fn prepare_came(
        &mut self,
        at: usize,
        (from, boot, id): (usize, u64, u64),
        rpc: (u64, Reign),
    ) {
        let now = self.clock(at);
        let lets_all = self.is_broken(Broken::OnePromise);
        let (number, reign) = rpc;
        let Some(process) = &mut self.servers[at].process else { return };
        if process.promised.ended.contains(&number) {
            return;
        }
        let told = match lets_all {
            true => Ok(None),
            false => process.standing.promise(reign, now).map(Some),
        };
        match told {
            Ok(promise) => {
                process.promised.to.extend(promise.map(|promise| (number, promise)));
                process.promised.questions.push(Question { from, boot, id });
                self.answer_questions(at);
            }
            Err(why) => {
                let answer = Err((why, process.standing.highest()));
                self.answer(at, from, boot, id, RpcReply::Prepared(answer));
            }
        }
    }

    /// Says that it promises, when all that was taken before is on the disk.
    pub fn answer_questions(&mut self, at: usize) {
        let Some(process) = &mut self.servers[at].process else { return };
        if process.is_committing() {
            return;
        }
        for Question { from, boot, id } in std::mem::take(&mut process.promised.questions) {
            let Some((status, _)) = self.status(at) else { return };
            self.answer(at, from, boot, id, RpcReply::Prepared(Ok(Box::new(status))));
        }
    }

    /// A promotion has ended; perhaps its reign has begun.
    pub fn release_came(&mut self, at: usize, number: u64, heard: Option<Reign>) {
        self.heard(at, heard);
        let Some(process) = &mut self.servers[at].process else { return };
        process.promised.ended.insert(number);
        if let Some(promise) = process.promised.to.remove(&number) {
            process.standing.release(promise);
        }
    }

    /// A member has answered.
    pub fn prepare_answered(&mut self, at: usize, id: u64, answer: Prepared) {
        let now = self.clock(at);
        let Some(promotion) = self.promotion(at) else { return };
        let reign = promotion.reign;
        let Step::Asking(asking) = &mut promotion.step else { return };
        let Some(from) = asking.open.remove(&id) else { return };
        match answer {
            Ok(status) => asking.promised.push(*status),
            Err((Refusal::Promised { to }, _)) => {
                // Of the two the one with the lower number goes on.
                if to < reign.writer || now + 2 * AGAIN_EVERY >= asking.until {
                    return self.give_up(at, "another one is promoted");
                }
                asking.again.push((now + AGAIN_EVERY, from));
            }
            Err((_, heard)) if heard.is_some_and(|heard| heard.epoch >= reign.epoch) => {
                self.heard(at, heard);
                self.give_up(at, "the epoch has begun");
            }
            Err(_) => {}
        }
    }

    pub fn tick_promotion(&mut self, at: usize) {
        let now = self.clock(at);
        let own = self.servers[at].store.place();
        let Some(promotion) = self.promotion(at) else { return };
        match &mut promotion.step {
            Step::Asking(asking) => {
                if asking.open.is_empty() && asking.again.is_empty() || now >= asking.until {
                    return self.has_asked(at);
                }
                let due = asking.again.extract_if(.., |(time, _)| *time <= now);
                let due: Vec<usize> = due.map(|(_, to)| to).collect();
                due.into_iter().for_each(|to| self.ask_promise(at, to));
            }
            Step::CatchingUp { until, .. } if now >= *until => {
                self.give_up(at, "what another one has does not come");
            }
            Step::CatchingUp { position, .. } if own.position < *position => {}
            Step::CatchingUp { epoch, .. } if own.epoch < *epoch => {
                self.give_up(at, "its changes are of an older epoch");
            }
            Step::CatchingUp { .. } => self.begin_epoch(at),
            Step::Beginning(_) => {}
        }
    }

    /// All have answered, or are not waited for any longer.
    fn has_asked(&mut self, at: usize) {
        let now = self.clock(at);
        let waits = !self.is_broken(Broken::CatchUp);
        let own = self.servers[at].store.place();
        let Some(promotion) = self.promotion(at) else { return };
        let Step::Asking(asking) = &promotion.step else { return };
        // A replaced writer may have changes beside the others, which count no more.
        let counts = |one: &&Status| one.epoch >= own.epoch && one.role != RoleName::Fenced;
        let found = asking.promised.iter().filter(counts).filter(|_| waits);
        let furthest = found.map(|one| (one.epoch, one.position)).max();
        let (epoch, position) = furthest.unwrap_or_default();
        promotion.step = Step::CatchingUp { until: now + CATCH_UP_WAIT, epoch, position };
    }

    /// Brings the row of the epoch to the disk, after all that is on the way there.
    fn begin_epoch(&mut self, at: usize) {
        let now = self.clock(at);
        let position = self.servers[at].store.position();
        let Some(process) = &mut self.servers[at].process else { return };
        if process.is_committing() || process.applying > 0 {
            return;
        }
        let Some(promotion) = &mut process.promotion else { return };
        let reign = promotion.reign;
        let row = process.standing.promoted(position).ok();
        match row.filter(|row| row.epoch == reign.epoch) {
            Some(_) if process.standing.stills(now) != promotion.stills => {
                self.give_up(at, "it stood still");
            }
            Some(row) if process.standing.may_begin(promotion.promise, now) => {
                promotion.step = Step::Beginning(Box::new(row));
                self.sync(at);
            }
            _ => self.give_up(at, "it may not begin"),
        }
    }

    /// The row is on the disk.
    pub fn epoch_begun(&mut self, at: usize) -> Result<(), String> {
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        let Some(promotion) = process.promotion.take() else { return Ok(()) };
        let (number, reign) = (promotion.number, promotion.reign);
        if let Step::Beginning(row) = promotion.step {
            self.begins(at, *row)?;
        }
        self.say_released(at, number, Some(reign));
        Ok(())
    }

    fn give_up(&mut self, at: usize, why: &str) {
        let Some(process) = &mut self.servers[at].process else { return };
        let Some(promotion) = process.promotion.take() else { return };
        process.standing.release(promotion.promise);
        self.note(|| format!("server {at} does not begin {:?}: {why}", promotion.reign));
        self.say_released(at, promotion.number, None);
        if !self.calm && self.random.chance(40) {
            // The person tries again at once.
            self.promote_asking(at);
        }
    }

    /// The process has ended, and its connections with it.
    pub fn promotion_killed(&mut self, at: usize, promotion: &Promotion) {
        self.say_released(at, promotion.number, None);
    }

    fn say_released(&mut self, at: usize, number: u64, heard: Option<Reign>) {
        for to in self.other_members(at) {
            self.ask(at, to, Rpc::Release { number, heard });
        }
    }

    /// A person makes a member the writer by force: nothing is asked before.
    pub fn promote(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock(at);
        let position = self.servers[at].store.position();
        if self.servers[at].paused.is_some_and(|until| until > self.now) || self.options.etcd {
            return Ok(());
        }
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        let is_busy = process.promotion.as_ref().is_some_and(Promotion::is_beginning);
        let Ok(row) = process.standing.promoted(position) else { return Ok(()) };
        let reign = Reign { epoch: row.epoch, writer: row.writer };
        if is_busy || !process.held.is_empty() {
            return Ok(());
        }
        let Ok(promise) = process.standing.promise(reign, now) else { return Ok(()) };
        match process.standing.may_begin(promise, now) {
            true => self.begins(at, row),
            false => Ok(()),
        }
    }

    /// A member writes from now on.
    fn begins(&mut self, at: usize, row: ClusterRow) -> Result<(), String> {
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        process.follower = None;
        process.applying = 0;
        process.received.clear();
        let conn = process.follow_conn.take();
        conn.into_iter().for_each(|conn| self.close(conn, 0));
        let reign = Reign { epoch: row.epoch, writer: row.writer };
        self.commit(at, Change::Cluster(Box::new(row)));
        self.row_changed(at);
        let lacked = self.checker.promoted(&self.servers[at].store, Some(reign));
        let position = self.servers[at].store.position();
        self.note(|| format!("server {at} is promoted to {reign:?} at position {position}"));
        self.checker.begins((reign, lacked), at, self.now)
    }
}
