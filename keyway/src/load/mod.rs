//! `keyway load`: load on an LDAP server, and what it does to it. The work is that of `keyway-load`;
//! here are its flags and its words.
//!
//! Results go to standard output, a line a second and remarks to standard error.

mod agents;
mod arguments;
mod finding;
mod running;
mod samples;

pub use arguments::{Load, as_at_home, own_urls, users};

use crate::provider::provider;
use arguments::{Compare, Init, Kind, Output, Report, Run, Short, Wait};
use clap::Parser;
use keyway_config::Running;
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_load::wait::{self, Awaited};
use keyway_load::{Options, SAMPLES, Sample, Scenario, Trust, Url, limits};
use running::{Trial, can_keep, interrupt, no_rules, rules, shown, try_once};
use samples::{named, sample, shown_by_server};
use std::thread;
use std::time::Instant;

/// Does what the arguments ask for. Says whether what was to come true did.
///
/// # Errors
/// If it could not be begun.
pub fn run(command: &Load) -> Result<bool, Failure> {
    let Some(command) = &command.command else { return first_guess() };
    match command {
        Kind::Auth(short) => short_form("auth", short),
        Kind::Search(short) => short_form("search", short),
        Kind::Bind(short) => short_form("bind", short),
        Kind::Modify(short) => short_form("modify", short),
        Kind::AddDelete(short) => short_form("add-delete", short),
        Kind::Mixed(short) => short_form("mixed", short),
        Kind::Run(arguments) => file(arguments),
        Kind::Find(arguments) => finding::run(arguments),
        Kind::Init(arguments) => init(arguments).map(|()| true),
        Kind::Serve(arguments) => agents::serve(arguments),
        Kind::Agent(arguments) => agents::agent(arguments).map(|()| true),
        Kind::Wait(arguments) => wait_for(arguments).map(|()| true),
        Kind::Report(arguments) => report(arguments).map(|()| true),
        Kind::Compare(arguments) => compare(arguments).map(|()| true),
    }
}

/// Runs `keyway load` without a command.
fn first_guess() -> Result<bool, Failure> {
    let words = ["keyway", "load", "search"];
    let parsed =
        crate::cli::Cli::try_parse_from(words).map_err(|why| Failure::usage(why.kind()))?;
    match parsed.command {
        crate::cli::Command::Load(command) if command.command.is_some() => run(&command),
        _ => Err(Failure::usage("name a kind of load; keyway load --help lists them")),
    }
}

fn short_form(name: &str, arguments: &Short) -> Result<bool, Failure> {
    let mut options = Options {
        rate: arguments.rate,
        length: arguments.duration,
        operations: arguments.operations,
        warm_up: arguments.warm_up,
        ..arguments.target.options()?
    };
    if arguments.show_scenario {
        shown_by_server(&mut options, false)?;
        let (text, _) = sample(name, &options)?;
        return output::text(text.trim_end()).map(|()| true);
    }
    // A scenario that cannot be run at all is refused before a server is asked.
    sample(name, &options)?;
    let kept = &arguments.output.kept;
    shown_by_server(&mut options, !(kept.quiet || kept.json))?;
    let (_, scenario) = sample(name, &options)?;
    under_load(scenario, Trial::Decides, &arguments.output)
}

fn file(arguments: &Run) -> Result<bool, Failure> {
    let mut scenario = Scenario::read(&arguments.file)?;
    if !arguments.urls.is_empty() {
        let urls = arguments.urls.iter().map(|url| Url::parse(url).map_err(Failure::usage));
        scenario.urls = urls.collect::<Result<_, _>>()?;
    }
    if let Some(ca) = &arguments.ca {
        scenario.trust.ca = Some(ca.clone());
        scenario.trust.insecure = false;
    }
    if arguments.insecure {
        (scenario.trust.ca, scenario.trust.insecure) = (None, true);
    }
    keyway_folder::trust::warn(scenario.trust.insecure);
    scenario.trust.own_ca = Some(arguments.folder.join(name::CA_CERTIFICATE));
    match scenario.find.clone() {
        None => under_load(scenario, Trial::IsSaid, &arguments.output),
        Some(search) => {
            no_rules(&arguments.output)?;
            finding::here(scenario, Trial::IsSaid, &search, &arguments.output.kept)
        }
    }
}

/// Runs a scenario, shows what it comes to, and says whether that is good.
fn under_load(mut scenario: Scenario, trial: Trial, arguments: &Output) -> Result<bool, Failure> {
    let interrupt = interrupt()?;
    rules(&mut scenario, arguments)?;
    can_keep(&arguments.kept, &scenario)?;
    try_once(&mut scenario, trial, &interrupt)?;
    shown(scenario, arguments, |scenario, said| {
        keyway_load::run(scenario, &provider(), &interrupt, said)
    })
}

fn init(arguments: &Init) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let line = |sample: &Sample| {
            format!("{:20} {} (SLAMD: {})", sample.name, sample.about, sample.slamd)
        };
        let lines: Vec<String> = SAMPLES.iter().map(line).collect();
        return output::text(lines.join("\n"));
    };
    let mut options = Options {
        ca: arguments.ca.clone(),
        base: Some(arguments.base.clone()),
        admin: arguments.bind_dn.clone().zip(arguments.password_file.clone()),
        users: Some(arguments.users.clone()),
        ..Options::default()
    };
    if let Some(url) = &arguments.url {
        Url::parse(url).map_err(Failure::usage)?;
        options.urls = vec![url.clone()];
    }
    output::text(named(name)?.text(&options).trim_end())
}

/// Waits until a server answers a search of its root: SLAMD's WaitForDirectoryServer.
fn wait_for(arguments: &Wait) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let own = || {
        let urls = Running::look(folder).as_ref().map(own_urls).unwrap_or_default();
        urls.into_iter().next()
    };
    let began = Instant::now();
    let interrupt = interrupt()?;
    let url = loop {
        match arguments.url.clone().or_else(own) {
            Some(url) => break url,
            None if interrupt.came() || began.elapsed() > arguments.at_most => {
                return Err(Failure::new(format!("no server runs on {}", folder.display())));
            }
            None => thread::sleep(limits::WAIT_PAUSE),
        }
    };
    keyway_folder::trust::warn(arguments.insecure);
    Trust { ca: arguments.ca.clone(), ..Trust::default() }.check()?;
    let options = Options { ca: arguments.ca.clone(), ..Options::default() };
    let options = Options { insecure: arguments.insecure, ..options.absolute()? };
    let own_ca = folder.join(name::CA_CERTIFICATE);
    let awaited = Awaited { url: url.clone(), options, own_ca, until: began + arguments.at_most };
    match wait::until_it_answers(awaited, &provider(), &interrupt)? {
        None => {
            let waited = began.elapsed().as_secs_f64();
            output::text(format_args!("{url} answers, after {waited:.1} s"))
        }
        Some(why) => Err(Failure::new(why)),
    }
}

fn report(arguments: &Report) -> Result<(), Failure> {
    let result = keyway_load::result::read(&arguments.result)?;
    output::text(keyway_load::report::html(&result).trim_end())
}

fn compare(arguments: &Compare) -> Result<(), Failure> {
    let one = keyway_load::result::read(&arguments.one)?;
    let other = keyway_load::result::read(&arguments.other)?;
    output::text(keyway_load::compare::table(&one, &other).map_err(Failure::usage)?)
}
