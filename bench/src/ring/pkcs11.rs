//! Claim 5: a key in another process, beside how people have that today: SoftHSM behind p11-kit's
//! remoting.
//!
//! HMAC-SHA-256 of 64 bytes, one after the other, each waited for. The peer is a C program that
//! loads p11-kit's client, which speaks to `p11-kit server`; SoftHSM in the program itself is shown
//! beside it.

use super::daemon::Daemon;
use super::{Arguments, CLIENT, DAEMON, run_on, text};
use crate::packet::compile;
use crate::process::Process;
use crate::report::{Claim, Findings, Table, median};
use keyway_engine::{Algorithm, Demand, Key, Parameters, Request};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const GAIN: f64 = 20.0;
const BYTES: usize = 64;
/// The time of one side in a round.
const WINDOW: Duration = Duration::from_millis(300);

const SOURCE: &str = include_str!("pkcs11.c");
const SOFTHSM: &str = "/usr/lib/softhsm/libsofthsm2.so";
const TOKEN: &str = "keyway-bench";
const PIN: &str = "1234";
/// Where Debian has p11-kit's client for this processor.
pub(crate) const P11_KIT: &str = "/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so";

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let peer = Peer::start(folder.path())?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let (engine, _remote) = daemon.client("macs")?;
    let parameters = Parameters::new(Algorithm::HmacSha256, Key::Secret(&[7; 32]));
    let session = engine.session(parameters.on(Demand::Named("remote"))).map_err(text)?;
    let [mut ours, mut remoted, mut loaded] = [(); 3].map(|()| Vec::new());
    for _ in 0..arguments.rounds {
        remoted.push(peer.rate(&peer.client)?);
        loaded.push(peer.rate(Path::new(SOFTHSM))?);
        let (begun, mut done) = (Instant::now(), 0_u32);
        while begun.elapsed() < WINDOW {
            for _ in 0..64 {
                let mut out = [0; 32];
                let mut request = Request::Mac { data: &[&[1; BYTES]], out: &mut out };
                session.run(&mut request).map_err(text)?;
            }
            done += 64;
        }
        ours.push(f64::from(done) / begun.elapsed().as_secs_f64());
    }
    let name = "5 HMAC-SHA-256 of 64 B, one at a time";
    let peer = "SoftHSM by p11-kit";
    let claims = vec![Claim::rate(name, "a second", &ours, peer, &remoted).demand(GAIN)];
    let title = "5 HMAC-SHA-256 of 64 B, a second: medians";
    let header = ["the ring", "SoftHSM by p11-kit", "SoftHSM in process"];
    let mut table = Table::new(title, &header);
    let show = |figures: &[f64]| format!("{:.0}", median(figures));
    table.rows.push(vec![show(&ours), show(&remoted), show(&loaded)]);
    Ok(Findings { claims, tables: vec![table] })
}

/// The versions of p11-kit and SoftHSM, if they are installed.
pub fn version() -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", "${Package} ${Version} "])
        .args(["p11-kit", "softhsm2"])
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// SoftHSM with a token, and p11-kit's server before it.
struct Peer {
    program: PathBuf,
    configuration: PathBuf,
    socket: PathBuf,
    client: PathBuf,
    _server: Process,
}

impl Peer {
    fn start(folder: &Path) -> Result<Peer, String> {
        let missing = "install the Debian packages of `cargo xtask peers` and run this again";
        let client = PathBuf::from(P11_KIT);
        if version().is_none() || !client.exists() || !Path::new(SOFTHSM).exists() {
            return Err(format!("p11-kit and SoftHSM are not here; {missing}"));
        }
        let program = compile(folder, "pkcs11", SOURCE, "")?;
        let (tokens, configuration) = (folder.join("tokens"), folder.join("softhsm2.conf"));
        fs::create_dir(&tokens).map_err(text)?;
        let settings = format!("directories.tokendir = {}\nlog.level = ERROR\n", tokens.display());
        fs::write(&configuration, settings).map_err(text)?;
        let mut token = Command::new("softhsm2-util");
        token.args(["--init-token", "--free", "--label", TOKEN, "--pin", PIN, "--so-pin", PIN]);
        let made = token.env("SOFTHSM2_CONF", &configuration).stdout(Stdio::null()).status();
        if !made.map_err(text)?.success() {
            return Err("softhsm2-util makes no token".into());
        }
        let socket = folder.join("p11-kit");
        let mut server = Command::new("p11-kit");
        server.args(["server", "--foreground", "--provider", SOFTHSM, "--name"]).arg(&socket);
        server.arg(format!("pkcs11:token={TOKEN}")).env("SOFTHSM2_CONF", &configuration);
        run_on(DAEMON)?;
        let server = Process::start(server.stdin(Stdio::null()).stdout(Stdio::null()));
        run_on(CLIENT)?;
        let peer = Peer { program, configuration, socket, client, _server: server? };
        let begun = Instant::now();
        while !peer.socket.exists() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("p11-kit's server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(peer)
    }

    /// Calls a second through this module.
    fn rate(&self, module: &Path) -> Result<f64, String> {
        let mut command = Command::new(&self.program);
        command.arg(module).args([TOKEN, PIN, &WINDOW.as_secs_f64().to_string()]);
        command.env("SOFTHSM2_CONF", &self.configuration);
        command.env("P11_KIT_SERVER_ADDRESS", format!("unix:path={}", self.socket.display()));
        let output = command.output().map_err(text)?;
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().parse().map_err(|_| {
            format!("{}: {}", module.display(), String::from_utf8_lossy(&output.stderr).trim())
        })
    }
}
