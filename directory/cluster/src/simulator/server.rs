//! What a server does: it starts, ends, serves clients, commits, and asks others; all decisions are the crate's logic.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::checker::Ack;
use super::holder::Holder;
use super::op::{Op, OpKind, Origin, Pending, Reply};
use super::options::{Broken, Fault};
use super::process::{Process, Waiting};
use super::store::Change;
use super::wire::{Rpc, RpcReply};
use super::world::{Event, TICK, World};
use crate::follower::Follower;
use crate::message::{MemberId, Reign, Status};
use crate::own_writes::{Here, OwnWrites, Reading};
use crate::role::{ASK_EVERY, Role, Standing};
use crate::writer::Progress;

/// How long a request to another server may take, and a read may wait.
const PATIENCE: Duration = Duration::from_secs(2);

impl World {
    /// What a server's clock says.
    pub fn clock(&self, server: usize) -> Duration {
        self.now + self.servers[server].clock
    }

    pub fn start(&mut self, at: usize) {
        let now = self.clock(at);
        let has_etcd = self.options.etcd;
        let skips_rule = self.is_broken(Broken::StartRule);
        let server = &mut self.servers[at];
        server.boots += 1;
        server.paused = None;
        let row = server.store.cluster.as_deref().cloned();
        let mut standing = Standing::new(server.member, row.clone(), server.heard, now);
        if skips_rule {
            standing = Standing::new(server.member, None, server.heard, now);
            standing.applied(row);
        }
        let holder = has_etcd.then(|| Holder::new(server.member, now));
        server.process = Some(Process {
            standing,
            follower: None,
            follow_conn: None,
            progress: Progress::default(),
            serving: BTreeMap::new(),
            queue: Vec::new(),
            committing: Vec::new(),
            received: VecDeque::new(),
            applying: 0,
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            forwarded: BTreeMap::new(),
            next_ask: now,
            next_beat: now,
            next_trim: now,
            holder,
        });
        let (boot, place) = (server.boots, server.store.place());
        self.note(|| {
            format!("server {at} starts at epoch {}, position {}", place.epoch, place.position)
        });
        self.row_changed(at);
        self.after(Duration::ZERO, Event::Tick { server: at, boot });
    }

    /// The process ends; without power, what was not synced is lost too.
    pub fn kill(&mut self, at: usize, power: bool) {
        if self.servers[at].process.take().is_none() {
            return;
        }
        self.close_all(at, !power);
        let server = &mut self.servers[at];
        server.paused = None;
        if power && server.durable < server.store.position() {
            server.store = server.store.at(server.durable);
        }
        server.durable = server.store.position();
        let position = server.durable;
        self.note(|| format!("server {at} is killed (power: {power}) at position {position}"));
    }

    /// The process's parts are told of the cluster row and of the place of its store.
    pub fn row_changed(&mut self, at: usize) {
        let now = self.clock(at);
        let server = &mut self.servers[at];
        let Some(process) = &mut server.process else { return };
        let row = server.store.cluster.as_deref();
        process.standing.applied(row.cloned());
        server.heard = server.heard.max(process.standing.highest());
        let members = row.iter().flat_map(|row| &row.members).map(|member| member.id);
        process.progress.members(members.filter(|id| *id != server.member), now);
        if let Some(follower) = &mut process.follower {
            follower.row_applied(row);
        }
    }

    /// A reign is heard of.
    pub fn heard(&mut self, at: usize, reign: Option<Reign>) {
        let Some(reign) = reign else { return };
        if self.is_broken(Broken::Fencing) {
            return;
        }
        let server = &mut self.servers[at];
        let Some(process) = &mut server.process else { return };
        let is_fenced = process.standing.heard(reign);
        if let Some(follower) = &mut process.follower {
            follower.heard(reign);
        }
        server.heard = server.heard.max(Some(reign));
        if is_fenced {
            self.note(|| format!("server {at} is fenced by {reign:?}"));
        }
    }

    /// Whether the server may commit.
    pub fn may_write(&mut self, at: usize) -> bool {
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return false };
        match &process.holder {
            Some(holder) => holder.is_open(),
            None => process.standing.may_write(now).is_ok(),
        }
    }

    pub fn tick(&mut self, at: usize, boot: u64) -> Result<(), String> {
        if self.servers[at].boots != boot || self.servers[at].process.is_none() {
            return Ok(());
        }
        let now = self.clock(at);
        if let Some(process) = &mut self.servers[at].process {
            process.standing.tick(now);
        }
        match self.options.etcd {
            true => self.tick_holder(at)?,
            false => self.tick_follow(at),
        }
        self.tick_asking(at);
        self.tick_waiting(at)?;
        self.after(TICK, Event::Tick { server: at, boot });
        Ok(())
    }

    fn tick_asking(&mut self, at: usize) {
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return };
        if now < process.next_ask || self.options.broken == Some(Broken::StartRule) {
            return;
        }
        let is_asking = process.standing.deadline().is_some();
        process.next_ask = now + if is_asking { ASK_EVERY / 6 } else { ASK_EVERY };
        let serving: Vec<MemberId> = process.serving.values().copied().collect();
        let urls: Vec<String> = match &process.holder {
            Some(holder) if holder.is_asking() => {
                let own = self.servers[at].member;
                let row = self.servers[at].store.cluster.as_ref();
                let others =
                    row.iter().flat_map(|row| &row.members).filter(|member| member.id != own);
                others.map(|member| member.url.clone()).collect()
            }
            Some(_) => Vec::new(),
            None => {
                let members = process.standing.to_ask(|id| serving.contains(&id));
                members.map(|member| member.url.clone()).collect()
            }
        };
        for url in urls {
            if let Some(to) = self.urls.get(&url).copied().filter(|to| *to != at) {
                self.ask(at, to, Rpc::Status { asked: now });
            }
        }
    }

    /// Reads that wait, and forwarded operations that take too long.
    pub fn tick_waiting(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        let late: Vec<u64> = process
            .forwarded
            .iter()
            .filter(|(_, (_, end))| *end <= now)
            .map(|(id, _)| *id)
            .collect();
        let late: Vec<Op> =
            late.iter().filter_map(|id| process.forwarded.remove(id)).map(|(op, _)| op).collect();
        for waiting in std::mem::take(&mut process.waiting) {
            self.read(at, waiting)?;
        }
        for op in late {
            self.reply(op, Reply::Unavailable);
        }
        Ok(())
    }

    pub fn status(&mut self, at: usize) -> Option<(Status, u64)> {
        let now = self.clock(at);
        let (etcd, server) = (self.options.etcd, &self.servers[at]);
        let process = server.process.as_ref()?;
        let place = server.store.place();
        let follower = process.follower.as_ref();
        let lag = follower.map(|follower| follower.lag(now));
        let status = Status {
            role: process.standing.role_name(),
            member: server.member,
            name: "m".into(),
            url: None,
            epoch: place.epoch,
            writer: server.store.cluster.as_ref().map(|row| row.writer),
            heard: process.standing.highest(),
            is_connected: !etcd && follower.is_some_and(Follower::is_following),
            position: place.position,
            digest: place.digest,
            head: place.position,
            lag_changes: lag.map_or(0, |lag| lag.changes),
            lag_seconds: None,
            last_error: None,
            followers: Vec::new(),
            contents: server.store.contents(),
        };
        Some((status, server.durable))
    }

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

    fn read(&mut self, at: usize, waiting: Waiting) -> Result<(), String> {
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

    fn reading(&self, at: usize, own: OwnWrites, asked: Duration, now: Duration) -> Reading {
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
    fn accept(&mut self, at: usize, pending: Pending) {
        let Some(process) = &mut self.servers[at].process else { return };
        process.queue.push(pending);
        match self.options.etcd {
            true => self.next_append(at),
            false => self.next_commit(at),
        }
    }

    /// Begins a commit if none is under way.
    pub fn next_commit(&mut self, at: usize) {
        let Some(process) = &mut self.servers[at].process else { return };
        if process.committing.is_empty() && process.applying == 0 && !process.queue.is_empty() {
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
        let group = std::mem::take(&mut process.committing);
        let is_writer = self.may_write(at);
        for pending in group {
            if !is_writer {
                self.finish(at, pending.origin, None);
                continue;
            }
            let ack = self.commit(at, Change::Put { key: pending.key, write: pending.write });
            self.finish(at, pending.origin, Some(ack));
        }
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

    pub fn rpc_came(
        &mut self,
        from: usize,
        boot: u64,
        at: usize,
        id: u64,
        rpc: Rpc,
    ) -> Result<(), String> {
        if self.servers[at].process.is_none() {
            return Ok(());
        }
        let now = self.clock(at);
        match rpc {
            Rpc::Status { asked } => {
                if let Some((status, durable)) = self.status(at) {
                    let reply = RpcReply::Status(Box::new(status), durable, asked);
                    self.answer(at, from, boot, id, reply);
                }
            }
            Rpc::Write { key, write } if self.may_write(at) => {
                self.accept(
                    at,
                    Pending { key, write, origin: Origin::Server { to: from, boot, id } },
                );
            }
            Rpc::Write { .. } => self.answer(at, from, boot, id, RpcReply::Written(None)),
            // One that writes no more, or not yet, does not know that it has all.
            Rpc::Read { .. } if !self.may_write(at) => {
                self.answer(at, from, boot, id, RpcReply::Read(false))
            }
            Rpc::Read { own, client, op } => {
                let reply = match self.reading(at, own, now, now + PATIENCE) {
                    Reading::Lost => RpcReply::Lost,
                    Reading::Now => {
                        let client = &self.clients[client];
                        if client.is_at(op) {
                            self.checker.reads(&self.servers[at].store, &client.wrote, at)?;
                        }
                        RpcReply::Read(true)
                    }
                    _ => RpcReply::Read(false),
                };
                self.answer(at, from, boot, id, reply);
            }
        }
        Ok(())
    }

    pub fn rpc_reply(
        &mut self,
        at: usize,
        boot: u64,
        id: u64,
        from: usize,
        reply: RpcReply,
    ) -> Result<(), String> {
        if self.servers[at].boots != boot {
            return Ok(());
        }
        let now = self.clock(at);
        let place = self.servers[at].store.place();
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        match reply {
            RpcReply::Status(mut status, durable, asked) => {
                if let Some(holder) = &mut process.holder {
                    holder.stands(status.member, status.position, asked);
                    process.progress.acknowledged(status.member, durable, now);
                }
                if self.options.broken == Some(Broken::Fencing) {
                    status.heard = None;
                }
                let before = process.standing.role();
                process.standing.answered(&status, &place, now);
                let after = process.standing.role();
                let highest = process.standing.highest();
                self.servers[at].heard = self.servers[at].heard.max(highest);
                if (before, after) == (Role::Writer, Role::Fenced) {
                    self.note(|| format!("server {at} is fenced by the status of server {from}"));
                }
            }
            RpcReply::Written(ack) => {
                if let Some((op, _)) = process.forwarded.remove(&id) {
                    self.finish(at, Origin::Client(op), ack);
                }
            }
            RpcReply::Read(done) => {
                if let Some((op, _)) = process.forwarded.remove(&id) {
                    self.reply(op, if done { Reply::Read } else { Reply::Unavailable });
                }
            }
            RpcReply::Lost => {
                if let Some((op, _)) = process.forwarded.remove(&id) {
                    self.reply(op, Reply::Closed);
                }
            }
        }
        Ok(())
    }

    /// Whether a kind of fault is wanted in this run.
    pub fn has(&self, fault: Fault) -> bool {
        self.options.faults.contains(&fault)
    }
}
