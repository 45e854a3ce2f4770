//! The agent: it calls a hub, and does what that says, on its own threads.

use super::link::Link;
use super::{FORM, Message, clock_ns};
use crate::error::Error;
use crate::gather::Crew;
use crate::limits::{AGENT_SILENCE_MAX, SCENARIO_BYTES_MAX};
use crate::run::{Interrupt, Pace, crew, ready};
use crate::scenario::{Scenario, confined};
use crate::trust::Identity;
use crate::worker::Said;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConnection, Connection};
use rustls_pki_types::ServerName;
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Calls a hub at `host:port`, waits for what is to be done, and does it. Files that the scenario names are
/// those of `folder`; others are refused.
///
/// # Errors
/// If nobody is there, who is there is not to be trusted, or the work cannot be done.
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
    let (text, agent, agents) = loop {
        if interrupt.came() {
            return Ok(());
        }
        match link.poll().map_err(lost)? {
            Some(Message::Ping) => link.send(&Message::Pong(clock_ns())).map_err(lost)?,
            Some(Message::Scenario { text, agent, agents }) => break (text, agent, agents),
            Some(_) => return Err(lost(io::Error::other("it says nonsense"))),
            None => {}
        }
    };
    let worked = work(&mut link, (&text, agent, agents), folder, provider, interrupt, noted);
    if let Err(why) = &worked {
        // If it does not hear it, it notices that we are gone.
        let _ = link.send(&Message::Failed(why.to_string()));
    }
    worked
}

fn call(hub: &str, identity: &Identity, provider: &Arc<CryptoProvider>) -> Result<Link, Error> {
    let cannot = |why: io::Error| Error::Server(format!("{hub}: {why}"));
    let usage = || Error::Usage(format!("'{hub}' is not HOST:PORT"));
    let (host, port) = hub.rsplit_once(':').ok_or_else(usage)?;
    port.parse::<u16>().map_err(|_| usage())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| usage())?;
    let config = identity.client(provider)?;
    let socket = TcpStream::connect(hub).map_err(cannot)?;
    let tls = ClientConnection::new(config, name).map_err(|why| cannot(io::Error::other(why)))?;
    let mut link = Link::new(Connection::Client(tls), socket).map_err(cannot)?;
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    link.send(&Message::Hello { form: FORM, name }).map_err(cannot)?;
    Ok(link)
}

fn work(
    link: &mut Link,
    (text, agent, agents): (&str, u64, u64),
    folder: &Path,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
    noted: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    if text.len() as u64 > SCENARIO_BYTES_MAX || agent >= agents {
        return Err(Error::Server("the hub's scenario makes no sense".into()));
    }
    confined(text)?;
    let mut scenario = Scenario::parse(text, "the hub's scenario", folder)?;
    scenario.share_out(agent, agents);
    noted(&format!("{}: agent {} of {agents}", scenario.name, agent + 1));
    let lost = |why: io::Error| Error::Server(format!("the hub is gone: {why}"));
    crew(&scenario, provider, &Pace::default(), |shared, local, begins| {
        let begun = ready(&scenario, shared, &local.receiver, local.threads, interrupt)?;
        let (threads, (open, wanted)) = (local.threads, begun.open);
        let message = Message::Ready { threads, open, wanted, why_not: begun.why_not };
        link.send(&message).map_err(lost)?;
        let at_ns = loop {
            match link.receive(10 * AGENT_SILENCE_MAX).map_err(lost)? {
                Message::Ping => link.send(&Message::Pong(clock_ns())).map_err(lost)?,
                Message::Begin(at_ns) => break at_ns,
                // Another agent cannot do it.
                _ => return Ok(()),
            }
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
                Some(Said::Second(tally)) => link.send(&Message::Second(tally)).map_err(lost)?,
                Some(Said::End(ended)) => working = working.saturating_sub(ended.len()),
                Some(Said::Failed(why)) => return Err(Error::Server(why)),
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
                return Err(Error::Server("somebody has ended the agent".into()));
            }
        }
        link.send(&Message::End).map_err(lost)
    })
}
