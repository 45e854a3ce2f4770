//! All that there is, and its events in the order of their times. Steps, in files of their own, change it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::checker::Checker;
use super::etcd::Etcd;
use super::event::Event;
use super::op::Client;
use super::options::{Broken, Fault, Options};
use super::process::Server;
use super::random::Random;
use super::store::{Change, Store};
use super::wire::Conn;
use crate::message::{ClusterId, ClusterRow, History, Member, MemberId};

/// Lines of trace that are kept.
const TRACE: usize = 60;
/// How often a server looks at its clock.
pub const TICK: Duration = Duration::from_millis(50);
/// The place of etcd in the network.
pub const ETCD: usize = usize::MAX;

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
    /// Servers that are not started yet, and clients that ask for nothing yet.
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
        let has_only = |only: &[Fault]| {
            let faults = &world.options.faults;
            !world.options.etcd
                && faults.contains(&Fault::PromoteAsked)
                && faults.iter().all(|fault| only.contains(fault))
        };
        let is_careful = has_only(&[Fault::PromoteAsked]);
        let is_heard_of = has_only(&[Fault::PromoteAsked, Fault::Pause]);
        let chooses =
            |it: &Fault| matches!(it, Fault::Promote | Fault::PromoteAny | Fault::PromoteAsked);
        let chosen = world.options.faults.iter().any(chooses);
        world.checker.is_strict = world.options.etcd || is_careful || !chosen;
        (world.checker.is_careful, world.checker.is_heard_of) = (is_careful, is_heard_of);
        if let Some(etcd) = &mut world.etcd {
            etcd.rows.insert(1, row);
        }
        for at in 0..world.options.members {
            world.servers.push(Server::new(MemberId(at as u64 + 1), store.clone()));
        }
        let clients = world.options.clients.unwrap_or(2 + world.options.members);
        world.clients.resize_with(clients, Client::default);
        world
    }

    /// The next event until `end`, whose time is now. What comes to a process that stands still waits for it.
    pub fn next_until(&mut self, end: Duration) -> Option<Event> {
        while let Some(first) = self.queue.first_entry().filter(|first| first.key().0 <= end) {
            let ((at, seq), event) = first.remove_entry();
            self.now = at;
            self.checker.report.events += 1;
            let paused = event.server(&self.conns).and_then(|server| self.servers[server].paused);
            match paused {
                Some(until) if until > at => {
                    self.queue.insert((until, seq), event);
                }
                _ => return Some(event),
            }
        }
        None
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
