//! The directory as it stands: what a search, a bind and an add cost the server.
//!
//! Keyway, slapd (back-mdb, synced) and a bare TCP echo of equally sized messages serve the same client
//! over loopback without TLS, one after the other in every round; the first one changes from round to
//! round. The report is the server process's processor time an operation.

use crate::echo::{Echo, EchoClient};
use crate::ldap::{
    Account, Driven, Load, PASSWORD, SLAPD_ADMIN, SUFFIX, Sizes, add, argon2id, drive, keyway,
    ssha512, write_people,
};
use crate::report::{Claim, Report};
use crate::slapd::{self, Slapd};
use fastrand::Rng;
use keyway_tests::Server;
use keyway_tests::client::Client;
use std::path::{Path, PathBuf};

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// People in the directory
    #[arg(long, default_value_t = 10_000)]
    entries: usize,
    /// Rounds; each measures every operation on every server once
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Client threads, one connection each, one operation in flight
    #[arg(long, default_value_t = 4)]
    clients: usize,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Arguments {
    fn load(&self) -> Load {
        Load { clients: self.clients, seconds: self.seconds }
    }
}

/// An operation that is measured.
#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Search,
    BindSsha512,
    BindArgon2id,
    Add,
}

impl Operation {
    const ALL: [Operation; 4] =
        [Operation::Search, Operation::BindSsha512, Operation::BindArgon2id, Operation::Add];

    fn claim(self) -> &'static str {
        match self {
            Operation::Search => "search, one entry by uid",
            Operation::BindSsha512 => "bind, {SSHA512}",
            Operation::BindArgon2id => "bind, Argon2id 19 MiB t=2",
            Operation::Add => "add, synced",
        }
    }
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let peers = vec![slapd::version()?, "TCP echo, thread a connection".into()];
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let ldif = folder.path().join("people.ldif");
    write_ldif(&ldif, arguments.entries)?;
    eprintln!("loading {} entries into Keyway and slapd", arguments.entries);
    let servers = Servers {
        // A bind is to cost its hash.
        keyway: keyway(folder.path(), &ldif, &["upgrade", "remember"])?,
        slapd: Slapd::start(folder.path(), &ldif, SLAPD_ADMIN, PASSWORD, None)?,
        echo: Echo::start()?,
    };
    let claims = measure(arguments, &servers)?;
    let settings = serde_json::json!({
        "entries": arguments.entries, "rounds": arguments.rounds,
        "seconds": arguments.seconds, "clients": arguments.clients,
    });
    Report::new("skeleton", peers, settings, claims, Vec::new()).finish(arguments.json.as_deref())
}

struct Servers {
    keyway: Server,
    slapd: Slapd,
    echo: Echo,
}

/// One server's figures for one operation, a round each, in microseconds.
#[derive(Default)]
struct Figures {
    keyway: Vec<f64>,
    slapd: Vec<f64>,
    echo: Vec<f64>,
}

fn measure(arguments: &Arguments, servers: &Servers) -> Result<Vec<Claim>, String> {
    let mut figures: Vec<Figures> = Operation::ALL.iter().map(|_| Figures::default()).collect();
    let keyway = Account {
        address: servers.keyway.address().parse().map_err(|_| "Keyway's address is none")?,
        admin: servers.keyway.administrator(),
        password: &servers.keyway.password(),
    };
    let slapd = Account { address: servers.slapd.address, admin: SLAPD_ADMIN, password: PASSWORD };
    // The sizes of the echo's messages: known once Keyway had its first turn.
    let mut sizes = [None; Operation::ALL.len()];
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            let figures = &mut figures[index];
            // Keyway is the first of the first round, slapd of the second, the echo of the third.
            for turn in 0..3 {
                match (round + turn) % 3 {
                    0 => {
                        let processes = servers.keyway.server_pids();
                        let driven = ldap(arguments, operation, &processes, &keyway)?;
                        figures.keyway.push(driven.cost_us);
                        sizes[index] = Some(driven.sizes);
                    }
                    1 => {
                        let processes = [servers.slapd.process.id()];
                        figures.slapd.push(ldap(arguments, operation, &processes, &slapd)?.cost_us);
                    }
                    _ => {
                        let sizes = sizes[index].ok_or("the echo's sizes are not known yet")?;
                        figures.echo.push(echo(arguments, &servers.echo, sizes)?);
                    }
                }
            }
        }
    }
    let mut claims = Vec::new();
    for (operation, figures) in Operation::ALL.into_iter().zip(&figures) {
        let claim = operation.claim();
        claims.push(Claim::cost(claim, "us CPU", &figures.keyway, "slapd", &figures.slapd));
        claims.push(Claim::cost(claim, "us CPU", &figures.keyway, "TCP echo", &figures.echo));
    }
    Ok(claims)
}

fn ldap(
    arguments: &Arguments,
    operation: Operation,
    processes: &[u32],
    account: &Account<'_>,
) -> Result<Driven, String> {
    let connect = || {
        let mut client = Client::connect(account.address)?;
        client.bind(account.admin, account.password)?;
        Ok(client)
    };
    let entries = arguments.entries as u64;
    let step = move |client: &mut Client, random: &mut Rng| {
        let uid = format!("user{}", random.u64(..entries));
        match operation {
            Operation::Search => match client.search(SUFFIX, "uid", &uid)? {
                1 => Ok(()),
                found => Err(format!("{found} entries with uid={uid}")),
            },
            Operation::BindSsha512 => {
                client.bind(&format!("uid={uid},ou=People,{SUFFIX}"), PASSWORD)
            }
            Operation::BindArgon2id => {
                client.bind(&format!("uid=argon,ou=People,{SUFFIX}"), PASSWORD)
            }
            Operation::Add => add(client),
        }
    };
    drive(arguments.load(), processes, connect, step, |client| {
        (client.request_bytes, client.answer_bytes)
    })
}

fn echo(arguments: &Arguments, echo: &Echo, (request, answer): Sizes) -> Result<f64, String> {
    let connect = || EchoClient::connect(echo.address, request, answer);
    let step = |client: &mut EchoClient, _: &mut Rng| client.exchange();
    Ok(drive(arguments.load(), &[echo.process.id()], connect, step, |_| (request, answer))?.cost_us)
}

fn write_ldif(path: &Path, entries: usize) -> Result<(), String> {
    let engine = keyway_drivers::engine();
    let ssha512 = ssha512(&engine)?;
    let argon2id = argon2id(&engine)?;
    let users = (0..entries).map(|index| (format!("user{index}"), &ssha512));
    write_people(path, users.chain([("argon".to_owned(), &argon2id)]))
}
