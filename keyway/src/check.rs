//! `keyway directory check`.
//!
//! LMDB maps the data file and believes it: damage of a kind that was not foreseen, or
//! a disk that cannot read, ends the process with a signal. So another process does the work, and
//! its death is an answer.

use crate::cli::Check;
use keyway_folder::history::Done;
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_service::feed_check;
use keyway_service::instance::describe;
use keyway_service::instance::{Instance, what_to_do};
use keyway_service::offline::{self, Inspected, Offline};
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// The start of a line in which the working process says how far it is.
const AT: &str = "at ";

/// Checks the store of a data folder, and that each entry is found by the keys it should have.
/// Returns whether all is well; what is not has been said.
///
/// # Errors
/// If there is none, or it is in use.
pub fn run(arguments: &Check) -> Result<bool, Failure> {
    if arguments.in_this_process {
        return recorded(arguments, work);
    }
    let cannot = |why| Failure::new(format!("cannot start a process that checks: {why}"));
    let mut child = Command::new(std::env::current_exe().map_err(cannot)?)
        .args(std::env::args_os().skip(1))
        .arg("--in-this-process")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let mut at = "before the first row".to_owned();
    if let Some(said) = child.stdout.take() {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            match line.strip_prefix(AT) {
                Some(place) => place.clone_into(&mut at),
                None => output::text(line)?,
            }
        }
    }
    let status = child.wait().map_err(cannot)?;
    match killed(status) {
        None => Ok(status.success()),
        Some(signal) => recorded(arguments, |arguments, done| {
            let data = &arguments.data.folder.display();
            let why = format!(
                "the store is damaged, or the disk cannot be read: reading it killed the process \
                 that checks ({signal}), {at}; `keyway directory export --continue FILE --data \
                 {data}` writes all that can be read"
            );
            refuse(arguments, done, &why, &Inspected::default())
        }),
    }
}

/// Does the work, or says what it came to, and writes that down.
fn recorded(
    arguments: &Check,
    work: impl FnOnce(&Check, &mut Done) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let began = Instant::now();
    let mut done = Done::new("check", None);
    let checked = work(arguments, &mut done);
    done.seconds = began.elapsed().as_secs_f64();
    let done = match &checked {
        _ if !done.verdict.is_empty() => done,
        Ok(_) => done.with("sound", None),
        Err(why) => done.with("failed", Some(&why.to_string())),
    };
    done.record(&arguments.data.folder);
    checked
}

/// The signal that has ended a process because of what it read.
fn killed(status: ExitStatus) -> Option<String> {
    let signal = status.signal()?;
    let name = [(Signal::ABORT, "SIGABRT"), (Signal::BUS, "SIGBUS"), (Signal::SEGV, "SIGSEGV")]
        .into_iter()
        .find(|(known, _)| known.as_raw() == signal);
    Some(name.map_or_else(|| format!("signal {signal}"), |(_, name)| name.to_owned()))
}

/// Checks, in this process.
fn work(arguments: &Check, done: &mut Done) -> Result<bool, Failure> {
    if let Some(instance) = offline::beside_server(&arguments.data.folder)? {
        let advice = "stop the server and check again: then every page is looked at, too";
        done.served = true;
        return compare(arguments, done, instance, advice);
    }
    let folder = offline::folder(&arguments.data.folder)?;
    let inspected = offline::inspect(&folder)?;
    if inspected.places > 0 {
        let places = grouped(inspected.places);
        let why = format!("the store is damaged at {places} places; {}", what_to_do(folder.path()));
        return refuse(arguments, done, &why, &inspected);
    }
    let advice = what_to_do(folder.path());
    // The folder stays locked with what is left of it.
    let Offline { instance, folder: _folder, .. } = offline::open_in(folder)?;
    compare(arguments, done, instance, &advice)
}

/// Compares the parts of a store with each other.
fn compare(
    arguments: &Check,
    done: &mut Done,
    instance: Instance,
    advice: &str,
) -> Result<bool, Failure> {
    let started = Instant::now();
    let tell = &mut |table: &'static str, rows: u64| {
        // Who does not listen any more has gone away.
        let _ = output::write(format_args!("{AT}{table}: after {rows} rows"));
    };
    let folder = &arguments.data.folder;
    let checked = instance.directory.check(tell).map_err(|why| describe(&why));
    let feed = match (&checked, arguments.feed) {
        (Ok(_), true) => Some(feed_check::check(&instance.store, folder, tell)?),
        _ => None,
    };
    let (checked, feed) = match (checked, feed.transpose()) {
        (Ok(checked), Ok(feed)) => (checked, feed),
        (Err(why), _) | (_, Err(why)) => {
            let why = format!("{why}; {advice}");
            return refuse(arguments, done, &why, &Inspected::default());
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    instance.close()?;
    done.entries = Some(checked.entries);
    if arguments.json {
        output::json(&json!({
            "event": "checked",
            "sound": true,
            "entries": checked.entries,
            "postings": checked.postings,
            "seconds": seconds,
            "pages": !done.served,
            "commits": checked.commits,
            "feed": feed.map(|feed| json!({ "first": feed.first, "replayed": feed.is_replayed })),
        }))?;
    } else {
        let pages =
            if done.served { "; a server runs, so that pages were not looked at" } else { "" };
        output::text(format_args!(
            "{} entries and {} index postings fit together{pages}",
            grouped(checked.entries),
            grouped(checked.postings)
        ))?;
        if let Some(feed) = feed {
            output::text(feed)?;
        }
    }
    Ok(true)
}

/// Says what is wrong.
fn refuse(
    arguments: &Check,
    done: &mut Done,
    why: &str,
    inspected: &Inspected,
) -> Result<bool, Failure> {
    *done = std::mem::take(done).with("damaged", Some(why));
    if arguments.json {
        let damage: Vec<_> = inspected.first.iter().map(damage).collect();
        output::json(&json!({
            "event": "checked",
            "sound": false,
            "why": why,
            "places": inspected.places,
            "damage": damage,
        }))?;
        return Ok(false);
    }
    inspected.first.iter().for_each(output::note);
    let untold = inspected.places - inspected.first.len() as u64;
    if untold > 0 {
        output::note(format_args!("and {} more places", grouped(untold)));
    }
    Err(Failure::new(why))
}
/// Damage to a data file, for programs.
pub fn damage(damage: &keyway_store::Damage) -> serde_json::Value {
    json!({
        "table": damage.table,
        "page": damage.page,
        "offset_bytes": damage.offset_bytes,
        "what": damage.what,
    })
}
