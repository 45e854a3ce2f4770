//! The gateway's state: the tunnels that run, and how a configuration becomes them.

use crate::association::{InParameters, Incoming, Maker, NoSa, OutParameters, Outgoing};
use crate::config::{Configuration, Key, Keyed, Remote, Tunnel};
use crate::ike::message::Request;
use crate::ike::negotiated::{Carries, Negotiated, Shown};
use crate::limits::{MTU_MAX, MTU_MIN};
use crate::say::{Say, count};
use crate::state::StateFolder;
use crate::tables::{Peer, Shared, Sockets, Tables};
use keyway_esp::{Inbound, Life, Outbound, Prefix, SaError};
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_packet_io::Tun;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The MTU of the device where nothing says how much the paths take: that of Ethernet, less what any suite adds.
const MTU_USUAL: u32 = 1400;

/// A tunnel that runs.
pub struct Running {
    /// Its configuration.
    pub tunnel: Tunnel,
    /// The peer, as the threads know it.
    pub peer: Arc<Peer>,
    /// What seals.
    pub out: Result<Arc<Outgoing<StateFolder>>, Missing>,
    /// What opens.
    pub inbound: Result<Arc<Incoming>, Missing>,
    /// What was said of it.
    pub said: Said,
    /// How many packets were sent when it was last looked whether a keepalive is due, and when that was.
    pub kept_alive: (u64, Duration),
}

/// Why a tunnel has no security association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Its key is in a daemon that is not there.
    Daemon,
    /// Its key has no number left.
    UsedUp,
}

impl Missing {
    /// Its state, as it is shown.
    fn state(self) -> &'static str {
        match self {
            Missing::Daemon => "waits for cryptod",
            Missing::UsedUp => "ended",
        }
    }
}

/// What was said of a tunnel, once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said {
    /// The state of the outbound key.
    pub out: Option<Life>,
    /// The state of the inbound key.
    pub inbound: Option<Life>,
    /// That numbers cannot be leased.
    pub no_lease: bool,
}

/// An inbound security association that is in the file no more.
pub struct Retired {
    /// It.
    pub incoming: Arc<Incoming>,
    /// When it ends, on the gateway's clock.
    pub until: Duration,
}

/// All of it.
pub struct Gateway {
    /// What it shares with its threads.
    pub shared: Arc<Shared>,
    /// The configuration that runs.
    pub configuration: Configuration,
    /// The tunnels, in the file's order.
    pub running: Vec<Running>,
    /// What a reload has left.
    pub retired: Vec<Retired>,
    /// Makes security associations.
    pub maker: Maker<StateFolder>,
    /// What charon has negotiated.
    pub negotiated: Negotiated,
    /// Routes of its policies that would lead its own packets into the device: it was said of these.
    looping: BTreeSet<Route>,
    /// The device.
    pub tun: Tun,
    /// Its MTU.
    pub mtu: u32,
    routes: BTreeSet<Route>,
    /// Why they cannot be put back, as it was said.
    no_routes: Option<String>,
    /// Sockets of its own: for keepalives, and to ask for paths.
    pub sockets: Sockets,
    /// Where it speaks to its user.
    pub say: Say,
    /// Whether the daemon of named keys is there.
    pub has_daemon: bool,
    /// Why keys of the daemon that was away could not be had when it was back, as it was said last.
    fault: Option<String>,
}

/// A prefix, to be sorted.
type Route = (IpAddr, u8);

impl Gateway {
    /// One without tunnels yet.
    pub fn new(
        shared: Arc<Shared>,
        configuration: Configuration,
        maker: Maker<StateFolder>,
        (tun, mtu): (Tun, u32),
        sockets: Sockets,
        say: Say,
    ) -> Gateway {
        let carries = Carries { udp: sockets.udp.is_some(), raw: !sockets.raw.is_empty() };
        let negotiated = Negotiated::new(maker.engine.clone(), carries);
        Gateway {
            negotiated,
            looping: BTreeSet::new(),
            shared,
            configuration,
            running: Vec::new(),
            retired: Vec::new(),
            maker,
            tun,
            mtu,
            routes: BTreeSet::new(),
            no_routes: None,
            sockets,
            say,
            has_daemon: false,
            fault: None,
        }
    }

    /// Reads the configuration again, and has it run: all of it or, if something is wrong, nothing.
    ///
    /// # Errors
    /// The first fault.
    pub fn reload(&mut self, path: &Path) -> Result<String, Failure> {
        let configuration = crate::config::read(path)?;
        let fixed = |it: &Configuration| {
            let (mut device, mut outside) = (it.device.clone(), it.outside.clone());
            device.retire = Duration::ZERO;
            outside.keepalive = None;
            (device, outside, it.cryptod.clone(), it.ike.clone())
        };
        if fixed(&configuration) != fixed(&self.configuration) {
            return Err(Failure::new(format!(
                "{}: [device], [outside], [cryptod] and [ike] are taken at the start only, all but \
                 retire and keepalive; nothing was changed: put them back, or start the gateway again",
                path.display()
            )));
        }
        let nothing = |why: Failure| Failure::new(format!("{why}; nothing was changed"));
        self.apply(configuration).map_err(nothing)
    }

    /// Makes what waits for a daemon's keys, now that it is there. A fault is said once.
    pub fn complete(&mut self) {
        let waits = |it: &Running| {
            it.out.as_ref().is_err_and(|it| *it == Missing::Daemon) || it.inbound.is_err()
        };
        if !self.has_daemon || !self.running.iter().any(waits) {
            return;
        }
        let fault = self.apply(self.configuration.clone()).err().map(|why| why.to_string());
        if let Some(why) = fault.as_ref().filter(|_| self.has_daemon && fault != self.fault) {
            self.say.note(why);
        }
        self.fault = fault;
    }

    /// Has a configuration run.
    ///
    /// # Errors
    /// The first fault. Then nothing has changed.
    pub fn apply(&mut self, configuration: Configuration) -> Result<String, Failure> {
        for tunnel in &configuration.tunnels {
            let Tunnel { name, line, inbound: Keyed { spi, .. }, .. } = tunnel;
            if self.negotiated.has(*spi) {
                return Err(Failure::new(format!(
                    "tunnel {name:?}, in (line {line}): charon has negotiated an SA of the SPI {spi:#x}; take one \
                     outside of 0xc0000000 to 0xcfffffff"
                )));
            }
        }
        self.note_uses();
        let mut next = Vec::with_capacity(configuration.tunnels.len());
        for tunnel in &configuration.tunnels {
            next.push(self.tunnel(tunnel)?);
        }
        let mut routes = routes(&configuration);
        routes.extend(self.negotiated_routes());
        self.add_routes(&routes)?;
        if let Some(back) = leads_back(&configuration) {
            let added: Vec<_> = routes.difference(&self.routes).copied().collect();
            self.remove_routes(added.iter());
            let device = &configuration.device.name;
            return Err(Failure::new(format!(
                "the system's route to {back} leads into {device}, so that its sealed packets \
                 would come back; set \
                 [outside] interface = \"eth0\" (the one that leads there), or remove that route: \
                 ip route get {back} \
                 shows it"
            )));
        }
        let now = self.shared.clock.shows();
        let until = now + configuration.device.retire;
        let before = std::mem::replace(&mut self.running, next);
        let is_used = |incoming: &Arc<Incoming>| {
            let used = self.running.iter().filter_map(|it| it.inbound.as_ref().ok());
            used.clone().any(|it| Arc::ptr_eq(it, incoming))
                || used.clone().any(|it| it.sa.spi() == incoming.sa.spi())
        };
        let left = before.iter().filter_map(|it| it.inbound.clone().ok());
        let left: Vec<_> = left.filter(|it| !is_used(it)).collect();
        self.retired.retain(|it| !is_used(&it.incoming) && it.until > now);
        let retired = left.len();
        self.retired.extend(left.into_iter().map(|incoming| Retired { incoming, until }));
        let is_kept = |it: &&Running| {
            let (out, inbound) = (it.out.as_ref().ok(), it.inbound.as_ref().ok());
            before.iter().any(|old| {
                old.tunnel.remote == it.tunnel.remote
                    && old.out.as_ref().ok().map(Arc::as_ptr) == out.map(Arc::as_ptr)
                    && old.inbound.as_ref().ok().map(Arc::as_ptr) == inbound.map(Arc::as_ptr)
            })
        };
        let kept = self.running.iter().filter(is_kept).count();
        self.configuration = configuration;
        self.look_at_paths();
        self.publish()?;
        self.keep_routes(routes);
        Ok(format!(
            "{}: {kept} as before, {} new or changed; inbound keys that retire: {retired}",
            count(self.running.len()),
            self.running.len() - kept,
        ))
    }

    /// Hands the threads the tables of what runs.
    pub fn publish(&mut self) -> Result<(), Failure> {
        let running = self.running.iter().map(|it| (it.tunnel.selectors.as_slice(), &it.peer));
        let all: Vec<_> = running.chain(self.negotiated.policies()).collect();
        let policies = all.iter().enumerate().flat_map(|(index, (selectors, _))| {
            selectors.iter().map(move |selector| (selector.clone(), index as u32))
        });
        let inbound = self.running.iter().filter_map(|it| it.inbound.as_ref().ok());
        let inbound = inbound.chain(self.retired.iter().map(|it| &it.incoming));
        let inbound = inbound.map(|it| &it.sa).chain(self.negotiated.inbound());
        let inbound = Inbound::new(inbound.cloned()).map_err(Failure::new)?;
        let peers = all.iter().map(|(_, peer)| (*peer).clone()).collect();
        self.shared.publish(Tables { outbound: Outbound::new(policies), peers, inbound });
        Ok(())
    }

    /// Does what charon asks, and returns the answer.
    pub fn negotiate(&mut self, number: u32, request: &Request) -> Vec<u8> {
        let running = self.running.iter().filter_map(|it| it.inbound.as_ref().ok());
        let others = running.chain(self.retired.iter().map(|it| &it.incoming));
        let is_taken = |spi| others.clone().any(|it| it.sa.spi() == spi);
        let clock = self.shared.clock;
        let (answer, is_changed) = self.negotiated.answer((number, request), clock, is_taken);
        if is_changed {
            self.renegotiated();
        }
        answer
    }

    /// Forgets what a charon has negotiated that is gone.
    pub fn forget_negotiated(&mut self) {
        self.negotiated.clear();
        self.renegotiated();
    }

    /// Has the threads and the system know what charon has changed.
    pub fn renegotiated(&mut self) {
        self.look_at_paths();
        let mut routes = routes(&self.configuration);
        routes.extend(self.negotiated_routes());
        // Packets find their routes only once they find their association.
        let done = self.publish().and_then(|()| self.add_routes(&routes));
        match done {
            Ok(()) => self.keep_routes(routes),
            Err(why) => self.say.note(format_args!("warning: what charon negotiates: {why}")),
        }
    }

    /// The routes that charon's policies ask for, but for those that would lead sealed packets into the device again.
    fn negotiated_routes(&mut self) -> BTreeSet<Route> {
        let Gateway { configuration: Configuration { device, outside, .. }, negotiated, .. } = self;
        let is_bound = outside.interface.is_some() || outside.mark.is_some();
        let mut all = BTreeSet::new();
        for (selector, to) in negotiated.protected().filter(|_| device.routes) {
            let route = (selector.remote.address(), selector.remote.bits());
            if is_bound || !selector.remote.contains(to.ip()) {
                all.insert(route);
            } else if self.looping.insert(route) {
                self.say.note(format_args!(
                    "no route of {} into the device: {to} lies in it, where sealed packets go; set interface or mark in \
                     [outside], and the route is made",
                    selector.remote
                ));
            }
        }
        all
    }

    /// Removes the routes that are not among these any more.
    fn keep_routes(&mut self, routes: BTreeSet<Route>) {
        let before = std::mem::replace(&mut self.routes, routes);
        let gone: Vec<_> = before.difference(&self.routes).copied().collect();
        self.remove_routes(gone.iter());
    }

    /// A tunnel, with what there is of it already.
    fn tunnel(&mut self, tunnel: &Tunnel) -> Result<Running, Failure> {
        let mut said = Said::default();
        let out = OutParameters::of(tunnel);
        let old = self.running.iter().find_map(|it| match &it.out {
            Ok(outgoing) if outgoing.parameters == out => Some((Ok(outgoing.clone()), it.said)),
            // It will not come back.
            Err(Missing::UsedUp) if OutParameters::of(&it.tunnel) == out => {
                Some((Err(Missing::UsedUp), it.said))
            }
            _ => None,
        });
        let out = match old {
            Some((old, before)) => {
                (said.out, said.no_lease) = (before.out, before.no_lease);
                old
            }
            None => {
                let made = self.maker.outbound(tunnel);
                self.or_missing(tunnel, "out", &tunnel.out.key, made)?.map(Arc::new)
            }
        };
        let inbound = InParameters::of(tunnel);
        let running =
            self.running.iter().filter_map(|it| Some((it.inbound.as_ref().ok()?, it.said)));
        let retired = self.retired.iter().map(|it| (&it.incoming, Said::default()));
        let old = running.chain(retired).find(|(it, _)| it.parameters == inbound);
        let old = old.map(|(incoming, said)| (incoming.clone(), said));
        let inbound = match old {
            Some((old, before)) => {
                said.inbound = before.inbound;
                Ok(old)
            }
            None => {
                let made = self.maker.inbound(tunnel);
                self.or_missing(tunnel, "in", &tunnel.inbound.key, made)?.map(Arc::new)
            }
        };
        let to = tunnel.remote.socket_address();
        let sa = out.as_ref().ok().map(|it| it.sa.clone());
        let peer = Arc::new(Peer::new(to, sa, tunnel.suite, tunnel.mode));
        if let Ok(outgoing) = &out {
            peer.set_low(outgoing.lease.lock().unpoisoned().size() / 2);
        }
        let sent = out.as_ref().map_or(0, |it| it.sa.use_().packets);
        let kept_alive = (sent, self.shared.clock.shows());
        Ok(Running { tunnel: tunnel.clone(), peer, out, inbound, said, kept_alive })
    }

    /// A security association that could not be made is no fault if its key is in a daemon that is not there, or has no
    /// numbers left: the others go on.
    fn or_missing<T>(
        &self,
        tunnel: &Tunnel,
        way: &str,
        key: &Key,
        made: Result<T, NoSa>,
    ) -> Result<Result<T, Missing>, Failure> {
        let name = &tunnel.name;
        let is_named = matches!(key, Key::Named(_));
        let why = match made {
            Ok(sa) => return Ok(Ok(sa)),
            Err(NoSa::Sa(SaError::Engine(_))) if is_named && !self.has_daemon => {
                return Ok(Err(Missing::Daemon));
            }
            Err(NoSa::Sa(SaError::Numbers(_))) => {
                let text = "the sequence numbers of its key are used up; give both sides a new key";
                self.say.tunnel("ended", name, format_args!("{way}: {text}"));
                return Ok(Err(Missing::UsedUp));
            }
            Err(why) => why,
        };
        let hint = match key {
            Key::Named(named) => format!(
                "; keyway key list shows whether cryptod has {named:?}, and for whom (--for, \
                 --purpose esp)"
            ),
            Key::Secret(_) => String::new(),
        };
        Err(Failure::new(format!("tunnel {name:?}, {way} (line {}): {why}{hint}", tunnel.line)))
    }

    fn add_routes(&mut self, routes: &BTreeSet<Route>) -> Result<(), Failure> {
        let mut added = Vec::new();
        for route in routes.difference(&self.routes) {
            if let Err(why) = self.tun.add_route(route.0, route.1) {
                self.remove_routes(added.iter());
                return Err(Failure::new(why));
            }
            added.push(*route);
        }
        Ok(())
    }

    /// Puts back the routes that have gone: with the device when it was down, or by another hand. Without them packets go
    /// where the system's other routes lead, in the clear.
    pub fn restore_routes(&mut self) {
        let (mut restored, mut failed) = (0, None);
        for (address, bits) in &self.routes {
            match self.tun.restore_route(*address, *bits) {
                Ok(is_new) => restored += u32::from(is_new),
                Err(why) => failed = Some(why.to_string()),
            }
        }
        if restored > 0 {
            self.say.note(format_args!(
                "routes into {} had gone, and are there again: {restored}",
                self.tun.name()
            ));
        }
        if failed != self.no_routes {
            if let Some(why) = &failed {
                self.say.note(format_args!(
                    "warning: routes into {} have gone and cannot be made: {why}; packets go where other routes lead, in \
                     the clear",
                    self.tun.name()
                ));
            }
            self.no_routes = failed;
        }
    }

    fn remove_routes<'r>(&mut self, routes: impl Iterator<Item = &'r Route>) {
        for (address, bits) in routes {
            if let Err(why) = self.tun.remove_route(*address, *bits) {
                self.say.note(format_args!("warning: {why}"));
            }
        }
    }

    /// Says how much each key has done.
    pub fn note_uses(&mut self) {
        for it in &self.running {
            if let Ok(out) = &it.out {
                self.maker.uses.set(&out.key, out.used());
            }
        }
        let running = self.running.iter().filter_map(|it| it.inbound.as_ref().ok());
        for incoming in running.chain(self.retired.iter().map(|it| &it.incoming)) {
            self.maker.uses.set(&incoming.key, incoming.used());
        }
    }

    /// Has the disk have that.
    ///
    /// # Errors
    /// The system's.
    pub fn keep_uses(&mut self) -> std::io::Result<()> {
        self.note_uses();
        self.maker.uses.keep()
    }

    /// Looks how long packets may be on each path, and sets the device's MTU if the file does not.
    pub fn look_at_paths(&mut self) {
        let running = self.running.iter().map(|it| &it.peer);
        for peer in running.chain(self.negotiated.peers()) {
            if let Ok(mtu) = self.sockets.path_mtu(peer.to) {
                peer.set_path(mtu);
            }
        }
        if self.configuration.device.mtu.is_some() {
            return;
        }
        let running = self.running.iter().map(|it| &it.peer);
        let mtu = mtu_of(running.chain(self.negotiated.peers()).map(|it| &**it));
        if mtu != self.mtu {
            match self.tun.set_mtu(mtu) {
                Ok(()) => self.mtu = mtu,
                Err(why) => self.say.note(format_args!("warning: {why}")),
            }
        }
    }

    /// The state, for `keyway esp status`.
    pub fn status(&self) -> Value {
        let now = self.shared.clock.now();
        let life = |life| match life {
            Life::Fresh => "fresh",
            Life::Soft => "soft limit",
            Life::Ended => "ended",
        };
        let tunnels = self.running.iter().map(|it| {
            let out = match &it.out {
                Err(missing) => json!({ "spi": spi(it.tunnel.out.spi), "state": missing.state() }),
                Ok(out) => {
                    let used = out.used();
                    json!({
                        "spi": spi(out.sa.spi()),
                        "state": life(out.sa.state(now)),
                        "number": out.sa.next_number().saturating_sub(1),
                        "leased": out.sa.end().saturating_sub(out.sa.next_number()),
                        "packets": used.packets,
                        "bytes": used.bytes,
                    })
                }
            };
            let inbound = match &it.inbound {
                Err(missing) => {
                    json!({ "spi": spi(it.tunnel.inbound.spi), "state": missing.state() })
                }
                Ok(inbound) => {
                    let used = inbound.used();
                    json!({
                        "spi": spi(inbound.sa.spi()),
                        "state": life(inbound.sa.state(now)),
                        "number": used.highest,
                        "packets": used.packets,
                        "bytes": used.bytes,
                    })
                }
            };
            json!({
                "name": it.tunnel.name,
                "mode": if it.tunnel.mode == keyway_esp::Mode::Tunnel { "tunnel" } else { "transport" },
                "algorithm": it.tunnel.suite.name(),
                "remote": match it.tunnel.remote {
                    Remote::Udp(to) => to.to_string(),
                    Remote::Raw(to) => to.to_string(),
                },
                "longest_packet": it.peer.room(),
                "out": out,
                "in": inbound,
            })
        });
        let retired = self.retired.iter().map(|it| {
            let left = it.until.saturating_sub(self.shared.clock.shows());
            json!({ "spi": spi(it.incoming.sa.spi()), "seconds_left": left.as_secs() })
        });
        json!({
            "device": self.tun.name(),
            "mtu": self.mtu,
            "cryptod": self.configuration.cryptod.as_ref().map(|_| self.has_daemon),
            "tunnels": tunnels.collect::<Vec<_>>(),
            "retired": retired.collect::<Vec<_>>(),
            "negotiated": self.configuration.ike.as_ref().map(|_| {
                let all = self.negotiated.show(self.shared.clock);
                all.iter().map(|it| shown(it, life)).collect::<Vec<_>>()
            }),
            "figures": self.shared.figures.json(),
        })
    }
}

fn spi(spi: u32) -> String {
    format!("{spi:#x}")
}

/// A negotiated association, for `keyway esp status`.
fn shown(it: &Shown, life: impl Fn(Life) -> &'static str) -> Value {
    json!({
        "spi": spi(it.name.spi),
        "direction": if it.is_inbound { "in" } else { "out" },
        "from": it.source.to_string(),
        "to": it.name.destination.to_string(),
        "algorithm": it.suite.name(),
        "state": life(it.life),
        "packets": it.used.packets,
        "bytes": it.used.bytes,
    })
}

/// The routes into the device that a configuration asks for.
fn routes(configuration: &Configuration) -> BTreeSet<Route> {
    let selectors = configuration.tunnels.iter().flat_map(|it| &it.selectors);
    let selectors = selectors.filter(|_| configuration.device.routes);
    let route = |remote: Prefix| (remote.address(), remote.bits());
    selectors.map(|it| route(it.remote)).collect()
}

/// A peer to which the system would send from the device's own address, and so through the device, if nothing else says
/// where sealed packets leave.
fn leads_back(configuration: &Configuration) -> Option<IpAddr> {
    let Configuration { device, outside, tunnels, .. } = configuration;
    if outside.interface.is_some() || outside.mark.is_some() {
        return None;
    }
    let is_inside = |to: &IpAddr| {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // No packet goes out: a connection of UDP is a route that was looked up. Port 9 discards.
        let from = UdpSocket::bind((any, 0)).and_then(|probe| {
            probe.connect((*to, 9))?;
            Ok(probe.local_addr()?.ip())
        });
        from.is_ok_and(|from| device.addresses.iter().any(|(address, _)| *address == from))
    };
    tunnels.iter().map(|it| it.remote.address()).find(is_inside)
}

/// The MTU with which every packet fits into its tunnel.
pub fn mtu_of<'p>(peers: impl Iterator<Item = &'p Peer>) -> u32 {
    let rooms = peers.map(Peer::room).filter(|room| *room != usize::MAX);
    let least = rooms.min().and_then(|room| u64::try_from(room).ok());
    least.map_or(MTU_USUAL, |room| room.clamp(MTU_MIN, MTU_MAX) as u32)
}
