//! Several servers of one directory: searches of three beside one, changes through etcd beside slapd, and how far a
//! follower is behind.
//!
//! All servers run on this machine, on folders of one file system, and every change is synced by all of them. The
//! clients of three servers are spread over them evenly; those of one all ask the writer, while its followers idle.
//! On a machine with few cores, three servers are no faster than one: read the ratio beside their number.

mod lag;
mod servers;

use crate::ldap::{
    Account, Load, PASSWORD, SLAPD_ADMIN, SUFFIX, add, drive, ssha512, write_people,
};
use crate::report::{Claim, Report, Table, median};
use crate::slapd::{self, Slapd};
use keyway_tests::client::Client;
use keyway_tests::etcd::{self, Etcd};
use lag::Lag;
use servers::Cluster;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Servers that share the clients.
const SERVERS: usize = 3;
/// Changes through etcd are at least so many times those of slapd.
const WRITES_MIN: f64 = 5.0;
/// Changes a second at which the lag is measured, and the most that it may be, in milliseconds.
const LAG_RATE: f64 = 500.0;
const LAG_MS_MAX: f64 = 100.0;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// People in the directory at the start
    #[arg(long, default_value_t = 20_000)]
    entries: usize,
    /// Rounds; each measures everything once
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Connections that search
    #[arg(long, default_value_t = 24)]
    clients: usize,
    /// Connections that write, one add in flight
    #[arg(long, default_value_t = 32)]
    writers: usize,
    /// Members of etcd
    #[arg(long, default_value_t = 3)]
    etcd: usize,
    /// Once, with 200 people and half a second a measurement, to see that it runs
    #[arg(long)]
    quick: bool,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Arguments {
    fn size(&self) -> (usize, usize, f64) {
        if self.quick { (200, 1, 0.5) } else { (self.entries, self.rounds, self.seconds) }
    }
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let (entries, rounds, seconds) = arguments.size();
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let ldif = folder.path().join("people.ldif");
    let password = ssha512(&keyway_drivers::engine())?;
    write_people(&ldif, (0..entries).map(|index| (format!("user{index}"), &password)))?;
    eprintln!("starting {SERVERS} servers with {entries} entries");
    let cluster = Cluster::start(&folder.path().join("feed"), &ldif, SERVERS, None)?;
    let (mut three, mut one, mut lags) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("searches and lag, round {} of {rounds}", round + 1);
        let load = Load { clients: arguments.clients, seconds };
        for turn in 0..2 {
            match (round + turn) % 2 {
                0 => three.push(searches(&cluster, SERVERS, load, entries)?),
                _ => one.push(searches(&cluster, 1, load, entries)?),
            }
        }
        lags.push(lag::measure(&cluster, LAG_RATE, seconds)?);
    }
    drop(cluster);
    let title = format!("search, {} clients of {SERVERS} servers", arguments.clients);
    let mut claims = vec![Claim::rate(&title, "searches/s", &three, "one server", &one)];
    let p99: Vec<f64> = lags.iter().map(|lag| lag.percentile(0.99)).collect();
    let title = format!("lag at {LAG_RATE} changes/s, p99");
    claims.push(Claim::at_most(&title, "ms", &p99, LAG_MS_MAX));
    let mut peers = vec![format!("one of the {SERVERS} servers alone")];
    if etcd::program().exists() {
        peers.push(slapd::version()?);
        claims.push(writes(arguments, folder.path(), &ldif)?);
    } else {
        eprintln!("no etcd, so changes through it are not measured: cargo xtask test builds it");
    }
    let settings = serde_json::json!({
        "entries": entries, "rounds": rounds, "seconds": seconds, "clients": arguments.clients,
        "writers": arguments.writers, "etcd": arguments.etcd,
    });
    let report = Report::new("cluster", peers, settings, claims, vec![lag_table(&lags)]);
    report.finish(arguments.json.as_deref())
}

/// Searches a second, by clients that are spread over the first servers.
fn searches(cluster: &Cluster, servers: usize, load: Load, entries: usize) -> Result<f64, String> {
    let next = AtomicUsize::new(0);
    let connect = || cluster.connect(next.fetch_add(1, Ordering::Relaxed) % servers);
    let step = |client: &mut Client, random: &mut fastrand::Rng| match client.search(
        SUFFIX,
        "uid",
        &format!("user{}", random.usize(..entries)),
    )? {
        1 => Ok(()),
        found => Err(format!("{found} entries were found, and not one")),
    };
    Ok(drive(load, &cluster.processes(), connect, step, |_| (0, 0))?.rate)
}

/// Adds a second through etcd, beside those of slapd.
fn writes(arguments: &Arguments, folder: &Path, ldif: &Path) -> Result<Claim, String> {
    let (_, rounds, seconds) = arguments.size();
    let members = arguments.etcd;
    eprintln!("starting etcd with {members} members, two servers and slapd");
    let etcd = Etcd::start(members);
    let cluster = Cluster::start(&folder.join("etcd"), ldif, 2, Some(&etcd))?;
    let peer = Slapd::start(folder, ldif, SLAPD_ADMIN, PASSWORD, None)?;
    let account = Account { address: peer.address, admin: SLAPD_ADMIN, password: PASSWORD };
    let of_slapd = || {
        let mut client = Client::connect(account.address)?;
        client.bind(account.admin, account.password)?;
        Ok(client)
    };
    let load = Load { clients: arguments.writers, seconds };
    let step = |client: &mut Client, _: &mut fastrand::Rng| add(client);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("changes, round {} of {rounds}", round + 1);
        for turn in 0..2 {
            match (round + turn) % 2 {
                0 => {
                    let processes = cluster.processes();
                    let driven = drive(load, &processes, || cluster.connect(0), step, |_| (0, 0))?;
                    ours.push(driven.rate);
                }
                _ => {
                    let driven = drive(load, &[peer.process.id()], of_slapd, step, |_| (0, 0))?;
                    theirs.push(driven.rate);
                }
            }
        }
    }
    let title = format!("adds through etcd, {} writers", arguments.writers);
    Ok(Claim::rate(&title, "adds/s", &ours, "slapd, synced", &theirs).demand(WRITES_MIN))
}

/// The median of each percentile, and the rate that was reached.
fn lag_table(lags: &[Lag]) -> Table {
    let mut table =
        Table::new("Lag of a follower, ms", &["changes/s", "looks", "p50", "p99", "most"]);
    let of = |figure: &dyn Fn(&Lag) -> f64| median(&lags.iter().map(figure).collect::<Vec<_>>());
    let looks: usize = lags.iter().map(|lag| lag.times_ms.len()).sum();
    let times = [0.5, 0.99, 1.0].map(|part| format!("{:.1}", of(&|lag| lag.percentile(part))));
    let mut row = vec![format!("{:.0}", of(&|lag| lag.rate)), looks.to_string()];
    row.extend(times);
    table.rows.push(row);
    table
}
