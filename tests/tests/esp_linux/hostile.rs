//! What a network does to packets, and what an attacker who sees and sends all does: what is allowed arrives once, no
//! other packet does, and the gateway says why.

use crate::cases::{self, Case, Family, Mode, Side};
use crate::frames::{self, Frame};
use crate::machine;
use crate::probe::{Asks, Probe, stream};
use crate::site::{GATEWAY, GUEST, INSIDE, Site};
use keyway_tests::cryptod::eventually;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A few that have all of modes, families, ESN, encapsulations and kinds of algorithms.
fn some() -> Vec<Case> {
    let wanted = [
        ("aes-256-gcm", Mode::Tunnel, Family::V4, Family::V4, true, true),
        ("aes-128-cbc-hmac-sha-256", Mode::Tunnel, Family::V6, Family::V4, true, false),
        ("chacha20-poly1305", Mode::Transport, Family::V4, Family::V4, true, false),
        ("aes-256-cbc-hmac-sha-1", Mode::Transport, Family::V6, Family::V6, false, true),
        ("aes-128-gcm", Mode::Tunnel, Family::V4, Family::V6, false, false),
    ];
    let is_wanted = |case: &Case| {
        let shape =
            (case.suite.name, case.mode, case.outer, case.inner, case.esn, case.encapsulated);
        wanted.contains(&shape)
    };
    let some: Vec<Case> = cases::all().into_iter().filter(is_wanted).collect();
    assert_eq!(some.len(), wanted.len());
    some
}

/// Has the guest answer packets of these sizes, and keeps the frames with its answers back.
fn answers(
    site: &Site,
    probe: &Probe,
    sizes: impl ExactSizeIterator<Item = usize>,
) -> Vec<Vec<u8>> {
    let (count, held) = (sizes.len(), site.hold(GATEWAY));
    for bytes in sizes {
        probe.send(bytes).unwrap();
    }
    let frames = (0..count).map(|_| held.recv_timeout(Duration::from_secs(30)).expect("an answer"));
    let frames = frames.collect();
    site.link.pass(GATEWAY);
    frames
}

/// The sizes of all answers that come before one that is asked for now.
fn arrived(probe: &Probe, last: usize) -> Vec<usize> {
    probe.patience(Duration::from_secs(30)).unwrap();
    probe.send(last).unwrap();
    let mut sizes = Vec::new();
    loop {
        match probe.receive().unwrap().expect("the last answer") {
            bytes if bytes == last => return sizes,
            bytes => sizes.push(bytes),
        }
    }
}

#[test]
fn forged_packets_do_not_arrive_and_the_true_one_still_does() {
    let Some(site) = Site::new(some()) else { return };
    for case in &site.cases {
        let probe = site.probe(Asks::Udp, case);
        probe.ask(8..12).unwrap();
        let good = answers(&site, &probe, [100].into_iter()).remove(0);
        let good_frame = Frame::of(&good);
        let esp = good_frame.esp().unwrap();
        let before = site.drops();
        // Each bit.
        let mut sent = 0;
        for bit in 0..esp.len() * 8 {
            let mut forged = esp.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            let spi = u32::from_be_bytes(forged[..4].try_into().unwrap());
            // Those of other pairs are others' packets then, and not authentic as well.
            if spi != 0 && spi != 0xffff_ffff {
                site.link.send(GATEWAY, &good_frame.with_esp(&forged));
                sent += 1;
            }
        }
        let total = |drops: &crate::site::Drops| drops.values().sum::<u64>();
        eventually("all are dropped", || total(&site.drops_since(&before)) >= sent);
        let drops = site.drops_since(&before);
        let of = |cause: &str| drops.get(cause).copied().unwrap_or(0);
        // Some of the other numbers were received already, some are too old; some other SPIs are there.
        let of_others = of("in.malformed");
        let all = of("in.spi") + of("in.replay") + of("in.icv") + of_others;
        assert!(all == sent && of_others <= 4, "{}: {drops:?}", case.name());
        assert!(of("in.icv") >= sent - 64 && of("in.spi") >= 25, "{}: {drops:?}", case.name());
        // Each length, and longer ones.
        let before = site.drops();
        let mut sent = 0;
        for bytes in 1..esp.len() + 20 {
            let mut cut = esp.to_vec();
            cut.resize(bytes, 0xab);
            if bytes != esp.len() {
                site.link.send(GATEWAY, &good_frame.with_esp(&cut));
                sent += 1;
            }
        }
        eventually("all are dropped", || total(&site.drops_since(&before)) >= sent);
        let drops = site.drops_since(&before);
        let of = |cause: &str| drops.get(cause).copied().unwrap_or(0);
        assert_eq!(of("in.malformed") + of("in.icv"), sent, "{}: {drops:?}", case.name());
        assert!(of("in.malformed") >= 8, "{}: {drops:?}", case.name());
        // Numbers far ahead, which would move the window if they were believed.
        let before = site.drops();
        let number = u32::from_be_bytes(esp[4..8].try_into().unwrap());
        for ahead in [1000, 1 << 16, 1 << 31, u32::MAX - number - 1] {
            let mut forged = esp.to_vec();
            forged[4..8].copy_from_slice(&number.wrapping_add(ahead).to_be_bytes());
            site.link.send(GATEWAY, &good_frame.with_esp(&forged));
        }
        eventually("all are dropped", || total(&site.drops_since(&before)) >= 4);
        assert_eq!(site.drops_since(&before).keys().collect::<Vec<_>>(), ["in.icv"]);
        // The true one, and copies of it.
        let before = site.drops();
        for _ in 0..4 {
            site.link.send(GATEWAY, &good);
        }
        assert_eq!(arrived(&probe, 12), [100], "{}", case.name());
        site.has_dropped(&before, &[("in.replay", 3)]);
    }
}

#[test]
fn the_window_is_as_wide_as_it_says() {
    let Some(site) = Site::new(some()) else { return };
    let width = cases::WINDOW as usize;
    for case in &site.cases {
        let probe = site.probe(Asks::Udp, case);
        let frames = answers(&site, &probe, 100..100 + 2 * width);
        let before = site.drops();
        let last = frames.len() - 1;
        // The last, the first that it is too late for, and the last that it is not.
        for at in [last, last - width, last - width + 1, last] {
            site.link.send(GATEWAY, &frames[at]);
        }
        assert_eq!(arrived(&probe, 8), [100 + last, 100 + last - width + 1], "{}", case.name());
        // With ESN a number left of the window is taken for one with greater high bits (RFC 4303, appendix A2.1), unless
        // it came together with the one that has moved the window.
        eventually("two are dropped", || site.drops_since(&before).values().sum::<u64>() >= 2);
        let drops = site.drops_since(&before);
        let [replay, icv] = ["in.replay", "in.icv"].map(|it| drops.get(it).copied().unwrap_or(0));
        assert_eq!(replay + icv, 2, "{}: {drops:?}", case.name());
        assert!(replay == 2 || replay == 1 && case.esn, "{}: {drops:?}", case.name());
        // The answer to the last question has moved the window by one.
        let before = site.drops();
        for frame in frames[last - width + 2..last].iter().rev() {
            site.link.send(GATEWAY, frame);
        }
        let late: Vec<usize> = (last - width + 2..last).rev().map(|at| 100 + at).collect();
        assert_eq!(arrived(&probe, 8), late, "{}", case.name());
        site.has_dropped(&before, &[]);
    }
}

/// A rule that gives frames on in groups of so many, the last first.
fn turned(group: usize) -> impl FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send {
    let mut waiting = Vec::new();
    move |frame| {
        if Frame::of(&frame).esp().is_none() {
            return vec![frame];
        }
        waiting.push(frame);
        if waiting.len() < group {
            return Vec::new();
        }
        waiting.reverse();
        std::mem::take(&mut waiting)
    }
}

/// A rule that loses every so many-th ESP packet, and counts those.
fn lossy(
    every: usize,
    lost: &Arc<AtomicUsize>,
) -> impl FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + use<> {
    let (mut count, lost) = (0, lost.clone());
    move |frame| {
        count += usize::from(Frame::of(&frame).esp().is_some());
        if Frame::of(&frame).esp().is_none() || count % every != 0 {
            return vec![frame];
        }
        lost.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    }
}

#[test]
fn a_network_that_loses_turns_copies_and_fragments() {
    let Some(site) = Site::new(some()) else { return };
    for case in &site.cases {
        let name = case.name();
        let probe = site.probe(Asks::Udp, case);
        let before = site.drops();
        for end in [GATEWAY, GUEST] {
            site.link.rule(end, turned(8));
        }
        probe.ask(8..408).unwrap_or_else(|why| panic!("{name}: {why}"));
        site.has_dropped(&before, &[]);
        for end in [GATEWAY, GUEST] {
            site.link.rule(end, |frame| vec![frame.clone(), frame]);
        }
        probe.ask(8..408).unwrap_or_else(|why| panic!("{name}: {why}"));
        site.has_dropped(&before, &[("in.replay", 400)]);
        // Each third question and each fourth answer.
        let lost = Arc::new(AtomicUsize::new(0));
        site.link.rule(GUEST, lossy(3, &lost));
        site.link.rule(GATEWAY, lossy(4, &lost));
        let before = site.drops();
        probe.patience(Duration::from_secs(30)).unwrap();
        let mut came = BTreeSet::new();
        for from in (8..308).step_by(30) {
            (from..from + 30).for_each(|bytes| probe.send(bytes).unwrap());
            let sent = from + 30 - 8;
            while came.len() < sent / 2 {
                assert!(came.insert(probe.receive().unwrap().expect("an answer")), "{name}");
            }
        }
        eventually("the others are lost", || lost.load(Ordering::Relaxed) >= 150);
        for end in [GATEWAY, GUEST] {
            site.link.pass(end);
        }
        assert_eq!(arrived(&probe, 400), [] as [usize; 0], "{name}");
        site.has_dropped(&before, &[]);
        // Fragments of what is outside, in the order that a host does not expect.
        for end in [GATEWAY, GUEST] {
            let mut identification = 0;
            site.link.rule(end, move |frame| match Frame::of(&frame).esp() {
                Some(esp) if esp.len() > 100 => {
                    identification += 1;
                    let [first, second] = frames::fragments(&frame, 64, identification);
                    vec![second, first]
                }
                _ => vec![frame],
            });
        }
        probe.ask((8..1400).step_by(9)).unwrap_or_else(|why| panic!("{name}: {why}"));
        site.has_dropped(&before, &[]);
        for end in [GATEWAY, GUEST] {
            site.link.pass(end);
        }
    }
    // Streams over such a network, which have packets left when they are over.
    for case in &site.cases {
        for end in [GATEWAY, GUEST] {
            let (mut lose, mut turn) = (lossy(97, &Arc::default()), turned(2));
            site.link.rule(end, move |frame| lose(frame).into_iter().flat_map(&mut turn).collect());
        }
        let (from, to) = (case.inside(Side::Gateway), case.inside(Side::Guest));
        let done = site.namespace.within(|| stream(from, to, 300_000));
        done.unwrap_or_else(|why| panic!("{}: {why}", case.name()));
    }
}

#[test]
fn what_no_selector_allows_does_not_come_out() {
    let Some(site) = Site::new(some()) else { return };
    let stranger: IpAddr = Ipv4Addr::new(10, 66, 0, 1).into();
    let other_host: IpAddr = Ipv4Addr::new(10, 1, 0, 77).into();
    site.ip(&format!("address add {stranger} dev lo\n"));
    let (v4, v6) = (Family::V4, Family::V6);
    let first = site.case(|case| case.mode == Mode::Tunnel && (case.outer, case.inner) == (v4, v4));
    let mixed = site.case(|case| case.mode == Mode::Tunnel && (case.outer, case.inner) == (v6, v4));
    let gateway = first.inside(Side::Gateway);
    let own = first.inside(Side::Guest);
    // From an address that is not the peer's, to one that is not ours, and as another peer.
    for (from, to) in [(stranger, gateway), (own, other_host), (mixed.inside(Side::Guest), gateway)]
    {
        let before = site.drops();
        let link = cases::link(Side::Gateway, v4);
        let mut lines = String::new();
        if to == other_host {
            lines += &format!("route add {to} via {link} dev vec0\n");
        }
        if from == mixed.inside(Side::Guest) {
            let given = mixed.policy(Side::Guest, "out", from, to).replace(" update ", " delete ");
            lines += given.split(" priority").next().unwrap();
            lines += "\n";
        }
        site.ip(&(lines + &first.policy(Side::Guest, "out", from, to)));
        site.guest.run(&format!("ping -c 1 -W 1 -I {from} {to}")).expect(1);
        site.has_dropped(&before, &[("in.selectors", 1)]);
    }
    // In transport mode the outer addresses are the inner ones.
    for case in site.cases.iter().filter(|case| case.mode == Mode::Transport) {
        let probe = site.probe(Asks::Udp, case);
        let good = answers(&site, &probe, [100].into_iter()).remove(0);
        let before = site.drops();
        site.link.send(GATEWAY, &frames::from(&good, cases::link(Side::Guest, case.outer)));
        site.has_dropped(&before, &[("in.selectors", 1)]);
    }
    // Nor does it go in: there is a route to it, and no selector.
    site.namespace.ip(&format!("route add {stranger} dev {INSIDE}\n"));
    let before = site.drops();
    site.probe_from(Asks::Udp, gateway, stranger, 1).send(100).unwrap();
    site.has_dropped(&before, &[("out.selectors", 1)]);
}

#[test]
fn clear_text_is_not_taken_for_what_came_out_of_a_tunnel() {
    let is_meant = |case: &Case| case.mode == Mode::Tunnel && case.inner == Family::V4;
    let Some(site) = Site::new(some().into_iter().filter(is_meant).collect()) else { return };
    // As the gateway says that the system is to be set.
    let mut shell = site.namespace.command("sh");
    let strict = "echo 1 >/proc/sys/net/ipv4/conf/all/rp_filter";
    keyway_tests::finish(shell.args(["-c", strict]), "").expect(0);
    for case in &site.cases {
        let (ours, theirs) = (case.inside(Side::Gateway), case.inside(Side::Guest));
        let probe = site.probe(Asks::Udp, case);
        let good = answers(&site, &probe, [100].into_iter()).remove(0);
        let clear = site.watch();
        let before = site.drops();
        // A datagram to a port of ours that is open, and one to the guest's echo.
        let socket = site.namespace.within(|| std::net::UdpSocket::bind((ours, 0))).unwrap();
        let port = socket.local_addr().unwrap().port();
        site.link.send(GATEWAY, &frames::datagram(&good, theirs, ours, port, b"in clear text"));
        let had = machine::drops(&site.guest);
        site.link
            .send(GUEST, &frames::datagram(&swapped(&good), ours, theirs, 7, b"in clear text"));
        assert_eq!(arrived(&probe, 12), [] as [usize; 0]);
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0; 100]).is_err(), "{}", case.name());
        site.has_dropped(&before, &[]);
        eventually("the guest says so", || machine::drops(&site.guest) != had);
        assert!(clear.lock().unwrap().is_empty());
    }
    // Other things that come to its port.
    let case = site.case(|case| case.encapsulated);
    let probe = site.probe(Asks::Udp, case);
    let good = answers(&site, &probe, [100].into_iter()).remove(0);
    let (from, to) = (case.outside(Side::Guest), case.outside(Side::Gateway));
    for (payload, drops) in [
        (&b"\0\0\0\0a message of a key exchange"[..], &[("in.ike", 1)][..]),
        (b"\xff", &[]),
        (b"", &[("in.malformed", 1)]),
        (b"abc", &[("in.malformed", 1)]),
        (b"no security association at all", &[("in.spi", 1)]),
    ] {
        let before = site.drops();
        site.link.send(GATEWAY, &frames::datagram(&good, from, to, 4500, payload));
        site.has_dropped(&before, drops);
    }
}

/// The frame's Ethernet header for the other way.
fn swapped(frame: &[u8]) -> Vec<u8> {
    [&frame[6..12], &frame[..6]].concat()
}

#[test]
fn congestion_on_the_way_is_told() {
    let Some(site) = Site::new(some()) else { return };
    const NOT_ECT: u8 = 0;
    const ECT_1: u8 = 1;
    const ECT_0: u8 = 2;
    const CE: u8 = 3;
    for case in site.cases.iter().filter(|case| case.mode == Mode::Tunnel) {
        // The kernel answers a ping with its bits.
        let probe = site.probe(Asks::Ping, case);
        probe.patience(Duration::from_secs(30)).unwrap();
        for inner in [NOT_ECT, ECT_1, ECT_0, CE] {
            let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
            let its = seen.clone();
            site.link.rule(GUEST, move |frame| {
                if Frame::of(&frame).esp().is_some() {
                    its.lock().unwrap().push(frames::ecn(&frame));
                }
                vec![frame]
            });
            probe.set_class(inner).unwrap();
            probe.ask([100]).unwrap();
            // As it is inside (RFC 6040 § 4.1).
            assert_eq!(*seen.lock().unwrap(), [inner], "{}", case.name());
            site.link.pass(GUEST);
            let answers = answers(&site, &probe, [200].into_iter());
            let mut marked = answers[0].clone();
            frames::set_ecn(&mut marked, CE);
            let before = site.drops();
            site.link.send(GATEWAY, &marked);
            // A packet that cannot say that it met congestion is lost to it (§ 4.2).
            if inner == NOT_ECT {
                site.has_dropped(&before, &[("in.ecn", 1)]);
            } else {
                let (bytes, class) = probe.receive_with_class().unwrap().expect("an answer");
                assert_eq!(bytes, 200);
                if case.inner == Family::V4 {
                    assert_eq!(class & 3, CE, "{}", case.name());
                }
                site.has_dropped(&before, &[]);
            }
        }
    }
}

/// What the gateway has sent so far.
#[derive(Default)]
struct Seen {
    /// By SPI: numbers, and initialisation vectors or the beginnings of them.
    numbers: BTreeSet<(u32, u32)>,
    vectors: BTreeSet<(u32, Vec<u8>)>,
    twice: Vec<String>,
}

impl Seen {
    fn note(&mut self, frame: &Frame<'_>) {
        if let (Some((spi, number)), Some(esp)) = (frame.spi_and_number(), frame.esp()) {
            let new = self.vectors.insert((spi, esp[8..16].to_vec()));
            if !self.numbers.insert((spi, number)) || !new {
                self.twice.push(format!("{spi:#x}: {number}"));
            }
        }
    }
}

#[test]
fn no_number_is_used_twice_whatever_ends_the_gateway() {
    let Some(mut site) = Site::new(some()) else { return };
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let its = seen.clone();
    site.link.rule(GUEST, move |bytes| {
        its.lock().unwrap().note(&Frame::of(&bytes));
        vec![bytes]
    });
    for end in ["kill", "term", "kill", "kill"] {
        for case in &site.cases {
            let probe = site.probe(Asks::Udp, case);
            probe.ask(8..200).unwrap_or_else(|why| panic!("{}: {why}", case.name()));
        }
        // While packets go out.
        let case = &site.cases[0];
        let probe = site.probe(Asks::Udp, case);
        let numbers = || seen.lock().unwrap().numbers.len();
        let before = numbers();
        for bytes in 200..232 {
            probe.send(bytes).unwrap();
        }
        eventually("packets go out", || numbers() > before);
        let mut gateway = site.gateway.take().expect("a gateway");
        if end == "kill" {
            drop(gateway);
        } else {
            gateway.signal(rustix::process::Signal::TERM);
            assert_eq!(gateway.wait(), Some(0));
        }
        site.start();
    }
    let seen = seen.lock().unwrap();
    assert!(seen.twice.is_empty(), "{:?}", seen.twice);
    let numbers = seen.numbers.len();
    assert!(numbers > 4 * 5 * 192, "{numbers} numbers");
    // Linux's window has seen none twice either, nor one that is too old.
    let drops = machine::drops(&site.guest);
    assert!(!drops.contains("SeqError"), "{drops}");
}
