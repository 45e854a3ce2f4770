//! A run: tried once, shown as it goes on, and kept.

use super::arguments::{Kept, Output};
use crate::provider::provider;
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_host::same_file::is_no_input;
use keyway_host::signals;
use keyway_load::{Error, Event, Interrupt, Outcome, Scenario, Trust, summary};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The fate of a run whose trial fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// It does not begin.
    Decides,
    /// It begins: the author of the scenario may know why.
    IsSaid,
}

/// Tries each job once.
pub fn try_once(
    scenario: &mut Scenario,
    trial: Trial,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    match keyway_load::probe(scenario, &provider(), interrupt)? {
        Some(why) if trial == Trial::Decides => Err(Failure::new(why)),
        Some(why) => {
            output::note(why);
            Ok(())
        }
        None => Ok(()),
    }
}

/// A search has a rule of its own.
pub fn no_rules(output: &Output) -> Result<(), Failure> {
    match output.fail_if.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage(
            "--fail-if is for runs, and the scenario is a search; what must not come true is its until",
        )),
    }
}

/// Has a scenario run, and shows what is said meanwhile and what it comes to.
pub fn shown(
    scenario: Scenario,
    arguments: &Output,
    run: impl FnOnce(&Scenario, &mut dyn FnMut(Event<'_>)) -> Result<Outcome, Error>,
) -> Result<bool, Failure> {
    let is_quiet = arguments.kept.quiet || arguments.kept.json;
    let outcome = run(&scenario, &mut |event| {
        if !is_quiet {
            live(&event);
        }
    })?;
    finish(&scenario, &outcome, &arguments.kept)?;
    Ok(outcome.is_good())
}

/// Adds the rules of --fail-if.
pub fn rules(scenario: &mut Scenario, arguments: &Output) -> Result<(), Failure> {
    for rule in &arguments.fail_if {
        scenario.fail_if(rule).map_err(|why| Failure::usage(format!("--fail-if {why}")))?;
    }
    Ok(())
}

/// Refuses a file that the result cannot be written to, or that the run reads, before anything is measured.
pub fn can_keep(kept: &Kept, scenario: &Scenario) -> Result<(), Failure> {
    let Some(path) = &kept.output else { return Ok(()) };
    let Trust { ca, own_ca, .. } = &scenario.trust;
    is_no_input(path, scenario.inputs.iter().chain(ca).chain(own_ca))?;
    let opened = fs::File::options().append(true).create(true).open(path);
    opened.map(|_| ()).map_err(|why| Failure::system("write", path, &why))
}

/// A progress line. Without a reader there is nothing to be done.
pub fn live(event: &Event<'_>) {
    let mut err = io::stderr().lock();
    let _ = match event {
        Event::Begun { threads, open, wanted, why_not } => {
            let why_not = why_not.as_ref().map(|why| format!(" of {wanted} ({why})"));
            writeln!(
                err,
                "{open}{} connections, {threads} threads; Ctrl-C ends it with the results so far\n{}",
                why_not.unwrap_or_default(),
                summary::SECONDS_HEADING
            )
        }
        Event::Lost(words) | Event::Monitor(words) => {
            writeln!(err, "{}", output::plain(words))
        }
        Event::Second(second) => writeln!(err, "{}", summary::second(second)),
    };
}

pub fn finish(scenario: &Scenario, outcome: &Outcome, kept: &Kept) -> Result<(), Failure> {
    let needs_value = kept.output.is_some() || kept.json;
    let value = needs_value.then(|| keyway_load::result::value(scenario, outcome));
    // Neither is lost with the other.
    let said = match value.as_ref().filter(|_| kept.json) {
        Some(value) => output::json(value),
        None => output::text(summary::table(scenario, outcome)),
    };
    let kept = match value.zip(kept.output.as_ref()) {
        Some((value, path)) => keep(path, &format!("{value}\n")),
        None => Ok(()),
    };
    kept.and(said)
}

/// Writes a result. A file that was written in part is no result, and does not stay.
pub fn keep(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|why| {
        if path.is_file() {
            let _ = fs::remove_file(path);
        }
        Failure::new(format!(
            "the result is not kept: cannot write {}: {}",
            path.display(),
            plain(&why)
        ))
    })
}

/// Catches SIGINT and SIGTERM from now on.
pub fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    signals::at_end(signals::Second::Ends, move || flag.end())?;
    Ok(interrupt)
}
