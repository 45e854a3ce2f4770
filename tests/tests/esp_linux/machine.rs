//! The guest that is the gateway's peer in the other tests.

use crate::cases::{self, Case, Side};
use keyway_tests::vm::{Image, UserModeLinux};
use keyway_tests::{available, finish};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

const MODULES: [&str; 17] = [
    "xfrm_user",
    "esp4",
    "esp6",
    "gcm",
    "ghash_generic",
    "ctr",
    "chacha20poly1305",
    "chacha_generic",
    "poly1305_generic",
    "authenc",
    "authencesn",
    "cbc",
    "hmac",
    "echainiv",
    "seqiv",
    // For initialisation vectors.
    "drbg",
    "sha512_generic",
];

/// The file system of guests: `ip`, modules for ESP, `/root/peer`, and the lines for `ip` in `/root/gateway` and
/// `/root/guest` that make the kernel that side of all these cases. `None`, which is said, where something is missing.
pub fn image(cases: &[Case]) -> Option<Image> {
    let mut image = Image::build_for_user_mode()?;
    if !available(&["cc", "ip"]) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let peer = folder.path().join("peer");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/esp_linux/peer.c");
    let mut compile = Command::new("cc");
    compile.args(["-static", "-O2", "-Wall", "-Wextra", source, "-o"]).arg(&peer);
    finish(&mut compile, "").expect(0);
    for module in MODULES {
        image = image.module(module);
    }
    let ip = finish(Command::new("sh").args(["-c", "command -v ip"]), "").expect(0).out;
    image = image.program_at(Path::new(ip.trim()), "/usr/bin/ip");
    image = image.file("/root/peer", &fs::read(peer).unwrap(), 0o755);
    for side in [Side::Gateway, Side::Guest] {
        let mut lines = cases::network(side, "vec0", UserModeLinux::MTU);
        lines += &cases::ends(side, "vec0", cases);
        lines += &cases::let_encapsulated_in();
        lines.extend(cases.iter().map(|case| case.linux(side)));
        let file = format!("/root/{side:?}").to_lowercase();
        image = image.file(&file, lines.as_bytes(), 0o600);
    }
    Some(image.image())
}

/// Boots a guest that is one side, and echoes.
pub fn boot(image: &Image, side: Side) -> (UserModeLinux, OwnedFd) {
    let (guest, network) = UserModeLinux::boot(image, side.ethernet());
    let lines = format!("/root/{side:?}").to_lowercase();
    guest.run(&format!("modprobe -a {}", MODULES.join(" "))).expect(0);
    // The shell takes its own `ip` for the plain name.
    guest.run(&format!("/usr/bin/ip -batch {lines} && /root/peer echo")).expect(0);
    (guest, network)
}

/// Why the guest has dropped packets (Linux, `xfrm_proc.rst`), where it has.
pub fn drops(guest: &UserModeLinux) -> String {
    guest.run("awk '$2' /proc/net/xfrm_stat").expect(0).out
}
