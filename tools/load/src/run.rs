//! A run: threads that work, and one that gathers what they say.

use crate::collector::{Collector, Workers};
use crate::control::{Interrupt, RateOverride};
use crate::error::Error;
use crate::event::Event;
use crate::monitor::Monitors;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::server::resolve;
use crate::start::{Barrier, moment};
use crate::tally::Fault;
use crate::worker::{Shared, Worker, WorkerMessage};
use rustls::crypto::CryptoProvider;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long the first connection to a server may take.
const FIRST_CONNECT_MAX: Duration = Duration::from_secs(5);
/// The pause between two looks whether an end was asked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs a scenario's phases. `provider` is the cryptography of TLS.
///
/// # Errors
/// If no connection could be opened, or the system refuses something. A later failure is part of the
/// outcome.
pub fn run(
    scenario: &Scenario,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    run_at(scenario, provider, interrupt, &RateOverride::default(), None, said)
}

/// Runs a scenario's phases at a rate that can be changed meanwhile, and perhaps together with other
/// runs.
///
/// # Errors
/// As [`run`].
pub fn run_at(
    scenario: &Scenario,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
    rate_override: &RateOverride,
    barrier: Option<Barrier>,
    said: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    Monitors::watching(scenario, provider, |monitors| {
        with_workers(scenario, provider, rate_override, |shared, workers, begins| {
            let begun = ready(scenario, shared, &workers.receiver, workers.threads, interrupt)?;
            let begin = moment(barrier, interrupt);
            let (open, wanted) = begun.open;
            let (threads, why_not) = (workers.threads, begun.why_not);
            said(Event::Begun { threads, open, wanted, why_not });
            let start_ns = begin.at.saturating_duration_since(shared.origin).as_nanos() as u64;
            for begin in begins {
                // One that is gone has said why.
                let _ = begin.send(start_ns);
            }
            let mut collector =
                Collector::new(scenario, threads, begun.open, Vec::new(), monitors, begin);
            collector.all(workers, interrupt, said)?;
            Ok(collector.outcome)
        })
    })
}

/// The threads of this process.
pub(crate) struct Local<'c> {
    pub(crate) threads: usize,
    pub(crate) receiver: Receiver<WorkerMessage>,
    shared: &'c Shared,
}

impl Workers for Local<'_> {
    fn next(&mut self) -> Option<WorkerMessage> {
        match self.receiver.recv_timeout(LOOK_EVERY) {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(WorkerMessage::End(0..self.threads)),
        }
    }

    fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// Has threads open their connections, and does something with them.
pub(crate) fn with_workers<T>(
    scenario: &Scenario,
    provider: &Arc<CryptoProvider>,
    rate_override: &RateOverride,
    work: impl FnOnce(&Shared, &mut Local<'_>, Vec<Sender<u64>>) -> Result<T, Error>,
) -> Result<T, Error> {
    let server = |url| resolve(url, scenario.start_tls, FIRST_CONNECT_MAX);
    let servers = scenario.urls.iter().map(server).collect::<Result<_, _>>()?;
    let has_tls = scenario.start_tls || scenario.urls.iter().any(|url| url.tls);
    let tls = has_tls.then(|| scenario.trust.config(provider)).transpose()?;
    let shared = Shared::new(scenario, servers, tls, rate_override.clone());
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
                // A collector that does not listen any more has ended the run.
                Err(why) => drop(sender.send(WorkerMessage::Failed(why.to_string()))),
            };
            let builder = thread::Builder::new().name(format!("load {number}"));
            let spawned = builder.spawn_scoped(scope, work);
            spawned.map_err(|why| Error::System("start a thread", why))?;
        }
        drop(sender);
        let done = work(&shared, &mut Local { threads, receiver, shared: &shared }, begins);
        shared.stop.store(true, Ordering::Relaxed);
        done
    })
}

/// One for each core, and none without a connection of each kind.
fn threads(scenario: &Scenario) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let fewest = scenario.fewest_connections() / scenario.share.1 as usize;
    scenario.threads.unwrap_or(cores).min(fewest).max(1)
}

/// Connections that are open, and those wanted.
pub(crate) struct Begun {
    pub(crate) open: (usize, usize),
    pub(crate) why_not: Option<String>,
}

/// Waits until all have their connections.
pub(crate) fn ready(
    scenario: &Scenario,
    shared: &Shared,
    receiver: &Receiver<WorkerMessage>,
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Begun, Error> {
    let (mut open, mut wanted, mut reason) = (0, 0, None);
    let mut waiting = threads;
    while waiting > 0 {
        if interrupt.came() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(WorkerMessage::Ready { open: more, wanted: of, why_not }) => {
                (open, wanted, waiting) = (open + more, wanted + of, waiting - 1);
                reason = reason.or(why_not);
            }
            Ok(WorkerMessage::Failed(why)) => return Err(Error::Server(why)),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if open == 0 && interrupt.came() {
        return Err(Error::Server("interrupted before a connection was open".into()));
    }
    if open == 0 || shared.is_refused.load(Ordering::Relaxed) {
        return Err(Error::Server(unreachable(scenario, reason)));
    }
    let why_not = reason.filter(|_| open < wanted).map(|(fault, why)| format!("{fault}: {why}"));
    Ok(Begun { open: (open, wanted), why_not })
}

/// Why there is no connection, and what to do.
fn unreachable(scenario: &Scenario, reason: Option<(Fault, String)>) -> String {
    let url = scenario.urls.first().map(ToString::to_string).unwrap_or_default();
    let Some((fault, why)) = reason else {
        return format!("{url}: no connection could be opened in time");
    };
    let advice = match fault {
        Fault::TlsFailed if why.contains("--ca FILE") => {
            "; or take any certificate (--insecure, target.insecure)"
        }
        Fault::BindRefused(_) | Fault::Refused | Fault::TlsFailed => "",
        _ => "; is it an LDAP server, and is ldap:// or ldaps:// right?",
    };
    format!("{url}: {fault}: {why}{advice}")
}
