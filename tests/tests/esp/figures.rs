//! The figures of a gateway, where its user looks for them.

use super::site::{Side, Site, Tunnel, configuration};
use keyway_tests::{finish, keyway};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Command;

#[test]
fn packets_and_drops_are_seen_in_status_top_and_metrics() {
    let Some(site) = Site::new() else { return };
    let tunnels = [Tunnel::new(1, "aes-256-gcm", true, true)];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let (_a, _b) = site.start_both();
    let address = |side| SocketAddr::new(tunnels[0].inner(side), 9000);
    let (from, to) = (site.udp(Side::A, address(Side::A)), site.udp(Side::B, address(Side::B)));
    for _ in 0..3 {
        from.send_to(&[7; 72], address(Side::B)).unwrap();
        assert_eq!(to.recv(&mut [0; 128]).unwrap(), 72);
    }
    let outside = site.udp(Side::A, SocketAddr::new(Side::A.outer(true), 4600));
    outside.send_to(&[9; 64], SocketAddr::new(Side::B.outer(true), 4500)).unwrap();
    keyway_tests::cryptod::eventually("it is counted", || site.dropped(Side::B, "in", "spi") == 1);
    let words = site.esp(Side::B, &["status"]).expect(0).out;
    for part in ["t1: tunnel mode, aes-256-gcm, to 192.0.2.1:4500", "fresh", "dropped, spi: 1"] {
        assert!(words.contains(part), "{words}");
    }
    let state = site.file(Side::B, "state");
    let looked = |command: &str, flags: &[&str]| {
        let mut all = Command::new(keyway());
        all.arg(command).arg("--esp").arg(&state).args(flags).current_dir(site.folder.path());
        finish(&mut all, "").expect(0).out
    };
    // The directory's folder is not there, and no part of this.
    let metrics = looked("metrics", &[]);
    for line in [
        "keyway_up{process=\"esp\"} 1",
        "keyway_esp_packets_total{direction=\"in\",process=\"esp\"} 3",
        "keyway_esp_bytes_total{direction=\"in\",process=\"esp\"} 300",
        "keyway_esp_drop_packets_total{direction=\"in\",cause=\"spi\",process=\"esp\"} 1",
        "keyway_esp_drop_bytes_total{direction=\"in\",cause=\"spi\",process=\"esp\"} 64",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line}\n{metrics}");
    }
    let json = looked("top", &["--json", "--count", "1", "--interval", "0.1"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["esp"]["per_second"]["esp.in.packets"].is_number(), "{json}");
    let lines = looked("top", &["--count", "1", "--interval", "0.1"]);
    assert!(lines.contains("too-big") && lines.lines().count() == 2, "{lines}");
}
