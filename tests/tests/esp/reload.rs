//! New keys while packets are under way: none is lost.

use super::site::{Side, Site, Tunnel, configuration};
use keyway_tests::cryptod::eventually;
use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Numbers sent from one to the other until it is over; how many there were.
fn send(from: &UdpSocket, to: SocketAddr, sent: &AtomicU64, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let number = sent.load(Ordering::Relaxed);
        from.send_to(&number.to_be_bytes(), to).unwrap();
        sent.store(number + 1, Ordering::Relaxed);
        // No more than this machine carries: what its queues drop is not what is looked for.
        thread::sleep(Duration::from_micros(500));
    }
}

fn receive(socket: &UdpSocket, got: &Mutex<HashSet<u64>>, is_over: &AtomicBool) {
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut buffer = [0; 8];
    loop {
        match socket.recv(&mut buffer) {
            Ok(8) => assert!(
                got.lock().unwrap().insert(u64::from_be_bytes(buffer)),
                "a packet came twice"
            ),
            Ok(other) => panic!("{other} bytes"),
            Err(_) if is_over.load(Ordering::Relaxed) => return,
            Err(_) => {}
        }
    }
}

#[test]
fn new_keys_lose_nothing_and_the_old_ones_go() {
    let Some(site) = Site::new() else { return };
    let old = Tunnel::new(1, "aes-256-gcm", true, true);
    // Another key and other SPIs for the same networks.
    let new = |number| Tunnel {
        networks: old.networks.clone(),
        ..Tunnel::new(number, "chacha20-poly1305", true, true)
    };
    let text = |side, tunnels: &[Tunnel]| {
        configuration(side, tunnels).replace("[outside]", "retire = 2\n[outside]")
    };
    for side in [Side::A, Side::B] {
        site.configure(side, &text(side, std::slice::from_ref(&old)));
    }
    let (a, b) = site.start_both();
    let address = |side| SocketAddr::new(old.inner(side), 9000);
    let sockets = [site.udp(Side::A, address(Side::A)), site.udp(Side::B, address(Side::B))];
    let sent = [AtomicU64::new(0), AtomicU64::new(0)];
    let got = [Mutex::new(HashSet::new()), Mutex::new(HashSet::new())];
    let (is_over, is_read) = (AtomicBool::new(false), AtomicBool::new(false));
    let reload = |side, tunnels: &[Tunnel]| {
        site.configure(side, &text(side, tunnels));
        site.esp(side, &["reload"]).expect(0);
    };
    thread::scope(|scope| {
        for side in [Side::A, Side::B] {
            let (own, other) = (side as usize, side.other() as usize);
            let (is_over, is_read) = (&is_over, &is_read);
            let (sockets, sent, got) = (&sockets, &sent, &got);
            scope.spawn(move || {
                send(&sockets[own], address(side.other()), &sent[own], is_over);
            });
            scope.spawn(move || receive(&sockets[other], &got[own], is_read));
        }
        let mut present = old.clone();
        for number in 2..=4 {
            let next = new(number);
            // Both sides take the new key before one of them uses it.
            for side in [Side::A, Side::B] {
                reload(side, &[present.clone(), next.clone()]);
            }
            for side in [Side::A, Side::B] {
                reload(side, std::slice::from_ref(&next));
            }
            let before = sent[0].load(Ordering::Relaxed);
            eventually("packets go on", || sent[0].load(Ordering::Relaxed) > before + 500);
            present = next;
        }
        is_over.store(true, Ordering::Relaxed);
        let all =
            |way: usize| got[way].lock().unwrap().len() as u64 >= sent[way].load(Ordering::Relaxed);
        // One that is lost does not come however long it is waited for: then the figures say why.
        let begun = std::time::Instant::now();
        while !(all(0) && all(1)) && begun.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(20));
        }
        is_read.store(true, Ordering::Relaxed);
    });
    for way in [0, 1] {
        let (got, sent) =
            (got[way].lock().unwrap().len() as u64, sent[way].load(Ordering::Relaxed));
        assert_eq!(got, sent, "lost\nA: {}\nB: {}", site.status(Side::A), site.status(Side::B));
    }
    eventually("the old ones are gone", || {
        site.status(Side::A)["retired"].as_array().unwrap().is_empty()
    });
    assert!(a.stop().success() && b.stop().success());
}

#[test]
fn a_configuration_with_a_fault_changes_nothing() {
    let Some(site) = Site::new() else { return };
    let tunnels = [Tunnel::new(1, "aes-128-gcm", true, true)];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let (a, _b) = site.start_both();
    let good = configuration(Side::A, &tunnels);
    for (bad, part) in [
        (good.replace("aes-128-gcm", "rot13"), "rot13"),
        (good.replace("10.1.2.0/24", "10.1.2.1/24"), "10.1.2.0/24"),
        (good.replace("4500\"\nesp", "4501\"\nesp"), "start the gateway again"),
        (good.replace("esp0", "esp1"), "start the gateway again"),
    ] {
        assert_ne!(bad, good);
        site.configure(Side::A, &bad);
        let refused = site.esp(Side::A, &["reload"]).expect(1);
        assert!(refused.err.contains(part), "{}", refused.err);
    }
    // By a signal it is said.
    a.signal(rustix::process::Signal::HUP);
    a.says("note", "not reloaded");
    let address = |side| SocketAddr::new(tunnels[0].inner(side), 9000);
    let (from, to) = (site.udp(Side::A, address(Side::A)), site.udp(Side::B, address(Side::B)));
    from.send_to(b"text", address(Side::B)).unwrap();
    assert_eq!(to.recv(&mut [0; 16]).unwrap(), 4);
    site.configure(Side::A, &good);
    a.signal(rustix::process::Signal::HUP);
    a.says("note", "1 as they were");
}
