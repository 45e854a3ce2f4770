//! Keyway's own: the gateway as a user starts it, and the way of the packets without cryptography.

use super::gateway::{Gateway, Kind};
use super::network::{BOTH, Host, MTU};
use crate::process::Process;
use crate::ring::common::text;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// The algorithm of the gateways that can choose one.
pub const ALGORITHM: &str = "aes-256-gcm";
const PORT: u16 = 4500;

pub const GATEWAY: Kind = Kind {
    name: "Keyway",
    tag: "kw",
    version: || Some(env!("CARGO_PKG_VERSION").into()),
    start: |network, folder| {
        let mut processes = Vec::new();
        for host in BOTH {
            let letter = host.letter();
            let file = folder.join(format!("{letter}.toml"));
            keyway_tests::secret(&file, &configuration(host, &network.device(host)));
            let mut command = network.command(host, keyway_tests::keyway());
            command
                .args(["esp", "up", "--json", "--state"])
                .arg(folder.join(format!("{letter}.state")));
            command.arg("--control").arg(folder.join(format!("{letter}.control"))).arg(file);
            processes.push(ready(&mut command)?);
        }
        Ok(Gateway::new(processes, network.device(Host::A)))
    },
};

/// This program again, as [`super::forward`].
pub const CEILING: Kind = Kind {
    name: "no cryptography",
    tag: "none",
    version: || Some("the gateway's reads and writes alone".into()),
    start: |network, _| {
        let own = std::env::current_exe().map_err(text)?;
        let mut processes = Vec::new();
        for host in BOTH {
            let mut command = network.command(host, &own);
            command.args(["esp-forward", &network.device(host)]);
            command.args([host.outer(), host.other().outer()].map(|it| format!("{it}:{PORT}")));
            processes.push(ready(&mut command)?);
            network.configure(host, &network.device(host))?;
        }
        Ok(Gateway::new(processes, network.device(Host::A)))
    },
};

/// Starts it, and waits until it says that it is ready.
fn ready(command: &mut Command) -> Result<Process, String> {
    let mut process = Process::start(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let output = process.child().stdout.take().ok_or("it has no output")?;
    let mut lines = BufReader::new(output);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).map_err(text)? == 0 {
            return Err(format!("{command:?} ends instead of being ready"));
        }
        if line.contains("ready") {
            // It has more to say later, perhaps.
            std::thread::spawn(move || lines.lines().for_each(drop));
            return Ok(process);
        }
    }
}

/// One tunnel to the other host.
fn configuration(host: Host, device: &str) -> String {
    let side = |host: Host| {
        let (spi, key) = match host {
            Host::A => ("0x1001", "a1"),
            Host::B => ("0x1002", "b2"),
        };
        format!("spi = \"{spi}\"\nkey = \"{}\"\nsalt = \"{}\"\n", key.repeat(32), key.repeat(4))
    };
    let other = host.other();
    format!(
        "[device]
        name = \"{device}\"
        addresses = [\"{}/24\"]
        mtu = {MTU}

        [outside]
        listen = \"{}:{PORT}\"

        [[tunnel]]
        name = \"other\"
        remote = \"{}:{PORT}\"
        algorithm = \"{ALGORITHM}\"

        [[tunnel.selector]]
        local = \"{}\"
        remote = \"{}\"

        [tunnel.out]
        {}
        [tunnel.in]
        {}",
        host.inner(),
        host.outer(),
        other.outer(),
        host.subnet(),
        other.subnet(),
        side(host),
        side(other),
    )
}
