//! Once it is warm, a batch asks for memory a few times, and no packet of it does.

use keyway_engine::Engine;
use keyway_esp::{
    Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, Outer, SaKey,
    SaParameters, Sealer, Selectors, Suite, Time,
};
use keyway_test_allocator::within;
use std::sync::Arc;

const PACKETS: u64 = 64;
/// Most times that drivers ask for memory for a batch, for lists of their own; and the engine, which times a request now and
/// then and may go over to another driver.
const OF_A_BATCH: u64 = 12;

/// A packet of IPv4 of so many bytes.
fn packet(bytes: usize) -> Vec<u8> {
    let [high, low] = (bytes as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, 1, 0, 0, 10, 1, 0, 5, 10, 2, 0, 7];
    packet.resize(bytes, 0);
    packet
}

#[test]
fn packets_allocate_nothing() {
    let engine = keyway_drivers::engine();
    for dispatch in [Dispatch::Direct, Dispatch::Queued] {
        for suite in Suite::ALL {
            for mode in [Mode::Tunnel, Mode::Transport] {
                let made = warm(&engine, suite, mode, dispatch);
                assert!(
                    made.iter().all(|made| *made <= OF_A_BATCH),
                    "{suite} {mode:?} {dispatch:?}: {made:?}"
                );
            }
        }
    }
}

/// How often a warm batch asks for memory: to seal it, to open it, and to refuse it twice.
fn warm(engine: &Engine, suite: Suite, mode: Mode, dispatch: Dispatch) -> [u64; 3] {
    let key = vec![7; suite.key_bytes() + suite.mac_key_bytes()];
    let parameters = SaParameters {
        spi: 300,
        suite,
        key: SaKey::Secret(&key),
        salt: [1; 4],
        mode,
        esn: true,
        lifetime: Lifetime::default(),
    };
    let now = Time(0);
    let out = Arc::new(OutboundSa::new(engine, &parameters, 1..1_000_000, 0, now).unwrap());
    let inside = InboundSa::new(engine, &parameters, 1024, Selectors::any(), now).unwrap();
    let inbound = Inbound::new([Arc::new(inside)]).unwrap();
    let mut sealer = Sealer::new(engine, dispatch);
    let mut opener = Opener::new(engine, dispatch);
    let packets: Vec<_> = (0..PACKETS).map(|at| packet(60 + 20 * at as usize)).collect();
    let source = "10.1.0.5".parse().unwrap();
    let outer = Outer { source, destination: "10.2.0.7".parse().unwrap(), ecn: 0 };
    let mut sealed: Vec<Vec<u8>> = (0..PACKETS).map(|_| Vec::with_capacity(2_000)).collect();
    let mut made = [0; 3];
    // The first rounds make buffers, and the engine gets to know what costs how much.
    for _ in 0..40 {
        made[0] = within(|| {
            for (user, packet) in (0..).zip(&packets) {
                let packet = InnerPacket::parse(packet).unwrap();
                sealer.push(&out, &packet, user).unwrap();
            }
            sealer.seal(now, |user, packet| {
                let into = &mut sealed[user as usize];
                into.clear();
                packet.unwrap().write_to(into);
            });
        });
        for (round, made) in made[1..].iter_mut().enumerate() {
            *made = within(|| {
                for packet in &sealed {
                    opener.push(&inbound, packet, outer).unwrap();
                }
                opener.open(now, |packet, _| assert_eq!(packet.is_ok(), round == 0));
            });
        }
    }
    made
}
