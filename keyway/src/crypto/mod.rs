//! `keyway crypto`: the engine and its drivers, looked at from outside: what there is, whether it
//! is right, how fast it is.
//!
//! Each command makes an engine of its own. Results go to standard output; that nobody reads them
//! any more is no failure. The first Ctrl-C ends the measuring and shows what there is by then.

mod arguments;
mod bench;
mod list;
mod picture;
mod test;
mod work;

pub use arguments::Crypto;

use crate::failure::Failure;
use crate::output;
use crate::signals::Signals;
use arguments::{CARDS, Drivers, Spec};
use keyway_drivers::Pool;
use keyway_engine::{Driver, Engine};
use keyway_test_drivers::Plan;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zeroize::Zeroizing;

/// Tasks that may wait for each thread of a pool.
const POOL_DEPTH: usize = 256;

/// Does what the arguments ask for. Says whether all was right.
///
/// # Errors
/// If it could not be done.
pub fn run(command: &Crypto) -> Result<bool, Failure> {
    match command {
        Crypto::List(arguments) => list::run(arguments),
        Crypto::Test(arguments) => test::run(arguments),
        Crypto::Bench(arguments) => bench::run(arguments),
    }
}

/// The drivers of a command, in order of registration.
fn drivers(arguments: &Drivers) -> Result<Vec<Arc<dyn Driver>>, Failure> {
    use keyway_drivers::{pool, software};
    use keyway_test_drivers::{fault, null, queued2003, simulated};
    let refused = |what: &str, why: &io::Error| {
        Failure::new(format!("cannot make the driver {what}: {}", crate::failure::plain(why)))
    };
    let mut drivers = keyway_drivers::drivers();
    // To measure what is around the cryptography is a purpose of these commands.
    drivers.push(null());
    for spec in &arguments.with {
        match spec {
            Spec::Pool { threads, cores } => {
                let depth = threads * POOL_DEPTH;
                let made = Pool { threads: *threads, cores: cores.clone(), depth };
                let made = pool("pool", software(), made);
                drivers.push(made.map_err(|why| refused("pool", &why))?);
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
                drivers.push(made.map_err(|why| refused("queued2003", &why))?);
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
    Ok(drivers)
}

/// An engine with these drivers.
fn engine(drivers: &[Arc<dyn Driver>], legacy: bool) -> Result<Engine, Failure> {
    let engine = Engine::builder().legacy(legacy).build();
    for driver in drivers {
        engine.register(driver.clone()).map_err(|why| {
            Failure::usage(format!("driver {}: {why}; leave out a --with", driver.name()))
        })?;
    }
    Ok(engine)
}

/// Refuses names of drivers that are not there.
fn known(names: &[String], drivers: &[Arc<dyn Driver>]) -> Result<(), Failure> {
    for name in names {
        if !drivers.iter().any(|driver| driver.name() == name) {
            let there: Vec<_> = drivers.iter().map(|driver| driver.name()).collect();
            return Err(Failure::usage(format!(
                "there is no driver {name}; there are {}, and --with registers more",
                there.join(", ")
            )));
        }
    }
    Ok(())
}

/// Reads a private key as PKCS#8, PEM or DER.
fn private_key(path: Option<&Path>) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = std::fs::read(path).map_err(|why| Failure::system("read", path, &why))?;
    let file = Zeroizing::new(file);
    if file.first() == Some(&0x30) {
        return Ok(Some(file));
    }
    match PrivatePkcs8KeyDer::from_pem_slice(&file) {
        Ok(key) => Ok(Some(Zeroizing::new(key.secret_pkcs8_der().to_vec()))),
        Err(_) => Err(Failure::new(format!(
            "there is no PKCS#8 private key in {}; openssl pkcs8 -topk8 -nocrypt makes one of it",
            path.display()
        ))),
    }
}

/// Writes to standard output. Says whether anybody reads it.
fn say(text: impl Display) -> Result<bool, Failure> {
    match output::write(text) {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(why) => Err(Failure::output(&why)),
        Ok(()) => Ok(true),
    }
}

/// Whether somebody has asked for the end.
#[derive(Clone)]
struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches SIGINT and SIGTERM from now on; the second one ends the process.
    fn catch() -> Result<Interrupt, Failure> {
        let cannot = |why| Failure::new(format!("cannot start: {why}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(cannot)?;
        let mut signals = {
            let _inside = runtime.enter();
            Signals::catch()?
        };
        let interrupt = Interrupt(Arc::default());
        let flag = interrupt.clone();
        let watch = move || {
            runtime.block_on(async {
                signals.next().await;
                flag.end();
                signals.end_at_next().await
            })
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(cannot)?;
        Ok(interrupt)
    }

    /// Ends the measuring for another reason.
    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
