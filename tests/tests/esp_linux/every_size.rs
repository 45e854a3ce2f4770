//! All that is allowed, there and back.

use crate::cases::{self, Case, Family, Mode, Side};
use crate::probe::{Asks, stream};
use crate::site::Site;
use crate::{cases::WINDOW, machine};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of payload, in bytes.
const SIZES: std::ops::RangeInclusive<usize> = 8..=1400;

#[test]
fn packets_of_every_size_pass_in_every_way() {
    let Some(site) = Site::new(cases::all()) else { return };
    let clear = site.watch();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = site.cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for asks in [Asks::Udp, Asks::Ping] {
                        if let Err(why) = site.probe(asks, case).ask(SIZES) {
                            failed.lock().unwrap().push(format!("{}: {why}", case.name()));
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let status = || format!("{:#}\n{}", site.status(), machine::drops(&site.guest));
    assert!(failed.is_empty(), "{}\n{}", failed.join("\n"), status());
    assert!(site.drops().is_empty() && machine::drops(&site.guest).is_empty(), "{}", status());
    let clear = clear.lock().unwrap();
    assert!(clear.is_empty(), "{}", clear.join("\n"));
}

#[test]
fn streams_of_megabytes_come_back_as_they_were() {
    const BYTES: usize = 4 << 20;
    let suites = ["aes-128-gcm", "chacha20-poly1305", "aes-256-cbc-hmac-sha-256"];
    let is_meant = |case: &Case| suites.contains(&case.suite.name) && case.esn;
    let Some(site) = Site::new(cases::all().into_iter().filter(is_meant).collect()) else { return };
    let clear = site.watch();
    for case in &site.cases {
        let (from, to) = (case.inside(Side::Gateway), case.inside(Side::Guest));
        let done = site.namespace.within(|| stream(from, to, BYTES));
        done.unwrap_or_else(|why| panic!("{}: {why}\n{:#}", case.name(), site.status()));
    }
    // Several at once.
    std::thread::scope(|scope| {
        for case in site.cases.iter().filter(|case| case.suite.name == suites[0]) {
            let (from, to) = (case.inside(Side::Gateway), case.inside(Side::Guest));
            let site = &site;
            scope.spawn(move || site.namespace.within(|| stream(from, to, BYTES)).unwrap());
        }
    });
    let clear = clear.lock().unwrap();
    assert!(clear.is_empty(), "{}", clear.join("\n"));
}

/// The guest's number goes over 2^32 with ESN, and to the last of 32 bits without.
#[test]
fn numbers_of_more_than_32_bits_pass() {
    let is_meant = |case: &Case| {
        case.outer == Family::V4 && case.inner == Family::V4 && case.mode == Mode::Tunnel
    };
    let Some(site) = Site::new(cases::all().into_iter().filter(is_meant).collect()) else { return };
    for case in &site.cases {
        let before = site.drops();
        let last = if case.esn { u32::MAX - 20 } else { u32::MAX - 40 };
        let id = case.id(Side::Guest);
        let state = case.state(Side::Guest, &format!("replay-oseq {last}"));
        site.ip(&format!("xfrm state delete {id}\n{state}"));
        let probe = site.probe(Asks::Udp, case);
        probe.ask(8..48).unwrap_or_else(|why| panic!("{}: {why}", case.name()));
        if case.esn {
            probe.ask(8..8 + 2 * WINDOW as usize).unwrap();
        }
        site.has_dropped(&before, &[]);
    }
}
