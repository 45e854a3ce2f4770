//! The other programs that take packets from a TUN device and send them enciphered: wireguard-go, boringtun, and
//! strongSwan's charon with its IPsec in user space, libipsec.
//!
//! Each runs twice, once a host, with the settings that it has by itself; charon has the gateway's algorithm. WireGuard's
//! is ChaCha20-Poly1305, always.

use super::gateway::{Gateway, Kind};
use super::network::{BOTH, Host, Network};
use crate::process::Process;
use crate::ring::common::text;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where `cargo xtask peers` puts what is in no package, or in an old release only.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools");
/// How long a program may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

pub const WIREGUARD_GO: Kind = Kind {
    name: "wireguard-go",
    tag: "wgo",
    version: || version(&mut Command::new(tool("wireguard-go", "wireguard")?)),
    start: |network, folder| {
        let program = tool("wireguard-go", "wireguard").ok_or("wireguard-go is not here")?;
        wireguard(network, folder, |command: &mut Command| command.arg("-f"), &program)
    },
};

pub const BORINGTUN: Kind = Kind {
    name: "boringtun",
    tag: "bt",
    version: || version(&mut Command::new(tool("boringtun-cli", "boringtun-cli")?)),
    start: |network, folder| {
        let program = tool("boringtun-cli", "boringtun-cli").ok_or("boringtun is not here")?;
        // Its four threads would only wait for each other on the one processor that all gateways have.
        let flags = ["--foreground", "--disable-drop-privileges", "--threads", "1"];
        wireguard(network, folder, |command: &mut Command| command.args(flags), &program)
    },
};

pub const LIBIPSEC: Kind = Kind {
    name: "libipsec",
    tag: "li",
    version: || {
        // charon itself has no such question, and begins to serve.
        let query = ["-W", "-f", "strongSwan ${Version}", "libcharon-extra-plugins"];
        let version = run(Command::new("dpkg-query").args(query)).ok()?;
        Path::new(CHARON).exists().then_some(version)
    },
    start: libipsec,
};

/// The newest build of a program.
fn tool(name: &str, program: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(TOOLS).ok()?.flatten().map(|entry| entry.path());
    let is_it = |folder: &PathBuf| {
        let rest = folder.file_name()?.to_str()?.strip_prefix(name)?.strip_prefix('-')?;
        rest.starts_with(|first: char| first.is_ascii_digit() || first == 'v').then_some(())
    };
    let programs = folders.filter(|folder| is_it(folder).is_some());
    programs.map(|folder| folder.join("bin").join(program)).filter(|path| path.exists()).max()
}

/// The first line that it says of its version.
fn version(command: &mut Command) -> Option<String> {
    let output = command.arg("--version").stdin(Stdio::null()).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).lines().next()?.trim().to_owned())
}

/// Waits until something is there.
fn until(what: &str, mut is_there: impl FnMut() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !is_there() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("after {} s {what}", PATIENCE.as_secs()));
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// Runs a command that ends; says what it printed.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|why| format!("{:?}: {why}", command.get_program()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(format!("{command:?}: {said} {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A program of WireGuard's, which `wg` configures over a socket of its device's name.
fn wireguard(
    network: &Network,
    folder: &Path,
    flags: impl Fn(&mut Command) -> &mut Command,
    program: &Path,
) -> Result<Gateway, String> {
    const PORT: &str = "51820";
    let private = |host: Host| folder.join(format!("{}.key", host.letter()));
    let mut processes = Vec::new();
    for host in BOTH {
        keyway_tests::secret(&private(host), &run(Command::new("wg").arg("genkey"))?);
        let mut command = network.command(host, program);
        flags(&mut command).arg(network.device(host));
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        processes.push(Process::start(quiet)?);
    }
    for host in BOTH {
        let (device, other) = (network.device(host), host.other());
        let socket = format!("/var/run/wireguard/{device}.sock");
        until(&format!("there is no {socket}"), || Path::new(&socket).exists())?;
        let key = fs::File::open(private(other)).map_err(text)?;
        let public = run(Command::new("wg").arg("pubkey").stdin(key))?;
        let mut set = network.command(host, "wg");
        set.args(["set", &device, "listen-port", PORT, "private-key"]).arg(private(host));
        set.args(["peer", &public, "allowed-ips", other.subnet()]);
        run(set.args(["endpoint", &format!("{}:{PORT}", other.outer())]))?;
        network.configure(host, &device)?;
    }
    Ok(Gateway::new(processes, network.device(Host::A)))
}

/// Debian's charon that stays in the foreground and has no file of its process id, so that two can run.
const CHARON: &str = "/usr/sbin/charon-systemd";
/// The device that libipsec makes.
const DEVICE: &str = "ipsec0";

/// Two charon that agree on keys with each other (IKEv2, a shared secret). libipsec sends over UDP always.
fn libipsec(network: &Network, folder: &Path) -> Result<Gateway, String> {
    let vici =
        |host: Host| format!("unix://{}/vici", folder.join(host.letter().to_string()).display());
    let mut processes = Vec::new();
    for host in BOTH {
        let own = folder.join(host.letter().to_string());
        fs::create_dir(&own).map_err(text)?;
        let strongswan = format!(
            "charon-systemd {{
                load = random nonce openssl hmac kdf kernel-libipsec kernel-netlink socket-default vici
                plugins {{
                    vici {{ socket = {} }}
                    kernel-libipsec {{ load = yes }}
                }}
                journal {{ default = -1 }}
            }}\n",
            vici(host)
        );
        fs::write(own.join("strongswan.conf"), strongswan).map_err(text)?;
        fs::write(own.join("swanctl.conf"), connection(host)).map_err(text)?;
        let mut command = network.command(host, CHARON);
        command.env("STRONGSWAN_CONF", own.join("strongswan.conf"));
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        processes.push(Process::start(quiet)?);
    }
    let swanctl = |host: Host, arguments: &[&str]| {
        let own = folder.join(host.letter().to_string());
        let mut command = Command::new("swanctl");
        command.args(arguments).args(["--uri", &vici(host)]);
        run(command.env("STRONGSWAN_CONF", own.join("strongswan.conf")))
    };
    for host in BOTH {
        let socket = folder.join(host.letter().to_string()).join("vici");
        until("charon has no socket", || socket.exists())?;
        // It takes a tunnel only where the host has an address of it.
        until("charon has no device", || network.configure(host, DEVICE).is_ok())?;
        let file = folder.join(host.letter().to_string()).join("swanctl.conf");
        swanctl(host, &["--load-all", "--file", &file.to_string_lossy()])?;
    }
    // It learns of the addresses in its own time.
    let mut said = String::new();
    let agreed = until("charon has no tunnel", || {
        let initiated = swanctl(Host::A, &["--initiate", "--child", "net"]);
        said = initiated.as_ref().err().cloned().unwrap_or_default();
        initiated.is_ok()
    });
    agreed.map_err(|why| format!("{why}: {said}"))?;
    Ok(Gateway::new(processes, DEVICE.into()))
}

fn connection(host: Host) -> String {
    format!(
        "connections {{
            peer {{
                version = 2
                local_addrs = {}
                remote_addrs = {}
                mobike = no
                proposals = aes256gcm16-prfsha256-x25519
                local {{
                    auth = psk
                    id = {}
                }}
                remote {{
                    auth = psk
                    id = {}
                }}
                children {{
                    net {{
                        local_ts = {}
                        remote_ts = {}
                        esp_proposals = aes256gcm16
                        rekey_time = 0
                    }}
                }}
            }}
        }}
        secrets {{
            ike {{
                secret = keyway-bench
            }}
        }}\n",
        host.outer(),
        host.other().outer(),
        host.letter(),
        host.other().letter(),
        host.subnet(),
        host.other().subnet(),
    )
}
