//! Common parts of the benchmarks of the directory: people, servers, and clients that keep them busy.

use crate::process::processor_time;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use fastrand::Rng;
use keyway_engine::{Algorithm, Cost, Engine, Request};
use keyway_tests::client::Client;
use keyway_tests::{Server, finish};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The suffix that they serve.
pub const SUFFIX: &str = "dc=example,dc=com";
/// The administrator of slapd.
pub const SLAPD_ADMIN: &str = "cn=admin,dc=example,dc=com";
/// The password of every person.
pub const PASSWORD: &str = "correct horse battery staple";

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

/// Where a server is, and its administrator.
pub struct Account<'a> {
    pub address: SocketAddr,
    pub admin: &'a str,
    pub password: &'a str,
}

/// How busy a server is kept.
#[derive(Clone, Copy)]
pub struct Load {
    /// Client threads, one connection each.
    pub clients: usize,
    /// For how long.
    pub seconds: f64,
}

/// Bytes of a request and of its answer.
pub type Sizes = (usize, usize);

/// The result of a load.
pub struct Driven {
    /// The server's processor time an operation, in microseconds.
    pub cost_us: f64,
    /// Operations a second.
    pub rate: f64,
    /// The sizes that one client reported at the end.
    pub sizes: Sizes,
}

/// Lets the client threads work for the asked time.
pub fn drive<C: Send>(
    load: Load,
    processes: &[u32],
    connect: impl Fn() -> Result<C, String> + Sync,
    step: impl Fn(&mut C, &mut Rng) -> Result<(), String> + Sync,
    sizes: impl Fn(&C) -> Sizes + Sync,
) -> Result<Driven, String> {
    let mut clients = Vec::new();
    for _ in 0..load.clients.max(1) {
        clients.push(connect()?);
    }
    let (before, begun) = (processor_time(processes), Instant::now());
    let end = begun + Duration::from_secs_f64(load.seconds);
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
    let spent = processor_time(processes).saturating_sub(before);
    let took = begun.elapsed().as_secs_f64();
    let results: Vec<(u64, C)> = results.into_iter().collect::<Result<_, _>>()?;
    let done: u64 = results.iter().map(|(done, _)| done).sum();
    if done == 0 {
        return Err("no operation finished in the time".into());
    }
    let sizes = results.first().map(|(_, client)| sizes(client)).unwrap_or_default();
    let done = done as f64;
    Ok(Driven { cost_us: spent.as_secs_f64() * 1e6 / done, rate: done / took, sizes })
}

/// Adds a person with a new name.
pub fn add(client: &mut Client) -> Result<(), String> {
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

/// Writes a company of people with these names and stored passwords.
pub fn write_people<'a>(
    path: &Path,
    people: impl Iterator<Item = (String, &'a String)>,
) -> Result<(), String> {
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        write!(
            file,
            "dn: {SUFFIX}\nobjectClass: top\nobjectClass: domain\ndc: example\n\n\
             dn: ou=People,{SUFFIX}\nobjectClass: top\nobjectClass: organizationalUnit\n\
             ou: People\n\n"
        )?;
        for (uid, password) in people {
            write!(
                file,
                "dn: uid={uid},ou=People,{SUFFIX}\nobjectClass: top\nobjectClass: person\n\
                 objectClass: organizationalPerson\nobjectClass: inetOrgPerson\nuid: {uid}\n\
                 cn: First {uid}\nsn: {uid}\ngivenName: First\nmail: {uid}@example.com\n\
                 telephoneNumber: +1 555 0100\nuserPassword: {password}\n\n"
            )?;
        }
        file.flush()
    });
    written.map_err(|why| format!("{}: {why}", path.display()))
}

/// The stored form of [`PASSWORD`], quick to check.
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

/// The stored form of [`PASSWORD`], slow to check.
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

/// An address that no process listens at.
pub fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|why| why.to_string())?;
    listener.local_addr().map_err(|why| why.to_string())
}

/// Waits until a server accepts: the peers have no other way to say that they are ready.
pub fn wait_for(address: SocketAddr, limit: Duration) -> Result<(), String> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if TcpStream::connect(address).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Err(format!("no server answers at {address}"))
}
