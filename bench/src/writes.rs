//! Writes: adds by many clients with the feed of changes, beside a server without it.
//!
//! Both servers are Keyway, synced, on folders of one file system, and serve the same clients by turns; the first one
//! changes from round to round. A commit is one sync: the commits of each add are read from the servers' own
//! counters.

use crate::ldap::{Account, Load, add, drive, keyway, ssha512, write_people};
use crate::report::{Claim, Report};
use keyway_tests::client::Client;
use keyway_tests::{Server, finish};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rate with the feed is at least this part of the one without.
const RATE_MIN: f64 = 0.85;
/// The commits of an add with the feed are at most so many times those without.
const COMMITS_MAX: f64 = 1.1;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// People in each directory at the start
    #[arg(long, default_value_t = 10_000)]
    entries: usize,
    /// Rounds; each measures every number of writers on both servers once
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Numbers of writers, one connection each, one add in flight
    #[arg(long, default_values_t = [1, 32], value_delimiter = ',')]
    writers: Vec<usize>,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// The figures of one server with one number of writers, one of each for a round.
#[derive(Clone, Default)]
struct Figures {
    rate: Vec<f64>,
    cost_us: Vec<f64>,
    commits: Vec<f64>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let ldif = folder.path().join("people.ldif");
    let password = ssha512(&keyway_drivers::engine())?;
    let people = (0..arguments.entries).map(|index| (format!("user{index}"), &password));
    write_people(&ldif, people)?;
    eprintln!("loading {} entries into two servers", arguments.entries);
    let start = |name: &str, off: &[&str]| {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).map_err(|why| format!("{}: {why}", place.display()))?;
        let server = keyway(&place, &ldif, off)?;
        Ok::<_, String>(Side { data: place.join("keyway-data"), server })
    };
    let sides = [start("with", &[])?, start("without", &["enabled"])?];
    let mut figures = vec![[Figures::default(), Figures::default()]; arguments.writers.len()];
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for (writers, figures) in arguments.writers.iter().zip(&mut figures) {
            for turn in 0..2 {
                let which = (round + turn) % 2;
                measure(arguments, &sides[which], *writers, &mut figures[which])?;
            }
        }
    }
    let mut claims = Vec::new();
    for (writers, [with, without]) in arguments.writers.iter().zip(&figures) {
        let title = format!("adds, synced, {writers} writers");
        let peer = "without the feed";
        let mut rate = Claim::rate(&title, "adds/s", &with.rate, peer, &without.rate);
        if *writers > 1 {
            rate = rate.demand(RATE_MIN);
        }
        claims.push(rate);
        let cost = Claim::cost(&title, "us CPU", &with.cost_us, peer, &without.cost_us);
        claims.push(cost.secondary());
        let commits = Claim::cost(&title, "commits an add", &with.commits, peer, &without.commits);
        claims.push(commits.demand(1.0 / COMMITS_MAX));
    }
    let settings = serde_json::json!({
        "entries": arguments.entries, "rounds": arguments.rounds, "seconds": arguments.seconds,
        "writers": arguments.writers,
    });
    let peers = vec!["Keyway without the feed (feed.enabled = false)".into()];
    Report::new("writes", peers, settings, claims, Vec::new()).finish(arguments.json.as_deref())
}

/// A server and its data folder.
struct Side {
    data: PathBuf,
    server: Server,
}

fn measure(
    arguments: &Arguments,
    side: &Side,
    writers: usize,
    figures: &mut Figures,
) -> Result<(), String> {
    let server = &side.server;
    let address = server.address().parse().map_err(|_| "the server's address is none")?;
    let password = server.password();
    let account = Account { address, admin: server.administrator(), password: &password };
    let connect = || {
        let mut client = Client::connect(account.address)?;
        client.bind(account.admin, account.password)?;
        Ok(client)
    };
    let before = [counter(&side.data, "commits")?, counter(&side.data, "changes")?];
    let load = Load { clients: writers, seconds: arguments.seconds };
    let step = |client: &mut Client, _: &mut fastrand::Rng| add(client);
    let driven = drive(load, &server.server_pids(), connect, step, |_| (0, 0))?;
    let after = [counter(&side.data, "commits")?, counter(&side.data, "changes")?];
    let [commits, changes] = [0, 1].map(|which| after[which] - before[which]);
    figures.rate.push(driven.rate);
    figures.cost_us.push(driven.cost_us);
    figures.commits.push(commits / changes.max(1.0));
    Ok(())
}

/// A counter of the store that a folder's server has.
fn counter(data: &Path, name: &str) -> Result<f64, String> {
    let name = format!("keyway_store_{name}_total");
    let mut command = Command::new(keyway_tests::keyway());
    let printed = finish(command.args(["metrics", "--data"]).arg(data), "").expect(0).out;
    let line = printed.lines().find(|line| line.starts_with(&name));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.ok_or_else(|| format!("{name} is not among the metrics"))
}
