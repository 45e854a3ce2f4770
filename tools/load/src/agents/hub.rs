//! The hub: it waits for agents, shares a scenario out among them, and gathers what they say.

use super::link::Link;
use super::{FORM, Message, clock_ns};
use crate::error::Error;
use crate::gather::{Crew, Gather};
use crate::limits::{
    AGENT_CLOCK_LOOKS, AGENT_HEAD_START, AGENT_PING_EVERY, AGENT_SILENCE_MAX, CONNECT_MAX,
};
use crate::monitor::Monitors;
use crate::outcome::{AgentUse, Outcome};
use crate::run::{Event, Interrupt};
use crate::scenario::Scenario;
use crate::trust::Identity;
use crate::worker::Said;
use rustls::crypto::CryptoProvider;
use rustls::{Connection, ServerConfig, ServerConnection};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// From one look for somebody who calls to the next.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where agents call.
pub struct Hub {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

/// An agent that has called.
pub struct Called {
    link: Link,
    name: String,
    /// How far its clock is ahead, and half of how long that took to ask, in nanoseconds.
    clock_ns: (i64, u64),
}

impl Called {
    /// What it calls itself, and where it calls from.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far its clock is ahead of ours, and how sure that is, in nanoseconds.
    #[must_use]
    pub fn clock_ns(&self) -> (i64, u64) {
        self.clock_ns
    }
}

impl Hub {
    /// Listens.
    ///
    /// # Errors
    /// If the address cannot be had, or the certificate is none.
    pub fn new(
        listen: SocketAddr,
        identity: &Identity,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Hub, Error> {
        let cannot = |why| Error::System("listen for agents", why);
        let config = identity.server(provider)?;
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        Ok(Hub { listener, config })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next agent that calls; `None` if somebody has asked for an end. Those that are none are noted.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn called(
        &self,
        interrupt: &Interrupt,
        noted: &mut dyn FnMut(&str),
    ) -> Result<Option<Called>, Error> {
        while !interrupt.came() {
            match self.listener.accept() {
                Ok((socket, from)) => match self.agent(socket, from) {
                    Ok(called) => return Ok(Some(called)),
                    Err(why) => noted(&format!("{from} is no agent: {why}")),
                },
                Err(why) if why.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK_EVERY),
                Err(why) => return Err(Error::System("listen for agents", why)),
            }
        }
        Ok(None)
    }

    fn agent(&self, socket: TcpStream, from: SocketAddr) -> io::Result<Called> {
        socket.set_nonblocking(false)?;
        let tls = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        let mut link = Link::new(Connection::Server(tls), socket)?;
        let name = match link.receive(AGENT_SILENCE_MAX)? {
            Message::Hello { form: FORM, name } => format!("{name} ({from})"),
            Message::Hello { form, .. } => {
                return Err(io::Error::other(format!("it is of another version (form {form})")));
            }
            _ => return Err(io::Error::other("it does not say who it is")),
        };
        let clock_ns = compare_clocks(&mut link)?;
        Ok(Called { link, name, clock_ns })
    }
}

/// How far the other clock is ahead; of several looks the one that took least time.
fn compare_clocks(link: &mut Link) -> io::Result<(i64, u64)> {
    let mut best = (0, u64::MAX);
    for _ in 0..AGENT_CLOCK_LOOKS {
        let before = clock_ns();
        link.send(&Message::Ping)?;
        let Message::Pong(theirs) = link.receive(AGENT_SILENCE_MAX)? else {
            return Err(io::Error::other("it does not say what its clock says"));
        };
        let half = clock_ns().saturating_sub(before) / 2;
        if half < best.1 {
            best = (theirs.wrapping_sub(before + half) as i64, half);
        }
    }
    Ok(best)
}

impl Hub {
    /// Runs a scenario on agents, as [`crate::run()`] does on this machine, where monitors look.
    /// `text` is what it was read from.
    ///
    /// # Errors
    /// If an agent cannot do it, or is gone before it begins. One that is lost later is in the outcome.
    pub fn run(
        scenario: &Scenario,
        text: &str,
        agents: Vec<Called>,
        provider: &Arc<CryptoProvider>,
        interrupt: &Interrupt,
        said: &mut dyn FnMut(Event<'_>),
    ) -> Result<Outcome, Error> {
        Monitors::watching(scenario, provider, |monitors| {
            on_agents(scenario, text, agents, monitors, interrupt, said)
        })
    }
}

fn on_agents(
    scenario: &Scenario,
    text: &str,
    agents: Vec<Called>,
    monitors: Monitors,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    let count = agents.len();
    if scenario.find.is_some() {
        return Err(Error::Usage("a search for the knee runs on one machine".into()));
    }
    if scenario.fewest_connections() < count {
        let why = "each agent needs a connection of each kind: count is below their number";
        return Err(Error::Usage(why.into()));
    }
    let mut crew = Agents { agents: Vec::new(), said: VecDeque::new(), pinged: Instant::now() };
    let (mut threads, mut open, mut wanted, mut why_not) = (0, 0, 0, None);
    let mut agents: Vec<Called> = agents;
    for (number, called) in agents.iter_mut().enumerate() {
        let (agent, agents) = (number as u64, count as u64);
        let message = Message::Scenario { text: text.to_owned(), agent, agents };
        called.link.send(&message).map_err(|why| gone(&called.name, &why))?;
    }
    let mut used = Vec::new();
    for mut called in agents {
        let mut theirs = called.link.receive(2 * CONNECT_MAX);
        while matches!(theirs, Ok(Message::Pong(_))) {
            theirs = called.link.receive(2 * CONNECT_MAX);
        }
        match theirs.map_err(|why| gone(&called.name, &why))? {
            Message::Ready { threads: more, open: of, wanted: all, why_not: why } => {
                if !(1..=crate::limits::THREADS_MAX).contains(&more) {
                    return Err(Error::Server(format!("{} has {more} threads", called.name)));
                }
                let range = threads..threads + more;
                (threads, open, wanted) = (threads + more, open + of, wanted + all);
                why_not = why_not.or(why.map(|why| format!("{}: {why}", called.name)));
                used.push(AgentUse {
                    name: called.name.clone(),
                    threads: range.clone(),
                    clock_ns: called.clock_ns,
                    lost: None,
                });
                crew.agents.push(Agent { called, threads: range, is_done: false });
            }
            Message::Failed(why) => {
                return Err(Error::Server(format!("{}: {why}", called.name)));
            }
            _ => return Err(Error::Server(format!("{} says nonsense", called.name))),
        }
    }
    said(Event::Begun { threads, open, wanted, why_not });
    let at = clock_ns() + AGENT_HEAD_START.as_nanos() as u64;
    for agent in &mut crew.agents {
        let theirs = at.wrapping_add_signed(agent.called.clock_ns.0);
        let sent = agent.called.link.send(&Message::Begin(theirs));
        sent.map_err(|why| gone(&agent.called.name, &why))?;
    }
    thread::sleep(AGENT_HEAD_START);
    let mut gather = Gather::new(scenario, threads, (open, wanted), used, monitors);
    gather.all(&mut Checked { crew, scenario }, interrupt, said)?;
    Ok(gather.outcome)
}

fn gone(name: &str, why: &io::Error) -> Error {
    Error::Server(format!("{name} is gone: {why}"))
}

/// Agents at work.
struct Agents {
    agents: Vec<Agent>,
    said: VecDeque<Said>,
    pinged: Instant,
}

struct Agent {
    called: Called,
    /// Which threads are its, among all.
    threads: Range<usize>,
    is_done: bool,
}

/// Agents whose words are checked.
struct Checked<'s> {
    crew: Agents,
    scenario: &'s Scenario,
}

impl Crew for Checked<'_> {
    fn next(&mut self) -> Option<Said> {
        if self.crew.pinged.elapsed() > AGENT_PING_EVERY {
            self.crew.pinged = Instant::now();
            self.crew.tell(&Message::Ping);
        }
        if self.crew.said.is_empty() {
            for (number, agent) in self.crew.agents.iter_mut().enumerate() {
                if let Some(said) = agent.next(number, self.scenario) {
                    self.crew.said.push_back(said);
                }
            }
        }
        self.crew.said.pop_front()
    }

    fn stop(&mut self) {
        self.crew.tell(&Message::Stop);
    }
}

impl Agents {
    /// Says something to all that are still there. Whether one heard it is seen by what it says.
    fn tell(&mut self, message: &Message) {
        for agent in self.agents.iter_mut().filter(|agent| !agent.is_done) {
            let _ = agent.called.link.send(message);
        }
    }
}

impl Agent {
    fn next(&mut self, number: usize, scenario: &Scenario) -> Option<Said> {
        if self.is_done {
            return None;
        }
        let heard = match self.called.link.poll() {
            Ok(None) if self.called.link.silence() > AGENT_SILENCE_MAX => {
                Err("it says nothing any more".to_owned())
            }
            Ok(None | Some(Message::Pong(_))) => return None,
            Ok(Some(Message::Second(tally))) => {
                self.second(tally, scenario).ok_or_else(|| "it says nonsense".to_owned())
            }
            Ok(Some(Message::End)) => {
                self.is_done = true;
                return Some(Said::End(self.threads.clone()));
            }
            Ok(Some(Message::Failed(why))) => Err(why),
            Ok(Some(_)) => Err("it says nonsense".to_owned()),
            Err(why) => Err(why.to_string()),
        };
        Some(heard.unwrap_or_else(|why| {
            self.is_done = true;
            Said::Lost { agent: number, threads: self.threads.clone(), why }
        }))
    }

    fn second(
        &self,
        mut tally: Box<crate::tally::SecondTally>,
        scenario: &Scenario,
    ) -> Option<Said> {
        tally.thread = tally.thread.checked_add(self.threads.start)?;
        let fits = self.threads.contains(&tally.thread) && tally.fits(scenario);
        // Nobody can be far in the future.
        let is_possible = tally.second <= scenario.length().as_secs() + 86_400;
        (fits && is_possible).then_some(Said::Second(tally))
    }
}
