//! `keyway load`: load on an LDAP server, and what it does to it. The work is that of `keyway-load`;
//! here are its flags and its words.
//!
//! Results go to standard output, a line a second and remarks to standard error.

mod agents;
mod arguments;
mod finding;

pub use arguments::{Load, users};

use crate::failure::{Failure, plain};
use crate::output;
use crate::signals;
use arguments::{Compare, Init, Output, Report, Run, Short, Wait};
use keyway_load::{
    Error, Event, Interrupt, Options, Outcome, SAMPLES, Sample, Scenario, Url, Users, summary,
};
use rustls::crypto::CryptoProvider;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, absolute};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// From one look for a server to the next.
const WAIT_PAUSE: Duration = Duration::from_millis(200);

/// Does what the arguments ask for. Says whether what was to come true did.
///
/// # Errors
/// If it could not be begun.
pub fn run(command: &Load) -> Result<bool, Failure> {
    match command {
        Load::Auth(short) => short_form("auth", short),
        Load::Search(short) => short_form("search", short),
        Load::Bind(short) => short_form("bind", short),
        Load::Modify(short) => short_form("modify", short),
        Load::AddDelete(short) => short_form("add-delete", short),
        Load::Mixed(short) => short_form("mixed", short),
        Load::Run(arguments) => file(arguments),
        Load::Find(arguments) => finding::run(arguments),
        Load::Init(arguments) => init(arguments).map(|()| true),
        Load::Serve(arguments) => agents::serve(arguments),
        Load::Agent(arguments) => agents::agent(arguments).map(|()| true),
        Load::Wait(arguments) => wait(arguments).map(|()| true),
        Load::Report(arguments) => report(arguments).map(|()| true),
        Load::Compare(arguments) => compare(arguments).map(|()| true),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::File { verb, path, why } => Failure::system(verb, path, why),
            Error::System(what, why) => Failure::new(format!("cannot {what}: {}", plain(why))),
            Error::Usage(_) | Error::Scenario { .. } => Failure::usage(error),
            _ => Failure::new(error),
        }
    }
}

fn short_form(name: &str, arguments: &Short) -> Result<bool, Failure> {
    let options = Options {
        rate: arguments.rate,
        length: arguments.duration,
        warm_up: arguments.warm_up,
        ..arguments.target.options()
    };
    let (text, scenario) = sample(name, &options)?;
    if arguments.show_scenario {
        return output::text(text.trim_end()).map(|()| true);
    }
    under_load(scenario, &arguments.output)
}

/// Users' file where it is, wherever we go.
///
/// # Errors
/// If the system does not say where we are.
pub fn users_beside_us(users: &Users) -> Result<Users, Failure> {
    Ok(match users {
        Users::File(file) => {
            Users::File(absolute(file).map_err(|why| Failure::system("find", file, &why))?)
        }
        range => range.clone(),
    })
}

/// A sample filled in.
fn sample(name: &str, options: &Options) -> Result<(String, Scenario), Failure> {
    let sample = named(name)?;
    if sample.needs_admin() && options.admin.is_none() && !options.external {
        return Err(Failure::usage(format!(
            "{name} does what not everybody may do; name an account with --bind-dn DN and \
             --password-file FILE, or with --external"
        )));
    }
    let options = beside_us(options)?;
    let text = sample.text(&options);
    let what = format!("the scenario of '{name}' (--show-scenario prints it)");
    let scenario = Scenario::parse(&text, &what, Path::new(""))?;
    Ok((text, scenario))
}

fn named(name: &str) -> Result<&'static Sample, Failure> {
    Sample::named(name).ok_or_else(|| {
        let names: Vec<&str> = SAMPLES.iter().map(|sample| sample.name).collect();
        Failure::usage(format!("there is no scenario '{name}'; there are {}", names.join(", ")))
    })
}

/// Files are where we are, wherever the scenario is read from.
fn beside_us(options: &Options) -> Result<Options, Failure> {
    let place = |path: &Path| absolute(path).map_err(|why| Failure::system("find", path, &why));
    let mut options = options.clone();
    options.ca = options.ca.as_deref().map(place).transpose()?;
    if let Some((certificate, key)) = &mut options.own {
        (*certificate, *key) = (place(certificate)?, place(key)?);
    }
    if let Some((_, file)) = &mut options.admin {
        *file = place(file)?;
    }
    if let Users::File(file) = &mut options.users {
        *file = place(file)?;
    }
    Ok(options)
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
    match scenario.find.clone() {
        None => under_load(scenario, &arguments.output),
        Some(search) => finding::search(scenario, &search, arguments.output.json),
    }
}

/// Runs a scenario, shows what it comes to, and says whether that is good.
fn under_load(scenario: Scenario, arguments: &Output) -> Result<bool, Failure> {
    let interrupt = interrupt()?;
    shown(scenario, arguments, |scenario, said| {
        keyway_load::run(scenario, &provider(), &interrupt, said)
    })
}

/// Has a scenario run, and shows what is said meanwhile and what it comes to.
fn shown(
    mut scenario: Scenario,
    arguments: &Output,
    run: impl FnOnce(&Scenario, &mut dyn FnMut(Event<'_>)) -> Result<Outcome, Error>,
) -> Result<bool, Failure> {
    for rule in &arguments.fail_if {
        scenario.fail_if(rule).map_err(|why| Failure::usage(format!("--fail-if {why}")))?;
    }
    if let Some(path) = &arguments.output {
        // What cannot be kept need not be measured.
        let opened = fs::File::options().append(true).create(true).open(path);
        opened.map_err(|why| Failure::system("write", path, &why))?;
    }
    let is_quiet = arguments.quiet || arguments.json;
    let outcome = run(&scenario, &mut |event| {
        if !is_quiet {
            live(&event);
        }
    })?;
    finish(&scenario, &outcome, arguments)?;
    Ok(outcome.is_good())
}

/// A line of what is under way. With nobody to read it there is nothing to be done.
fn live(event: &Event<'_>) {
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
        Event::Lost(words) => writeln!(err, "{words}"),
        Event::Second(second) => writeln!(err, "{}", summary::second(second)),
    };
}

fn finish(scenario: &Scenario, outcome: &Outcome, arguments: &Output) -> Result<(), Failure> {
    let needs_value = arguments.output.is_some() || arguments.json;
    let value = needs_value.then(|| keyway_load::result::value(scenario, outcome));
    // First what cannot be had again, should the file not be written.
    match value.as_ref().filter(|_| arguments.json) {
        Some(value) => output::json(value)?,
        None => output::text(summary::table(scenario, outcome))?,
    }
    match value.zip(arguments.output.as_ref()) {
        Some((value, path)) => keep(path, &format!("{value}\n")),
        None => Ok(()),
    }
}

/// Writes a result. What is there in part is no result, and does not stay.
fn keep(path: &Path, text: &str) -> Result<(), Failure> {
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

/// The cryptography of TLS: the engine's.
fn provider() -> Arc<CryptoProvider> {
    keyway_tls::provider(&keyway_drivers::engine())
}

/// Catches SIGINT and SIGTERM from now on.
fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    signals::at_end(signals::Second::Ends, move || flag.end())?;
    Ok(interrupt)
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
        base: arguments.base.clone(),
        admin: arguments.bind_dn.clone().zip(arguments.password_file.clone()),
        users: arguments.users.clone(),
        ..Options::default()
    };
    if let Some(url) = &arguments.url {
        Url::parse(url).map_err(Failure::usage)?;
        options.urls = vec![url.clone()];
    }
    output::text(named(name)?.text(&options).trim_end())
}

/// Waits until a server answers a search of its root: SLAMD's WaitForDirectoryServer.
fn wait(arguments: &Wait) -> Result<(), Failure> {
    let options = Options {
        urls: vec![arguments.url.clone()],
        ca: arguments.ca.clone(),
        insecure: arguments.insecure,
        length: Duration::from_millis(100),
        connections: Some(1),
        rate: Some(20.0),
        timeout: Duration::from_secs(2),
        // Its root entry, which everybody may read.
        base: String::new(),
        filter: Some("(objectClass=*)".into()),
        ..beside_us(&Options { ca: arguments.ca.clone(), ..Options::default() })?
    };
    let sample = named("search")?.text(&options);
    let text = sample.replace("{ search = {", "{ search = { scope = \"base\",");
    let scenario = Scenario::parse(&text, "wait", Path::new(""))?;
    let (provider, interrupt) = (provider(), interrupt()?);
    let began = Instant::now();
    loop {
        let outcome = keyway_load::run(&scenario, &provider, &interrupt, &mut |_| ());
        let why = match outcome {
            Ok(outcome) if outcome.recorded.done() > 0 => {
                let waited = began.elapsed().as_secs_f64();
                return output::text(format_args!(
                    "{} answers, after {waited:.1} s",
                    arguments.url
                ));
            }
            Ok(_) => "it takes connections, and does not answer".to_owned(),
            Err(error @ (Error::Usage(_) | Error::File { .. } | Error::Content(..))) => {
                return Err(error.into());
            }
            Err(error) => error.to_string(),
        };
        if interrupt.came() || began.elapsed() > arguments.at_most {
            return Err(Failure::new(why));
        }
        thread::sleep(WAIT_PAUSE);
    }
}

fn report(arguments: &Report) -> Result<(), Failure> {
    let result = keyway_load::result::read(&arguments.result)?;
    output::text(keyway_load::report::html(&result).trim_end())
}

fn compare(arguments: &Compare) -> Result<(), Failure> {
    let one = keyway_load::result::read(&arguments.one)?;
    let other = keyway_load::result::read(&arguments.other)?;
    output::text(keyway_load::compare::table(&one, &other))
}
