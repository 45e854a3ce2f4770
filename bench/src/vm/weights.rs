//! Claim 3: a daemon with more to do than it can shares its time by weight: among two virtual machines, and a process of
//! the host.
//!
//! Each asks for signatures with a key of its own, and has dozens under way. The machines have no guest: processes of the
//! host map their memory as processes of a guest do, so that all three ask equally fast. One thread drives them, while
//! the daemon's pump has the other processor. A window in which that thread fell behind, so that a client had little
//! to ask for, says nothing and is left out.

use crate::report::{Claim, Findings, Table, median};
use crate::ring::common::text;
use crate::ring::daemon::Daemon;
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{
    Algorithm, Demand, Engine, Key, Operation, Parameters, Queue, SignatureParameters, Task,
};
use keyway_tests::hypervisor::Hypervisor;
use keyway_tests::{finish, keyway};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Names of the clients, and what the daemon is told of their weights. One of which nothing is said has 1.
const CLIENTS: [(&str, u32); 3] = [("host", 1), ("a", 2), ("b", 4)];
/// The most that a share may be away from what its weight says, in percent.
const AWAY_MAX: f64 = 5.0;

/// Signatures under way of each client: a ring's entries. With fewer than the second number a client has too little to
/// ask for.
const DEPTH: usize = 64;
const DEPTH_MIN: usize = 16;
/// Windows that count of a round, and those after which it is given up.
const WINDOWS: usize = 50;
const WINDOWS_MAX: usize = 50 * WINDOWS;
const WINDOW: Duration = Duration::from_millis(20);

pub fn measure(rounds: usize) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let socket = |name: &str| folder.path().join(format!("{name}.device"));
    let mut flags = Vec::new();
    for (name, weight) in &CLIENTS[1..] {
        flags.extend(["--vm".to_owned(), format!("{name}={}", socket(name).display())]);
        flags.extend(["--weight".to_owned(), format!("vm:{name}={weight}")]);
    }
    let daemon =
        Daemon::start(folder.path(), &flags.iter().map(String::as_str).collect::<Vec<_>>())?;
    let user = format!("user:{}", rustix::process::getuid().as_raw());
    let mut machines = Vec::new();
    let mut clients = Vec::new();
    for (index, (name, _)) in CLIENTS.into_iter().enumerate() {
        let is_host = index == 0;
        let caller = if is_host { user.clone() } else { format!("vm:{name}") };
        let mut key = Command::new(keyway());
        key.args(["key", "generate", name, "--algorithm", "ec-p256", "--for", &caller, "--data"]);
        let made = finish(key.arg(folder.path()), "");
        if made.code != 0 {
            return Err(made.err);
        }
        if is_host {
            clients.push(Client::new(daemon.socket(), name)?);
        } else {
            let machine = Hypervisor::try_connect(&socket(name)).map_err(text)?;
            clients.push(Client::new(machine.device(), name)?);
            machines.push(machine);
        }
    }

    let (mut away, mut rounds_shares, mut left_out) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let (mut done, mut counted) = ([0_u64; CLIENTS.len()], 0);
        for _ in 0..WINDOWS_MAX {
            match window(&mut clients)? {
                Some(window) => {
                    done.iter_mut().zip(window).for_each(|(all, more)| *all += more);
                    counted += 1;
                }
                None => left_out += 1,
            }
            if counted == WINDOWS {
                break;
            }
        }
        if counted < WINDOWS {
            return Err("this machine is too busy to keep the daemon busy".into());
        }
        let all: u64 = done.iter().sum();
        let shares = done.map(|done| done as f64 / all as f64);
        let off = shares.iter().zip(due()).map(|(share, due)| 100.0 * (share / due - 1.0).abs());
        away.push(off.fold(0.0, f64::max));
        rounds_shares.push(shares);
    }

    let name = "3 the share that is furthest from its weight's";
    let claims = vec![Claim::at_most(name, "%", &away, AWAY_MAX)];
    let title = format!(
        "3 shares of signatures, %: medians of {rounds} rounds of {WINDOWS} windows ({left_out} windows left out)"
    );
    let mut table = Table::new(&title, &["client", "weight", "share", "its weight's"]);
    for (index, ((name, weight), due)) in CLIENTS.into_iter().zip(due()).enumerate() {
        let share: Vec<f64> = rounds_shares.iter().map(|shares| 100.0 * shares[index]).collect();
        let who =
            if index == 0 { "a process of the host".into() } else { format!("machine {name}") };
        let (share, due) = (format!("{:.2}", median(&share)), format!("{:.2}", 100.0 * due));
        table.rows.push(vec![who, weight.to_string(), share, due]);
    }
    Ok(Findings { claims, tables: vec![table] })
}

/// The share of each that its weight says.
fn due() -> [f64; CLIENTS.len()] {
    let all: u32 = CLIENTS.iter().map(|(_, weight)| weight).sum();
    CLIENTS.map(|(_, weight)| f64::from(weight) / f64::from(all))
}

/// How many signatures each has got; `None` if one had too little to ask for.
fn window(clients: &mut [Client]) -> Result<Option<[u64; CLIENTS.len()]>, String> {
    let (mut done, mut asked_enough) = ([0; CLIENTS.len()], true);
    let begun = Instant::now();
    while begun.elapsed() < WINDOW {
        for (client, done) in clients.iter_mut().zip(&mut done) {
            *done += client.look()?;
            asked_enough &= client.least >= DEPTH_MIN;
        }
    }
    Ok(asked_enough.then_some(done))
}

struct Client {
    queue: Queue,
    tasks: Vec<Box<Task>>,
    /// Under way when it was last looked at.
    least: usize,
    // The driver is there as long as these are.
    _remote: Remote,
    _engine: Engine,
}

impl Client {
    /// One that has signatures made with the key of its name.
    fn new(path: &Path, name: &str) -> Result<Client, String> {
        let engine = keyway_drivers::engine();
        let remote = Remote::connect(&engine, RemoteOptions::new(path, name)).map_err(text)?;
        let parameters = Parameters::new(Algorithm::EcdsaP256Sha256, Key::Named(name));
        let session = engine.session(parameters.on(Demand::Named("remote"))).map_err(text)?;
        let sign = || Operation::Sign {
            message: vec![7; 32],
            parameters: SignatureParameters::default(),
            out: vec![0; session.signature_bytes_max()],
        };
        let tasks = (0..DEPTH).map(|_| Task::new(&session, sign())).collect();
        let queue = engine.queue(DEPTH);
        Ok(Client { queue, tasks, least: 0, _remote: remote, _engine: engine })
    }

    /// Takes the signatures that are made, and asks for as many again. Says how many there were.
    fn look(&mut self) -> Result<u64, String> {
        let before = self.tasks.len();
        self.queue.poll(&mut self.tasks);
        self.least = self.queue.in_flight();
        let done = &self.tasks[before..];
        for task in done {
            task.result().map_err(|why| format!("the daemon does not sign: {why}"))?;
        }
        let done = done.len() as u64;
        self.queue.submit(&mut self.tasks, false);
        Ok(done)
    }
}
