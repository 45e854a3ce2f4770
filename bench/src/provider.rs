//! nginx with its private keys in cryptod, by OpenSSL's provider, beside nginx with the keys in files.
//!
//! Four servers of one worker each (a key in a file and one in cryptod, RSA-2048 and P-256) take turns at full TLS 1.3
//! handshakes of `openssl s_time`. The report is the processor time of the worker for a handshake, with and without
//! the daemon's. A program that uses no key is started with and without the provider in its configuration, and
//! `openssl speed` encrypts with the provider's AES-GCM and with libcrypto's own.

use crate::process::{Process, processor_time};
use crate::report::{Claim, Report};
use keyway_tests::cryptod::{Cryptod, eventually};
use keyway_tests::{keyway, openssl_provider, port};
use serde_json::json;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Rounds; each measures every server once
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Kinds of keys: our name, openssl's options for a new one, and how it is called in the report.
const KINDS: [(&str, &[&str], &str); 2] = [
    ("rsa", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "RSA-2048"),
    ("ec-p256", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "P-256"),
];
/// The worker may spend this much more than with the key in a file, and worker and daemon together this much.
const WORKER_MOST: f64 = 1.05;
const TOGETHER_MOST: f64 = 1.1;
/// Most milliseconds that the provider adds to the start of a program that uses no key.
const LOAD_MS_MOST: f64 = 1.0;
/// Starts of such a program in each round.
const STARTS: usize = 20;

/// AES-128-GCM has to be this many times as fast as libcrypto's own, for messages of so many bytes.
const GCM_LEAST: f64 = 2.0;
const MESSAGE_BYTES: [usize; 2] = [1 << 10, 1 << 14];

/// The processor time of a handshake, in microseconds, by round.
#[derive(Default)]
struct Costs {
    worker: Vec<f64>,
    together: Vec<f64>,
}

/// Measures it all.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let cryptod = Cryptod::for_every_user(&[]);
    let place = cryptod.folder().path().to_owned();
    fs::write(place.join("keyway.cnf"), configuration(cryptod.socket(), "")).map_err(said)?;
    let with_ciphers = configuration(cryptod.socket(), "ciphers = yes\n");
    let with_ciphers = with_ciphers.replace("?keyway.key", "?provider=keyway,?keyway.key");
    fs::write(place.join("ciphers.cnf"), with_ciphers).map_err(said)?;
    fs::write(place.join("stock.cnf"), "[req]\ndistinguished_name = dn\n[dn]\n").map_err(said)?;
    let mut servers = Vec::new();
    for (kind, options, _) in KINDS {
        make_key(&cryptod, &place, kind, options)?;
        for side in ["file", "keyway"] {
            servers.push(Server::start(&place, kind, side)?);
        }
    }
    let mut costs: [Costs; 4] = Default::default();
    let mut added = Vec::new();
    let mut rates: [[Vec<f64>; 2]; 2] = Default::default();
    for round in 0..arguments.rounds {
        let mut turns: Vec<usize> = (0..servers.len()).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            eprintln!("round {} of {}: {}", round + 1, arguments.rounds, servers[turn].name);
            let (worker, daemon) = servers[turn].measure(&cryptod, &place, arguments.seconds)?;
            costs[turn].worker.push(worker);
            costs[turn].together.push(worker + daemon);
        }
        for (bytes, [ours, stock]) in MESSAGE_BYTES.iter().zip(&mut rates) {
            ours.push(gcm_mb_s(&place, "ciphers.cnf", *bytes)?);
            stock.push(gcm_mb_s(&place, "stock.cnf", *bytes)?);
        }
        added.push(load_ms(&place, "keyway.cnf")? - load_ms(&place, "stock.cnf")?);
    }
    let mut claims = Vec::new();
    for ((_, _, name), pair) in KINDS.iter().zip(costs.chunks(2)) {
        let [file, ours] = pair else { continue };
        let claim = |what: &str, ours: &[f64], most: f64| {
            let name = format!("{name}, full TLS 1.3 handshake, {what}");
            Claim::cost(&name, "us", ours, "key in a file", &file.worker).demand(1.0 / most)
        };
        claims.push(claim("worker", &ours.worker, WORKER_MOST));
        claims.push(claim("worker and daemon", &ours.together, TOGETHER_MOST));
    }
    let name = "start of a program that uses no key, added";
    claims.push(Claim::at_most(name, "ms", &added, LOAD_MS_MOST));
    for (bytes, [ours, stock]) in MESSAGE_BYTES.iter().zip(&rates) {
        let name = format!("openssl speed, AES-128-GCM, {bytes} bytes");
        claims.push(Claim::rate(&name, "MB/s", ours, "libcrypto", stock).demand(GCM_LEAST));
    }
    let settings = json!({ "rounds": arguments.rounds, "seconds": arguments.seconds });
    let peers = vec!["nginx with keys in files".to_owned()];
    Report::new("provider", peers, settings, claims, Vec::new()).finish(arguments.json.as_deref())
}

fn said(why: std::io::Error) -> String {
    why.to_string()
}

fn configuration(socket: &Path, more: &str) -> String {
    format!(
        "openssl_conf = init\n[init]\nproviders = providers\nalg_section = algorithms\n[algorithms]\n\
         default_properties = ?keyway.key!=yes\n[providers]\ndefault = default_provider\nkeyway = keyway_provider\n\
         [default_provider]\nactivate = 1\n[keyway_provider]\nmodule = {}\nsocket = {}\n{more}activate = 1\n",
        openssl_provider().display(),
        socket.display()
    )
}

/// Runs a command to its end, and returns what it printed.
fn done(command: &mut Command) -> Result<String, String> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|why| format!("{command:?}: {why}"))?;
    if !output.status.success() {
        let err = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {err}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A key in a file, with a certificate, and the same key in cryptod with a file that names it.
fn make_key(cryptod: &Cryptod, place: &Path, kind: &str, options: &[&str]) -> Result<(), String> {
    let file = |suffix: &str| format!("{kind}.{suffix}");
    let openssl = |arguments: &[&str]| {
        let mut command = Command::new("openssl");
        done(
            command.args(arguments).current_dir(place).env("OPENSSL_CONF", place.join("stock.cnf")),
        )
    };
    openssl(&[&["genpkey", "-out", &file("file.pem")], options].concat())?;
    let request = ["req", "-x509", "-new", "-subj", "/CN=localhost", "-days", "3"];
    openssl(&[&request[..], &["-key", &file("file.pem"), "-out", &file("crt")]].concat())?;
    let key = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket());
        done(command.current_dir(place))
    };
    let for_all = ["--algorithm", kind, "--for", "everybody"];
    key(&[&["import", kind, &file("file.pem")], &for_all[..]].concat())?;
    let named = key(&["use", kind, "--with", "pem"])?;
    fs::write(place.join(file("keyway.pem")), named).map_err(said)
}

/// An nginx of one worker.
struct Server {
    name: String,
    address: String,
    worker: u32,
    /// Its master, ended with it.
    _master: Process,
}

impl Server {
    fn start(place: &Path, kind: &str, side: &str) -> Result<Server, String> {
        let (name, address) = (format!("{kind}.{side}"), port());
        let own = place.join(format!("{name}.d"));
        fs::create_dir(&own).map_err(said)?;
        let shown = own.display();
        let text = format!(
            "user nobody nogroup;\nworker_processes 1;\ndaemon off;\npid {shown}/pid;\nerror_log {shown}/error.log;\n\
             env OPENSSL_CONF;\nevents {{}}\nhttp {{\naccess_log off;\nssl_protocols TLSv1.3;\n\
             ssl_session_tickets off;\nclient_body_temp_path {shown}/a;\nproxy_temp_path {shown}/b;\n\
             fastcgi_temp_path {shown}/c;\nuwsgi_temp_path {shown}/d;\nscgi_temp_path {shown}/e;\n\
             server {{\nlisten {address} ssl;\nssl_certificate {0}/{kind}.crt;\n\
             ssl_certificate_key {0}/{name}.pem;\n}}\n}}\n",
            place.display()
        );
        fs::write(own.join("nginx.conf"), text).map_err(said)?;
        let configuration = if side == "keyway" { "keyway.cnf" } else { "stock.cnf" };
        let mut command = Command::new("nginx");
        command.arg("-c").arg(own.join("nginx.conf")).arg("-p").arg(&own);
        command.env("OPENSSL_CONF", place.join(configuration)).stdin(Stdio::null());
        let master = Process::start(&mut command)?;
        eventually("nginx listens", || TcpStream::connect(&address).is_ok());
        // The master listens before it has a worker.
        let children = format!("/proc/{0}/task/{0}/children", master.id());
        let worker = || {
            let children = fs::read_to_string(&children).ok()?;
            children.split_whitespace().next()?.parse().ok()
        };
        eventually("nginx has a worker", || worker().is_some());
        let worker = worker().ok_or("nginx has no worker")?;
        Ok(Server { name, address, worker, _master: master })
    }

    /// Microseconds of the worker's and of the daemon's processor for a handshake.
    fn measure(&self, cryptod: &Cryptod, place: &Path, seconds: u32) -> Result<(f64, f64), String> {
        let times = || [self.worker, cryptod.pid()].map(|process| processor_time(&[process]));
        let before = times();
        let mut client = Command::new("openssl");
        client.args(["s_time", "-connect", &self.address, "-new", "-tls1_3"]);
        client.args(["-time", &seconds.to_string()]).env("OPENSSL_CONF", place.join("stock.cnf"));
        let said = done(&mut client)?;
        let after = times();
        // "1234 connections in 0.56s; ..."
        let count = said.lines().find_map(|line| line.split_once(" connections in "));
        let count = count.and_then(|(count, _)| count.trim().parse::<f64>().ok());
        let count = count.filter(|count| *count > 0.0).ok_or(format!("s_time said: {said}"))?;
        let [worker, daemon] =
            [0, 1].map(|at| (after[at] - before[at]).as_secs_f64() * 1e6 / count);
        Ok((worker, daemon))
    }
}

/// Milliseconds that a program takes which uses no key: the least of several starts.
fn load_ms(place: &Path, configuration: &str) -> Result<f64, String> {
    let mut best = f64::MAX;
    for _ in 0..STARTS {
        let mut command = Command::new("openssl");
        command.args(["dgst", "-sha256", "/dev/null"]);
        command.env("OPENSSL_CONF", place.join(configuration));
        let begun = Instant::now();
        done(&mut command)?;
        best = best.min(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

/// Millions of bytes that `openssl speed` encrypts in a second of its processor time.
fn gcm_mb_s(place: &Path, configuration: &str, bytes: usize) -> Result<f64, String> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-mr", "-seconds", "1", "-evp", "aes-128-gcm"]);
    command.args(["-bytes", &bytes.to_string()]).env("OPENSSL_CONF", place.join(configuration));
    let said = done(&mut command)?;
    // "+F:25:AES-128-GCM:2278554737.78"
    let line = said.lines().find(|line| line.starts_with("+F:"));
    let rate = line.and_then(|line| line.rsplit(':').next()?.parse::<f64>().ok());
    Ok(rate.ok_or(format!("openssl speed said: {said}"))? / 1e6)
}
