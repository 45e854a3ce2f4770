//! Writes: adds and modifications with the feed of changes, beside a server without it, and beside one in relaxed mode.
//!
//! All servers are Keyway, on folders of one file system, and serve the same clients by turns; the first one
//! changes from round to round. A synced commit is one sync: the commits of each add are read from the servers' own
//! counters. In relaxed mode at most a thousand changes, none older than a tenth of a second, are at risk.

use crate::ldap::{Account, Load, SUFFIX, add, drive, keyway, ssha512, write_people};
use crate::report::{Claim, Report};
use keyway_tests::client::Client;
use keyway_tests::{Server, finish};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rate with the feed is at least this part of the one without.
const RATE_MIN: f64 = 0.85;
/// The commits of an add with the feed are at most so many times those without.
const COMMITS_MAX: f64 = 1.1;

/// One writer makes at least so many times as many modifications in relaxed mode.
const RELAXED_MIN: f64 = 3.0;
/// The changes at risk then.
const AT_RISK_MAX: u64 = 1_000;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// People in each directory at the start
    #[arg(long, default_value_t = 10_000)]
    entries: usize,
    /// Rounds; each measures every number of writers on each server once
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

/// A kind of change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A person is added, which changes many pages of indexes.
    Add,
    /// The description of one of the people is replaced, which has no index.
    Modify,
}

impl Kind {
    fn what(self) -> &'static str {
        match self {
            Kind::Add => "adds",
            Kind::Modify => "modifications",
        }
    }
}

/// The figures of one server with one number of writers, one of each for a round.
#[derive(Clone)]
struct Figures {
    rate: Vec<f64>,
    cost_us: Vec<f64>,
    commits: Vec<f64>,
}

impl Figures {
    const fn new() -> Figures {
        Figures { rate: Vec::new(), cost_us: Vec::new(), commits: Vec::new() }
    }
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let ldif = folder.path().join("people.ldif");
    let password = ssha512(&keyway_drivers::engine())?;
    let people = (0..arguments.entries).map(|index| (format!("user{index}"), &password));
    write_people(&ldif, people)?;
    eprintln!("loading {} entries into three servers", arguments.entries);
    let start = |name: &str, off: &[&str]| {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).map_err(|why| format!("{}: {why}", place.display()))?;
        let server = keyway(&place, &ldif, off)?;
        Ok::<_, String>(Side { data: place.join("keyway-data"), server })
    };
    let sides = [start("with", &[])?, start("without", &["enabled"])?, start("relaxed", &[])?];
    relax(&sides[2].data);
    let loads: Vec<(Kind, usize)> = [Kind::Add, Kind::Modify]
        .iter()
        .flat_map(|kind| arguments.writers.iter().map(|writers| (*kind, *writers)))
        .collect();
    let mut figures = vec![[const { Figures::new() }; 3]; loads.len()];
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for (load, figures) in loads.iter().zip(&mut figures) {
            for turn in 0..3 {
                let which = (round + turn) % 3;
                measure(arguments, &sides[which], *load, &mut figures[which])?;
            }
        }
    }
    let mut claims = Vec::new();
    for ((kind, writers), [with, without, relaxed]) in loads.iter().zip(&figures) {
        let what = kind.what();
        let title = format!("{what}, synced, {writers} writers");
        let peer = "without the feed";
        let mut rate = Claim::rate(&title, "a second", &with.rate, peer, &without.rate);
        if *writers > 1 {
            rate = rate.demand(RATE_MIN);
        }
        claims.push(rate);
        let cost = Claim::cost(&title, "us CPU", &with.cost_us, peer, &without.cost_us);
        claims.push(cost.secondary());
        let commits = Claim::cost(&title, "commits each", &with.commits, peer, &without.commits);
        claims.push(commits.demand(1.0 / COMMITS_MAX));
        let title = format!("{what}, relaxed, {writers} writers");
        let peer = "synced";
        let mut rate = Claim::rate(&title, "a second", &relaxed.rate, peer, &with.rate);
        if (*kind, *writers) == (Kind::Modify, 1) {
            rate = rate.demand(RELAXED_MIN);
        }
        claims.push(rate);
        let cost = Claim::cost(&title, "us CPU", &relaxed.cost_us, peer, &with.cost_us);
        claims.push(cost.secondary());
    }
    let settings = serde_json::json!({
        "entries": arguments.entries, "rounds": arguments.rounds, "seconds": arguments.seconds,
        "writers": arguments.writers,
    });
    let peers = vec![
        "Keyway without the feed (feed.enabled = false)".into(),
        "Keyway, synced, as it is by default".into(),
    ];
    Report::new("writes", peers, settings, claims, Vec::new()).finish(arguments.json.as_deref())
}

/// Begins relaxed mode in a running server.
fn relax(data: &Path) {
    let mut command = Command::new(keyway_tests::keyway());
    command.args(["config", "set"]).arg(format!("relaxed.changes_max={AT_RISK_MAX}"));
    finish(command.arg("--data").arg(data), "").expect(0);
}

/// A server and its data folder.
struct Side {
    data: PathBuf,
    server: Server,
}

fn measure(
    arguments: &Arguments,
    side: &Side,
    (kind, writers): (Kind, usize),
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
    let people = arguments.entries;
    let step = |client: &mut Client, random: &mut fastrand::Rng| match kind {
        Kind::Add => add(client),
        Kind::Modify => {
            let dn = format!("uid=user{},ou=People,{SUFFIX}", random.usize(..people));
            client.replace_values(&dn, "description", &[&random.u64(..).to_string()])
        }
    };
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
