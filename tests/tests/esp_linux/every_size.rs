//! All that is allowed, there and back.

use crate::cases::WINDOW;
use crate::cases::{self, Case, Family, Mode, Side};
use crate::frames::{self, Frame, Kind};
use crate::machine;
use crate::probe::{Asks, stream};
use crate::site::{GUEST, INSIDE_MTU, OUTSIDE, Site};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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

/// Nothing is lost, nothing goes in clear text, and nothing comes out of what was replaced once that is over.
#[test]
fn keys_change_while_packets_pass() {
    let is_meant = |case: &Case| {
        let suites = ["aes-256-gcm", "aes-256-cbc-hmac-sha-256"];
        suites.contains(&case.suite.name)
            && case.outer == case.inner
            && case.esn == case.encapsulated
    };
    let Some(mut site) = Site::new(cases::all().into_iter().filter(is_meant).collect()) else {
        return;
    };
    let clear = site.watch();
    for generation in 1..4 {
        let next: Vec<Case> =
            site.cases.iter().map(|case| Case { generation, ..case.clone() }).collect();
        let old = std::mem::replace(&mut site.cases, next);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let askers: Vec<_> = (0..2)
                .map(|part| {
                    let (site, over) = (&site, &over);
                    scope.spawn(move || {
                        while !over.load(Ordering::Relaxed) {
                            for case in site.cases.iter().skip(part).step_by(2) {
                                let asked = site.probe(Asks::Udp, case).ask(8..200);
                                asked.map_err(|why| format!("{}: {why}", case.name()))?;
                            }
                        }
                        Ok::<_, String>(())
                    })
                })
                .collect();
            // The guest takes both, then the gateway takes both and sends the new, then the guest does.
            let all =
                |line: &dyn Fn(&Case) -> String| site.cases.iter().map(line).collect::<String>();
            site.ip(&all(&|case| case.state(Side::Gateway, "")));
            site.configure(Some(INSIDE_MTU));
            site.esp(&["reload"]);
            site.ip(&all(&|case| {
                let (own, other) = (case.inside(Side::Guest), case.inside(Side::Gateway));
                case.state(Side::Guest, "") + &case.policy(Side::Guest, "out", own, other)
            }));
            over.store(true, Ordering::Relaxed);
            let failed: Vec<_> =
                askers.into_iter().filter_map(|it| it.join().unwrap().err()).collect();
            let status = || format!("{:#}\n{}", site.status(), machine::drops(&site.guest));
            assert!(failed.is_empty(), "{}\n{}", failed.join("\n"), status());
        });
        // All of the new one.
        for case in &site.cases {
            site.probe(Asks::Ping, case)
                .ask([100])
                .unwrap_or_else(|why| panic!("{}: {why}", case.name()));
        }
        let gone: String = old
            .iter()
            .flat_map(|case| [Side::Gateway, Side::Guest].map(|from| case.id(from)))
            .map(|id| format!("xfrm state delete {id}\n"))
            .collect();
        site.ip(&gone);
    }
    assert!(site.drops().is_empty(), "{:#}", site.status());
    let clear = clear.lock().unwrap();
    assert!(clear.is_empty(), "{}", clear.join("\n"));
}

/// A way outside that takes less than the rest: the gateway's packets fit it.
#[test]
fn packets_fit_the_way() {
    // With less, 1,280 bytes of IPv6 fit no longer in IPv6 and UDP: the next test has that.
    const MTU: u32 = 1400;
    let is_meant = |case: &Case| {
        let suites = ["chacha20-poly1305", "aes-128-cbc-hmac-sha-256"];
        suites.contains(&case.suite.name) && case.esn
    };
    let Some(mut site) = Site::new(cases::all().into_iter().filter(is_meant).collect()) else {
        return;
    };
    let too_long: Arc<Mutex<Vec<usize>>> = Arc::default();
    let its = too_long.clone();
    site.link.rule(GUEST, move |frame| {
        let bytes = frame.len() - 14;
        let is_cut = Frame::of(&frame).kind != Kind::Link && frames::is_fragment(&frame);
        if bytes > MTU as usize || is_cut {
            its.lock().unwrap().push(bytes);
        }
        vec![frame]
    });
    // The device is as it was for the larger way, or it is for this one.
    for mtu in [Some(INSIDE_MTU), None] {
        site.gateway = None;
        site.namespace.ip(&format!("link set {OUTSIDE} mtu {MTU}"));
        site.configure(mtu);
        site.start();
        for case in &site.cases {
            let (from, to) = (case.inside(Side::Gateway), case.inside(Side::Guest));
            let done = site.namespace.within(|| stream(from, to, 300_000));
            done.unwrap_or_else(|why| panic!("{}: {why}\n{:#}", case.name(), site.status()));
            if mtu.is_none() && case.mode == Mode::Tunnel {
                // What does not fit is cut before it goes in.
                let asked = site.probe(Asks::Udp, case).ask(1200..1400);
                asked.unwrap_or_else(|why| panic!("{}: {why}\n{:#}", case.name(), site.status()));
            }
        }
        let told = site.status()["figures"]["too_big"].as_u64().expect("a count");
        assert_eq!(told > 0, mtu.is_some(), "{:#}", site.status());
        assert!(too_long.lock().unwrap().is_empty(), "{:?}", too_long.lock().unwrap());
    }
}

/// A way outside on which a tunnel has not room for what every way of IPv6 takes: that goes in fragments outside, and so
/// does what any router of IPv4 may fragment.
#[test]
fn what_every_way_takes_goes_through_the_tunnel() {
    const MTU: u32 = 1300;
    let is_meant =
        |case: &Case| case.mode == Mode::Tunnel && case.esn && case.suite.name == "aes-256-gcm";
    let Some(mut site) = Site::new(cases::all().into_iter().filter(is_meant).collect()) else {
        return;
    };
    let fragments: Arc<Mutex<u64>> = Arc::default();
    let its = fragments.clone();
    site.link.rule(GUEST, move |frame| {
        assert!(frame.len() - 14 <= MTU as usize);
        let is_cut = Frame::of(&frame).kind != Kind::Link && frames::is_fragment(&frame);
        *its.lock().unwrap() += u64::from(is_cut);
        vec![frame]
    });
    site.gateway = None;
    site.namespace.ip(&format!("link set {OUTSIDE} mtu {MTU}"));
    site.configure(None);
    site.start();
    for case in &site.cases {
        let (from, to) = (case.inside(Side::Gateway), case.inside(Side::Guest));
        let done = site.namespace.within(|| stream(from, to, 300_000));
        done.unwrap_or_else(|why| panic!("{}: {why}\n{:#}", case.name(), site.status()));
        let asked = site.probe(Asks::Udp, case).ask(1150..1400);
        asked.unwrap_or_else(|why| panic!("{}: {why}\n{:#}", case.name(), site.status()));
    }
    assert!(*fragments.lock().unwrap() > 0);
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
        // Once the gateway's window is there: it takes the high bits from that.
        for sizes in [8..9, 9..48] {
            probe.ask(sizes).unwrap_or_else(|why| panic!("{}: {why}", case.name()));
        }
        if case.esn {
            probe.ask(8..8 + 2 * WINDOW as usize).unwrap();
        }
        site.has_dropped(&before, &[]);
    }
}
