//! What a server does for its clients: reads, forwards, commits.

use std::time::Duration;

use super::event::Event;
use super::op::{Ack, Op, OpKind, Origin, Pending, Reply};
use super::options::Broken;
use super::process::{PATIENCE, Waiting};
use super::promotion::Promotion;
use super::store::Change;
use super::wire::{Rpc, RpcReply};
use super::world::World;
use crate::follower::Follower;
use crate::own_writes::{Here, OwnWrites, Reading};

impl World {
    pub fn serve(&mut self, at: usize, boot: u64, op: Op) -> Result<(), String> {
        let now = self.clock(at);
        if self.servers[at].boots != boot || self.servers[at].process.is_none() {
            self.reply(op, Reply::Closed);
            return Ok(());
        }
        match op.kind {
            OpKind::Write { key, write } if self.may_write(at) => {
                self.accept(at, Pending { key, write, origin: Origin::Client(op) });
                Ok(())
            }
            OpKind::Write { key, write } => {
                self.forward(at, op, Rpc::Write { key, write });
                Ok(())
            }
            OpKind::Read => {
                let Some(process) = &mut self.servers[at].process else { return Ok(()) };
                let own = process.sessions.get(&op.session).copied().unwrap_or_default();
                self.read(at, Waiting { op, own, asked: now })
            }
        }
    }

    pub fn read(&mut self, at: usize, waiting: Waiting) -> Result<(), String> {
        let now = self.clock(at);
        let Waiting { op, own, asked } = waiting;
        match self.reading(at, own, asked, now) {
            Reading::Now => {
                let client = &self.clients[op.client];
                if client.is_at(op.number) {
                    self.checker.reads(&self.servers[at].store, &client.wrote, at)?;
                }
                self.reply(op, Reply::Read);
            }
            Reading::Wait { .. } => {
                if let Some(process) = &mut self.servers[at].process {
                    process.waiting.push(waiting);
                }
            }
            Reading::Forward => {
                self.forward(at, op, Rpc::Read { own, client: op.client, op: op.number })
            }
            Reading::Lost => self.reply(op, Reply::Closed),
        }
        Ok(())
    }

    pub fn reading(&self, at: usize, own: OwnWrites, asked: Duration, now: Duration) -> Reading {
        let server = &self.servers[at];
        let row = server.store.cluster.as_deref();
        let follower = server.process.as_ref().and_then(|process| process.follower.as_ref());
        let is_following = follower.is_some_and(Follower::is_following);
        let here = Here { applied: server.store.position(), row, is_following };
        match self.is_broken(Broken::OwnWrites) {
            true => Reading::Now,
            false => own.reading(&here, asked, now, PATIENCE),
        }
    }

    /// Hands an operation to the writer, if it is known.
    fn forward(&mut self, at: usize, op: Op, rpc: Rpc) {
        let now = self.clock(at);
        let process = self.servers[at].process.as_ref();
        let url = process.and_then(|process| process.standing.writer_url().map(str::to_owned));
        let target = url.and_then(|url| self.urls.get(&url).copied()).filter(|to| *to != at);
        let Some(target) = target else {
            self.reply(op, Reply::Unavailable);
            return;
        };
        let id = self.ask(at, target, rpc);
        if let Some(process) = &mut self.servers[at].process {
            process.forwarded.insert(id, (op, now + PATIENCE));
        }
    }

    /// Takes a write for the next commit.
    pub fn accept(&mut self, at: usize, pending: Pending) {
        let Some(process) = &mut self.servers[at].process else { return };
        process.queue.push(pending);
        match self.options.etcd {
            true => self.next_append(at),
            false => self.next_commit(at),
        }
    }

    /// Begins a commit if none is under way. One that was replaced meanwhile begins none.
    pub fn next_commit(&mut self, at: usize) {
        let is_replaced = !self.may_serve(at);
        let Some(process) = &mut self.servers[at].process else { return };
        if is_replaced {
            let queue = std::mem::take(&mut process.queue);
            queue.into_iter().for_each(|pending| self.finish(at, pending.origin, None));
            return;
        }
        if !process.is_disk_busy() && !process.queue.is_empty() {
            process.committing = std::mem::take(&mut process.queue);
            self.sync(at);
        }
    }

    /// The disk takes its time.
    pub fn sync(&mut self, at: usize) {
        let delay = match self.servers[at].slow_until > self.now {
            true => self.random.between(200, 2500),
            false => self.random.between(1, 12),
        };
        let boot = self.servers[at].boots;
        self.after(delay, Event::Synced { server: at, boot });
    }

    pub fn synced(&mut self, at: usize, boot: u64) -> Result<(), String> {
        if self.servers[at].boots != boot {
            return Ok(());
        }
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        if process.applying > 0 {
            return self.applied(at);
        }
        if process.promotion.as_ref().is_some_and(Promotion::is_beginning) {
            return self.epoch_begun(at);
        }
        for Pending { key, write, origin } in std::mem::take(&mut process.committing) {
            let ack = self.commit(at, Change::Put { key, write });
            if let Some(process) = &mut self.servers[at].process {
                process.held.push((origin, ack));
            }
        }
        self.acknowledge(at)
    }

    /// Answers what is committed, if that may be said now.
    pub fn acknowledge(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock(at);
        let asks = !self.is_broken(Broken::Still);
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        if process.held.is_empty() {
            return Ok(());
        }
        let told = match asks {
            true => process.standing.may_acknowledge(now),
            false => Some(process.standing.may_serve(now)),
        };
        let Some(told) = told else { return Ok(()) };
        for (origin, ack) in std::mem::take(&mut process.held) {
            if told.is_ok() {
                self.checker.confirmed(&ack, self.now)?;
            }
            // It stays committed in any case.
            self.finish(at, origin, told.is_ok().then_some(ack));
        }
        self.answer_questions(at);
        self.next_commit(at);
        Ok(())
    }

    /// Commits a change at the writer, and sends it to those that follow.
    pub fn commit(&mut self, at: usize, change: Change) -> Ack {
        let salt = self.random.next();
        let server = &mut self.servers[at];
        let row = server.store.next(change, salt);
        server.store.apply(&row);
        server.durable = server.store.position();
        let ack = Ack {
            write: row.write().unwrap_or(0),
            reign: server.store.reign(),
            position: row.position,
            digest: row.digest,
            server: at,
        };
        self.send_row(at, &row);
        ack
    }

    /// A write is done, or not.
    pub fn finish(&mut self, at: usize, origin: Origin, ack: Option<Ack>) {
        match origin {
            Origin::Client(op) => {
                if let (Some(process), Some(ack)) = (&mut self.servers[at].process, ack) {
                    let own = process.sessions.entry(op.session).or_default();
                    own.wrote(ack.reign, ack.position);
                }
                self.reply(op, ack.map_or(Reply::Unavailable, Reply::Written));
            }
            Origin::Server { to, boot, id } => {
                self.answer(at, to, boot, id, RpcReply::Written(ack))
            }
        }
    }
}
