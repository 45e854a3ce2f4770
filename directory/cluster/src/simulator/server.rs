//! What a server does: it starts, ends, serves clients, commits, and asks others; all decisions are the crate's logic.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::event::Event;
use super::holder::Holder;
use super::op::{Op, Origin, Pending, Reply};
use super::options::{Broken, Fault};
use super::process::{PATIENCE, Process};
use super::promotion::Promised;
use super::wire::{Rpc, RpcReply};
use super::world::{TICK, World};
use crate::follower::Follower;
use crate::message::{MemberId, Reign, Status};
use crate::own_writes::Reading;
use crate::role::{ASK_EVERY, Role, Standing};
use crate::writer::Progress;

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
            held: Vec::new(),
            received: VecDeque::new(),
            applying: 0,
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            forwarded: BTreeMap::new(),
            next_ask: now,
            next_beat: now,
            next_trim: now,
            holder,
            promotion: None,
            promised: Promised::default(),
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
        let Some(process) = self.servers[at].process.take() else { return };
        self.close_all(at, !power);
        if let Some(promotion) = process.promotion.filter(|_| !power) {
            self.promotion_killed(at, &promotion);
        }
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
        if process.standing.role() == Role::Writer {
            // Also a copy of the new writer's folder, whose feed ends.
            process.follower = None;
            process.received.clear();
        }
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
        if self.is_broken(Broken::Promise) {
            return self.may_serve(at);
        }
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return false };
        match &process.holder {
            Some(holder) => holder.is_open(),
            None => process.standing.may_write(now).is_ok(),
        }
    }

    /// Whether others may follow the server.
    pub fn may_serve(&mut self, at: usize) -> bool {
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return false };
        process.standing.may_serve(now).is_ok()
    }

    pub fn tick(&mut self, at: usize, boot: u64) -> Result<(), String> {
        if self.servers[at].boots != boot || self.servers[at].process.is_none() {
            return Ok(());
        }
        let now = self.clock(at);
        if let Some(process) = &mut self.servers[at].process {
            process.standing.tick(now);
        }
        self.acknowledge(at)?;
        self.tick_promotion(at);
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
        let is_asking = process.standing.deadline().is_some();
        let pause = if is_asking { ASK_EVERY / 6 } else { ASK_EVERY };
        process.next_ask = process.next_ask.min(now + pause);
        if now < process.next_ask || self.options.broken == Some(Broken::StartRule) {
            return;
        }
        process.next_ask = now + pause;
        let is_still = process.standing.may_acknowledge(now).is_none();
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
                let members = process.standing.to_ask(|id| !is_still && serving.contains(&id));
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
            lag_changes: lag.map(|lag| lag.changes),
            lag_seconds: None,
            last_error: None,
            followers: Vec::new(),
            contents: server.store.contents(),
            rules: None,
            diverged_from: process
                .holder
                .as_ref()
                .and_then(|it| it.lease.diverged_from())
                .map(|it| it.0),
            promised: process.standing.promised(now),
            has_stopped: follower.is_some_and(|it| it.stopped().is_some()),
        };
        Some((status, server.durable))
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
            Rpc::Prepare { number, reign } => {
                self.prepare_came(at, (from, boot, id), (number, reign))
            }
            Rpc::Release { number, heard } => self.release_came(at, number, heard),
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
                    holder.lease.stands(&status, asked);
                    process.progress.acknowledged(status.member, durable, now);
                }
                if self.options.broken == Some(Broken::Fencing) {
                    status.heard = None;
                }
                let before = process.standing.role();
                process.standing.answered(&status, &place, asked, now);
                let after = process.standing.role();
                let highest = process.standing.highest();
                self.servers[at].heard = self.servers[at].heard.max(highest);
                if (before, after) == (Role::Writer, Role::Fenced) {
                    self.note(|| format!("server {at} is fenced by the status of server {from}"));
                }
                self.acknowledge(at)?;
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
            RpcReply::Prepared(answer) => self.prepare_answered(at, id, answer),
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
