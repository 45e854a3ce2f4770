//! A server whose feed's tail is in etcd: it follows the tail, takes the lease, and appends.

use std::rc::Rc;
use std::time::Duration;

use super::etcd::{Call, Heard};
use super::holder::Holder;
use super::op::{Ack, Pending};
use super::options::Broken;
use super::store::{Change, Row};
use super::world::World;
use crate::append::{self, Appended, Appender, Outcome};
use crate::follower::Follower;
use crate::lease::{Doubt, Own, Step, Told};
use crate::message::Answer;

/// How long an answer of etcd may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the tail is looked at; servers watch it.
const FOLLOW_EVERY: Duration = Duration::from_millis(100);

impl World {
    fn holder(&mut self, at: usize) -> Option<&mut Holder> {
        self.servers[at].process.as_mut()?.holder.as_mut()
    }

    pub fn tick_holder(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock(at);
        let is_sync =
            self.random.chance(if self.servers[at].slow_until > self.now { 2 } else { 20 });
        if is_sync {
            self.servers[at].durable = self.servers[at].store.position();
        }
        let Some(holder) = self.holder(at) else { return Ok(()) };
        if let Some((id, sent)) = holder.append_call
            && now > sent + PATIENCE
        {
            self.etcd_reply(at, self.servers[at].boots, id, Heard::Append(Appended::Unknown))?;
        }
        let Some(holder) = self.holder(at) else { return Ok(()) };
        if holder.append_again.is_some_and(|at| at <= now) {
            holder.append_again = None;
            self.send_append(at);
        }
        self.tick_lease(at)?;
        let Some(holder) = self.holder(at) else { return Ok(()) };
        if holder.follow_call.is_some_and(|(_, sent)| now > sent + PATIENCE) {
            holder.follow_call = None;
        }
        if holder.follow_call.is_none()
            && !holder.is_open
            && holder.under_way.is_none()
            && now >= holder.next_follow
        {
            holder.next_follow = now + FOLLOW_EVERY;
            let after = self.servers[at].store.position();
            let id = self.call(at, Call::Follow(after));
            if let Some(holder) = self.holder(at) {
                holder.follow_call = Some((id, now));
            }
        }
        if self.may_write(at) {
            self.trim_etcd(at);
        }
        Ok(())
    }

    fn tick_lease(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock(at);
        let Some(holder) = self.holder(at) else { return Ok(()) };
        if let Some((id, _, sent)) = &holder.lease_call {
            let id = *id;
            if now > *sent + PATIENCE {
                self.etcd_reply(at, self.servers[at].boots, id, Heard::Lease(Told::Unavailable))?;
            }
            return Ok(());
        }
        if holder.lease.doubt_found() == Some(Doubt::Diverged) {
            self.take_base(at);
            return Ok(());
        }
        if let Step::Ask(ask) = holder.lease.step(now) {
            let id = self.call(at, Call::Lease(ask.clone()));
            if let Some(holder) = self.holder(at) {
                holder.lease_call = Some((id, ask, now));
            }
        }
        Ok(())
    }

    pub fn etcd_reply(
        &mut self,
        at: usize,
        boot: u64,
        id: u64,
        heard: Heard,
    ) -> Result<(), String> {
        if self.servers[at].boots != boot || self.servers[at].process.is_none() {
            return Ok(());
        }
        match heard {
            Heard::Lease(told) => self.lease_told(at, id, &told),
            Heard::Append(appended) => self.appended(at, id, appended),
            Heard::Rows(rows, last) => {
                self.rows_came(at, id, &rows, last.map_or(0, |(last, _)| last))
            }
            Heard::Trimmed => Ok(()),
            Heard::Compacted => {
                let Some(holder) = self.holder(at) else { return Ok(()) };
                if holder.follow_call.take_if(|(call, _)| *call == id).is_some() {
                    self.take_base(at);
                }
                Ok(())
            }
        }
    }

    fn lease_told(&mut self, at: usize, id: u64, told: &Told) -> Result<(), String> {
        let now = self.clock(at);
        let is_trusting = self.is_broken(Broken::EtcdDoubt);
        let server = &mut self.servers[at];
        let (store, process) = (&server.store, &mut server.process);
        let Some(holder) = process.as_mut().and_then(|process| process.holder.as_mut()) else {
            return Ok(());
        };
        let Some((_, _, sent)) = holder.lease_call.take_if(|(call, ..)| *call == id) else {
            return Ok(());
        };
        let before = holder.lease.fence();
        let mut told = told.clone();
        let mut row = store.cluster.as_deref().cloned();
        if let Told::State { store, revision, .. } = &mut told {
            holder.store = store.0;
            if is_trusting {
                *revision = u64::MAX;
                row.iter_mut().for_each(|row| row.etcd = Some(store.0));
            }
        }
        let place = store.place();
        let own = Own { place: &place, row: row.as_ref() };
        holder.lease.told(&told, own, |position| store.digest_at(position), (sent, now));
        let after = holder.lease.fence();
        match (before, after) {
            (None, Some(fence)) => {
                holder.appender = Some(Appender::new(fence));
                // The whole tail is looked at once more: another holder may have appended last.
                holder.follow_call = None;
                holder.next_follow = now;
                self.note(|| {
                    format!("server {at} takes the lease {fence:?} at position {}", place.position)
                });
            }
            (Some(_), None) => self.lease_lost(at),
            _ => {}
        }
        Ok(())
    }

    /// The server writes no more.
    fn lease_lost(&mut self, at: usize) {
        let now = self.clock(at);
        let Some(holder) = self.holder(at) else { return };
        let pending = holder.under_way.take().and_then(|(_, pending)| pending);
        holder.lease.lost(now);
        (holder.appender, holder.append_call, holder.append_again) = (None, None, None);
        holder.is_open = false;
        let process = self.servers[at].process.as_mut();
        let queue = process.map(|process| std::mem::take(&mut process.queue)).unwrap_or_default();
        self.note(|| format!("server {at} has lost the lease"));
        pending.into_iter().chain(queue).for_each(|pending| self.finish(at, pending.origin, None));
    }

    fn rows_came(&mut self, at: usize, id: u64, rows: &[Rc<Row>], last: u64) -> Result<(), String> {
        let now = self.clock(at);
        let Some(holder) = self.holder(at) else { return Ok(()) };
        if holder.follow_call.take_if(|(call, _)| *call == id).is_none() {
            return Ok(());
        }
        if !rows.is_empty() {
            let place = self.servers[at].store.place();
            let row = self.servers[at].store.cluster.clone();
            let mut follower =
                Follower::new(self.servers[at].member, place, row.as_deref(), Vec::new(), now);
            follower.connected(now);
            let answer = Answer::Following { epoch: place.epoch, head: last };
            let mut told = follower.answered(&answer, now);
            for row in rows {
                told = told.and_then(|()| follower.row(&row.header(), now));
                if let Err(why) = &told {
                    self.note(|| format!("server {at}: {why}"));
                    self.take_base(at);
                    return Ok(());
                }
                self.apply(at, row)?;
            }
            if let Some(holder) = self.holder(at) {
                holder.next_follow = now;
            }
            return self.tick_waiting(at);
        }
        let Some(holder) = self.holder(at) else { return Ok(()) };
        if holder.appender.is_some() && !holder.is_open && holder.under_way.is_none() {
            self.begin_reign(at, last);
        }
        Ok(())
    }

    /// The holder has the whole tail: it puts what the tail lacks, then the row of its reign.
    fn begin_reign(&mut self, at: usize, last: u64) {
        let store = &self.servers[at].store;
        if let Some(row) = store.rows.get(last as usize).cloned() {
            self.append(at, row, None);
            return;
        }
        let position = store.position();
        let etcd = self.holder(at).map(|holder| holder.store);
        let process = self.servers[at].process.as_ref();
        let row = process.map(|process| process.standing.leased(position, etcd));
        let Some(Ok(row)) = row else { return };
        let salt = self.random.next();
        let row = self.servers[at].store.next(Change::Cluster(Box::new(row)), salt);
        self.append(at, row, None);
    }

    fn append(&mut self, at: usize, row: Rc<Row>, pending: Option<Pending>) {
        let Some(holder) = self.holder(at) else { return };
        let Some(appender) = &mut holder.appender else { return };
        let (position, before, digest) = (row.position, row.before, row.digest);
        if appender.push(append::Row { position, before, digest, stored: Vec::new() }) {
            holder.under_way = Some((row, pending));
            self.send_append(at);
        }
    }

    fn send_append(&mut self, at: usize) {
        let now = self.clock(at);
        let Some(holder) = self.holder(at) else { return };
        let sent = holder.appender.as_ref().and_then(Appender::sent).map(|(fence, _)| *fence);
        let Some((fence, (row, _))) = sent.zip(holder.under_way.as_ref()) else { return };
        let row = Rc::clone(row);
        let id = self.call(at, Call::Append(fence, row));
        if let Some(holder) = self.holder(at) {
            holder.append_call = Some((id, now));
        }
    }

    fn appended(&mut self, at: usize, id: u64, appended: Appended) -> Result<(), String> {
        let now = self.clock(at);
        let Some(holder) = self.holder(at) else { return Ok(()) };
        if holder.append_call.take_if(|(call, _)| *call == id).is_none() {
            return Ok(());
        }
        let Some(appender) = &mut holder.appender else { return Ok(()) };
        match appender.told(appended, now) {
            Outcome::Done => self.append_done(at)?,
            Outcome::Again(at) => holder.append_again = Some(at),
            Outcome::NotDone => {
                if let Some((_, Some(pending))) = holder.under_way.take() {
                    self.finish(at, pending.origin, None);
                }
            }
            Outcome::Fenced => self.lease_lost(at),
        }
        Ok(())
    }

    fn append_done(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock(at);
        let Some(holder) = self.holder(at) else { return Ok(()) };
        let Some((row, pending)) = holder.under_way.take() else { return Ok(()) };
        if row.position <= self.servers[at].store.position() {
            // One that the tail lacked: the next one follows.
            let Some(holder) = self.holder(at) else { return Ok(()) };
            holder.next_follow = now;
            return Ok(());
        }
        self.apply(at, &row)?;
        if matches!(row.change, Change::Cluster(_)) {
            let reign = self.servers[at].store.reign();
            self.checker.promoted(&self.servers[at].store, reign);
            self.note(|| format!("server {at} begins {reign:?} at position {}", row.position));
            if let Some(holder) = self.holder(at) {
                holder.is_open = true;
            }
        }
        if let (Some(pending), Some(write)) = (pending, row.write()) {
            let reign = self.servers[at].store.reign();
            let ack = Ack { write, reign, position: row.position, digest: row.digest, server: at };
            self.finish(at, pending.origin, Some(ack));
        }
        self.next_append(at);
        self.tick_waiting(at)
    }

    /// Appends the next write, if none is under way.
    pub fn next_append(&mut self, at: usize) {
        let Some(process) = &mut self.servers[at].process else { return };
        let Some(holder) = &process.holder else { return };
        if !holder.is_open || holder.under_way.is_some() || process.queue.is_empty() {
            return;
        }
        let pending = process.queue.remove(0);
        let salt = self.random.next();
        let change = Change::Put { key: pending.key, write: pending.write };
        let row = self.servers[at].store.next(change, salt);
        self.append(at, row, Some(pending));
    }

    fn trim_etcd(&mut self, at: usize) {
        let before = self.servers[at].store.first_kept;
        self.trim(at);
        let first = self.servers[at].store.first_kept;
        if first > before {
            self.call(at, Call::Trim(first - 1));
        }
    }
}
