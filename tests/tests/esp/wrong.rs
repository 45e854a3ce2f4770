//! Configurations and places that are wrong: one line, which says what to do.

use super::site::{Side, Site, Tunnel, configuration};
use keyway_tests::{finish, keyway, secret};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn a_wrong_configuration_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("esp.toml");
    let check = |text: &str| {
        secret(&file, text);
        finish(Command::new(keyway()).args(["esp", "check"]).arg(&file), "")
    };
    let good = configuration(Side::A, &[Tunnel::new(1, "aes-256-gcm", true, true)]);
    check(&good).expect(0);
    for (from, to, part) in [
        ("spi = \"0x1002\"", "spi = \"255\"", "0x100"),
        ("aes-256-gcm", "aes-128-gcm", "the last 4 the salt"),
        ("remote = \"192.0.2.2:4500\"", "remote = \"gateway\"", "198.51.100.1:4500"),
        ("name = \"t1\"", "name = \"t1\"\nspeed = 9", "speed"),
    ] {
        let wrong = good.replace(from, to);
        assert_ne!(wrong, good);
        let line = wrong.lines().position(|line| !good.lines().any(|it| it == line)).unwrap() + 1;
        let refused = check(&wrong).expect(1);
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
        // A fault of the algorithm shows at its key.
        let near = (line..line + 2).any(|line| refused.err.contains(&format!("esp.toml:{line}:")));
        assert!(near, "line {line}: {}", refused.err);
        assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    }
    // Keys that others may read.
    check(&good).expect(0);
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let refused = finish(Command::new(keyway()).args(["esp", "check"]).arg(&file), "").expect(1);
    assert!(refused.err.contains("chmod 600"), "{}", refused.err);
}

#[test]
fn sealed_packets_that_would_come_back_into_the_device_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("esp.toml");
    let good = configuration(Side::A, &[Tunnel::new(1, "aes-256-gcm", true, true)]);
    let all = good.replace("remote = \"10.1.2.0/24\"", "remote = \"0.0.0.0/0\"");
    secret(&file, &all);
    let check = || finish(Command::new(keyway()).args(["esp", "check"]).arg(&file), "");
    // Its sockets are bound to the wire.
    check().expect(0);
    secret(&file, &all.replace("interface = \"wire-a\"\n", ""));
    let refused = check().expect(1);
    assert!(refused.err.contains("interface = \"eth0\""), "{}", refused.err);
    assert!(refused.err.contains("ip rule add not fwmark"), "{}", refused.err);
}

#[test]
fn two_gateways_do_not_share_what_is_one_gateways() {
    let Some(site) = Site::new() else { return };
    site.configure(Side::A, &configuration(Side::A, &[Tunnel::new(1, "aes-256-gcm", true, true)]));
    let gateway = site.start(Side::A);
    let mut command = site.command(Side::A, &site.file(Side::A, "state"));
    let refused = finish(&mut command, "");
    assert!(refused.out.contains("another gateway uses"), "{}{}", refused.out, refused.err);
    let mut command = site.command(Side::A, &site.file(Side::A, "other"));
    let refused = finish(&mut command, "");
    assert!(refused.out.contains("another gateway listens"), "{}{}", refused.out, refused.err);
    assert!(gateway.stop().success());
    let gone = site.esp(Side::A, &["status"]).expect(1);
    assert!(gone.err.contains("keyway esp up"), "{}", gone.err);
}
