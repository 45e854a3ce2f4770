//! Claim 4: the device that the daemon gives a guest's kernel, beside the one that QEMU has built in.
//!
//! One guest, Debian's kernel in QEMU without KVM, has both devices, and its driver gets one at a time. A program in it
//! has texts encrypted by the kernel (AF_ALG, AES-128-CBC), one after the other. QEMU encrypts for the built-in one
//! itself; for the daemon's it wakes a process, and that asks the daemon.

use crate::packet::compile;
use crate::report::{Claim, Findings, Table, median};
use crate::ring::common::{CLIENT, column, run_anywhere, run_on, text};
use crate::ring::daemon::Daemon;
use keyway_tests::available;
use keyway_tests::vm::{Image, Vm};

/// The most that a request may take of what it takes with the built-in one.
const MOST: f64 = 1.25;
/// Bytes of a text. The built-in one hangs with 65,536.
const SIZES: [usize; 5] = [64, 256, 1024, 4096, 16_384];
/// The time of a size in a round, in seconds.
const WINDOW_S: f64 = 0.5;

const SOURCE: &str = include_str!("device.c");
const VM: &str = "bench";
const PROGRAM: &str = "/usr/bin/device";
/// The slots of the devices: the daemon's, and QEMU's.
const SLOTS: [&str; 2] = ["10", "11"];

/// Why it cannot be measured here.
pub fn lacks() -> Option<String> {
    let is_there = available(&["cc"]) && Image::build().is_some();
    (!is_there).then(|| "run `cargo xtask peers` first".to_owned())
}

pub fn measure(rounds: usize) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let socket = folder.path().join("vm").display().to_string();
    let program = compile(folder.path(), "device", SOURCE, "")?;
    let image = Image::build().ok_or("there is no kernel to boot")?;
    let image = image.module("virtio_crypto").module("algif_skcipher");
    let image = image.program_at(&program, PROGRAM).image();
    // The daemon's device is a process too, and QEMU has several threads at work: the system places them best.
    run_anywhere()?;
    let daemon =
        Daemon::start_anywhere(folder.path(), &["--vhost-user", &format!("{VM}={socket}")])?;
    let chardev = format!("socket,id=daemon,path={socket}");
    // With MSI-X, QEMU 7.2 ends where it has no KVM and the device is not its own.
    let [first, second] = [("first", SLOTS[0]), ("second", SLOTS[1])]
        .map(|(id, slot)| format!("virtio-crypto-pci,cryptodev={id},addr=0x{slot},vectors=0"));
    let arguments = [
        ["-chardev", &chardev],
        ["-object", "cryptodev-vhost-user,id=first,chardev=daemon"],
        ["-object", "cryptodev-backend-builtin,id=second"],
        ["-device", &first],
        ["-device", &second],
    ];
    let vm = Vm::boot(&image, arguments.as_flattened());
    run_on(CLIENT)?;
    vm.run("modprobe algif_skcipher");
    let mut figures = [const { Vec::new() }; SLOTS.len()];
    for _ in 0..rounds {
        for (figures, slot) in figures.iter_mut().zip(SLOTS) {
            figures.push(turn(&vm, slot)?);
        }
    }
    drop(daemon);
    let mut found = Findings::default();
    let title = "4 a request, us: medians";
    let peer = "QEMU's builtin device";
    let mut table = Table::new(title, &["bytes", "the daemon's device", peer]);
    for (index, size) in SIZES.into_iter().enumerate() {
        let [ours, theirs] = [0, 1].map(|side: usize| column(&figures[side], index));
        let name = format!("4 AES-128-CBC of {size} B by a guest's kernel");
        found.claims.push(Claim::cost(&name, "us", &ours, peer, &theirs).demand(1.0 / MOST));
        let show = |figures: &[f64]| format!("{:.0}", median(figures));
        table.rows.push(vec![size.to_string(), show(&ours), show(&theirs)]);
    }
    found.tables.push(table);
    Ok(found)
}

/// Microseconds of a request of each size, by the device in this slot. The driver has no other.
fn turn(vm: &Vm, slot: &str) -> Result<[f64; SIZES.len()], String> {
    let sizes = SIZES.map(|size| size.to_string()).join(" ");
    let done = vm.run(&format!(
        "cd /sys/bus/virtio/drivers/virtio_crypto || modprobe virtio_crypto && cd /sys/bus/virtio/drivers/virtio_crypto
        for device in virtio*; do test ! -e $device || echo $device >unbind; done
        device=$(ls -d /sys/bus/pci/devices/0000:00:{slot}.0/virtio*)
        echo ${{device##*/}} >bind
        {PROGRAM} {WINDOW_S} {sizes}"
    ));
    let mut figures = [0.0; SIZES.len()];
    let mut lines = done.out.lines();
    for figure in &mut figures {
        let line = lines.next().and_then(|line| line.split_once(' '));
        let value = line.and_then(|(_, value)| value.parse().ok());
        *figure = value.ok_or_else(|| format!("the device in slot {slot}: {}", done.err.trim()))?;
    }
    Ok(figures)
}
