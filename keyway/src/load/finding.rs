//! `keyway load find`: the knee.

use super::arguments::{Find as Arguments, Kept};
use super::running::{Trial, can_keep, interrupt, keep, live, try_once};
use super::samples::{sample, shown_by_server};
use crate::provider::provider;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_load::{
    Error, Event, Find, Interrupt, Knee, Outcome, Rule, Scenario, find, result, summary,
};
use std::io::{self, Write};

/// Searches with a sample.
pub fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let mut options = arguments.target.options()?;
    let (_, scenario) = sample(&arguments.scenario, &options)?;
    let names: Vec<String> = scenario.job_names().map(str::to_owned).collect();
    Rule::parse(&arguments.until, &names)
        .map_err(|why| Failure::usage(format!("--until {why}")))?;
    if arguments.from > arguments.to {
        return Err(Failure::usage("--from is above --to"));
    }
    if arguments.hold.is_zero() {
        return Err(Failure::usage("--hold should be above 0"));
    }
    let (from, to, hold) = (arguments.from, arguments.to, arguments.hold);
    shown_by_server(&mut options, !(arguments.kept.quiet || arguments.kept.json))?;
    options.find = Some(Knee { from, to, until: arguments.until.clone(), hold });
    let (text, scenario) = sample(&arguments.scenario, &options)?;
    if arguments.show_scenario {
        return output::text(text.trim_end()).map(|()| true);
    }
    match scenario.find.clone() {
        Some(search) => here(scenario, Trial::Decides, &search, &arguments.kept),
        None => Err(Failure::new("the scenario has no search in it")),
    }
}

/// Searches on this machine.
pub fn here(
    mut scenario: Scenario,
    trial: Trial,
    search: &Find,
    kept: &Kept,
) -> Result<bool, Failure> {
    let (interrupt, provider) = (interrupt()?, provider());
    can_keep(kept, &scenario)?;
    try_once(&mut scenario, trial, &interrupt)?;
    self::search(scenario, search, kept, &interrupt, &mut |scenario, said| {
        keyway_load::run(scenario, &provider, &interrupt, said)
    })
}

/// Runs a scenario as it is, and says what happens meanwhile.
pub type Runs<'r> = dyn FnMut(&Scenario, &mut dyn FnMut(Event<'_>)) -> Result<Outcome, Error> + 'r;

/// Searches, says what was found and keeps it; whether a knee was found.
pub fn search(
    mut scenario: Scenario,
    search: &Find,
    kept: &Kept,
    interrupt: &Interrupt,
    runs: &mut Runs<'_>,
) -> Result<bool, Failure> {
    can_keep(kept, &scenario)?;
    let is_quiet = kept.quiet || kept.json;
    let say = |words: &str| {
        if !is_quiet {
            // Without a reader there is nothing to be done.
            let _ = writeln!(io::stderr(), "{words}");
        }
    };
    say(&summary::probes_heading(search));
    // Only events of a rate's trial that are out of the ordinary are said.
    let said = &mut |event: Event<'_>| {
        if !is_quiet && matches!(event, Event::Lost(_) | Event::Monitor(_)) {
            live(&event);
        }
    };
    let run = &mut |scenario: &Scenario| runs(scenario, said);
    let found =
        find(&mut scenario, search, interrupt, run, &mut |probe| say(&summary::probe(probe)))?;
    let value = result::of_find(&scenario, search, &found);
    match kept.json {
        true => output::json(&value)?,
        false => output::text(found.words())?,
    }
    if let Some(path) = &kept.output {
        keep(path, &format!("{value}\n"))?;
    }
    Ok(found.is_good())
}
