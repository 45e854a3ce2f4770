//! The directory at a size: what its operations cost the server with 250,000 people.
//!
//! Keyway, slapd (back-mdb, synced, no log) and, where it is installed, 389 Directory Server serve the
//! same client over loopback, and a bare TCP echo messages of the same sizes, by turns in every round.
//! The choice of entries follows the 80/20 pattern. The report is the server process's processor time an
//! operation, and for throughput operations a second, the client being on the same processors unless it says otherwise.

mod apart;
mod common;
mod groups;
mod idle;
mod import;
mod tls;

use crate::echo::{Echo, EchoClient};
use crate::ldap::{
    Account, Driven, Load, PASSWORD, SLAPD_ADMIN, SUFFIX, Sizes, add, drive, keyway, ssha512,
    write_people,
};
use crate::report::{Claim, Report, Table, median};
use crate::slapd::{self, Slapd};
use common::{address, anonymous_mib, dn, keyway_account, slapd_account, uid};
use fastrand::Rng;
use keyway_tests::Server;
use keyway_tests::client::Client;
use keyway_tests::dirsrv::{self, Dirsrv};
use std::path::PathBuf;

/// Connections of those who ask, one after the other.
const CLIENTS: [usize; 3] = [1, 4, 16];
/// How many searches are in flight on a connection, where there are more than one.
const IN_FLIGHT: usize = 16;
/// How many entries a search for the beginning of a uid returns: uids have six digits, and four are
/// given.
const PREFIX_FINDS: usize = 100;
/// The most that each of these may cost, in us.
const IN_FLIGHT_US_MAX: f64 = 6.0;
/// Most memory beside the map, in MiB.
const MEMORY_MIB_MAX: f64 = 100.0;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// People in the directory
    #[arg(long, default_value_t = 250_000)]
    entries: usize,
    /// People in the import that is timed; 0: none is
    #[arg(long, default_value_t = 1_000_000)]
    import: usize,
    /// Idle connections whose memory is measured; 0: none are
    #[arg(long, default_value_t = 9_900)]
    idle: usize,
    /// Rounds; each measures every operation on every server once
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only the measurements whose name has this in it
    #[arg(long)]
    only: Option<String>,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// An operation that is measured.
#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Search,
    Base,
    Bind,
    Compare,
    Authentication,
    Pipelined,
    Prefix,
    All,
    Add,
    NewTls,
}

/// An operation under a number of clients, and what is demanded of it.
#[derive(Clone, Copy)]
struct Measurement {
    operation: Operation,
    name: &'static str,
    clients: usize,
    /// Server and clients have a core each.
    is_apart: bool,
    /// The most it may cost of what it costs slapd.
    most: f64,
    /// The most that it may take of the echo's time.
    most_of_echo: Option<f64>,
}

fn measurements(only: Option<&str>) -> Vec<Measurement> {
    // For one client, which sleeps and wakes each time whatever the server does, and for many.
    let many = [
        (Operation::Search, "search, one entry by uid", [0.65, 0.35]),
        (Operation::Base, "base search", [0.65, 0.35]),
        (Operation::Bind, "bind, {SSHA512}", [0.65, 0.35]),
        (Operation::Compare, "compare", [0.65, 0.35]),
        (Operation::Authentication, "authentication: search and bind", [0.7, 0.38]),
    ];
    let many = many.into_iter().flat_map(|(operation, name, [of_one, of_many])| {
        CLIENTS.map(|clients| Measurement {
            operation,
            name,
            clients,
            is_apart: false,
            most: if clients == 1 { of_one } else { of_many },
            most_of_echo: Some(1.5),
        })
    });
    let one = |operation, name, clients, most| Measurement {
        operation,
        name,
        clients,
        is_apart: false,
        most,
        most_of_echo: None,
    };
    let apart = |operation, name, clients, most| Measurement {
        is_apart: true,
        ..one(operation, name, clients, most)
    };
    let elsewhere = [
        apart(Operation::Search, "search, one entry by uid, clients on another core", 4, 0.45),
        apart(Operation::Search, "search, one entry by uid, clients on another core", 16, 0.55),
        apart(Operation::Pipelined, "search, 16 in flight, clients on another core", 2, 0.35),
    ];
    let elsewhere = elsewhere.into_iter().filter(|_| apart::is_possible());
    let others = [
        one(Operation::Pipelined, "search, 16 in flight a connection", 4, 0.35),
        one(Operation::Prefix, "search for a prefix, 100 entries", 4, 0.5),
        one(Operation::All, "export of all in one search", 1, 0.5),
        one(Operation::Add, "add, synced", 16, 0.15),
        one(Operation::NewTls, "new TLS 1.3 connection and bind", 4, 0.7),
    ];
    many.chain(elsewhere)
        .chain(others)
        .filter(|it| only.is_none_or(|only| it.name.contains(only)))
        .collect()
}

impl Measurement {
    fn claim(&self) -> String {
        format!("{}, {} clients", self.name, self.clients)
    }
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    idle::allow_many_files();
    let mut peers = vec![slapd::version()?, "TCP echo, thread a connection".into()];
    let dirsrv = dirsrv::version();
    peers.extend(dirsrv.clone());
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let ldif = folder.path().join("people.ldif");
    let password = ssha512(&keyway_drivers::engine())?;
    write_people(&ldif, (0..arguments.entries).map(|index| (uid(index), &password)))?;
    eprintln!("loading {} entries into Keyway and its peers", arguments.entries);
    let identity = tls::Identity::make(folder.path())?;
    let servers = Servers {
        // A bind is to cost its hash.
        keyway: keyway(folder.path(), &ldif, &["upgrade", "remember"])?,
        slapd: Slapd::start(
            folder.path(),
            &ldif,
            SLAPD_ADMIN,
            PASSWORD,
            Some((&identity.certificate, &identity.key)),
        )?,
        // It is one more to look at: what keeps it from starting is said, and the others are measured.
        dirsrv: dirsrv.and_then(|_| {
            let started = Dirsrv::start(folder.path(), &ldif, &password);
            started.inspect_err(|why| eprintln!("389-ds is left out: {why}")).ok()
        }),
        echo: Echo::start()?,
    };
    let bench = Bench { arguments, servers: &servers, slapd_ca: identity.certificate };
    let mut findings = bench.measure()?;
    drop(servers);
    if arguments.only.as_deref().is_none_or(|only| groups::NAME.contains(only)) {
        findings.0.extend(groups::measure(folder.path(), arguments.rounds, arguments.seconds)?);
    }
    if arguments.import > 0 {
        let claims = import::measure(folder.path(), arguments.import, &password)?;
        findings.0.extend(claims);
    }
    let settings = serde_json::json!({
        "entries": arguments.entries, "rounds": arguments.rounds, "import": arguments.import,
        "seconds": arguments.seconds,
    });
    let (claims, table) = findings;
    Report::new("directory", peers, settings, claims, vec![table]).finish(arguments.json.as_deref())
}

struct Servers {
    keyway: Server,
    slapd: Slapd,
    dirsrv: Option<Dirsrv>,
    echo: Echo,
}

/// One server's figures for one measurement, a round each.
#[derive(Default)]
struct Figures {
    keyway: Vec<Driven>,
    slapd: Vec<Driven>,
    dirsrv: Vec<Driven>,
    echo: Vec<Driven>,
}

struct Bench<'a> {
    arguments: &'a Arguments,
    servers: &'a Servers,
    slapd_ca: PathBuf,
}

impl Bench<'_> {
    fn measure(&self) -> Result<(Vec<Claim>, Table), String> {
        let measurements = measurements(self.arguments.only.as_deref());
        let mut figures: Vec<Figures> = measurements.iter().map(|_| Figures::default()).collect();
        for round in 0..self.arguments.rounds {
            for (measurement, figures) in measurements.iter().zip(&mut figures) {
                eprintln!("round {}: {}", round + 1, measurement.claim());
                self.round(round, measurement, figures)?;
            }
        }
        let mut claims = Vec::new();
        for (measurement, figures) in measurements.iter().zip(&figures) {
            figures.claim(measurement, &mut claims);
        }
        claims.extend(pipelining(&measurements, &figures));
        let process = self.servers.keyway.server_pid();
        let memory = [anonymous_mib(process)?];
        claims.push(Claim::at_most("memory beside the map", "MiB", &memory, MEMORY_MIB_MAX));
        claims.extend(self.idle()?);
        Ok((claims, rates(&measurements, &figures)))
    }

    /// Keyway is the first of the first round, slapd of the second, and so on.
    fn round(
        &self,
        round: usize,
        measurement: &Measurement,
        figures: &mut Figures,
    ) -> Result<(), String> {
        for turn in 0..4 {
            match (round + turn) % 4 {
                0 => figures.keyway.push(self.keyway(measurement)?),
                1 => figures.slapd.push(self.slapd(measurement)?),
                2 => figures.dirsrv.extend(self.dirsrv(measurement)?),
                _ if measurement.most_of_echo.is_none() => {}
                _ => {
                    let sizes = figures.keyway.first().map(|driven| driven.sizes);
                    let sizes = sizes.ok_or("the echo's sizes are not known yet")?;
                    figures.echo.push(self.echo(measurement, sizes)?);
                }
            }
        }
        Ok(())
    }

    /// The server memory of an idle connection.
    fn idle(&self) -> Result<Option<Claim>, String> {
        if self.arguments.idle == 0 {
            return Ok(None);
        }
        eprintln!("{} idle connections", self.arguments.idle);
        let Servers { keyway, slapd, .. } = self.servers;
        let (ours, theirs) = (address(keyway.address())?, slapd.address);
        let ours = idle::kib_each(ours, keyway.server_pid(), self.arguments.idle)?;
        let theirs = idle::kib_each(theirs, slapd.process.id(), self.arguments.idle)?;
        Ok(Some(Claim::cost("an idle connection", "KiB", &[ours], "slapd", &[theirs])))
    }

    fn keyway(&self, measurement: &Measurement) -> Result<Driven, String> {
        let server = &self.servers.keyway;
        let password = server.password();
        let account = keyway_account(server, &password)?;
        let ca = PathBuf::from(server.text("ca_certificate"));
        let tls = tls::Target { address: address(server.tls_address())?, ca: &ca };
        self.drive(measurement, &server.server_pids(), &account, &tls)
    }

    fn slapd(&self, measurement: &Measurement) -> Result<Driven, String> {
        let server = &self.servers.slapd;
        let account = slapd_account(server);
        let address = server.tls_address.ok_or("slapd has no TLS")?;
        let tls = tls::Target { address, ca: &self.slapd_ca };
        self.drive(measurement, &[server.process.id()], &account, &tls)
    }

    /// It is not measured with TLS: its certificates are in a database of their own kind.
    fn dirsrv(&self, measurement: &Measurement) -> Result<Option<Driven>, String> {
        let Some(server) = &self.servers.dirsrv else { return Ok(None) };
        if measurement.operation == Operation::NewTls {
            return Ok(None);
        }
        let account = Account { address: server.address, admin: dirsrv::ADMIN, password: PASSWORD };
        let tls = tls::Target { address: server.address, ca: &self.slapd_ca };
        self.drive(measurement, &[server.id()], &account, &tls).map(Some)
    }

    fn echo(&self, measurement: &Measurement, sizes: Sizes) -> Result<Driven, String> {
        let (request, answer) = sizes;
        // An authentication is two messages.
        let times = if measurement.operation == Operation::Authentication { 2 } else { 1 };
        let connect = || EchoClient::connect(self.servers.echo.address, request, answer);
        let step =
            |client: &mut EchoClient, _: &mut Rng| (0..times).try_for_each(|_| client.exchange());
        let load = self.load(measurement);
        drive(load, &[self.servers.echo.process.id()], connect, step, |_| sizes)
    }

    fn load(&self, measurement: &Measurement) -> Load {
        Load { clients: measurement.clients, seconds: self.arguments.seconds }
    }

    fn drive(
        &self,
        measurement: &Measurement,
        processes: &[u32],
        account: &Account<'_>,
        tls: &tls::Target<'_>,
    ) -> Result<Driven, String> {
        let load = self.load(measurement);
        let entries = self.arguments.entries;
        if measurement.operation == Operation::NewTls {
            let connect = || tls.connector();
            let step = |connector: &mut tls::Connector, random: &mut Rng| {
                connector.bind(&dn(&uid(pick(random, entries))), PASSWORD)
            };
            return drive(load, processes, connect, step, |_| (0, 0));
        }
        let connect = || {
            let mut client = Client::connect(account.address)?;
            client.bind(account.admin, account.password)?;
            Ok(client)
        };
        let step = |client: &mut Client, random: &mut Rng| {
            operate(measurement.operation, client, random, entries)
        };
        let _apart = measurement.is_apart.then(|| apart::Apart::put(processes)).transpose()?;
        let sizes = |client: &Client| (client.request_bytes, client.answer_bytes);
        let mut driven = drive(load, processes, connect, step, sizes)?;
        if measurement.operation == Operation::Pipelined {
            driven.cost_us /= IN_FLIGHT as f64;
            driven.rate *= IN_FLIGHT as f64;
        }
        Ok(driven)
    }
}

/// Four of five times one of the first fifth.
fn pick(random: &mut Rng, entries: usize) -> usize {
    let hot = (entries / 5).max(1);
    if random.u8(..5) < 4 { random.usize(..hot) } else { random.usize(..entries) }
}

fn operate(
    operation: Operation,
    client: &mut Client,
    random: &mut Rng,
    entries: usize,
) -> Result<(), String> {
    let uid = uid(pick(random, entries));
    let expect = |found: usize, wanted: usize| match found == wanted {
        true => Ok(()),
        false => Err(format!("{found} entries and not {wanted} with {uid}")),
    };
    match operation {
        Operation::Search => expect(client.search(SUFFIX, "uid", &uid)?, 1),
        Operation::Base => expect(client.read(&dn(&uid))?, 1),
        Operation::Bind => client.bind(&dn(&uid), PASSWORD),
        Operation::Compare => {
            let mail = format!("{uid}@example.com");
            expect(usize::from(client.compare(&dn(&uid), "mail", &mail)?), 1)
        }
        Operation::Authentication => {
            expect(client.search(SUFFIX, "uid", &uid)?, 1)?;
            client.bind(&dn(&uid), PASSWORD)
        }
        Operation::Pipelined => {
            let uids: Vec<String> =
                (0..IN_FLIGHT).map(|_| self::uid(pick(random, entries))).collect();
            expect(client.searches(SUFFIX, "uid", &uids)?, IN_FLIGHT)
        }
        Operation::Prefix => {
            let prefix = uid.get(..uid.len() - 2).unwrap_or_default();
            expect(client.search_prefix(SUFFIX, "uid", prefix)?, PREFIX_FINDS)
        }
        Operation::All => match client.search_all(SUFFIX)? {
            found if found >= entries => Ok(()),
            found => expect(found, entries),
        },
        Operation::Add => add(client),
        Operation::NewTls => Err("that is not for a connection".into()),
    }
}

impl Figures {
    fn claim(&self, measurement: &Measurement, claims: &mut Vec<Claim>) {
        let costs = |driven: &[Driven]| driven.iter().map(|it| it.cost_us).collect::<Vec<_>>();
        let rates = |driven: &[Driven]| driven.iter().map(|it| it.rate).collect::<Vec<_>>();
        let (claim, ours) = (measurement.claim(), costs(&self.keyway));
        let demand = 1.0 / measurement.most;
        claims.push(
            Claim::cost(&claim, "us CPU", &ours, "slapd", &costs(&self.slapd)).demand(demand),
        );
        if !self.dirsrv.is_empty() {
            let theirs = costs(&self.dirsrv);
            claims.push(Claim::cost(&claim, "us CPU", &ours, "389-ds", &theirs).secondary());
        }
        if let Some(most) = measurement.most_of_echo {
            let echo = costs(&self.echo);
            claims.push(Claim::cost(&claim, "us CPU", &ours, "TCP echo", &echo).demand(1.0 / most));
        }
        if measurement.operation == Operation::Pipelined {
            let claim = format!("{claim}, each");
            claims.push(Claim::at_most(&claim, "us CPU", &ours, IN_FLIGHT_US_MAX));
        }
        let is_for_rate = measurement.clients == 16 && !measurement.is_apart;
        if is_for_rate && measurement.operation != Operation::Add {
            let theirs = rates(&self.slapd);
            let ours = rates(&self.keyway);
            claims.push(Claim::rate(&claim, "a second", &ours, "slapd", &theirs).demand(2.0));
        }
    }
}

/// The saving of many requests in flight, beside one in flight of the same number of clients.
fn pipelining(measurements: &[Measurement], figures: &[Figures]) -> Option<Claim> {
    let of = |operation| {
        let is_it = |it: &Measurement| it.operation == operation && it.clients == 4 && !it.is_apart;
        let at = measurements.iter().position(is_it)?;
        let costs = figures.get(at)?.keyway.iter().map(|driven| driven.cost_us);
        Some(costs.collect::<Vec<_>>())
    };
    let (many, one) = (of(Operation::Pipelined)?, of(Operation::Search)?);
    Some(Claim::cost("search, 16 in flight", "us CPU", &many, "1 in flight", &one).demand(3.0))
}

fn rates(measurements: &[Measurement], figures: &[Figures]) -> Table {
    let mut table = Table::new(
        "operations a second, by the clock",
        &["", "Keyway", "slapd", "389-ds", "TCP echo"],
    );
    for (measurement, figures) in measurements.iter().zip(figures) {
        let rate = |driven: &[Driven]| match driven {
            [] => String::new(),
            driven => {
                format!("{:.0}", median(&driven.iter().map(|it| it.rate).collect::<Vec<_>>()))
            }
        };
        let cells =
            [&figures.keyway, &figures.slapd, &figures.dirsrv, &figures.echo].map(|it| rate(it));
        table.rows.push([vec![measurement.claim()], cells.to_vec()].concat());
    }
    table
}
