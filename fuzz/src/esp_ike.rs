//! What charon says to the ESP gateway, or a program that took its place: the gateway has what was asked, or refuses it.

use keyway_drivers::engine;
use keyway_engine::Engine;
use keyway_esp::Life;
use keyway_esp_gateway::clock::Clock;
use keyway_esp_gateway::ike::message::{Request, arrived, packet, request};
use keyway_esp_gateway::ike::negotiated::{Carries, Negotiated};
use std::collections::HashSet;

thread_local! {
    static ENGINE: Engine = engine();
}

/// Cuts the bytes into messages, each behind its length, and says them to a gateway without sockets. A packet is the same
/// after it was read and written again.
pub fn esp_ike(data: &[u8]) {
    if let Ok(read) = packet(data) {
        let again = arrived(read.source, read.destination, read.payload);
        assert_eq!(packet(&again), Ok(read));
    }
    let mut rest = data;
    let mut negotiated =
        ENGINE.with(|engine| Negotiated::new(engine.clone(), Carries { udp: true, raw: true }));
    let clock = Clock::set();
    // One that the configuration has.
    let is_taken = |spi| spi == 0x1001;
    while let [high, low, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (message, others) = behind.split_at(length);
        rest = others;
        let Ok((number, asked)) = request(message) else { continue };
        let (answer, is_changed) = negotiated.answer((number, &asked), clock, is_taken);
        assert_eq!((answer[0], &answer[4..8]), (64, &number.to_be_bytes()[..]));
        let is_refused = answer[2..4] != [0, 0];
        assert!(!(is_refused && is_changed), "a refusal changes nothing");
        if is_refused {
            assert!(
                answer.len() > 8 && std::str::from_utf8(&answer[8..]).is_ok(),
                "it says no reason"
            );
        }
        match asked {
            Request::AddSa(sa) if !is_refused => {
                assert!(sa.name.spi >= 256, "an SPI that is reserved");
                let mut shown = negotiated.show(clock).into_iter();
                assert!(shown.any(|it| it.name == sa.name && it.is_inbound == sa.is_inbound));
            }
            Request::FlushSas => assert!(negotiated.show(clock).is_empty()),
            Request::FlushPolicies => assert_eq!(negotiated.policies().count(), 0),
            _ => {}
        }
        let mut spis = HashSet::new();
        for sa in negotiated.inbound() {
            assert!(spis.insert(sa.spi()) && !is_taken(sa.spi()), "an SPI is there twice");
        }
        for (selectors, _) in negotiated.policies() {
            assert!(!selectors.is_empty());
        }
    }
    // A charon that is told of a limit has the association; one that is gone has none that has ended.
    let ended = negotiated.look(clock, |_, _| false);
    assert!(negotiated.show(clock).iter().all(|it| it.life != Life::Ended), "{ended}");
}
