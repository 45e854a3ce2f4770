//! Claim 2: signatures with a key of the host's, asked for in a guest: by the daemon's rings in the guest's memory, beside
//! how people have that today, p11-kit's remoting through a port between guest and host.
//!
//! Both sides are the same program in the same guest, Debian's kernel in QEMU without KVM, which asks a PKCS#11 module
//! for one ECDSA signature (P-256) after the other. One module is Keyway's, with the device that the daemon serves. The
//! other is p11-kit's client; its socket is handed on to a virtio-serial port, whose other end is `p11-kit server` on
//! the host, and that has Keyway's module load the same key of the same daemon. So the ways are compared, not the
//! signers.

use crate::packet::compile;
use crate::process::Process;
use crate::report::{Claim, Findings, Table, median};
use crate::ring::common::{CLIENT, run_anywhere, run_on, text};
use crate::ring::daemon::Daemon;
use crate::ring::pkcs11::P11_KIT;
use keyway_tests::vm::{Image, Vm};
use keyway_tests::{available, finish, keyway, pkcs11_module};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const GAIN: f64 = 10.0;
/// The time of one side in a round, in seconds.
const WINDOW_S: f64 = 2.0;

const SOURCE: &str = include_str!("signatures.c");
const KEY: &str = "web";
const VM: &str = "bench";

/// Files of the guest, and the name of the port.
const PROGRAM: &str = "/usr/bin/signatures";
const OURS: &str = "/usr/lib/keyway.so";
const THEIRS: &str = "/usr/lib/p11-kit-client.so";
const PORT: &str = "p11-kit";

/// Why it cannot be measured here.
pub fn lacks() -> Option<String> {
    let is_there = available(&["p11-kit", P11_KIT, "cc"]) && Image::build().is_some();
    (!is_there).then(|| "run `cargo xtask peers` first".to_owned())
}

pub fn measure(rounds: usize) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let device = folder.path().join("device");
    // QEMU and p11-kit's server have several threads at work, which the system places best.
    run_anywhere()?;
    let vms = format!("{VM}={}", device.display());
    let daemon = Daemon::start_anywhere(folder.path(), &["--vm", &vms])?;
    let user = format!("user:{}", rustix::process::getuid().as_raw());
    let mut key = Command::new(keyway());
    key.args(["key", "generate", KEY, "--algorithm", "ec-p256", "--for", &user]);
    key.args(["--for", &format!("vm:{VM}"), "--data"]).arg(folder.path());
    let made = finish(&mut key, "");
    if made.code != 0 {
        return Err(made.err);
    }
    let program = compile(folder.path(), "signatures", SOURCE, "")?;
    let image = Image::build().ok_or("there is no kernel to boot")?;
    let image = image.program_at(&program, PROGRAM).program_at(pkcs11_module(), OURS);
    let image = image.program_at(Path::new(P11_KIT), THEIRS).image();
    let chardev = format!("socket,id=device,path={}", device.display());
    let doorbell = "ivshmem-doorbell,chardev=device,vectors=1,bus=rp0";
    let vm = Vm::boot(&image, &["-chardev", &chardev, "-device", doorbell]);
    let server = Server::start(folder.path(), daemon.socket());
    run_on(CLIENT)?;
    let (server, mut ours, mut remoted) = (server?, Vec::new(), Vec::new());
    for _ in 0..rounds {
        remoted.push(server.rate(&vm)?);
        ours.push(rate(&vm, "KEYWAY_SOCKET=/sys/bus/pci/devices", OURS)?);
    }
    let name = "2 ECDSA P-256 with a key of the host's from a guest";
    let peer = "p11-kit, virtio-serial";
    let claims = vec![Claim::rate(name, "a second", &ours, peer, &remoted).demand(GAIN)];
    let title = "2 a signature asked for in a guest, one at a time, us: medians";
    let mut table = Table::new(title, &["the ring in the guest", peer]);
    let show = |figures: &[f64]| format!("{:.0}", 1e6 / median(figures));
    table.rows.push(vec![show(&ours), show(&remoted)]);
    Ok(Findings { claims, tables: vec![table] })
}

/// Signatures a second in the guest, through this module.
fn rate(vm: &Vm, environment: &str, module: &str) -> Result<f64, String> {
    let done = vm.run(&format!("{environment} {PROGRAM} {module} {KEY} {WINDOW_S}"));
    done.out.trim().parse().map_err(|_| format!("{module}: {}", done.err.trim()))
}

/// p11-kit's server on the host, with Keyway's module.
struct Server {
    socket: PathBuf,
    _process: Process,
}

impl Server {
    fn start(folder: &Path, daemon: &Path) -> Result<Server, String> {
        let socket = folder.join("p11-kit");
        let mut command = Command::new("p11-kit");
        command.args(["server", "--foreground", "--provider"]).arg(pkcs11_module());
        command.arg("--name").arg(&socket).arg("pkcs11:token=Keyway");
        command.env("KEYWAY_SOCKET", daemon).stdin(Stdio::null()).stdout(Stdio::null());
        let server = Server { socket, _process: Process::start(&mut command)? };
        let begun = Instant::now();
        while !server.socket.exists() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("p11-kit's server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Signatures a second in the guest, through a port that is there for that long: a connection is good for one
    /// process.
    fn rate(&self, vm: &Vm) -> Result<f64, String> {
        vm.plug(PORT, &self.socket, "virtserialport", "serial.0", &json!({ "name": PORT }));
        let bridge = vm.start(&format!(
            "until port=$(grep -lx {PORT} /sys/class/virtio-ports/*/name); do usleep 10000; done 2>/dev/null
            port=${{port%/name}}
            rm -f /run/p11-kit
            exec {PROGRAM} bridge /run/p11-kit /dev/${{port##*/}}"
        ));
        vm.run("until test -S /run/p11-kit; do usleep 10000; done");
        let rate = rate(vm, "P11_KIT_SERVER_ADDRESS=unix:path=/run/p11-kit", THEIRS);
        vm.unplug(PORT);
        let bridge = vm.wait(&bridge);
        rate.map_err(|why| format!("{why}\n{}", bridge.err))
    }
}
