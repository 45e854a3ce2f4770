//! The agent: it calls a hub, and does what that says, on its own threads.

use super::link::Link;
use super::{FORM, Message, clock_ns};
use crate::collector::Workers;
use crate::control::{Interrupt, RateOverride};
use crate::error::Error;
use crate::limits::{
    AGENT_CONNECT_MAX, AGENT_SILENCE_MAX, PHASE_MAX, RATE_MAX, SCENARIO_BYTES_MAX,
};
use crate::run::{ready, with_workers};
use crate::scenario::Scenario;
use crate::trust::Identity;
use crate::worker::WorkerMessage;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConnection, Connection};
use rustls_pki_types::ServerName;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls a hub at `host:port`, and does what it says, until it says goodbye. Files that the scenario names are
/// those of `folder`; others are refused.
///
/// # Errors
/// If no hub answers there, if it is not to be trusted, or if the work cannot be done.
pub fn answer(
    hub: &str,
    identity: &Identity,
    folder: &Path,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
    noted: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let mut link = call(hub, identity, provider)?;
    noted(&format!("connected to {hub}"));
    let lost = |why: io::Error| Error::Server(format!("{hub} is gone: {why}"));
    let mut known: Option<Known> = None;
    loop {
        match heard(&mut link, interrupt, None).map_err(lost)? {
            None | Some(Message::Bye) => return Ok(()),
            Some(Message::Scenario { text, agent, agents, held }) => {
                let order = Order { text, agent, agents, held };
                let worked = known_as(&mut known, order, folder, noted)
                    .and_then(|scenario| work(&mut link, scenario, provider, interrupt));
                match worked {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    Err(why) => {
                        // If it does not hear it, it notices that we are gone.
                        let _ = link.send(&Message::Failed(why.to_string()));
                        return Err(why);
                    }
                }
            }
            Some(_) => return Err(lost(io::Error::other("it says nonsense"))),
        }
    }
}

/// A hub's order.
struct Order {
    text: String,
    agent: u64,
    agents: u64,
    held: Option<(f64, u64)>,
}

/// A scenario that was read before: a value that it has given out is not given out again.
struct Known {
    text: String,
    share: (u64, u64),
    scenario: Scenario,
}

/// The scenario that is wanted.
fn known_as<'k>(
    known: &'k mut Option<Known>,
    order: Order,
    folder: &Path,
    noted: &mut dyn FnMut(&str),
) -> Result<&'k Scenario, Error> {
    let Order { text, agent, agents, held } = order;
    let nonsense = || Error::Server("the hub's scenario is invalid".into());
    if text.len() as u64 > SCENARIO_BYTES_MAX || agent >= agents {
        return Err(nonsense());
    }
    let share = (agent, agents);
    let is_same = |known: &Known| known.text == text && known.share == share;
    let last = match known.take().filter(is_same) {
        Some(last) => last,
        None => {
            let mut scenario = Scenario::parse_confined(&text, "the hub's scenario", folder)?;
            scenario.share_out(agent, agents);
            noted(&format!("{}: agent {} of {agents}", scenario.name, agent + 1));
            Known { text, share, scenario }
        }
    };
    let scenario = &mut known.insert(last).scenario;
    if let Some((rate, length_ns)) = held {
        let length = Duration::from_nanos(length_ns);
        if !(rate > 0.0 && rate <= RATE_MAX) || length.is_zero() || length > PHASE_MAX {
            return Err(nonsense());
        }
        scenario.hold(rate, length);
        noted(&format!("{}/s", crate::format::grouped(rate)));
    }
    Ok(scenario)
}

/// The next message; pings are answered here. `None` if the agent is told to end.
fn heard(
    link: &mut Link,
    interrupt: &Interrupt,
    at_most: Option<Duration>,
) -> io::Result<Option<Message>> {
    let began = Instant::now();
    while !interrupt.came() {
        match link.poll()? {
            Some(Message::Ping) => link.send(&Message::Pong(clock_ns()))?,
            Some(message) => return Ok(Some(message)),
            None if at_most.is_some_and(|most| began.elapsed() > most) => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => {}
        }
    }
    Ok(None)
}

fn call(hub: &str, identity: &Identity, provider: &Arc<CryptoProvider>) -> Result<Link, Error> {
    let cannot = |why: io::Error| Error::Server(format!("{hub}: {why}"));
    let usage = || Error::Usage(format!("'{hub}' is not HOST:PORT"));
    let (host, port) = hub.rsplit_once(':').ok_or_else(usage)?;
    port.parse::<u16>().map_err(|_| usage())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| usage())?;
    let config = identity.client(provider)?;
    let socket = connect(hub).map_err(cannot)?;
    let tls = ClientConnection::new(config, name).map_err(|why| cannot(io::Error::other(why)))?;
    let mut link = Link::new(Connection::Client(tls), socket).map_err(cannot)?;
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    link.send(&Message::Hello { form: FORM, name }).map_err(cannot)?;
    Ok(link)
}

/// Connects to the first of its addresses that answers.
fn connect(hub: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in hub.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, AGENT_CONNECT_MAX) {
            Ok(socket) => return Ok(socket),
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// Runs it. Says whether there may be more to do.
fn work(
    link: &mut Link,
    scenario: &Scenario,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
) -> Result<bool, Error> {
    let lost = |why: io::Error| Error::Server(format!("the hub is gone: {why}"));
    let ended = || Error::Server("the agent was ended".into());
    with_workers(scenario, provider, &RateOverride::default(), |shared, local, begins| {
        let begun = ready(scenario, shared, &local.receiver, local.threads, interrupt)?;
        let (threads, (open, wanted)) = (local.threads, begun.open);
        let message = Message::Ready { threads, open, wanted, why_not: begun.why_not };
        link.send(&message).map_err(lost)?;
        let at_ns = match heard(link, interrupt, Some(10 * AGENT_SILENCE_MAX)).map_err(lost)? {
            Some(Message::Begin(at_ns)) => at_ns,
            // Another agent cannot do it.
            Some(_) => return Ok(false),
            None => return Err(ended()),
        };
        let wait = Duration::from_nanos(at_ns.saturating_sub(clock_ns()));
        let start_ns = (shared.origin.elapsed() + wait.min(AGENT_SILENCE_MAX)).as_nanos() as u64;
        for begin in begins {
            // One that is gone has said why.
            let _ = begin.send(start_ns);
        }
        let mut working = threads;
        while working > 0 {
            match local.next() {
                Some(WorkerMessage::Second(tally)) => {
                    link.send(&Message::Second(tally)).map_err(lost)?
                }
                Some(WorkerMessage::End(ended)) => working = working.saturating_sub(ended.len()),
                Some(WorkerMessage::Failed(why) | WorkerMessage::Refused(why)) => {
                    return Err(Error::Server(why));
                }
                _ => {}
            }
            while let Some(message) = link.poll().map_err(lost)? {
                match message {
                    Message::Ping => link.send(&Message::Pong(clock_ns())).map_err(lost)?,
                    _ => local.stop(),
                }
            }
            if link.silence() > AGENT_SILENCE_MAX {
                return Err(lost(io::ErrorKind::TimedOut.into()));
            }
            if interrupt.came() {
                return Err(ended());
            }
        }
        link.send(&Message::End).map_err(lost)?;
        Ok(true)
    })
}
