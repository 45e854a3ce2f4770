//! The cost of binds against Argon2id to the server: the first of each person, and those that follow.
//!
//! In each round a number of people who are new to the server bind once each; then they bind again and
//! again, four of five times one of the first fifth; then as many others do the same whose passwords are
//! stored as {SSHA512}. The report is the server's processor time a bind.

use crate::ldap::{PASSWORD, SUFFIX, argon2id, keyway, ssha512, write_people};
use crate::process::processor_time;
use crate::report::{Claim, Report, Table, median};
use keyway_tests::client::Client;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// How many times the processor time of a bind with {SSHA512} a repeated one may cost.
const REPEAT_MOST: f64 = 1.3;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// People who bind in one round, with either kind of password
    #[arg(long, default_value_t = 100)]
    people: u64,
    /// Rounds, each with other people
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Seconds of repeated binds in a round, with either kind
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Client threads, one connection each, one bind in flight
    #[arg(long, default_value_t = 4)]
    clients: u64,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments { people, rounds, seconds, clients, .. } = *arguments;
    let (people, clients) = (people.max(5), clients.max(1));
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let ldif = folder.path().join("people.ldif");
    let engine = keyway_drivers::engine();
    let (slow, fast) = (argon2id(&engine)?, ssha512(&engine)?);
    let both = (0..rounds * people)
        .flat_map(|index| [(format!("slow{index}"), &slow), (format!("fast{index}"), &fast)]);
    write_people(&ldif, both)?;
    let server = keyway(folder.path(), &ldif, &["upgrade"])?;
    let address = server.address().parse().map_err(|_| "the server's address is none")?;
    let bench = Bench { address, processes: server.server_pids(), clients };
    let [mut first, mut rate, mut again, mut fast, mut hash] = [(); 5].map(|()| Vec::new());
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        hash.push(hash_us(&engine)?);
        let offset = round * people;
        let once = |client, turn: u64| {
            let index = turn * clients + client;
            (index < people).then(|| format!("slow{}", offset + index))
        };
        let (cost, a_second) = bench.binds(&once)?;
        first.push(cost);
        rate.push(a_second);
        // The one that comes first is the other one in the next round.
        let mut kinds = [("slow", &mut again), ("fast", &mut fast)];
        kinds.rotate_left(round as usize % 2);
        for (kind, costs) in kinds {
            let end = Instant::now() + Duration::from_secs_f64(seconds);
            let pattern = |client, turn| {
                let mut random = fastrand::Rng::with_seed((client + 1) << 32 | (turn + 1));
                let hot = random.u64(..5) < 4;
                let (low, count) = if hot { (0, people / 5) } else { (people / 5, people * 4 / 5) };
                let index = low + random.u64(..count);
                (Instant::now() < end).then(|| format!("{kind}{}", offset + index))
            };
            costs.push(bench.binds(&pattern)?.0);
        }
    }
    let claims = vec![
        Claim::cost("first bind, Argon2id 19 MiB t=2", "us CPU", &first, "the hash alone", &hash),
        Claim::cost("bind again, Argon2id, 80/20", "us CPU", &again, "{SSHA512}, 80/20", &fast)
            .demand(1.0 / REPEAT_MOST),
    ];
    let mut table = Table::new("the effect of the memory", &["", "binds a second of CPU"]);
    for (name, costs) in [("first", &first), ("again", &again), ("{SSHA512}", &fast)] {
        table.rows.push(vec![name.into(), format!("{:.0}", 1e6 / median(costs))]);
    }
    table.rows.push(vec!["first, by the clock".into(), format!("{:.0}", median(&rate))]);
    let settings = serde_json::json!({
        "people": people, "rounds": rounds, "seconds": seconds, "clients": clients,
    });
    let peers = vec!["{SSHA512} on the same server".into(), "Argon2id in this process".into()];
    Report::new("binds", peers, settings, claims, vec![table]).finish(arguments.json.as_deref())
}

/// Processor time of one derivation in this process, in microseconds.
fn hash_us(engine: &keyway_engine::Engine) -> Result<f64, String> {
    const TIMES: u32 = 10;
    let before = processor_time(&[std::process::id()]);
    for _ in 0..TIMES {
        argon2id(engine)?;
    }
    let spent = processor_time(&[std::process::id()]).saturating_sub(before);
    Ok(spent.as_secs_f64() * 1e6 / f64::from(TIMES))
}

/// A server and those who bind to it.
struct Bench {
    address: SocketAddr,
    processes: Vec<u32>,
    clients: u64,
}

impl Bench {
    /// Lets each client bind as the person that `who` names for its number and its turn, until it names
    /// none. Returns the server's processor time a bind in microseconds, and binds a second.
    fn binds(
        &self,
        who: &(dyn Fn(u64, u64) -> Option<String> + Sync),
    ) -> Result<(f64, f64), String> {
        let clients = (0..self.clients).map(|_| Client::connect(self.address));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let (before, begun) = (processor_time(&self.processes), Instant::now());
        let work = |(number, mut client): (u64, Client)| {
            let mut turn = 0;
            while let Some(uid) = who(number, turn) {
                client.bind(&format!("uid={uid},ou=People,{SUFFIX}"), PASSWORD)?;
                turn += 1;
            }
            // The connection is handed back, so that it closes after the time was read.
            Ok::<_, String>((turn, client))
        };
        let ended: Vec<Result<(u64, Client), String>> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..).zip(clients).map(|client| scope.spawn(move || work(client))).collect();
            let panicked = |_| Err("a client panicked".into());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        let spent = processor_time(&self.processes).saturating_sub(before).as_secs_f64();
        let took = begun.elapsed().as_secs_f64();
        let ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
        let binds = ended.iter().map(|(turns, _)| *turns).sum::<u64>().max(1) as f64;
        Ok((spent * 1e6 / binds, binds / took))
    }
}
