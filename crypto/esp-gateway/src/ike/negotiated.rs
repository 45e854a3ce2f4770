//! Security associations and policies that charon has negotiated.

use crate::clock::Clock;
use crate::ike::message::{
    self, Action, AddSa, Limits, Name, Policy, Refusal, Request, Status, UseOf,
};
use crate::ike::traffic::NoSelectors;
use crate::limits::{
    IKE_POLICIES_MAX, IKE_SAS_MAX, IKE_SPI_KEPT, IKE_SPIS, IKE_SPIS_MAX, SELECTORS_MAX,
};
use crate::tables::{Peer, Without};
use keyway_engine::Engine;
use keyway_esp::limits::WINDOW_PACKETS;
use keyway_esp::{
    InboundSa, Life, Lifetime, Limit, Mode, OutboundSa, SaKey, SaParameters, Selector, Selectors,
    Suite, Use,
};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Packets after which an association without extended sequence numbers is to be replaced: it has 2^32 - 1.
const PACKETS_WITHOUT_ESN: u64 = 0xf000_0000;

/// IANA's numbers of IKEv2's transforms: ENCR_AES_CBC, ENCR_AES_GCM_16, ENCR_CHACHA20_POLY1305.
const AES_CBC: u16 = 12;
const AES_GCM_16: u16 = 20;
const CHACHA20_POLY1305: u16 = 28;
/// AUTH_HMAC_SHA1_96, AUTH_HMAC_SHA2_256_128.
const HMAC_SHA1_96: u16 = 2;
const HMAC_SHA2_256_128: u16 = 12;

/// What the gateway's sockets can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carries {
    /// ESP in UDP.
    pub udp: bool,
    /// ESP as an IP protocol.
    pub raw: bool,
}

/// One association.
struct Association {
    source: SocketAddr,
    sa: Sa,
    /// The last state that charon was told.
    told: Life,
    /// How many packets there were at the last look at which there were more than before, and when that was.
    seen: (u64, Option<Duration>),
}

enum Sa {
    Inbound(Arc<InboundSa>),
    Outbound(Arc<OutboundSa>, Arc<Peer>),
}

impl Sa {
    fn use_(&self) -> Use {
        match self {
            Sa::Inbound(sa) => sa.use_(),
            Sa::Outbound(sa, _) => sa.use_(),
        }
    }

    fn state(&self, clock: Clock) -> Life {
        match self {
            Sa::Inbound(sa) => sa.state(clock.now()),
            Sa::Outbound(sa, _) => sa.state(clock.now()),
        }
    }

    fn mode(&self) -> Mode {
        match self {
            Sa::Inbound(sa) => sa.mode(),
            Sa::Outbound(sa, _) => sa.mode(),
        }
    }
}

/// One policy.
struct Placed {
    policy: Policy,
    selectors: Vec<Selector>,
    /// For packets without an association.
    without: Arc<Peer>,
}

/// All of them.
pub struct Negotiated {
    engine: Engine,
    carries: Carries,
    associations: HashMap<Name, Association>,
    /// SPIs that were asked for, and when.
    reserved: HashMap<u32, Duration>,
    /// Those that count more come first.
    policies: Vec<Placed>,
}

/// A state of one association, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it is known by.
    pub name: Name,
    /// The outer address that packets come from.
    pub source: SocketAddr,
    /// Whether packets come in.
    pub is_inbound: bool,
    /// The algorithms.
    pub suite: Suite,
    /// The state of its lifetime.
    pub life: Life,
    /// Its use.
    pub used: Use,
}

fn failed(why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Status::Failed, why)
}

fn not_supported(why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Status::NotSupported, why)
}

fn not_found(name: Name) -> Refusal {
    let Name { destination, spi } = name;
    Refusal::new(Status::NotFound, format_args!("there is no SA {spi:#010x} to {destination}"))
}

impl Negotiated {
    /// Nothing yet.
    pub fn new(engine: Engine, carries: Carries) -> Negotiated {
        Negotiated {
            engine,
            carries,
            associations: HashMap::new(),
            reserved: HashMap::new(),
            policies: Vec::new(),
        }
    }

    /// Does what charon asks, all but its hello, and returns the answer, and whether the tables are others now. `is_taken`:
    /// whether an SPI is that of an association that charon has no part in.
    pub fn answer(
        &mut self,
        (number, request): (u32, &Request),
        clock: Clock,
        is_taken: impl Fn(u32) -> bool,
    ) -> (Vec<u8>, bool) {
        let done = message::done(number);
        let changed = |()| (done.clone(), true);
        let unchanged = |answer| (answer, false);
        let answer = match request {
            Request::Hello { .. } => Err(failed("charon has said hello before")),
            Request::GetSpi => {
                let spi = self.reserve(clock.shows(), is_taken);
                spi.map(|spi| unchanged(message::spi(number, spi)))
            }
            Request::AddSa(asked) => self.add(asked, clock, is_taken).map(changed),
            Request::UpdateSa { name, source, destination, is_encapsulated } => {
                self.update(*name, *source, *destination, *is_encapsulated).map(changed)
            }
            Request::QuerySa(name) => {
                self.used(*name, clock).map(|used| unchanged(message::used(number, used)))
            }
            Request::DeleteSa(name) => self.delete(*name).map(changed),
            Request::FlushSas => {
                self.flush();
                Ok(changed(()))
            }
            Request::AddPolicy(policy) => self.add_policy(policy.clone()).map(changed),
            Request::DeletePolicy(policy) => self.delete_policy(policy).map(changed),
            Request::FlushPolicies => {
                self.flush_policies();
                Ok(changed(()))
            }
        };
        answer.unwrap_or_else(|why| unchanged(message::refused(number, &why)))
    }

    /// Chooses an SPI for an association that is to come in. Others may have some: `is_taken` says which.
    ///
    /// # Errors
    /// If there is no randomness, or too many wait.
    fn reserve(&mut self, now: Duration, is_taken: impl Fn(u32) -> bool) -> Result<u32, Refusal> {
        self.reserved.retain(|_, since| now.saturating_sub(*since) < IKE_SPI_KEPT);
        if self.reserved.len() >= IKE_SPIS_MAX {
            return Err(failed(format_args!("{IKE_SPIS_MAX} SPIs wait for their SAs already")));
        }
        loop {
            let mut random = [0; 4];
            self.engine.random(&mut random).map_err(failed)?;
            let (first, last) = IKE_SPIS.into_inner();
            let spi = first | u32::from_be_bytes(random) & (first ^ last);
            if !is_taken(spi) && !self.has_inbound(spi) && !self.reserved.contains_key(&spi) {
                self.reserved.insert(spi, now);
                return Ok(spi);
            }
        }
    }

    /// Whether an association for packets that come in, or a place for one, has this SPI.
    pub fn has(&self, spi: u32) -> bool {
        self.has_inbound(spi) || self.reserved.contains_key(&spi)
    }

    fn has_inbound(&self, spi: u32) -> bool {
        self.inbound().any(|sa| sa.spi() == spi)
    }

    /// Adds an association.
    ///
    /// # Errors
    /// If it is there, does not fit, or cannot be made.
    fn add(
        &mut self,
        asked: &AddSa,
        clock: Clock,
        is_taken: impl Fn(u32) -> bool,
    ) -> Result<(), Refusal> {
        let name = asked.name;
        let is_known = match asked.is_inbound {
            true => self.has_inbound(name.spi) || is_taken(name.spi),
            false => self.associations.contains_key(&name),
        };
        if is_known {
            return Err(failed(format_args!("the SPI {:#010x} is in use", name.spi)));
        }
        if self.associations.len() >= IKE_SAS_MAX {
            return Err(failed(format_args!("there are {IKE_SAS_MAX} SAs already")));
        }
        let parts = Parts::of(asked)?;
        let parameters = SaParameters {
            spi: name.spi,
            suite: parts.suite,
            key: SaKey::Secret(&parts.key),
            salt: parts.salt,
            mode: if asked.is_transport { Mode::Transport } else { Mode::Tunnel },
            esn: asked.esn,
            lifetime: lifetime(asked.limits, asked.esn || asked.is_inbound),
        };
        let sa = if asked.is_inbound {
            let mut selectors = Vec::new();
            for traffic in &asked.traffic {
                selectors.extend(traffic.selectors(true).map_err(no_selectors)?);
            }
            if selectors.len() > SELECTORS_MAX {
                return Err(no_selectors(NoSelectors::TooMany));
            }
            let window = asked.window.clamp(*WINDOW_PACKETS.start(), *WINDOW_PACKETS.end());
            let (engine, selectors) = (&self.engine, Selectors(selectors));
            let sa = InboundSa::new(engine, &parameters, window, selectors, clock.now());
            Sa::Inbound(Arc::new(sa.map_err(failed)?))
        } else {
            let to = self.to(name.destination, asked.is_encapsulated)?;
            // The key is new: all its numbers are there to be used, and every base is.
            let mut base = [0; 8];
            self.engine.random(&mut base).map_err(failed)?;
            let base = u64::from_be_bytes(base);
            let sa = OutboundSa::new(&self.engine, &parameters, 1..u64::MAX, base, clock.now());
            let sa = Arc::new(sa.map_err(failed)?);
            let peer = Peer::new(to, Some(sa.clone()), parts.suite, parameters.mode);
            Sa::Outbound(sa, Arc::new(peer))
        };
        if asked.is_inbound {
            self.reserved.remove(&name.spi);
        }
        let association =
            Association { source: asked.source, sa, told: Life::Fresh, seen: (0, None) };
        self.associations.insert(name, association);
        Ok(())
    }

    /// Where packets to this outer address go; a port of 0 is raw ESP.
    fn to(&self, destination: SocketAddr, is_encapsulated: bool) -> Result<SocketAddr, Refusal> {
        match (is_encapsulated, self.carries) {
            (true, Carries { udp: true, .. }) if destination.port() != 0 => Ok(destination),
            (true, _) => Err(not_supported("the gateway has no UDP ([outside] listen)")),
            (false, Carries { raw: true, .. }) => Ok(SocketAddr::new(destination.ip(), 0)),
            (false, _) => Err(not_supported(
                "the gateway has ESP in UDP only: encap = yes in the connection, or esp = true in its [outside]",
            )),
        }
    }

    /// Changes the outer addresses of an association.
    ///
    /// # Errors
    /// If there is none, or it cannot have them.
    fn update(
        &mut self,
        name: Name,
        source: SocketAddr,
        destination: SocketAddr,
        is_encapsulated: bool,
    ) -> Result<(), Refusal> {
        let renamed = Name { destination, spi: name.spi };
        let to = self.to(destination, is_encapsulated);
        if renamed != name && self.associations.contains_key(&renamed) {
            return Err(failed(format_args!("the SPI {:#010x} is in use there", name.spi)));
        }
        let association = self.associations.get_mut(&name).ok_or_else(|| not_found(name))?;
        let is_elsewhere =
            association.source.ip() != source.ip() || name.destination.ip() != destination.ip();
        if is_elsewhere && association.sa.mode() == Mode::Transport {
            return Err(not_supported("in transport mode the addresses are part of the SA"));
        }
        if let Sa::Outbound(sa, peer) = &mut association.sa {
            *peer = Arc::new(Peer::new(to?, Some(sa.clone()), sa.suite(), sa.mode()));
        }
        association.source = source;
        if let Some(association) = self.associations.remove(&name) {
            self.associations.insert(renamed, association);
        }
        for placed in self.policies.iter_mut().filter(|it| it.policy.name == name) {
            placed.policy.name = renamed;
        }
        Ok(())
    }

    /// How much an association was used.
    ///
    /// # Errors
    /// If there is none.
    fn used(&mut self, name: Name, clock: Clock) -> Result<UseOf, Refusal> {
        let now = clock.shows();
        let association = self.associations.get_mut(&name).ok_or_else(|| not_found(name))?;
        association.see(now);
        let Use { bytes, packets } = association.sa.use_();
        let idle = association.seen.1.map(|since| now.saturating_sub(since).as_secs());
        Ok(UseOf { bytes, packets, idle })
    }

    /// Deletes an association, or an SPI that waits for one.
    ///
    /// # Errors
    /// If there is neither.
    fn delete(&mut self, name: Name) -> Result<(), Refusal> {
        let found = self.associations.remove(&name).is_some();
        match found || self.reserved.remove(&name.spi).is_some() {
            true => Ok(()),
            false => Err(not_found(name)),
        }
    }

    /// Deletes all associations and policies: those of a charon that is gone.
    pub fn clear(&mut self) {
        self.flush();
        self.flush_policies();
    }

    /// Deletes all associations.
    fn flush(&mut self) {
        self.associations.clear();
        self.reserved.clear();
    }

    /// Adds an outbound policy.
    ///
    /// # Errors
    /// If it does not fit.
    fn add_policy(&mut self, policy: Policy) -> Result<(), Refusal> {
        if self.policies.len() >= IKE_POLICIES_MAX {
            return Err(failed(format_args!("there are {IKE_POLICIES_MAX} policies already")));
        }
        let selectors = policy.traffic.selectors(false).map_err(no_selectors)?;
        let without = match policy.action {
            Action::Protect => Without::negotiation(policy.reqid),
            Action::Pass | Action::Drop => Without::Policy,
        };
        let without = Arc::new(Peer::without(policy.name.destination, without));
        // Of equal ones the newest counts.
        let at = self.policies.partition_point(|it| it.policy.priority < policy.priority);
        self.policies.insert(at, Placed { policy, selectors, without });
        Ok(())
    }

    /// Deletes one.
    ///
    /// # Errors
    /// If there is none such.
    fn delete_policy(&mut self, policy: &Policy) -> Result<(), Refusal> {
        let Some(at) = self.policies.iter().position(|it| it.policy == *policy) else {
            return Err(Refusal::new(Status::NotFound, "there is no such policy"));
        };
        self.policies.remove(at);
        Ok(())
    }

    /// Deletes all policies.
    fn flush_policies(&mut self) {
        self.policies.clear();
    }

    /// The associations for what comes in.
    pub fn inbound(&self) -> impl Iterator<Item = &Arc<InboundSa>> {
        self.associations.values().filter_map(|it| match &it.sa {
            Sa::Inbound(sa) => Some(sa),
            Sa::Outbound(..) => None,
        })
    }

    /// The peers of associations for what goes out.
    pub fn peers(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.associations.values().filter_map(|it| match &it.sa {
            Sa::Outbound(_, peer) => Some(peer),
            Sa::Inbound(_) => None,
        })
    }

    /// The policies, each with the peer that its packets are for. Those that count more come first.
    pub fn policies(&self) -> impl Iterator<Item = (&[Selector], &Arc<Peer>)> {
        self.policies.iter().map(|placed| {
            let association = self.associations.get(&placed.policy.name);
            let peer = match association.map(|it| &it.sa) {
                Some(Sa::Outbound(_, peer)) if placed.policy.action == Action::Protect => peer,
                _ => &placed.without,
            };
            (placed.selectors.as_slice(), peer)
        })
    }

    /// The selectors of what is protected, each with the outer address that its packets go to.
    pub fn protected(&self) -> impl Iterator<Item = (&Selector, SocketAddr)> {
        let protected = self.policies.iter().filter(|it| it.policy.action == Action::Protect);
        protected.flat_map(|it| it.selectors.iter().map(|of| (of, it.policy.name.destination)))
    }

    /// Looks at all lifetimes, and has `tell` tell charon of those that have reached a limit, once; the second argument
    /// is whether it is a hard one. It says whether charon is there. Without it what has ended goes: it returns whether
    /// anything did.
    pub fn look(&mut self, clock: Clock, mut tell: impl FnMut(Name, bool) -> bool) -> bool {
        let now = clock.shows();
        let mut orphans = Vec::new();
        for (name, association) in &mut self.associations {
            association.see(now);
            let life = association.sa.state(clock);
            if life == association.told || life == Life::Fresh {
                continue;
            }
            if tell(*name, life == Life::Ended) {
                association.told = life;
            } else if life == Life::Ended {
                orphans.push(*name);
            }
        }
        for placed in &self.policies {
            placed.without.ask_again();
        }
        for name in &orphans {
            self.associations.remove(name);
        }
        self.policies.retain(|it| !orphans.contains(&it.policy.name));
        !orphans.is_empty()
    }

    /// All associations, by their SPIs, for people.
    pub fn show(&self, clock: Clock) -> Vec<Shown> {
        let show = |(name, it): (&Name, &Association)| {
            let (is_inbound, suite) = match &it.sa {
                Sa::Inbound(sa) => (true, sa.suite()),
                Sa::Outbound(sa, _) => (false, sa.suite()),
            };
            let (life, used) = (it.sa.state(clock), it.sa.use_());
            Shown { name: *name, source: it.source, is_inbound, suite, life, used }
        };
        let mut all: Vec<_> = self.associations.iter().map(show).collect();
        all.sort_by_key(|it| (it.is_inbound, it.name.spi));
        all
    }
}

impl Association {
    fn see(&mut self, now: Duration) {
        let packets = self.sa.use_().packets;
        if packets != self.seen.0 {
            self.seen = (packets, Some(now));
        }
    }
}

/// The parts of what charon calls keys.
struct Parts {
    suite: Suite,
    key: Zeroizing<Vec<u8>>,
    salt: [u8; 4],
}

impl Parts {
    fn of(asked: &AddSa) -> Result<Parts, Refusal> {
        let (cipher, mac) = (&asked.cipher_key, &asked.mac_key);
        let suite = match (asked.algorithms, cipher.len(), mac.len()) {
            ((AES_GCM_16, 0), 20, 0) => Suite::Aes128Gcm,
            ((AES_GCM_16, 0), 36, 0) => Suite::Aes256Gcm,
            ((CHACHA20_POLY1305, 0), 36, 0) => Suite::ChaCha20Poly1305,
            ((AES_CBC, HMAC_SHA2_256_128), 16, 32) => Suite::Aes128CbcSha256,
            ((AES_CBC, HMAC_SHA2_256_128), 32, 32) => Suite::Aes256CbcSha256,
            ((AES_CBC, HMAC_SHA1_96), 16, 20) => Suite::Aes128CbcSha1,
            ((AES_CBC, HMAC_SHA1_96), 32, 20) => Suite::Aes256CbcSha1,
            ((encryption, integrity), ..) => {
                return Err(not_supported(format_args!(
                    "the gateway has no encryption {encryption} with integrity {integrity} and a key of {} bytes; \
                     esp_proposals = aes256gcm16, aes128gcm16, chacha20poly1305, aes256-sha256, aes128-sha256, \
                     aes256-sha1 or aes128-sha1 are those that it has",
                    cipher.len()
                )));
            }
        };
        let (front, salt) = match cipher.split_last_chunk::<4>() {
            Some((front, salt)) if suite.is_aead() => (front, *salt),
            _ => (cipher.as_slice(), [0; 4]),
        };
        // At once as long as it will be: nothing is left behind in memory.
        let mut key = Zeroizing::new(Vec::with_capacity(front.len() + mac.len()));
        key.extend_from_slice(front);
        key.extend_from_slice(mac);
        Ok(Parts { suite, key, salt })
    }
}

fn lifetime(limits: Limits, has_numbers: bool) -> Lifetime {
    let limit = |which: usize| {
        let of = |both: [u64; 2]| both.get(which).copied().filter(|limit| *limit != 0);
        Limit { bytes: of(limits.bytes), packets: of(limits.packets), seconds: of(limits.seconds) }
    };
    let mut soft = limit(0);
    if !has_numbers {
        let packets = soft.packets.unwrap_or(u64::MAX);
        soft.packets = Some(packets.min(PACKETS_WITHOUT_ESN));
    }
    Lifetime { soft, hard: limit(1) }
}

fn no_selectors(why: NoSelectors) -> Refusal {
    match why {
        NoSelectors::Backwards => not_supported("a traffic selector's range ends before it begins"),
        NoSelectors::TooMany => not_supported(format_args!(
            "the traffic selectors' ranges are more than {SELECTORS_MAX} pairs of prefixes; use whole networks"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ike::traffic::Traffic;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn name(spi: u32, is_inbound: bool) -> Name {
        let to = if is_inbound { "192.0.2.1:4500" } else { "192.0.2.2:4500" };
        Name { destination: address(to), spi }
    }

    fn traffic() -> Traffic {
        let range = |third: u8| ([10, third, 0, 0].into(), [10, third, 0, 255].into());
        Traffic {
            protocol: None,
            sources: range(1),
            destinations: range(2),
            source_ports: 0..=u16::MAX,
            destination_ports: 0..=u16::MAX,
        }
    }

    fn sa(spi: u32, is_inbound: bool) -> AddSa {
        let away = traffic();
        let back =
            Traffic { sources: away.destinations, destinations: away.sources, ..away.clone() };
        AddSa {
            name: name(spi, is_inbound),
            source: name(spi, !is_inbound).destination,
            reqid: 7,
            limits: Limits::default(),
            window: 0,
            algorithms: (AES_GCM_16, 0),
            is_transport: false,
            is_inbound,
            esn: true,
            is_encapsulated: true,
            cipher_key: Zeroizing::new(vec![5; 20]),
            mac_key: Zeroizing::new(Vec::new()),
            traffic: vec![if is_inbound { back } else { away }],
        }
    }

    fn policy(spi: u32, priority: u8) -> Policy {
        let (action, name) = (Action::Protect, name(spi, false));
        let source = address("192.0.2.1:4500");
        Policy { action, priority, reqid: 7, name, source, traffic: traffic() }
    }

    fn new() -> (Negotiated, Clock) {
        let carries = Carries { udp: true, raw: false };
        (Negotiated::new(keyway_drivers::engine(), carries), Clock::set())
    }

    impl Negotiated {
        fn adds(&mut self, asked: &AddSa, clock: Clock) -> Result<(), Status> {
            self.add(asked, clock, |spi| spi == 0x1001).map_err(|why| why.status)
        }

        /// The SPI that the first policy's packets go out under.
        fn goes(&self) -> Option<u32> {
            let (_, peer) = self.policies().next()?;
            peer.sa.as_ref().map(|sa| sa.spi())
        }
    }

    #[test]
    fn packets_go_out_under_the_newest_policy_that_counts_most() {
        let (mut all, clock) = new();
        all.add_policy(policy(0, 2)).unwrap();
        assert_eq!((all.policies().count(), all.goes()), (1, None));
        for spi in [0x2001, 0x2002] {
            all.adds(&sa(spi, false), clock).unwrap();
            // Not before the policy is there.
            assert_ne!(all.goes(), Some(spi));
            all.add_policy(policy(spi, 1)).unwrap();
            assert_eq!(all.goes(), Some(spi));
        }
        all.delete_policy(&policy(0x2002, 1)).unwrap();
        assert_eq!(all.goes(), Some(0x2001));
        let drop = Policy { action: Action::Drop, ..policy(0x2001, 0) };
        all.add_policy(drop.clone()).unwrap();
        assert_eq!(all.goes(), None);
        all.delete_policy(&drop).unwrap();
        assert_eq!(all.goes(), Some(0x2001));
        all.delete(name(0x2001, false)).unwrap();
        assert_eq!(all.goes(), None);
        assert_eq!(all.delete_policy(&drop).unwrap_err().status, Status::NotFound);
        all.flush_policies();
        assert_eq!(all.policies().count(), 0);
    }

    #[test]
    fn an_spi_is_one_associations() {
        let (mut all, clock) = new();
        let spi = all.reserve(clock.shows(), |spi| spi % 2 == 0).unwrap();
        assert!(IKE_SPIS.contains(&spi) && spi % 2 == 1 && all.has(spi));
        all.adds(&sa(spi, true), clock).unwrap();
        assert_eq!(all.adds(&sa(spi, true), clock), Err(Status::Failed));
        assert_eq!(all.adds(&sa(0x1001, true), clock), Err(Status::Failed));
        assert_eq!(all.adds(&sa(9, true), clock), Err(Status::Failed));
        // A peer chooses as it likes.
        all.adds(&sa(spi, false), clock).unwrap();
        all.adds(&sa(0x1001, false), clock).unwrap();
        assert_eq!(all.adds(&sa(spi, false), clock), Err(Status::Failed));
        all.delete(name(spi, true)).unwrap();
        assert!(!all.has(spi));
        assert_eq!(all.delete(name(spi, true)).unwrap_err().status, Status::NotFound);
        let waits = all.reserve(clock.shows(), |_| false).unwrap();
        all.reserve(clock.shows() + IKE_SPI_KEPT, |_| false).unwrap();
        assert!(!all.has(waits));
    }

    #[test]
    fn keys_are_those_of_their_algorithms() {
        let good = [
            (AES_GCM_16, 0, 20, 0, Suite::Aes128Gcm),
            (AES_GCM_16, 0, 36, 0, Suite::Aes256Gcm),
            (CHACHA20_POLY1305, 0, 36, 0, Suite::ChaCha20Poly1305),
            (AES_CBC, HMAC_SHA2_256_128, 16, 32, Suite::Aes128CbcSha256),
            (AES_CBC, HMAC_SHA2_256_128, 32, 32, Suite::Aes256CbcSha256),
            (AES_CBC, HMAC_SHA1_96, 16, 20, Suite::Aes128CbcSha1),
            (AES_CBC, HMAC_SHA1_96, 32, 20, Suite::Aes256CbcSha1),
        ];
        let with = |encryption, integrity, cipher, mac| AddSa {
            algorithms: (encryption, integrity),
            cipher_key: Zeroizing::new(vec![5; cipher]),
            mac_key: Zeroizing::new(vec![6; mac]),
            ..sa(0x2001, false)
        };
        for (encryption, integrity, cipher, mac, suite) in good {
            let (mut all, clock) = new();
            all.adds(&with(encryption, integrity, cipher, mac), clock).unwrap();
            assert_eq!(all.show(clock)[0].suite, suite);
            // Without a byte of it.
            let short = with(encryption, integrity, cipher - 1, mac);
            assert_eq!(all.adds(&short, clock), Err(Status::Failed), "the SPI is known");
            all.flush();
            assert_eq!(all.adds(&short, clock), Err(Status::NotSupported));
        }
        let parts = Parts::of(&AddSa {
            cipher_key: Zeroizing::new((0..20).collect()),
            ..sa(0x2001, false)
        });
        let parts = parts.ok().unwrap();
        assert_eq!((parts.key.to_vec(), parts.salt), ((0..16).collect(), [16, 17, 18, 19]));
        let (mut all, clock) = new();
        assert_eq!(all.adds(&with(11, 12, 0, 32), clock), Err(Status::NotSupported));
        let raw = AddSa { is_encapsulated: false, ..sa(0x2001, false) };
        assert_eq!(all.adds(&raw, clock), Err(Status::NotSupported));
    }

    #[test]
    fn a_peer_that_moves_keeps_its_association() {
        let (mut all, clock) = new();
        all.adds(&sa(0x2001, false), clock).unwrap();
        all.add_policy(policy(0x2001, 1)).unwrap();
        let (from, to) = (address("192.0.2.1:4500"), address("198.51.100.7:1024"));
        all.update(name(0x2001, false), from, to, true).unwrap();
        assert_eq!((all.goes(), all.peers().next().unwrap().to), (Some(0x2001), to));
        let gone = all.used(name(0x2001, false), clock).unwrap_err();
        assert_eq!(gone.status, Status::NotFound);
        let moved = Name { destination: to, spi: 0x2001 };
        assert_eq!(all.used(moved, clock).unwrap(), UseOf::default());
        // charon deletes the policy by the addresses that it has now.
        all.delete_policy(&Policy { name: moved, ..policy(0x2001, 1) }).unwrap();
    }

    #[test]
    fn a_limit_is_told_once_and_without_charon_what_has_ended_goes() {
        let (mut all, clock) = new();
        let limits = Limits { packets: [u64::MAX, u64::MAX], ..Limits::default() };
        all.adds(&AddSa { limits, ..sa(0x2001, false) }, clock).unwrap();
        let ended =
            AddSa { limits: Limits { seconds: [1000, 2000], ..limits }, ..sa(0xc000_0001, true) };
        all.adds(&ended, clock).unwrap();
        all.add_policy(policy(0x2001, 1)).unwrap();
        let mut told = Vec::new();
        assert!(!all.look(clock, |name, is_hard| {
            told.push((name, is_hard));
            true
        }));
        assert!(told.is_empty());
        let later = clock.later(Duration::from_secs(1000));
        for expected in [vec![(name(0xc000_0001, true), false)], Vec::new()] {
            told.clear();
            all.look(later, |name, is_hard| {
                told.push((name, is_hard));
                true
            });
            assert_eq!(told, expected);
        }
        let end = clock.later(Duration::from_secs(2000));
        assert!(all.look(end, |_, _| false));
        assert_eq!(all.show(end).len(), 1);
        assert_eq!(all.goes(), Some(0x2001));
    }

    #[test]
    fn without_extended_numbers_it_is_renewed_before_they_are_used_up() {
        let limits = Limits { seconds: [3, 4], ..Limits::default() };
        let soft = |has_numbers| lifetime(limits, has_numbers).soft;
        assert_eq!((soft(true).packets, soft(true).seconds), (None, Some(3)));
        assert_eq!(soft(false).packets, Some(PACKETS_WITHOUT_ESN));
        assert_eq!(lifetime(limits, false).hard, Limit { seconds: Some(4), ..Limit::default() });
    }
}
