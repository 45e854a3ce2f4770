//! A gateway that is killed again and again: no key sees an IV twice, and traffic goes on.

use super::site::{Side, Site, Tunnel, configuration, seen};
use keyway_tests::nightly;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The SPI and IV of an ESP packet in UDP that comes from this address, with its sequence number.
fn sealed(packet: &[u8], from: [u8; 4]) -> Option<(u32, u32, [u8; 8])> {
    let is_udp = packet.first()? >> 4 == 4 && *packet.get(9)? == 17;
    let payload = packet.get(28..)?;
    if !is_udp || packet.get(12..16)? != from || packet.get(22..24)? != 4500_u16.to_be_bytes() {
        return None;
    }
    // A keepalive has one byte.
    let word = |at: usize| Some(u32::from_be_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    Some((word(0)?, word(4)?, payload.get(8..16)?.try_into().ok()?))
}

#[test]
fn no_iv_comes_twice_however_often_it_is_killed() {
    let Some(site) = Site::new() else { return };
    let tunnels = [Tunnel::new(1, "aes-128-gcm", true, true)];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let address = |side| SocketAddr::new(tunnels[0].inner(side), 9000);
    let _b = site.start(Side::B);
    let watcher = site.watch(Side::A);
    let to = site.udp(Side::B, address(Side::B));
    to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (is_over, is_seen) = (AtomicBool::new(false), AtomicBool::new(false));
    let (arrived, last) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut ivs: HashMap<u32, HashSet<[u8; 8]>> = HashMap::new();
    let (mut packets, mut repeated) = (0_u64, 0_u64);
    let (rounds, pause) = if nightly() { (60, 1000) } else { (5, 300) };
    let mut gaps = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            seen(
                &watcher,
                |packet| {
                    if let Some((spi, _, iv)) = sealed(packet, [192, 0, 2, 1]) {
                        packets += 1;
                        repeated += u64::from(!ivs.entry(spi).or_default().insert(iv));
                    }
                },
                || is_seen.load(Ordering::Relaxed),
            );
        });
        scope.spawn(|| {
            let mut buffer = [0; 64];
            while !is_over.load(Ordering::Relaxed) {
                if to.recv(&mut buffer).is_ok() {
                    arrived.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        // The address goes with the device: a socket of each life.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let socket = site.inside(Side::A, || std::net::UdpSocket::bind(address(Side::A)));
                let Ok(socket) = socket else {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                };
                while !is_over.load(Ordering::Relaxed) {
                    if socket
                        .send_to(&last.load(Ordering::Relaxed).to_be_bytes(), address(Side::B))
                        .is_err()
                    {
                        break;
                    }
                    last.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        for round in 0..rounds {
            let (begun, before) = (Instant::now(), arrived.load(Ordering::Relaxed));
            let gateway = site.start(Side::A);
            while arrived.load(Ordering::Relaxed) < before + 10 {
                let waited = begun.elapsed();
                assert!(
                    waited < Duration::from_secs(60),
                    "round {round}: {}",
                    site.status(Side::B)
                );
                thread::sleep(Duration::from_millis(1));
            }
            gaps.push(begun.elapsed());
            thread::sleep(Duration::from_millis(pause));
            gateway.kill();
        }
        is_over.store(true, Ordering::Relaxed);
        is_seen.store(true, Ordering::Relaxed);
    });
    gaps.sort();
    eprintln!("{packets} packets in {rounds} lives; traffic went on within {gaps:?}");
    assert!(packets > 100 * rounds, "{packets} packets were seen");
    assert_eq!(repeated, 0, "of {packets} packets");
    assert_eq!(ivs.len(), 1);
    assert_eq!(site.dropped(Side::B, "in", "replay"), 0);
}

/// One that was sent before a crash is taken by no later life.
#[test]
fn a_replay_from_before_is_refused_after_a_restart() {
    let Some(site) = Site::new() else { return };
    let tunnels = [Tunnel::new(1, "aes-128-gcm", true, true)];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let (_a, b) = site.start_both();
    let watcher = site.watch(Side::A);
    let address = |side| SocketAddr::new(tunnels[0].inner(side), 9000);
    let (from, to) = (site.udp(Side::A, address(Side::A)), site.udp(Side::B, address(Side::B)));
    from.send_to(b"once", address(Side::B)).unwrap();
    assert_eq!(to.recv(&mut [0; 16]).unwrap(), 4);
    let mut kept = Vec::new();
    seen(
        &watcher,
        |packet| {
            if sealed(packet, [192, 0, 2, 1]).is_some() {
                kept.push(packet[28..].to_vec());
            }
        },
        || true,
    );
    assert_eq!(kept.len(), 1);
    assert!(b.stop().success());
    let _b = site.start(Side::B);
    let outside = site.udp(Side::A, SocketAddr::new(Side::A.outer(true), 4600));
    for _ in 0..3 {
        outside.send_to(&kept[0], SocketAddr::new(Side::B.outer(true), 4500)).unwrap();
    }
    keyway_tests::cryptod::eventually("the replays are counted", || {
        site.dropped(Side::B, "in", "replay") == 3
    });
    to.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(to.recv(&mut [0; 16]).is_err());
}
