//! Security associations of a configuration: made with the numbers and the use that their keys have had, and kept as
//! they are while nothing of theirs changes.

use crate::clock::{Clock, time};
use crate::config::{Key, Keyed, Tunnel};
use crate::lease::Lease;
use crate::record::{RecordError, Records};
use crate::uses::{Used, Uses};
use keyway_engine::{Algorithm, Engine, Error};
use keyway_esp::{
    InboundSa, Lifetime, Limit, Mode, OutboundSa, SaError, SaKey, SaParameters, Selector,
    Selectors, Suite,
};
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::fmt;
use std::fmt::Write;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What makes an outbound security association that one and no other.
#[derive(Clone, PartialEq)]
pub struct OutParameters {
    keyed: Keyed,
    suite: Suite,
    mode: Mode,
    esn: bool,
    lifetime: Lifetime,
}

/// What makes an inbound one that one.
#[derive(Clone, PartialEq)]
pub struct InParameters {
    common: OutParameters,
    window: u32,
    selectors: Vec<Selector>,
}

impl OutParameters {
    /// Those of a tunnel.
    pub fn of(tunnel: &Tunnel) -> OutParameters {
        OutParameters::with(tunnel, &tunnel.out)
    }

    fn with(tunnel: &Tunnel, keyed: &Keyed) -> OutParameters {
        let Tunnel { suite, mode, esn, lifetime, .. } = *tunnel;
        OutParameters { keyed: keyed.clone(), suite, mode, esn, lifetime }
    }

    /// Those of a key that was used so much before.
    fn sa(&self, used: &Used) -> SaParameters<'_> {
        let OutParameters { keyed, suite, mode, esn, lifetime } = self;
        let left = |limit: Limit| Limit {
            packets: limit.packets.map(|most| most.saturating_sub(used.packets)),
            bytes: limit.bytes.map(|most| most.saturating_sub(used.bytes)),
            ..limit
        };
        let key = match &keyed.key {
            Key::Secret(key) => SaKey::Secret(key),
            Key::Named(name) => SaKey::Named(name),
        };
        SaParameters {
            spi: keyed.spi,
            suite: *suite,
            key,
            salt: keyed.salt,
            mode: *mode,
            esn: *esn,
            lifetime: Lifetime { soft: left(lifetime.soft), hard: left(lifetime.hard) },
        }
    }
}

impl InParameters {
    /// Those of a tunnel.
    pub fn of(tunnel: &Tunnel) -> InParameters {
        InParameters {
            common: OutParameters::with(tunnel, &tunnel.inbound),
            window: tunnel.window,
            selectors: tunnel.selectors.clone(),
        }
    }
}

/// Why there is no security association.
#[derive(Debug)]
pub enum NoSa {
    /// The parameters do not fit, or the engine refuses the key.
    Sa(SaError),
    /// The record of the key's numbers is of no use.
    Record(String, RecordError),
    /// Numbers cannot be leased.
    Lease(String, io::Error),
    /// The engine has no digest, or no random numbers.
    Engine(Error),
}

impl fmt::Display for NoSa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSa::Sa(why) => why.fmt(f),
            NoSa::Record(name, RecordError::Damaged) => write!(
                f,
                "the record {name} of its key's numbers is damaged, and nothing else says which \
                 were used; give both \
                 sides a new key"
            ),
            NoSa::Record(name, why) => write!(f, "cannot read the record {name}: {why}"),
            NoSa::Lease(name, why) => {
                let why = keyway_host::failure::plain(why);
                write!(
                    f,
                    "cannot lease numbers in the record {name}: {why}; make room, or let this \
                     user write there"
                )
            }
            NoSa::Engine(why) => why.fmt(f),
        }
    }
}

/// An outbound security association that is in use.
pub struct Outgoing<R> {
    /// What it was made of.
    pub parameters: OutParameters,
    /// The association itself.
    pub sa: Arc<OutboundSa>,
    /// The name of its key's record.
    pub key: String,
    /// The use of the key before it.
    pub before: Used,
    /// The key's numbers; another association of the key has them too.
    pub lease: SharedLease<R>,
}

/// An inbound one.
pub struct Incoming {
    /// What it was made of.
    pub parameters: InParameters,
    /// The association itself.
    pub sa: Arc<InboundSa>,
    /// The name of its key's use.
    pub key: String,
    /// The use of the key before it.
    pub before: Used,
}

/// The numbers of a key.
pub type SharedLease<R> = Arc<Mutex<Lease<R>>>;

impl<R> Outgoing<R> {
    /// The use of its key by now.
    pub fn used(&self) -> Used {
        let done = self.sa.use_();
        let Used { packets, bytes, .. } = self.before;
        Used { packets: packets + done.packets, bytes: bytes + done.bytes, ..self.before }
    }
}

impl Incoming {
    /// The use of its key by now.
    pub fn used(&self) -> Used {
        let done = self.sa.use_();
        let Used { packets, bytes, .. } = self.before;
        let highest = self.sa.highest().max(self.before.highest);
        Used { packets: packets + done.packets, bytes: bytes + done.bytes, highest, ..self.before }
    }
}

/// Makes security associations.
pub struct Maker<R> {
    /// The engine that has the keys.
    pub engine: Engine,
    /// The gateway's clock.
    pub clock: Clock,
    /// Where records are kept.
    pub records: Arc<R>,
    /// The use of all keys.
    pub uses: Uses<R>,
    leases: HashMap<String, SharedLease<R>>,
}

impl<R: Records> Maker<R> {
    /// One that goes on where the records end.
    pub fn new(engine: Engine, clock: Clock, records: Arc<R>, uses: Uses<R>) -> Maker<R> {
        Maker { engine, clock, records, uses, leases: HashMap::new() }
    }

    /// An outbound one, with numbers that its key never had.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn outbound(&mut self, tunnel: &Tunnel) -> Result<Outgoing<R>, NoSa> {
        let parameters = OutParameters::of(tunnel);
        let key = self.name("out", &parameters).map_err(NoSa::Engine)?;
        let used = self.uses.of(&key, self.clock.shows().as_secs());
        let lease = match self.leases.get(&key) {
            Some(lease) => lease.clone(),
            None => {
                let engine = &self.engine;
                let base = || {
                    let mut base = [0; 8];
                    let made = engine.random(&mut base).map_err(io::Error::other);
                    made.map(|()| u64::from_le_bytes(base))
                };
                let lease = Lease::open(&self.records, key.clone(), base);
                let lease = lease.map_err(|why| NoSa::Record(key.clone(), why))?;
                let lease = Arc::new(Mutex::new(lease));
                self.leases.insert(key.clone(), lease.clone());
                lease
            }
        };
        let (numbers, iv_base) = {
            let mut lease = lease.lock().unpoisoned();
            let numbers = lease.take(self.clock.shows());
            (numbers.map_err(|why| NoSa::Lease(key.clone(), why))?, lease.iv_base())
        };
        let created = time(Duration::from_secs(used.since));
        let sa = OutboundSa::new(&self.engine, &parameters.sa(&used), numbers, iv_base, created);
        let sa = Arc::new(sa.map_err(NoSa::Sa)?);
        Ok(Outgoing { parameters, sa, key, before: used, lease })
    }

    /// An inbound one, which goes on behind the highest number that its key has seen.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn inbound(&mut self, tunnel: &Tunnel) -> Result<Incoming, NoSa> {
        let parameters = InParameters::of(tunnel);
        let key = self.name("in", &parameters.common).map_err(NoSa::Engine)?;
        let used = self.uses.of(&key, self.clock.shows().as_secs());
        let created = time(Duration::from_secs(used.since));
        let (sa, window) = (parameters.common.sa(&used), parameters.window);
        let selectors = Selectors(parameters.selectors.clone());
        let sa = InboundSa::new(&self.engine, &sa, window, selectors, created);
        let sa = Arc::new(sa.map_err(NoSa::Sa)?);
        sa.begin_after(used.highest);
        Ok(Incoming { parameters, sa, key, before: used })
    }

    /// The name of a key's record: a digest of the algorithm and the key, or of its name. The salt is a part of the key:
    /// with another one its nonces are others.
    fn name(&self, way: &str, parameters: &OutParameters) -> Result<String, Error> {
        let OutParameters { keyed, suite, .. } = parameters;
        let (kind, key, salt): (&[u8], &[u8], &[u8]) = match &keyed.key {
            Key::Secret(key) => (b"secret", key, &keyed.salt),
            Key::Named(name) => (b"named", name.as_bytes(), &[]),
        };
        let length = (key.len() as u64).to_be_bytes();
        let parts: [&[u8]; 6] =
            [b"keyway esp\0", kind, suite.name().as_bytes(), &length, key, salt];
        let mut digest = [0; 32];
        self.engine.digest(Algorithm::Sha256, &parts, &mut digest)?;
        let mut name = format!("{way}-");
        for byte in digest.iter().take(16) {
            // To write to a string does not fail.
            let _ = write!(name, "{byte:02x}");
        }
        Ok(name)
    }
}
