//! An examination of a host, or of a virtual machine from inside: what it lacks for guests to use the host's daemon.

use crate::finding::Finding;
use keyway_ring::{DEVICES, Device};
use rustix::system::uname;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// QEMU, as this processor's machines have it.
#[cfg(target_arch = "aarch64")]
const QEMU: &str = "qemu-system-aarch64";
#[cfg(not(target_arch = "aarch64"))]
const QEMU: &str = "qemu-system-x86_64";
/// The devices of virtio that are for cryptography.
const VIRTIO_CRYPTO: &str = "0x0014";

/// Examines the system that this process is in: as a guest if it is one, else as a host.
pub fn examine() -> Vec<Finding> {
    if is_guest() { guest() } else { host() }
}

/// A device of shared memory is none of a host's own; and the processor says whether it is a hypervisor's.
fn is_guest() -> bool {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_virtual = flags
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    !ivshmem().is_empty() || !virtio_crypto().is_empty() || is_virtual && !kvm().exists()
}

fn kvm() -> &'static Path {
    Path::new("/dev/kvm")
}

fn host() -> Vec<Finding> {
    let mut all = vec![Finding::good("system", format!("a host, {}", kernel()))];
    all.push(match OpenOptions::new().read(true).write(true).open(kvm()) {
        Ok(_) if is_loaded("kvm_amd") => Finding::warning(
            "kvm",
            "an AMD processor: a guest's kernel maps the device's memory uncached, and each access is slow",
            "measure it in the guest: keyway crypto bench --with remote:/sys/bus/pci/devices",
        ),
        Ok(_) => Finding::good("kvm", "/dev/kvm can be used"),
        Err(why) if why.kind() == ErrorKind::PermissionDenied => Finding::warning(
            "kvm",
            "this user may not use /dev/kvm",
            "add the user that runs QEMU to the group kvm",
        ),
        Err(why) => Finding::warning(
            "kvm",
            format!("/dev/kvm cannot be used: {why}"),
            "without it QEMU interprets its guests (-accel tcg), which works and is slow",
        ),
    });
    all.extend(qemu());
    all
}

/// What QEMU has.
fn qemu() -> Vec<Finding> {
    let said = |arguments: &[&str]| {
        let output = Command::new(QEMU).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(version) = said(&["--version"]) else {
        return vec![Finding::warning(
            "qemu",
            format!("{QEMU} is not there, or does not start"),
            "install it (Debian: qemu-system-x86); another hypervisor needs ivshmem, which Firecracker and Cloud \
             Hypervisor have not",
        )];
    };
    let first = version.lines().next().unwrap_or_default();
    let mut all = vec![Finding::good("qemu", first)];
    for (about, what, list) in [
        ("ivshmem", "ivshmem-doorbell", "-device"),
        ("vhost-user", "cryptodev-vhost-user", "-object"),
    ] {
        let has = said(&[list, "help"]).is_some_and(|text| text.contains(what));
        all.push(match has {
            true => Finding::good(about, format!("{QEMU} has {what}")),
            false => Finding::warning(
                about,
                format!("{QEMU} has no {what}"),
                "install a build of QEMU with it, as Debian's is",
            ),
        });
    }
    all
}

fn guest() -> Vec<Finding> {
    let mut all = vec![Finding::good("system", format!("a virtual machine, {}", kernel()))];
    let (devices, crypto) = (ivshmem(), virtio_crypto());
    if devices.is_empty() && crypto.is_empty() {
        all.push(Finding::fault(
            "device",
            "no device of shared memory is there",
            "on the host: keyway cryptod --vm NAME=SOCKET, and QEMU with -chardev socket,id=keyway,path=SOCKET \
             -device ivshmem-doorbell,chardev=keyway",
        ));
    }
    all.extend(devices.iter().map(|folder| device(folder)));
    if !devices.is_empty() {
        all.extend(lockdown());
    }
    all.extend(crypto.iter().map(|folder| crypto_device(folder)));
    all
}

/// A device of shared memory, as a process of this user finds it.
fn device(folder: &Path) -> Finding {
    let about = "device";
    let shown = folder.display();
    if !folder.join("resource2").exists() {
        return Finding::fault(
            about,
            format!(
                "{shown} has no memory: the bridge that it was plugged into has no room for it"
            ),
            "on the host, reserve it where QEMU starts: -device pcie-root-port,id=rp0,pref64-reserve=1G",
        );
    }
    match Device::open(folder) {
        Ok(_) => Finding::good(about, format!("{shown} reaches a Keyway daemon that serves")),
        Err(why) if why.kind() == ErrorKind::PermissionDenied => Finding::fault(
            about,
            format!("this user may not use it: {why}"),
            format!(
                "let a group: chgrp keyway {shown}/resource0 {shown}/resource2; chmod 660 the two, by a rule of udev"
            ),
        ),
        Err(why) if why.kind() == ErrorKind::ConnectionRefused => Finding::fault(
            about,
            why.to_string(),
            "on the host, take the device out and plug it again once a daemon serves: device_del, chardev-remove, \
             chardev-add, device_add",
        ),
        Err(why) if why.kind() == ErrorKind::NotFound => {
            Finding::unknown(about, format!("{why}: it is for something else"))
        }
        Err(why) => {
            Finding::fault(about, format!("{shown} cannot be used: {why}"), "see the kernel's log")
        }
    }
}

/// A kernel that is locked down lets no process map devices.
fn lockdown() -> Option<Finding> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    (!text.contains("[none]")).then(|| {
        Finding::fault(
            "lockdown",
            format!("the kernel is locked down ({}): no process may map a device", text.trim()),
            "start the virtual machine without Secure Boot, or its kernel with lockdown=none",
        )
    })
}

fn crypto_device(folder: &Path) -> Finding {
    let about = "virtio-crypto";
    let shown = folder.display();
    let driver = fs::read_link(folder.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name);
    if driver.is_none_or(|name| name != "virtio_crypto") {
        return Finding::warning(
            about,
            format!("{shown} has no driver"),
            "modprobe virtio_crypto; Debian's cloud kernel does not have it, linux-image-amd64 does",
        );
    }
    let crypto = fs::read_to_string("/proc/crypto").unwrap_or_default();
    let block = crypto.split("\n\n").find(|block| block.contains("virtio_crypto_aes_cbc"));
    match block {
        Some(block)
            if block.lines().any(|it| it.starts_with("selftest") && it.ends_with("passed")) =>
        {
            Finding::good(
                about,
                format!(
                    "{shown} does cbc(aes); a processor with AES of its own is preferred to it"
                ),
            )
        }
        Some(_) => Finding::fault(
            about,
            format!("{shown}: the kernel's own test of cbc(aes) has failed"),
            "load the driver again: modprobe -r virtio_crypto; modprobe virtio_crypto",
        ),
        None => Finding::unknown(
            about,
            format!(
                "{shown}: its driver has not offered cbc(aes) yet, or the daemon has refused it"
            ),
        ),
    }
}

/// Folders of devices of shared memory.
fn ivshmem() -> Vec<PathBuf> {
    folders(DEVICES, &[("vendor", "0x1af4"), ("device", "0x1110")])
}

fn virtio_crypto() -> Vec<PathBuf> {
    folders("/sys/bus/virtio/devices", &[("device", VIRTIO_CRYPTO)])
}

/// The folders below another one whose files say this.
fn folders(below: &str, files: &[(&str, &str)]) -> Vec<PathBuf> {
    let says = |folder: &Path, (name, value): &(&str, &str)| {
        fs::read_to_string(folder.join(name)).is_ok_and(|text| text.trim() == *value)
    };
    let entries = fs::read_dir(below).into_iter().flatten();
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut all: Vec<_> =
        folders.filter(|folder| files.iter().all(|file| says(folder, file))).collect();
    all.sort_unstable();
    all
}

fn is_loaded(module: &str) -> bool {
    Path::new("/sys/module").join(module).exists()
}

fn kernel() -> String {
    let name = uname();
    format!("Linux {} ({})", name.release().to_string_lossy(), name.machine().to_string_lossy())
}
