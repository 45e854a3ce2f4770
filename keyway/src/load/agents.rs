//! `keyway load serve` and `keyway load agent`: a run on several machines.

use super::arguments::{Agent, Serve};
use super::finding;
use super::running::{can_keep, interrupt, no_rules, rules, shown};
use crate::provider::provider;
use keyway_host::failure::Failure;
use keyway_host::output::note;
use keyway_load::{Called, Error, Event, Hub, Identity, Interrupt, Scenario, answer, limits};
use std::fs;
use std::thread;

/// Waits for agents, and runs a scenario on them. Says whether the outcome is good.
pub fn serve(arguments: &Serve) -> Result<bool, Failure> {
    let path = &arguments.file;
    let mut scenario = Scenario::read(path)?;
    rules(&mut scenario, &arguments.output)?;
    let text = fs::read_to_string(path).map_err(|why| Failure::system("read", path, &why))?;
    if scenario.find.is_some() {
        no_rules(&arguments.output)?;
    }
    let Identity { certificate, key, ca } = arguments.who.identity();
    scenario.inputs.extend([certificate, key, ca]);
    can_keep(&arguments.output.kept, &scenario)?;
    let interrupt = interrupt()?;
    let Some(mut agents) = called(arguments, &interrupt)? else {
        return Err(Failure::new("interrupted before all agents had called"));
    };
    let provider = provider();
    let runs = &mut |scenario: &Scenario, said: &mut dyn FnMut(Event<'_>)| {
        Hub::run(scenario, &text, &mut agents, &provider, &interrupt, said)
    };
    match scenario.find.clone() {
        None => shown(scenario, &arguments.output, runs),
        Some(search) => {
            finding::search(scenario, &search, &arguments.output.kept, &interrupt, runs)
        }
    }
}

/// Waits for agents.
fn called(arguments: &Serve, interrupt: &Interrupt) -> Result<Option<Vec<Called>>, Failure> {
    let hub = Hub::new(arguments.listen, &arguments.who.identity(), &provider())?;
    let address = hub.address().unwrap_or(arguments.listen);
    let wanted = usize::from(arguments.agents);
    note(format_args!("waiting for {wanted} agents at {address}"));
    let mut agents = Vec::new();
    while agents.len() < wanted {
        let Some(called) = hub.called(interrupt, &mut |why| note(why))? else {
            return Ok(None);
        };
        let (ahead_ns, sure_ns) = called.clock_ns();
        note(format_args!(
            "{} has called; its clock is {:.3} ms ahead, give or take {:.3}",
            called.name(),
            ahead_ns as f64 / 1e6,
            sure_ns as f64 / 1e6
        ));
        // Others may have gone meanwhile.
        agents.retain_mut(|agent: &mut Called| {
            let is_there = agent.is_there();
            if !is_there {
                note(format_args!("{} is gone; another one is waited for", agent.name()));
            }
            is_there
        });
        agents.push(called);
    }
    Ok(Some(agents))
}

/// Calls, and does what is said; again and again, unless once is enough.
pub fn agent(arguments: &Agent) -> Result<(), Failure> {
    let interrupt = interrupt()?;
    let (identity, provider) = (arguments.who.identity(), provider());
    let mut said = String::new();
    loop {
        let noted = &mut |words: &str| note(words);
        let folder = &arguments.folder;
        let done = answer(&arguments.hub, &identity, folder, &provider, &interrupt, noted);
        match done {
            Err(error) if arguments.once => return Err(error.into()),
            // These errors will not be gone the next time.
            Err(error @ (Error::Usage(_) | Error::Content(..) | Error::File { .. })) => {
                return Err(error.into());
            }
            // The reason why no server answers is printed once.
            Err(error) if error.to_string() != said => {
                note(&error);
                said = error.to_string();
            }
            Err(_) => {}
            Ok(()) => said.clear(),
        }
        if arguments.once || interrupt.came() {
            return Ok(());
        }
        thread::sleep(limits::AGENT_CALL_EVERY);
    }
}
