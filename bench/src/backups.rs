//! Backups beside a server: searches while backups are made and verified, by turns with searches alone; and how much a
//! second backup stores after some of the entries were changed.

use crate::ldap::{Account, Load, SUFFIX, drive, keyway, ssha512, write_people};
use crate::report::{Claim, Report};
use keyway_tests::client::Client;
use keyway_tests::{Finished, Server, finish};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Searches beside a backup or verify keep at least this part of their rate.
const RATE_MIN: f64 = 0.8;
/// A second backup stores at most this part of the bytes of the first.
const BYTES_MAX: f64 = 0.1;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// People in the directory
    #[arg(long, default_value_t = 100_000)]
    entries: usize,
    /// Rounds; each measures searches alone and beside the work once
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Clients that search, one connection each
    #[arg(long, default_value_t = 4)]
    clients: usize,
    /// The part of the entries that is changed before the second backup, in percent
    #[arg(long, default_value_t = 1.0)]
    changed: f64,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let ldif = folder.path().join("people.ldif");
    let password = ssha512(&keyway_drivers::engine())?;
    let people = (0..arguments.entries).map(|index| (format!("user{index}"), &password));
    write_people(&ldif, people)?;
    eprintln!("loading {} entries", arguments.entries);
    let server = keyway(folder.path(), &ldif, &[])?;
    let place = Place { folder: folder.path() };
    let mut claims = Vec::new();
    eprintln!("a first backup, {} % changed, and a second one", arguments.changed);
    let (first, second) =
        (place.create()?, change(&server, arguments).and_then(|()| place.create())?);
    let bytes = |of: &Value| of["new_bytes"].as_f64().unwrap_or_default();
    let title = format!("bytes that a backup adds after {} % of changes", arguments.changed);
    let (first, second) = ([bytes(&first)], [bytes(&second)]);
    claims.push(
        Claim::cost(&title, "bytes", &second, "the first backup", &first).demand(1.0 / BYTES_MAX),
    );
    for (title, work) in [
        (
            "searches beside backups",
            &(|| place.create().map(drop)) as &(dyn Fn() -> Result<(), String> + Sync),
        ),
        ("searches beside verifies", &|| place.verify()),
    ] {
        let [mut beside, mut alone] = [Vec::new(), Vec::new()];
        for round in 0..arguments.rounds {
            eprintln!("{title}: round {} of {}", round + 1, arguments.rounds);
            for turn in 0..2 {
                match (round + turn) % 2 {
                    0 => alone.push(measure(arguments, &server)?),
                    _ => beside.push(busy(work, || measure(arguments, &server))?),
                }
            }
        }
        claims.push(Claim::rate(title, "searches/s", &beside, "without", &alone).demand(RATE_MIN));
    }
    let settings = serde_json::json!({
        "entries": arguments.entries, "rounds": arguments.rounds, "seconds": arguments.seconds,
        "clients": arguments.clients, "changed": arguments.changed,
    });
    let peers = vec!["Keyway without a backup".into()];
    Report::new("backups", peers, settings, claims, Vec::new()).finish(arguments.json.as_deref())
}

/// Does something while other work is done again and again.
fn busy<R>(
    work: &(dyn Fn() -> Result<(), String> + Sync),
    measure: impl FnOnce() -> Result<R, String>,
) -> Result<R, String> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let worked = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                work()?;
            }
            Ok::<_, String>(())
        });
        let measured = measure();
        is_over.store(true, Ordering::Relaxed);
        worked.join().map_err(|_| "the work beside it panicked".to_owned())??;
        measured
    })
}

fn measure(arguments: &Arguments, server: &Server) -> Result<f64, String> {
    let address = server.address().parse().map_err(|_| "the server's address is none")?;
    let password = server.password();
    let account = Account { address, admin: server.administrator(), password: &password };
    let connect = || {
        let mut client = Client::connect(account.address)?;
        client.bind(account.admin, account.password)?;
        Ok(client)
    };
    let load = Load { clients: arguments.clients, seconds: arguments.seconds };
    let step = |client: &mut Client, random: &mut fastrand::Rng| {
        let filter = format!("user{}", random.usize(..arguments.entries));
        client.search(SUFFIX, "uid", &filter).map(drop)
    };
    Ok(drive(load, &server.server_pids(), connect, step, |_| (0, 0))?.rate)
}

/// Changes entries here and there.
fn change(server: &Server, arguments: &Arguments) -> Result<(), String> {
    let count = (arguments.entries as f64 * arguments.changed / 100.0) as usize;
    let mut random = fastrand::Rng::with_seed(1);
    let mut changes = String::new();
    for number in 0..count {
        let index = random.usize(..arguments.entries);
        write!(
            changes,
            "dn: uid=user{index},ou=People,{SUFFIX}\nchangetype: modify\nreplace: description\n\
             description: changed {number}\n\n"
        )
        .map_err(|why| why.to_string())?;
    }
    finish(&mut server.admin_tool("ldapmodify"), &changes).expect(0);
    Ok(())
}

/// The folder that the server's data folder and the repository are in.
struct Place<'a> {
    folder: &'a Path,
}

impl Place<'_> {
    fn ask(&self, words: &[&str], data: bool) -> Finished {
        let mut command = Command::new(keyway_tests::keyway());
        command.args(words).arg(self.folder.join("repository")).arg("--json");
        command.arg("--key-file").arg(self.folder.join("backup.key"));
        if data {
            command.arg("--data").arg(self.folder.join("keyway-data"));
        }
        finish(&mut command, "")
    }

    fn create(&self) -> Result<Value, String> {
        let made = self.ask(&["backup", "create"], true).expect(0);
        serde_json::from_str(&made.out).map_err(|why| format!("{}: {why}", made.out))
    }

    fn verify(&self) -> Result<(), String> {
        self.ask(&["backup", "verify"], false).expect(0);
        Ok(())
    }
}
