//! `keyway load` beside UnboundID's searchrate: what an operation costs the client.
//!
//! Both search the same Keyway server for one person by name, over the same number of connections,
//! first with one request in flight on each, then with many. Each runs for itself until it is warm;
//! then its processor time between the lines that it prints is divided by the operations in them.

use super::measured::{self, Run};
use super::{Arguments, maven};
use crate::ldap::{PASSWORD, SUFFIX, keyway, ssha512, write_people};
use crate::process::Process;
use crate::report::{Claim, Findings, Table, median};
use keyway_tests::Server;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that it is compared with.
pub const PEER: &str = "UnboundID searchrate 7.0.3";
const ARTIFACT: &str = "com.unboundid:unboundid-ldapsdk:7.0.3";
/// People in the directory, and connections to it.
const PEOPLE: u64 = 10_000;
const CONNECTIONS: u64 = 8;
/// Seconds until Java has compiled what it does often.
const WARM_UP: usize = 4;
/// Most microseconds an operation with one in flight on a connection, and of the peer's.
const ONE_US: f64 = 15.0;
const ONE_OF_PEER: f64 = 0.65;
/// In flight on a connection where there are many, and most microseconds an operation then.
const MANY: u64 = 16;
const MANY_US: f64 = 3.0;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let class_path = maven::class_path(ARTIFACT)?;
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let site = Site::new(folder.path(), class_path)?;
    let seconds = arguments.seconds as usize;
    let mut one = (Vec::new(), Vec::new());
    let mut many = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        one.0.push(ours(site.load(1)?, seconds)?);
        one.1.push(theirs(site.searchrate(1), seconds)?);
        many.0.push(ours(site.load(MANY)?, seconds)?);
        many.1.push(theirs(site.searchrate(MANY), seconds)?);
    }
    let cost = |runs: &[Run]| runs.iter().map(|run| run.cost_us).collect::<Vec<_>>();
    let (first, second) = ("load, one in flight", "load, 16 in flight");
    let claims = vec![
        Claim::cost(first, "us CPU", &cost(&one.0), PEER, &cost(&one.1)).demand(1.0 / ONE_OF_PEER),
        Claim::at_most(first, "us CPU", &cost(&one.0), ONE_US),
        Claim::at_most(second, "us CPU", &cost(&many.0), MANY_US),
        Claim::cost(second, "us CPU", &cost(&many.0), PEER, &cost(&many.1)).secondary(),
    ];
    let mut table = Table::new("the same runs, operations a second", &["", "Keyway", "peer"]);
    let rate = |runs: &[Run]| {
        format!("{:.0}", median(&runs.iter().map(|run| run.rate).collect::<Vec<_>>()))
    };
    table.rows.push(vec!["one in flight".into(), rate(&one.0), rate(&one.1)]);
    table.rows.push(vec!["16 in flight".into(), rate(&many.0), rate(&many.1)]);
    Ok(Findings { claims, tables: vec![table] })
}

/// A server with people, and those who ask it.
pub struct Site<'f> {
    folder: &'f Path,
    server: Server,
    class_path: String,
}

impl Site<'_> {
    pub fn new(folder: &Path, class_path: String) -> Result<Site<'_>, String> {
        let ldif = folder.join("people.ldif");
        let password = ssha512(&keyway_drivers::engine())?;
        write_people(&ldif, (0..PEOPLE).map(|index| (format!("user.{index}"), &password)))?;
        let server = keyway(folder, &ldif, &[])?;
        fs::write(folder.join("password"), PASSWORD).map_err(|why| why.to_string())?;
        Ok(Site { folder, server, class_path })
    }

    /// Who asks: others may not search.
    fn user() -> String {
        format!("uid=user.0,ou=People,{SUFFIX}")
    }

    /// Where the server is.
    pub fn address(&self) -> &str {
        self.server.address()
    }

    fn load(&self, in_flight: u64) -> Result<Command, String> {
        self.load_through(self.server.ldap(), in_flight)
    }

    /// Searches for people without an end, at this URL.
    pub fn load_through(&self, url: &str, in_flight: u64) -> Result<Command, String> {
        let scenario = format!(
            "[target]\nurls = [\"{}\"]\nbase = \"{SUFFIX}\"\n\
             [data]\nuser = {{ range = [0, {}] }}\n\
             [connections]\ncount = {CONNECTIONS}\nin_flight = {in_flight}\n\
             bind = {{ dn = \"{}\", password_file = \"password\" }}\n\
             [[phase]]\nfor = \"1h\"\n\
             [[job]]\nname = \"search\"\nsteps = [{{ search = {{ filter = \"(uid=user.{{user}})\", \
             expect = {{ entries = 1 }} }} }}]\n",
            url,
            PEOPLE - 1,
            Self::user(),
        );
        let file = self.path("load.toml");
        fs::write(&file, scenario).map_err(|why| why.to_string())?;
        let mut command = Command::new(keyway_tests::keyway());
        command.args(["load", "run"]).arg(file);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(command)
    }

    fn searchrate(&self, in_flight: u64) -> Command {
        let mut command = Command::new("java");
        let (host, port) = self.server.address().rsplit_once(':').unwrap_or_default();
        command.args(["-cp", &self.class_path, "com.unboundid.ldap.sdk.examples.SearchRate"]);
        command.args(["--hostname", host, "--port", port, "--bindDN", &Self::user()]);
        command.arg("--bindPasswordFile").arg(self.path("password"));
        command.args(["--baseDN", SUFFIX, "--filter"]);
        command.arg(format!("(uid=user.[0-{}])", PEOPLE - 1));
        command.args(["--numThreads", &CONNECTIONS.to_string(), "--intervalDuration", "1"]);
        command.args(["--csv", "--suppressErrorResultCodes"]);
        if in_flight > 1 {
            let outstanding = in_flight * CONNECTIONS;
            command.args(["--asynchronous", "--maxOutstandingRequests", &outstanding.to_string()]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn ours(command: Command, seconds: usize) -> Result<Run, String> {
    run(command, seconds, done)
}

/// How many sequences were done in the second of a line that `keyway load` prints, if it is one.
pub fn done(line: &str) -> Option<f64> {
    // The time, starts that came due, sequences that were done, errors, ..
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, done, errors, ..] = words[..] else { return None };
    (errors == "0").then(|| done.replace(',', "").parse().ok())?
}

fn theirs(command: Command, seconds: usize) -> Result<Run, String> {
    // A line has searches a second, milliseconds and entries of one, errors a second, ..
    let done = |line: &str| -> Option<f64> {
        let words: Vec<&str> = line.split(',').collect();
        let [rate, _, _, errors, ..] = words[..] else { return None };
        (errors.parse() == Ok(0.0)).then(|| rate.parse().ok())?
    };
    run(command, seconds, done)
}

/// Runs a client until it is warm and then for so many seconds. It prints a line a second, of which
/// `done` says how many operations it had.
fn run(
    mut command: Command,
    seconds: usize,
    done: impl Fn(&str) -> Option<f64>,
) -> Result<Run, String> {
    let mut process = Process::start(&mut command)?;
    let child = process.child();
    let lines: Box<dyn Read> = match (child.stdout.take(), child.stderr.take()) {
        (Some(out), _) => Box::new(out),
        (None, Some(err)) => Box::new(err),
        _ => return Err("it has no output".into()),
    };
    measured::run(lines, process.id(), (WARM_UP, seconds), done)
        .map_err(|why| format!("{command:?}: {why}"))
}
