//! All that there is, and its events in the order of their times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::checker::Checker;
use super::etcd::{Call, Etcd, Heard};
use super::op::{Client, Op, Reply};
use super::options::{Broken, Fault, Options};
use super::process::Server;
use super::random::Random;
use super::store::{Change, Store};
use super::wire::{Conn, Message, Rpc, RpcReply};
use crate::message::{ClusterId, ClusterRow, History, Member, MemberId};

/// Lines of trace that are kept.
const TRACE: usize = 60;
/// How often a server looks at its clock.
pub const TICK: Duration = Duration::from_millis(50);
/// The place of etcd in the network.
pub const ETCD: usize = usize::MAX;

/// Something that happens.
pub enum Event {
    /// A server looks at its clock.
    Tick { server: usize, boot: u64 },
    /// A frame arrives at one end of a connection.
    Deliver { conn: u64, side: usize, message: Message },
    /// A connection was made, or not.
    Connected { server: usize, boot: u64, conn: u64, target: usize },
    /// One end of a connection learns that it has ended.
    Closed { server: usize, boot: u64, conn: u64 },
    /// A request of another server.
    Rpc { from: usize, boot: u64, to: usize, id: u64, rpc: Rpc },
    /// Its answer.
    RpcReply { to: usize, boot: u64, id: u64, from: usize, reply: RpcReply },
    /// The disk has what was written.
    Synced { server: usize, boot: u64 },
    /// A client goes on.
    Client { client: usize },
    /// A client does not wait any longer.
    ClientLate { client: usize, op: u64 },
    /// A client's operation comes to a server.
    Serve { server: usize, boot: u64, op: Op },
    /// A client has its reply.
    Reply { client: usize, op: u64, reply: Reply },
    /// A call comes to etcd.
    Etcd { from: usize, boot: u64, id: u64, call: Call },
    /// Its answer comes.
    EtcdReply { to: usize, boot: u64, id: u64, heard: Heard },
    /// A fault happens, or a person does something.
    Fault,
    /// A server that was killed is started.
    Start { server: usize },
    /// A cut between two ends.
    Mend { one: usize, other: usize },
    /// etcd is back.
    EtcdBack,
}

impl Event {
    /// The server whose process handles it.
    fn server(&self, conns: &BTreeMap<u64, Conn>) -> Option<usize> {
        match self {
            Event::Tick { server, .. }
            | Event::Connected { server, .. }
            | Event::Closed { server, .. }
            | Event::Synced { server, .. }
            | Event::Serve { server, .. } => Some(*server),
            Event::Rpc { to, .. } | Event::RpcReply { to, .. } | Event::EtcdReply { to, .. } => {
                Some(*to)
            }
            Event::Deliver { conn, side, .. } => conns.get(conn).map(|conn| conn.ends[*side].0),
            _ => None,
        }
    }
}

/// All that there is.
pub struct World {
    pub now: Duration,
    seq: u64,
    queue: BTreeMap<(Duration, u64), Event>,
    pub random: Random,
    pub options: Options,
    pub servers: Vec<Server>,
    pub conns: BTreeMap<u64, Conn>,
    pub cuts: BTreeSet<(usize, usize)>,
    pub clients: Vec<Client>,
    pub etcd: Option<Etcd>,
    pub checker: Checker,
    pub calm: bool,
    pub set_aside: Vec<Store>,
    /// The server that answers at a member's URL.
    pub urls: BTreeMap<String, usize>,
    pub next_id: u64,
    trace: VecDeque<String>,
}

impl World {
    pub fn new(seed: u64, options: Options) -> World {
        let mut random = Random::new(seed);
        let mut store = Store::new(History([7; 16]));
        let member = |at: usize| Member {
            id: MemberId(at as u64 + 1),
            name: format!("m{at}"),
            url: url(at),
            since: 0,
        };
        let members: Vec<Member> = (0..options.members).map(member).collect();
        let etcd = options.etcd.then(|| Etcd::new(random.next()));
        let row = ClusterRow {
            cluster: ClusterId([1; 16]),
            epoch: 1,
            writer: MemberId(1),
            members,
            began: Vec::new(),
            etcd: etcd.as_ref().map(|etcd| etcd.store),
        };
        let row = store.next(Change::Cluster(Box::new(row)), 0);
        store.apply(&row);
        let mut world = World {
            now: Duration::ZERO,
            seq: 0,
            queue: BTreeMap::new(),
            random,
            servers: Vec::new(),
            conns: BTreeMap::new(),
            cuts: BTreeSet::new(),
            clients: Vec::new(),
            etcd,
            checker: Checker::default(),
            calm: false,
            set_aside: Vec::new(),
            urls: (0..options.members).map(|at| (url(at), at)).collect(),
            next_id: 0,
            trace: VecDeque::new(),
            options,
        };
        let chosen = world.options.faults.contains(&Fault::PromoteAny)
            || world.options.faults.contains(&Fault::Promote);
        world.checker.is_strict = world.options.etcd || !chosen;
        if let Some(etcd) = &mut world.etcd {
            etcd.rows.insert(1, row);
        }
        for at in 0..world.options.members {
            world.servers.push(Server::new(MemberId(at as u64 + 1), store.clone()));
            world.start(at);
        }
        for at in 0..world.options.clients.unwrap_or(2 + world.options.members) {
            world.clients.push(Client::default());
            world.after(Duration::from_millis(at as u64), Event::Client { client: at });
        }
        world
    }

    /// Runs to the end: first with faults, then until all is healed.
    pub fn run(&mut self) -> Result<(), String> {
        let end = Duration::from_secs(self.options.seconds);
        let first = self.random.between(500, 3000);
        self.after(first, Event::Fault);
        self.run_until(end)?;
        self.heal()
    }

    pub fn run_until(&mut self, end: Duration) -> Result<(), String> {
        while let Some(first) = self.queue.first_entry() {
            if first.key().0 > end {
                break;
            }
            let ((at, seq), event) = first.remove_entry();
            self.now = at;
            self.checker.report.events += 1;
            // What comes to a process that stands still waits for it.
            let paused = event.server(&self.conns).and_then(|server| self.servers[server].paused);
            match paused {
                Some(until) if until > at => {
                    self.queue.insert((until, seq), event);
                }
                _ => self.handle(event)?,
            }
        }
        self.now = end;
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Tick { server, boot } => self.tick(server, boot)?,
            Event::Deliver { conn, side, message } => self.deliver(conn, side, message)?,
            Event::Connected { server, boot, conn, target } => {
                self.connected(server, boot, conn, target)
            }
            Event::Closed { server, boot, conn } => self.closed(server, boot, conn),
            Event::Rpc { from, boot, to, id, rpc } => self.rpc_came(from, boot, to, id, rpc)?,
            Event::RpcReply { to, boot, id, from, reply } => {
                self.rpc_reply(to, boot, id, from, reply)?
            }
            Event::Synced { server, boot } => self.synced(server, boot)?,
            Event::Client { client } => self.client_step(client),
            Event::ClientLate { client, op } => self.client_late(client, op),
            Event::Serve { server, boot, op } => self.serve(server, boot, op)?,
            Event::Reply { client, op, reply } => self.client_reply(client, op, reply)?,
            Event::Etcd { from, boot, id, call } => self.etcd_call(from, boot, id, call),
            Event::EtcdReply { to, boot, id, heard } => self.etcd_reply(to, boot, id, heard)?,
            Event::Fault => self.fault(),
            Event::Start { server } => {
                if self.servers[server].process.is_none() && !self.servers[server].is_ended {
                    self.start(server);
                }
            }
            Event::Mend { one, other } => {
                self.cuts.remove(&(one, other));
            }
            Event::EtcdBack => {
                if let Some(etcd) = &mut self.etcd {
                    etcd.is_up = true;
                }
            }
        }
        Ok(())
    }

    pub fn after(&mut self, pause: Duration, event: Event) {
        self.at(self.now + pause, event);
    }

    pub fn at(&mut self, at: Duration, event: Event) {
        self.seq += 1;
        self.queue.insert((at.max(self.now), self.seq), event);
    }

    pub fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if self.trace.len() >= TRACE {
            self.trace.pop_front();
        }
        let line = format!("{:9.3} {}", self.now.as_secs_f64(), line());
        if std::env::var_os("KEYWAY_SIMULATOR_TRACE").is_some() {
            eprintln!("{line}");
        }
        self.trace.push_back(line);
    }

    pub fn trace(&self) -> Vec<String> {
        self.trace.iter().cloned().collect()
    }

    pub fn is_broken(&self, rule: Broken) -> bool {
        self.options.broken == Some(rule)
    }

    pub fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cuts.contains(&(one.min(other), one.max(other)))
    }
}

/// Where a server listens.
pub fn url(at: usize) -> String {
    format!("ldaps://m{at}:636")
}
