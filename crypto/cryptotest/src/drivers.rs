//! The drivers that are looked at, those that are only registered on request among them.

use crate::error::Error;
use keyway_drivers::Pool;
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Driver, Engine, limits};
use keyway_test_drivers::{Card, Plan};
use std::io::ErrorKind::NotConnected;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// Tasks that may wait for each thread of a pool.
const POOL_DEPTH: usize = 256;
const POOL_THREADS_MAX: usize = 1_024;

/// A driver that is registered on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// Threads that do what software does, pinned to these processors.
    Pool {
        /// How many.
        threads: usize,
        /// One processor for each, if they are pinned.
        cores: Option<Vec<usize>>,
    },
    /// So many simulated cards of one make.
    Cards {
        /// One of [`CARDS`].
        make: &'static str,
        /// How many.
        count: usize,
    },
    /// The dispatch of 2003 before software.
    Queued2003,
    /// Software that fails now and then.
    Fault {
        /// The seed of the failures' order.
        seed: u64,
    },
    /// A daemon that listens at this socket.
    Remote {
        /// Where.
        socket: PathBuf,
    },
}

/// Drivers, and the connections that some of them need as long as they are used.
pub struct Drivers {
    all: Vec<Arc<dyn Driver>>,
    _remotes: Vec<(Engine, Remote)>,
}

impl Deref for Drivers {
    type Target = Vec<Arc<dyn Driver>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl DerefMut for Drivers {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.all
    }
}

/// A card's name and what it is.
type Make = (&'static str, fn() -> Card);

/// The cards that can be simulated.
pub const CARDS: [Make; 6] = [
    ("hifn-7751", Card::hifn_7751),
    ("hifn-7811", Card::hifn_7811),
    ("hifn-7951", Card::hifn_7951),
    ("bcm-5805", Card::broadcom_5805),
    ("bcm-5820", Card::broadcom_5820),
    ("bcm-5822", Card::broadcom_5822),
];

impl FromStr for Spec {
    type Err = String;

    /// Reads `pool[:THREADS[@CORE,...]]`, `sim:CARD[=COUNT]`, `queued2003`, `fault:SEED` or
    /// `remote:SOCKET`.
    fn from_str(text: &str) -> Result<Spec, String> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        match (name, rest) {
        ("queued2003", None) => Some(Spec::Queued2003),
        ("pool", rest) => pool(rest),
        ("sim", Some(rest)) => cards(rest),
        ("remote", Some(path)) if !path.is_empty() => Some(Spec::Remote { socket: path.into() }),
        ("fault", Some(seed)) => seed.parse().ok().map(|seed| Spec::Fault { seed }),
        _ => None,
    }
    .ok_or_else(|| {
        let makes: Vec<_> = CARDS.iter().map(|(make, _)| *make).collect();
        format!(
            "it is none of: pool, pool:THREADS, pool:THREADS@CORE,CORE (1 to {POOL_THREADS_MAX} \
             threads); sim:CARD, sim:CARD=COUNT (1 to {} of {}); queued2003; fault:SEED (a number); \
             remote:SOCKET (of a keyway cryptod)",
            limits::DRIVERS_MAX,
            makes.join(", ")
        )
    })
    }
}

fn pool(rest: Option<&str>) -> Option<Spec> {
    let Some(rest) = rest else {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        return Some(Spec::Pool { threads, cores: None });
    };
    let (threads, cores) = match rest.split_once('@') {
        Some((threads, cores)) => {
            let cores: Result<Vec<usize>, _> = cores.split(',').map(str::parse).collect();
            (threads, Some(cores.ok()?))
        }
        None => (rest, None),
    };
    let threads = threads.parse().ok().filter(|n| (1..=POOL_THREADS_MAX).contains(n))?;
    Some(Spec::Pool { threads, cores })
}

fn cards(rest: &str) -> Option<Spec> {
    let (make, count) = rest.split_once('=').unwrap_or((rest, "1"));
    let (make, _) = CARDS.iter().find(|(known, _)| *known == make)?;
    let count = count.parse().ok().filter(|n| (1..=limits::DRIVERS_MAX).contains(n))?;
    Some(Spec::Cards { make, count })
}

/// The drivers that an engine has by itself, `null`, and these; in order of registration.
///
/// # Errors
/// [`Error::Driver`], if the system gives no threads; [`Error::Remote`], if a daemon does not let us in.
pub fn drivers(with: &[Spec]) -> Result<Drivers, Error> {
    use keyway_drivers::{pool, software};
    use keyway_test_drivers::{fault, null, queued2003, simulated};
    let (mut drivers, mut remotes) = (keyway_drivers::drivers(), Vec::new());
    // To measure what is around the cryptography is a purpose of this crate.
    drivers.push(null());
    for spec in with {
        match spec {
            Spec::Pool { threads, cores } => {
                let depth = threads * POOL_DEPTH;
                let made = Pool { threads: *threads, cores: cores.clone(), depth };
                let made = pool("pool", software(), made);
                drivers.push(made.map_err(|why| Error::Driver { name: "pool", why })?);
            }
            Spec::Cards { make, count } => {
                let card = CARDS.iter().find(|(known, _)| known == make).map(|(_, card)| card);
                for _ in 0..*count {
                    let named = |driver: &&Arc<dyn Driver>| driver.name().starts_with(make);
                    let name = format!("{make}-{}", drivers.iter().filter(named).count());
                    if let Some(card) = card {
                        drivers.push(Arc::new(simulated(&name, card(), software())));
                    }
                }
            }
            Spec::Queued2003 => {
                let made = queued2003(software());
                drivers.push(made.map_err(|why| Error::Driver { name: "queued2003", why })?);
            }
            Spec::Remote { socket } => {
                // Its engine is only there to be registered with: the driver serves others too.
                let engine = Engine::builder().build();
                let name = match remotes.len() {
                    0 => "remote".to_owned(),
                    number => format!("remote-{}", number + 1),
                };
                let options = RemoteOptions { name, ..RemoteOptions::new(socket, "keyway crypto") };
                let cannot = |why| Error::Remote { socket: socket.clone(), why };
                let remote = Remote::connect(&engine, options).map_err(cannot)?;
                drivers.push(remote.driver().ok_or_else(|| cannot(NotConnected.into()))?);
                remotes.push((engine, remote));
            }
            Spec::Fault { seed } => {
                let plan = Plan {
                    seed: *seed,
                    errors: 0.01,
                    busy: 0.1,
                    delay: 3,
                    shuffle: true,
                    selection: keyway_engine::Selection::Named,
                    place: keyway_engine::Place::Host,
                    ..Plan::default()
                };
                drivers.push(fault("fault", software(), plan).0);
            }
        }
    }
    Ok(Drivers { all: drivers, _remotes: remotes })
}

/// An engine with these drivers, which does legacy algorithms or does not.
///
/// # Errors
/// [`Error::Register`], if two have one name or there are too many.
pub fn engine(drivers: &[Arc<dyn Driver>], legacy: bool) -> Result<Engine, Error> {
    let engine = Engine::builder().legacy(legacy).build();
    for driver in drivers {
        let registered = engine.register(driver.clone());
        registered.map_err(|why| Error::Register { driver: driver.name().to_owned(), why })?;
    }
    Ok(engine)
}

/// Refuses names of drivers that are not there.
///
/// # Errors
/// [`Error::NoSuchDriver`] for the first of them.
pub fn known(names: &[String], drivers: &[Arc<dyn Driver>]) -> Result<(), Error> {
    let is_there = |name: &&String| drivers.iter().any(|driver| driver.name() == *name);
    match names.iter().find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => Err(Error::NoSuchDriver {
            name: name.clone(),
            there: drivers.iter().map(|driver| driver.name().to_owned()).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_specified() {
        let parse = |text: &str| text.parse::<Spec>();
        let cores = Some(vec![0, 3]);
        assert_eq!(parse("pool:2@0,3"), Ok(Spec::Pool { threads: 2, cores }));
        assert_eq!(parse("pool:7"), Ok(Spec::Pool { threads: 7, cores: None }));
        assert!(matches!(parse("pool"), Ok(Spec::Pool { cores: None, .. })));
        assert_eq!(parse("sim:bcm-5820=4"), Ok(Spec::Cards { make: "bcm-5820", count: 4 }));
        assert_eq!(parse("sim:hifn-7751"), Ok(Spec::Cards { make: "hifn-7751", count: 1 }));
        assert_eq!(parse("queued2003"), Ok(Spec::Queued2003));
        assert_eq!(parse("fault:9"), Ok(Spec::Fault { seed: 9 }));
        assert_eq!(parse("remote:/a:b"), Ok(Spec::Remote { socket: "/a:b".into() }));
        assert!(parse("remote:").is_err() && parse("remote").is_err());
        let bad = [
            "",
            "pools",
            "pool:",
            "pool:0",
            "pool:1025",
            "pool:2@",
            "pool:2@a",
            "sim",
            "sim:",
            "sim:hifn",
            "sim:bcm-5820=0",
            "sim:bcm-5820=33",
            "queued2003:1",
            "fault",
            "fault:x",
        ];
        for bad in bad {
            assert!(parse(bad).unwrap_err().contains("bcm-5820"), "{bad}");
        }
    }
}
