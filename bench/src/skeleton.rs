//! The directory as it stands: what a search, a bind and an add cost the server.
//!
//! Keyway, slapd (back-mdb, synced) and a bare TCP echo of equally sized messages serve the same
//! client over loopback without TLS, one after the other in every round; who goes first changes from
//! round to round. What is reported is the server process's processor time an operation.

use crate::echo::{Echo, EchoClient};
use crate::process::processor_time;
use crate::report::{Claim, Report};
use crate::slapd::{self, Slapd};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use fastrand::Rng;
use keyway_engine::{Algorithm, Cost, Engine, Request};
use keyway_tests::client::Client;
use keyway_tests::{Server, finish};
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub const SUFFIX: &str = "dc=example,dc=com";
const SLAPD_ADMIN: &str = "cn=admin,dc=example,dc=com";
pub const PASSWORD: &str = "correct horse battery staple";

/// What can be asked of this benchmark.
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
        slapd: Slapd::start(folder.path(), &ldif, SLAPD_ADMIN, PASSWORD)?,
        echo: Echo::start()?,
    };
    let claims = measure(arguments, &servers)?;
    let settings = serde_json::json!({
        "entries": arguments.entries, "rounds": arguments.rounds,
        "seconds": arguments.seconds, "clients": arguments.clients,
    });
    Report::new("skeleton", peers, settings, claims, Vec::new()).finish(arguments.json.as_deref())
}

/// Keyway as a user starts it, on a fresh data folder, but with these settings switched off.
pub fn keyway(folder: &Path, ldif: &Path, off: &[&str]) -> Result<Server, String> {
    let data = folder.join("keyway-data");
    let mut import = Command::new(keyway_tests::keyway());
    import.args(["directory", "import", "--data"]).args([&data, ldif]);
    finish(&mut import, "").expect(0);
    let file = data.join("keyway.toml");
    let mut text = fs::read_to_string(&file).map_err(|why| why.to_string())?;
    for setting in off {
        text = text.replace(&format!("\n{setting} = true\n"), &format!("\n{setting} = false\n"));
    }
    fs::write(&file, text).map_err(|why| why.to_string())?;
    Ok(Server::start(&data, &[]))
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
    // What the echo's messages are as large as: known once Keyway had its first turn.
    let mut sizes = [None; Operation::ALL.len()];
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            let figures = &mut figures[index];
            // Of the first round Keyway is the first, of the second slapd, of the third the echo.
            for turn in 0..3 {
                match (round + turn) % 3 {
                    0 => {
                        let process = servers.keyway.process();
                        let (cost, found) = ldap(arguments, operation, process, &keyway)?;
                        figures.keyway.push(cost);
                        sizes[index] = Some(found);
                    }
                    1 => {
                        let process = servers.slapd.process.id();
                        figures.slapd.push(ldap(arguments, operation, process, &slapd)?.0);
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

struct Account<'a> {
    address: SocketAddr,
    admin: &'a str,
    password: &'a str,
}

/// Bytes of a request and of its answer.
type Sizes = (usize, usize);

fn ldap(
    arguments: &Arguments,
    operation: Operation,
    process: u32,
    account: &Account<'_>,
) -> Result<(f64, Sizes), String> {
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
    drive(arguments, process, connect, step, |client| (client.request_bytes, client.answer_bytes))
}

fn add(client: &mut Client) -> Result<(), String> {
    static ADDED: AtomicU64 = AtomicU64::new(0);
    let uid = format!("added{}", ADDED.fetch_add(1, Ordering::Relaxed));
    let mail = format!("{uid}@example.com");
    let attributes: [(&str, &[&str]); 6] = [
        ("objectClass", &["top", "person", "organizationalPerson", "inetOrgPerson"]),
        ("uid", &[&uid]),
        ("cn", &["Added Person"]),
        ("sn", &["Person"]),
        ("givenName", &["Added"]),
        ("mail", &[&mail]),
    ];
    client.add(&format!("uid={uid},ou=People,{SUFFIX}"), &attributes)
}

fn echo(arguments: &Arguments, echo: &Echo, (request, answer): Sizes) -> Result<f64, String> {
    let connect = || EchoClient::connect(echo.address, request, answer);
    let step = |client: &mut EchoClient, _: &mut Rng| client.exchange();
    Ok(drive(arguments, echo.process.id(), connect, step, |_| (request, answer))?.0)
}

/// Lets the client threads work for the asked time, and returns the server's processor time an
/// operation in microseconds, and what one client said of itself at the end.
fn drive<C: Send>(
    arguments: &Arguments,
    process: u32,
    connect: impl Fn() -> Result<C, String> + Sync,
    step: impl Fn(&mut C, &mut Rng) -> Result<(), String> + Sync,
    sizes: impl Fn(&C) -> Sizes + Sync,
) -> Result<(f64, Sizes), String> {
    let mut clients = Vec::new();
    for _ in 0..arguments.clients.max(1) {
        clients.push(connect()?);
    }
    let before = processor_time(process);
    let end = Instant::now() + Duration::from_secs_f64(arguments.seconds);
    let work = |(index, mut client): (usize, C)| {
        let mut random = Rng::with_seed(index as u64);
        let mut done = 0u64;
        while Instant::now() < end {
            step(&mut client, &mut random)?;
            done += 1;
        }
        // The connection is handed back, so that it closes after the time was read.
        Ok::<_, String>((done, client))
    };
    let results: Vec<Result<(u64, C), String>> = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|client| scope.spawn(move || work(client)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a client panicked".into()))
        };
        threads.into_iter().map(join).collect()
    });
    let spent = processor_time(process).saturating_sub(before);
    let results: Vec<(u64, C)> = results.into_iter().collect::<Result<_, _>>()?;
    let done: u64 = results.iter().map(|(done, _)| done).sum();
    if done == 0 {
        return Err("no operation finished in the time".into());
    }
    let seen = results.first().map(|(_, client)| sizes(client)).unwrap_or_default();
    Ok((spent.as_secs_f64() * 1e6 / done as f64, seen))
}

fn write_ldif(path: &Path, entries: usize) -> Result<(), String> {
    let engine = keyway_drivers::engine();
    let ssha512 = ssha512(&engine)?;
    let argon2id = argon2id(&engine)?;
    let users = (0..entries).map(|index| (format!("user{index}"), &ssha512));
    write_people(path, users.chain([("argon".to_owned(), &argon2id)]))
}

/// Writes a company of people with these names and stored passwords.
pub fn write_people<'a>(
    path: &Path,
    people: impl Iterator<Item = (String, &'a String)>,
) -> Result<(), String> {
    let mut text = format!(
        "dn: {SUFFIX}\nobjectClass: top\nobjectClass: domain\ndc: example\n\n\
         dn: ou=People,{SUFFIX}\nobjectClass: top\nobjectClass: organizationalUnit\nou: People\n\n"
    );
    for (uid, password) in people {
        let _ = write!(
            text,
            "dn: uid={uid},ou=People,{SUFFIX}\nobjectClass: top\nobjectClass: person\n\
             objectClass: organizationalPerson\nobjectClass: inetOrgPerson\nuid: {uid}\n\
             cn: First {uid}\nsn: {uid}\ngivenName: First\nmail: {uid}@example.com\n\
             telephoneNumber: +1 555 0100\nuserPassword: {password}\n\n"
        );
    }
    fs::write(path, text).map_err(|why| format!("{}: {why}", path.display()))
}

pub fn ssha512(engine: &Engine) -> Result<String, String> {
    let salt = b"eight-by";
    let mut value = [0; 72];
    let (digest, tail) = value.split_at_mut(64);
    tail.copy_from_slice(salt);
    engine
        .digest(Algorithm::Sha512, &[PASSWORD.as_bytes(), salt], digest)
        .map_err(|why| why.to_string())?;
    Ok(format!("{{SSHA512}}{}", STANDARD.encode(value)))
}

pub fn argon2id(engine: &Engine) -> Result<String, String> {
    let salt = b"sixteen-byte-slt";
    let mut hash = [0; 32];
    let mut request = Request::Derive {
        cost: Cost::Argon2 { memory_kib: 19_456, passes: 2, lanes: 1 },
        password: PASSWORD.as_bytes(),
        salt,
        out: &mut hash,
    };
    engine.run(Algorithm::Argon2id, &mut request).map_err(|why| why.to_string())?;
    let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
    Ok(format!("{{ARGON2}}$argon2id$v=19$m=19456,t=2,p=1${salt}${hash}"))
}
