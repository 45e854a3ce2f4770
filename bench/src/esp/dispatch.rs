//! Claim 2: the experiment of 2003 on this path. A batch of packets goes to the engine by a call for each packet, or all
//! at once through a queue.

use crate::report::{Claim, Findings, Table, median};
use crate::ring::common::{best, column, text};
use keyway_engine::Engine;
use keyway_esp::{
    Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, Outer, SaKey,
    SaParameters, Sealer, Selectors, Suite, Time,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const SUITES: [Suite; 3] = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Aes128CbcSha256];
const SIZES: [usize; 3] = [64, 512, 1400];
/// Packets that wait when the engine is called.
const BATCHES: [usize; 4] = [1, 4, 16, 64];
/// Packets of a run, and runs of a round.
const PACKETS: usize = 256;
const RUNS: usize = 20;

const NOW: Time = Time(0);

pub fn measure(rounds: usize) -> Result<Findings, String> {
    let engine = keyway_drivers::engine();
    let title = format!(
        "2 ns to seal and to open a packet: a call for each, and all in a queue; medians of {rounds} rounds' bests"
    );
    let header = ["", "bytes", "batch", "seal, calls", "seal, queue", "open, calls", "open, queue"];
    let mut found = Findings { claims: Vec::new(), tables: vec![Table::new(&title, &header)] };
    for suite in SUITES {
        for bytes in SIZES {
            for batch in BATCHES {
                let mut direct = Side::new(&engine, Dispatch::Direct, suite, bytes)?;
                let mut queued = Side::new(&engine, Dispatch::Queued, suite, bytes)?;
                let mut figures = Vec::new();
                for _ in 0..rounds {
                    let seal = best(RUNS, [&mut || direct.seal(batch), &mut || queued.seal(batch)]);
                    let open = best(RUNS, [&mut || direct.open(batch), &mut || queued.open(batch)]);
                    figures.push([seal[0], seal[1], open[0], open[1]]);
                }
                let [seal, queued_seal, open, queued_open] =
                    [0, 1, 2, 3].map(|at| column(&figures, at));
                let mut row = vec![suite.name().to_owned(), bytes.to_string(), batch.to_string()];
                let all = [&seal, &queued_seal, &open, &queued_open];
                row.extend(all.map(|figures| format!("{:.0}", median(figures))));
                found.tables[0].rows.push(row);
                if batch == BATCHES[BATCHES.len() - 1] {
                    let both = |a: &[f64], b: &[f64]| -> Vec<f64> {
                        a.iter().zip(b).map(|(a, b)| a + b).collect()
                    };
                    let name = format!("2 {}, {bytes} B, queued", suite.name());
                    let (queued, direct) = (both(&queued_seal, &queued_open), both(&seal, &open));
                    let claim = Claim::cost(&name, "ns", &queued, "a call for each", &direct);
                    found.claims.push(claim.secondary());
                }
            }
        }
    }
    Ok(found)
}

/// One way to the engine.
struct Side {
    sealer: Sealer,
    opener: Opener,
    out: Arc<OutboundSa>,
    inbound: Inbound,
    packet: Vec<u8>,
    sealed: Vec<Vec<u8>>,
}

impl Side {
    fn new(
        engine: &Engine,
        dispatch: Dispatch,
        suite: Suite,
        bytes: usize,
    ) -> Result<Side, String> {
        let key = vec![7; suite.key_bytes() + suite.mac_key_bytes()];
        let parameters = SaParameters {
            spi: 300,
            suite,
            key: SaKey::Secret(&key),
            salt: [1; 4],
            mode: Mode::Tunnel,
            esn: true,
            lifetime: Lifetime::default(),
        };
        let out = OutboundSa::new(engine, &parameters, 1..u64::MAX, 0, NOW).map_err(text)?;
        let inside = InboundSa::new(engine, &parameters, 1024, Selectors::any(), NOW);
        let inbound = Inbound::new([Arc::new(inside.map_err(text)?)]).map_err(text)?;
        let [high, low] = u16::try_from(bytes).map_err(text)?.to_be_bytes();
        let mut packet =
            vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
        packet.resize(bytes, 0x11);
        Ok(Side {
            sealer: Sealer::new(engine, dispatch),
            opener: Opener::new(engine, dispatch),
            out: Arc::new(out),
            inbound,
            packet,
            sealed: vec![Vec::new(); PACKETS],
        })
    }

    /// Nanoseconds a packet.
    fn seal(&mut self, batch: usize) -> f64 {
        let Side { sealer, out, packet, .. } = self;
        let begun = Instant::now();
        for _ in 0..PACKETS / batch {
            for user in 0..batch {
                if let Ok(packet) = InnerPacket::parse(black_box(packet)) {
                    let _ = sealer.push(out, &packet, user as u64);
                }
            }
            sealer.seal(NOW, |_, sealed| {
                let _ = black_box(sealed.map(|sealed| sealed.parts));
            });
        }
        begun.elapsed().as_nanos() as f64 / PACKETS as f64
    }

    /// Nanoseconds a packet. A packet can be opened once, so others are sealed first.
    fn open(&mut self, batch: usize) -> f64 {
        let Side { sealer, opener, out, inbound, packet, sealed } = self;
        for packets in sealed.chunks_mut(batch) {
            for user in 0..packets.len() {
                if let Ok(packet) = InnerPacket::parse(packet) {
                    let _ = sealer.push(out, &packet, user as u64);
                }
            }
            sealer.seal(NOW, |user, sealed| {
                let place = &mut packets[user as usize];
                place.clear();
                if let Ok(sealed) = sealed {
                    sealed.write_to(place);
                }
            });
        }
        let outer =
            Outer { source: [192, 0, 2, 1].into(), destination: [192, 0, 2, 2].into(), ecn: 0 };
        let begun = Instant::now();
        let mut opened = 0;
        for packets in sealed.chunks(batch) {
            for packet in packets {
                let _ = opener.push(inbound, black_box(packet), outer);
            }
            opener.open(NOW, |packet, _| opened += usize::from(black_box(packet).is_ok()));
        }
        let nanoseconds = begun.elapsed().as_nanos() as f64;
        assert_eq!(opened, PACKETS, "each is authentic");
        nanoseconds / PACKETS as f64
    }
}
