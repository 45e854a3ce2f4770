//! Agents at work: a scenario is shared out among them, and what they say is gathered.

use super::Message;
use super::hub::{Called, Hub};
use crate::collector::{Collector, Workers};
use crate::control::Interrupt;
use crate::error::Error;
use crate::event::Event;
use crate::limits::{
    AGENT_HEAD_START, AGENT_PING_EVERY, AGENT_SILENCE_MAX, CONNECT_MAX, THREADS_MAX,
};
use crate::monitor::Monitors;
use crate::outcome::{AgentUse, Outcome};
use crate::scenario::Scenario;
use crate::start::Moment;
use crate::worker::WorkerMessage;
use rustls::crypto::CryptoProvider;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

impl Hub {
    /// Runs a scenario on agents, as [`crate::run()`] does on this machine, where monitors look; they can then
    /// be given another one. `text` is what it was read from.
    ///
    /// # Errors
    /// If an agent cannot do it, or is gone before it begins. One that is lost later is in the outcome.
    pub fn run(
        scenario: &Scenario,
        text: &str,
        agents: &mut [Called],
        provider: &Arc<CryptoProvider>,
        interrupt: &Interrupt,
        said: &mut dyn FnMut(Event<'_>),
    ) -> Result<Outcome, Error> {
        let found = scenario.find.is_some() && scenario.held.is_none();
        if found {
            let why = "the scenario searches for the knee: keyway_load::find runs it, rate by rate";
            return Err(Error::Usage(why.into()));
        }
        if scenario.fewest_connections() < agents.len() {
            let why = "each agent needs a connection of each kind: count is below their number";
            return Err(Error::Usage(why.into()));
        }
        Monitors::watching(scenario, provider, |monitors| {
            ordered(scenario, text, agents)?;
            on_agents(scenario, agents, monitors, interrupt, said)
        })
    }
}

/// Tells all what is to be done.
fn ordered(scenario: &Scenario, text: &str, agents: &mut [Called]) -> Result<(), Error> {
    let count = agents.len() as u64;
    let held = scenario.held.map(|(rate, length)| (rate, length.as_nanos() as u64));
    for (number, called) in agents.iter_mut().enumerate() {
        if let Some(why) = &called.lost {
            return Err(Error::Server(why.clone()));
        }
        let agent = number as u64;
        let order = Message::Scenario { text: text.to_owned(), agent, agents: count, held };
        called.link.send(&order).map_err(|why| called.is_gone(&why))?;
    }
    Ok(())
}

fn on_agents(
    scenario: &Scenario,
    agents: &mut [Called],
    monitors: Monitors,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Error> {
    let mut workers = Agents { agents: Vec::new(), said: VecDeque::new(), pinged: Instant::now() };
    let (mut threads, mut open, mut wanted, mut why_not) = (0, 0, 0, None);
    let mut used = Vec::new();
    for called in agents {
        let ready = called.ready(interrupt)?;
        let range = threads..threads + ready.threads;
        (threads, open, wanted) = (range.end, open + ready.open.0, wanted + ready.open.1);
        why_not = why_not.or(ready.why_not.map(|why| format!("{}: {why}", called.name)));
        used.push(AgentUse {
            name: called.name.clone(),
            threads: range.clone(),
            clock_ns: called.clock_ns,
            lost: None,
        });
        workers.agents.push(Agent { called, threads: range, is_done: false });
    }
    said(Event::Begun { threads, open, wanted, why_not });
    let begin = Moment::after(AGENT_HEAD_START);
    for agent in &mut workers.agents {
        let theirs = (begin.unix.as_nanos() as u64).wrapping_add_signed(agent.called.clock_ns.0);
        let sent = agent.called.link.send(&Message::Begin(theirs));
        sent.map_err(|why| agent.called.is_gone(&why))?;
    }
    thread::sleep(AGENT_HEAD_START);
    let mut collector = Collector::new(scenario, threads, (open, wanted), used, monitors, begin);
    collector.all(&mut Checked { workers, scenario }, interrupt, said)?;
    Ok(collector.outcome)
}

/// The agent's report before it begins.
struct Ready {
    threads: usize,
    open: (usize, usize),
    why_not: Option<String>,
}

impl Called {
    fn is_gone(&mut self, why: &io::Error) -> Error {
        let words = format!("{} is gone: {why}", self.name);
        self.lost = Some(words.clone());
        Error::Server(words)
    }

    /// Waits until its connections are open.
    fn ready(&mut self, interrupt: &Interrupt) -> Result<Ready, Error> {
        let until = Instant::now() + 2 * CONNECT_MAX;
        loop {
            if interrupt.came() {
                return Err(Error::Server("interrupted before all agents were ready".into()));
            }
            let why = match self.link.poll() {
                Ok(None) if Instant::now() > until => "it says nothing any more".to_owned(),
                Ok(None | Some(Message::Pong(_))) => continue,
                Ok(Some(Message::Ready {
                    threads: threads @ 1..=THREADS_MAX,
                    open,
                    wanted,
                    why_not,
                })) => {
                    return Ok(Ready { threads, open: (open, wanted), why_not });
                }
                Ok(Some(Message::Failed(why))) => why,
                Ok(Some(_)) => "it says nonsense".to_owned(),
                Err(why) => return Err(self.is_gone(&why)),
            };
            let words = format!("{}: {why}", self.name);
            self.lost = Some(words.clone());
            return Err(Error::Server(words));
        }
    }
}

/// Agents at work.
struct Agents<'c> {
    agents: Vec<Agent<'c>>,
    said: VecDeque<WorkerMessage>,
    pinged: Instant,
}

struct Agent<'c> {
    called: &'c mut Called,
    /// The threads that are its, among all.
    threads: Range<usize>,
    is_done: bool,
}

/// Agents whose words are checked.
struct Checked<'s, 'c> {
    workers: Agents<'c>,
    scenario: &'s Scenario,
}

impl Workers for Checked<'_, '_> {
    fn next(&mut self) -> Option<WorkerMessage> {
        if self.workers.pinged.elapsed() > AGENT_PING_EVERY {
            self.workers.pinged = Instant::now();
            self.workers.tell(&Message::Ping);
        }
        if self.workers.said.is_empty() {
            for (number, agent) in self.workers.agents.iter_mut().enumerate() {
                if let Some(said) = agent.next(number, self.scenario) {
                    self.workers.said.push_back(said);
                }
            }
        }
        self.workers.said.pop_front()
    }

    fn stop(&mut self) {
        self.workers.tell(&Message::Stop);
    }
}

impl Agents<'_> {
    /// Says something to all that are still there. Whether one heard it is seen by what it says.
    fn tell(&mut self, message: &Message) {
        for agent in self.agents.iter_mut().filter(|agent| !agent.is_done) {
            let _ = agent.called.link.send(message);
        }
    }
}

impl Agent<'_> {
    fn next(&mut self, number: usize, scenario: &Scenario) -> Option<WorkerMessage> {
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
                return Some(WorkerMessage::End(self.threads.clone()));
            }
            Ok(Some(Message::Failed(why))) => Err(why),
            Ok(Some(_)) => Err("it says nonsense".to_owned()),
            Err(why) => Err(why.to_string()),
        };
        Some(heard.unwrap_or_else(|why| {
            self.is_done = true;
            self.called.lost = Some(format!("{} was lost: {why}", self.called.name));
            WorkerMessage::Lost { agent: number, threads: self.threads.clone(), why }
        }))
    }

    fn second(
        &self,
        mut tally: Box<crate::tally::SecondTally>,
        scenario: &Scenario,
    ) -> Option<WorkerMessage> {
        tally.thread = tally.thread.checked_add(self.threads.start)?;
        let fits = self.threads.contains(&tally.thread) && tally.fits(scenario);
        // A second far in the future is not an honest report.
        let is_possible = tally.second <= scenario.length().as_secs() + 86_400;
        (fits && is_possible).then_some(WorkerMessage::Second(tally))
    }
}
