//! A run: threads that work, and one that gathers what they say.

use crate::error::Error;
use crate::limits::SECONDS_KEPT_MAX;
use crate::outcome::{Outcome, Second};
use crate::scenario::Scenario;
use crate::schedule::Rate;
use crate::tally::{Fault, SecondTally, add};
use crate::target::{Place, Url};
use crate::worker::{Address, Said, Server, Shared, Worker};
use rustls::crypto::CryptoProvider;
use rustls_pki_types::ServerName;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long the first connection to a server may take.
const FIRST_CONNECT_MAX: Duration = Duration::from_secs(5);
/// How often is looked whether somebody wants an end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// From the last thread's being ready to the first start.
const HEAD_START: Duration = Duration::from_millis(5);

/// Whether somebody has asked for the end. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks for the end: no more starts, a moment for what is under way, and the results so far.
    pub fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has.
    #[must_use]
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is said while a run is under way.
#[derive(Debug)]
pub enum Event<'e> {
    /// Connections are open.
    Begun {
        /// Threads at work.
        threads: usize,
        /// Connections that are open.
        open: usize,
        /// Those that were wanted.
        wanted: usize,
        /// Why the others are not.
        why_not: Option<String>,
    },
    /// A second is over.
    Second(&'e Second),
}

/// Runs a scenario's phases. `provider` is the cryptography of TLS.
///
/// # Errors
/// If no connection could be opened, or the system refuses something. What goes wrong later is part
/// of the outcome.
pub fn run(
    scenario: &Scenario,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    let servers =
        scenario.urls.iter().map(|url| server(url, scenario)).collect::<Result<_, _>>()?;
    let has_tls = scenario.start_tls || scenario.urls.iter().any(|url| url.tls);
    let tls = has_tls.then(|| scenario.trust.config(provider)).transpose()?;
    let stop = AtomicBool::new(false);
    let shared = Shared { servers, tls, origin: Instant::now(), stop };
    let threads = threads(scenario);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let mut begins = Vec::new();
        for number in 0..threads {
            let (begin, begun) = channel();
            begins.push(begin);
            let (sender, shared) = (sender.clone(), &shared);
            let work = move || match Worker::new(scenario, shared, number, threads, sender.clone())
            {
                Ok(worker) => worker.run(&begun),
                // Whoever does not listen any more has seen enough.
                Err(why) => drop(sender.send(Said::Failed(why))),
            };
            let builder = thread::Builder::new().name(format!("load {number}"));
            let spawned = builder.spawn_scoped(scope, work);
            spawned.map_err(|why| Error::System("start a thread", why))?;
        }
        drop(sender);
        let gathered =
            begin(scenario, &shared, &receiver, begins, interrupt, said).and_then(|start| {
                let mut gather = Gather::new(scenario, &shared, threads, start);
                gather.all(&receiver, interrupt, said)?;
                Ok(gather.outcome)
            });
        shared.stop.store(true, Ordering::Relaxed);
        gathered
    })
}

/// One for each core, and none without a connection of each kind.
fn threads(scenario: &Scenario) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let groups = scenario.groups.iter().map(|group| group.connections);
    let fewest = groups.filter(|connections| *connections > 0).min().unwrap_or(1);
    scenario.threads.unwrap_or(cores).min(fewest).max(1)
}

/// Waits until all have their connections, and tells them when to begin.
fn begin(
    scenario: &Scenario,
    shared: &Shared,
    receiver: &Receiver<Said>,
    begins: Vec<Sender<u64>>,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(Event<'_>),
) -> Result<(usize, usize, u64), Error> {
    let (mut open, mut wanted, mut reason) = (0, 0, None);
    let mut waiting = begins.len();
    while waiting > 0 {
        if interrupt.came() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(Said::Ready { open: more, wanted: of, why_not }) => {
                (open, wanted, waiting) = (open + more, wanted + of, waiting - 1);
                reason = reason.or(why_not);
            }
            Ok(Said::Failed(why)) => return Err(Error::System("wait for sockets", why)),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if open == 0 {
        return Err(Error::Server(unreachable(scenario, reason)));
    }
    let why_not = reason.filter(|_| open < wanted).map(|(fault, why)| format!("{fault}: {why}"));
    said(Event::Begun { threads: begins.len(), open, wanted, why_not });
    let start_ns = (shared.origin.elapsed() + HEAD_START).as_nanos() as u64;
    for begin in begins {
        // One that is gone has said why.
        let _ = begin.send(start_ns);
    }
    Ok((open, wanted, start_ns))
}

/// Why there is no connection, and what to do.
fn unreachable(scenario: &Scenario, reason: Option<(Fault, String)>) -> String {
    let url = scenario.urls.first().map(ToString::to_string).unwrap_or_default();
    let Some((fault, why)) = reason else {
        return format!("{url}: no connection could be opened in time");
    };
    let advice = match fault {
        Fault::TlsFailed if why.contains("certificate") => {
            "; name the authority that issued it (--ca FILE, target.ca), or take any certificate \
             (--insecure, target.insecure)"
        }
        Fault::BindRefused(49) => "; the name or the password is wrong",
        Fault::BindRefused(_) | Fault::Refused => "",
        _ => "; is it an LDAP server, and is ldap:// or ldaps:// right?",
    };
    format!("{url}: {fault}: {why}{advice}")
}

/// The address of a server that answers there.
fn server(url: &Url, scenario: &Scenario) -> Result<Server, Error> {
    let has_tls = url.tls || scenario.start_tls;
    let (host, port) = match &url.place {
        Place::Socket(path) => {
            if has_tls {
                return Err(Error::Usage(format!("{url}: there is no TLS over a socket file")));
            }
            return Ok(Server { address: Address::Unix(path.clone()), name: None, tls: false });
        }
        Place::Host { host, port } => (host.as_str(), *port),
    };
    let cannot = |why: &str| Error::Server(format!("{url}: {why}"));
    let name = match has_tls {
        true => {
            let name = ServerName::try_from(host.to_owned());
            Some(name.map_err(|_| cannot("its host is no name that a certificate can have"))?)
        }
        false => None,
    };
    let found = (host, port).to_socket_addrs().map_err(|why| cannot(&why.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    let mut last = cannot("the name has no address");
    for address in found {
        match TcpStream::connect_timeout(&address, FIRST_CONNECT_MAX) {
            Ok(_) => return Ok(Server { address: Address::Tcp(address), name, tls: url.tls }),
            Err(why) => last = cannot(&format!("cannot connect to {address}: {why}")),
        }
    }
    Err(last)
}

/// What threads have said, put together.
struct Gather<'g> {
    scenario: &'g Scenario,
    shared: &'g Shared,
    threads: usize,
    start_ns: u64,
    outcome: Outcome,
    /// Seconds that not all threads have reported.
    seconds: BTreeMap<u64, Vec<SecondTally>>,
    /// The first second that a thread may still report.
    next: Vec<u64>,
}

impl<'g> Gather<'g> {
    fn new(
        scenario: &'g Scenario,
        shared: &'g Shared,
        threads: usize,
        (open, wanted, start_ns): (usize, usize, u64),
    ) -> Gather<'g> {
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let outcome = Outcome::new(scenario, threads, (open, wanted), began);
        let next = vec![0; threads];
        Gather { scenario, shared, threads, start_ns, outcome, seconds: BTreeMap::new(), next }
    }

    fn all(
        &mut self,
        receiver: &Receiver<Said>,
        interrupt: &Interrupt,
        said: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let mut working = self.threads;
        while working > 0 {
            if interrupt.came() && !self.outcome.was_interrupted {
                self.outcome.was_interrupted = true;
                self.stop();
            }
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(Said::Second(tally)) => {
                    self.next[tally.thread] = tally.second + 1;
                    self.seconds.entry(tally.second).or_default().push(*tally);
                    self.settle(said);
                }
                Ok(Said::End) => working -= 1,
                Ok(Said::Failed(why)) => return Err(Error::System("go on", why)),
                Ok(Said::Ready { .. }) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.next.fill(u64::MAX);
        self.settle(said);
        self.outcome.elapsed = self.since_start();
        self.outcome.conclude(self.scenario);
        Ok(())
    }

    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    fn since_start(&self) -> Duration {
        self.shared.origin.elapsed().saturating_sub(Duration::from_nanos(self.start_ns))
    }

    /// Settles the seconds that all threads are beyond.
    fn settle(&mut self, said: &mut dyn FnMut(Event<'_>)) {
        let beyond = self.next.iter().copied().min().unwrap_or_default();
        while let Some(entry) = self.seconds.first_entry().filter(|entry| *entry.key() < beyond) {
            let (number, tallies) = entry.remove_entry();
            let second = self.add(number, tallies);
            said(Event::Second(&second));
            if self.outcome.seconds.len() < SECONDS_KEPT_MAX {
                self.outcome.seconds.push(second);
            }
            self.check_thresholds(number);
        }
    }

    fn add(&mut self, number: u64, tallies: Vec<SecondTally>) -> Second {
        let mut second = Second::new(number);
        let mut response = crate::tally::latencies();
        let mut lag = crate::tally::latencies();
        let is_open = self.scenario.phases.iter().any(|phase| phase.rate != Rate::AsAnswered);
        for tally in tallies {
            for (phase, more) in tally.phases.iter().enumerate() {
                let Some(more) = more else { continue };
                second.due += more.due();
                second.done += more.done();
                second.errors += more.errors();
                add(&mut response, &more.response());
                self.outcome.phases[phase].add(more);
                if self.scenario.phases[phase].record {
                    self.outcome.recorded.add(more);
                }
            }
            let share = tally.cpu_ns as f64 / tally.length_ns.max(1) as f64;
            second.cpu_share = second.cpu_share.max(share);
            second.backlog += tally.backlog;
            add(&mut lag, &tally.lag);
            self.outcome.threads[tally.thread].add(tally.cpu_ns, tally.length_ns, share);
            self.outcome.connections.add(&tally.connections);
        }
        second.settle(&response, &lag);
        add(&mut self.outcome.lag, &lag);
        self.outcome.judge_client(&second, is_open);
        second
    }

    /// Ends the run if a threshold that says so is broken.
    fn check_thresholds(&mut self, number: u64) {
        if self.outcome.aborted_by.is_some() {
            return;
        }
        let so_far = Duration::from_secs(number + 1);
        let broken = self.scenario.thresholds.iter().find(|threshold| {
            threshold.abort_after.is_some_and(|after| so_far > after)
                && !self.outcome.keeps(threshold, so_far.as_secs_f64())
        });
        if let Some(broken) = broken.filter(|_| self.outcome.recorded.due() > 0) {
            self.outcome.aborted_by = Some(broken.that.to_string());
            self.stop();
        }
    }
}
