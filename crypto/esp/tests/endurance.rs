//! Very many packets through a channel that loses some, changes their order, and copies and forges others: none is
//! accepted twice, none that is good is refused, and no number comes twice.
//!
//! `KEYWAY_ESP_PACKETS` says how many (a quarter of a million without it); `cargo xtask nightly` sends 10^9.

use keyway_engine::Engine;
use keyway_esp::{
    Cause, Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, Outer,
    SaKey, SaParameters, Sealer, Selectors, Suite, Time,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Packets that are out of order among each other.
const BLOCK: usize = 512;
const BATCH: usize = 64;
const WINDOW: u32 = 1024;
/// After so many blocks a number is behind the window, also if the last ones of a block were lost.
const LATE_BLOCKS: u64 = WINDOW as u64 / BLOCK as u64 + 2;
/// Bytes of an inner packet.
const BYTES: usize = 64;
const SEALED: usize = Suite::Aes128Gcm.sealed_bytes(BYTES);
const NOW: Time = Time(0);
/// One line for so many packets.
const PROGRESS: u64 = 50_000_000;

#[test]
fn a_channel_that_loses_reorders_copies_and_forges() {
    let packets = std::env::var("KEYWAY_ESP_PACKETS")
        .map_or(250_000, |text| text.parse().expect("KEYWAY_ESP_PACKETS is a number of packets"));
    let engine = keyway_drivers::engine();
    let sent = AtomicU64::new(0);
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (engine, sent) = (&engine, &sent);
            scope.spawn(move || {
                let mut channel = Channel::new(engine, thread, packets / threads / 4);
                while sent.load(Ordering::Relaxed) < packets {
                    channel.send_block();
                    let before = sent.fetch_add(BLOCK as u64, Ordering::Relaxed);
                    let now = before + BLOCK as u64;
                    if before / PROGRESS < now / PROGRESS {
                        println!(
                            "{} million of {} million packets",
                            now / 1_000_000,
                            packets / 1_000_000
                        );
                    }
                }
                channel.end();
            });
        }
    });
}

/// One sender and its receiver.
struct Channel {
    out: Arc<OutboundSa>,
    inbound: Inbound,
    inside: Arc<InboundSa>,
    sealer: Sealer,
    opener: Opener,
    random: Random,
    first: u64,
    /// The number that the next packet has to have.
    next: u64,
    block: Vec<[u8; SEALED]>,
    /// The datagrams that the channel makes of a block.
    deliveries: Vec<Delivery>,
    /// Packets that are held back, each with the block that it comes with.
    held_back: VecDeque<(u64, [u8; SEALED])>,
    /// Those that come with this block.
    late: Vec<[u8; SEALED]>,
    blocks: u64,
    /// Which packets of the block were accepted, and which were lost.
    accepted: [bool; BLOCK],
    lost: [bool; BLOCK],
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    accepted: u64,
    lost: u64,
    replays: u64,
    forgeries: u64,
    late: u64,
}

#[derive(Clone, Copy)]
enum Delivery {
    /// A packet of the block, or another copy of it.
    Packet(u16),
    /// One with a bit changed, or with a number far ahead.
    Forged(u16),
    Renumbered(u16),
    /// One that the channel held back until its number was behind the window.
    Late(u16),
}

impl Channel {
    /// The lower half of the numbers goes round after about so many packets.
    fn new(engine: &Engine, thread: u64, round_after: u64) -> Self {
        let key = [thread as u8; 16];
        let parameters = SaParameters {
            spi: 300,
            suite: Suite::Aes128Gcm,
            key: SaKey::Secret(&key),
            salt: [1; 4],
            mode: Mode::Tunnel,
            esn: true,
            lifetime: Lifetime::default(),
        };
        let first = (1 << 32) - round_after % (1 << 31);
        let out = OutboundSa::new(engine, &parameters, first..u64::MAX, 1 << 60, NOW);
        let inside = InboundSa::new(engine, &parameters, WINDOW, Selectors::any(), NOW);
        let inside = Arc::new(inside.expect("it fits"));
        inside.begin_after(first - 1);
        Channel {
            out: Arc::new(out.expect("it fits")),
            inbound: Inbound::new([inside.clone()]).expect("one"),
            inside,
            sealer: Sealer::new(engine, Dispatch::Queued),
            opener: Opener::new(engine, Dispatch::Queued),
            random: Random(0x9e37_79b9_7f4a_7c15 ^ thread),
            first,
            next: first,
            block: vec![[0; SEALED]; BLOCK],
            deliveries: Vec::new(),
            held_back: VecDeque::new(),
            late: Vec::new(),
            blocks: 0,
            accepted: [false; BLOCK],
            lost: [false; BLOCK],
            counts: Counts::default(),
        }
    }

    fn send_block(&mut self) {
        let first = self.next;
        self.seal_block();
        self.make_deliveries();
        self.accepted = [false; BLOCK];
        let mut deliveries = std::mem::take(&mut self.deliveries);
        for batch in deliveries.chunks(BATCH) {
            self.deliver(batch, first);
        }
        deliveries.clear();
        self.deliveries = deliveries;
        for at in 0..BLOCK {
            assert_eq!(self.accepted[at], !self.lost[at], "{} of {first}", first + at as u64);
        }
        for at in (0..BLOCK).filter(|at| self.lost[*at]) {
            self.held_back.push_back((self.blocks + LATE_BLOCKS, self.block[at]));
        }
        self.blocks += 1;
    }

    fn seal_block(&mut self) {
        let mut packet = [0_u8; BYTES];
        packet[..20].copy_from_slice(&[
            0x45,
            0,
            0,
            BYTES as u8,
            0,
            0,
            0x40,
            0,
            64,
            17,
            0,
            0,
            10,
            1,
            0,
            5,
            10,
            2,
            0,
            7,
        ]);
        for batch in self.block.chunks_mut(BATCH) {
            for (user, number) in (0..batch.len() as u64).zip(self.next..) {
                // Each has in it the number that it is to get.
                packet[28..36].copy_from_slice(&number.to_be_bytes());
                let packet = InnerPacket::parse(&packet).expect("a packet");
                self.sealer.push(&self.out, &packet, user).expect("there is room");
            }
            let next = &mut self.next;
            self.sealer.seal(NOW, |user, sealed| {
                let [front, text, icv] = sealed.expect("there are numbers").parts;
                let place = &mut batch[user as usize];
                place[..16].copy_from_slice(front);
                place[16..SEALED - 16].copy_from_slice(text);
                place[SEALED - 16..].copy_from_slice(icv);
                // Ascending by one: none comes twice, neither as a number nor in a nonce.
                assert_eq!(front[4..8], (*next as u32).to_be_bytes());
                assert_eq!(front[8..16], (*next + (1 << 60)).to_be_bytes());
                *next += 1;
            });
        }
    }

    fn make_deliveries(&mut self) {
        for at in 0..BLOCK as u16 {
            let chance = self.random.below(256);
            let lost = chance < 4;
            self.lost[usize::from(at)] = lost;
            if lost {
                self.counts.lost += 1;
                continue;
            }
            self.deliveries.push(Delivery::Packet(at));
            match chance {
                4..16 => self.deliveries.push(Delivery::Packet(at)),
                16..22 => self.deliveries.push(Delivery::Forged(at)),
                22..28 => self.deliveries.push(Delivery::Renumbered(at)),
                _ => {}
            }
        }
        self.late.clear();
        while let Some((_, packet)) = self.held_back.pop_front_if(|(due, _)| *due <= self.blocks) {
            self.deliveries.push(Delivery::Late(self.late.len() as u16));
            self.late.push(packet);
        }
        for at in (1..self.deliveries.len()).rev() {
            let other = self.random.below(at as u64 + 1) as usize;
            self.deliveries.swap(at, other);
        }
    }

    fn deliver(&mut self, batch: &[Delivery], first: u64) {
        let outer =
            Outer { source: [192, 0, 2, 1].into(), destination: [192, 0, 2, 2].into(), ecn: 0 };
        for delivery in batch {
            let mut changed;
            let packet = match delivery {
                Delivery::Packet(at) => &self.block[usize::from(*at)],
                Delivery::Late(at) => &self.late[usize::from(*at)],
                Delivery::Forged(at) => {
                    changed = self.block[usize::from(*at)];
                    // SPI excepted: of another there is no association.
                    let bit = 32 + self.random.below((SEALED * 8 - 32) as u64) as usize;
                    changed[bit / 8] ^= 1 << (bit % 8);
                    &changed
                }
                Delivery::Renumbered(at) => {
                    changed = self.block[usize::from(*at)];
                    let by = (self.random.next() as u32).max(1).to_be_bytes();
                    changed[4..8].iter_mut().zip(by).for_each(|(byte, by)| *byte ^= by);
                    &changed
                }
            };
            self.opener.push(&self.inbound, packet, outer).expect("it fits");
        }
        let mut deliveries = batch.iter();
        let (accepted, counts) = (&mut self.accepted, &mut self.counts);
        self.opener.open(NOW, |result, _| {
            let delivery = deliveries.next().expect("as many as were pushed");
            match (delivery, result) {
                (Delivery::Packet(at), Ok(packet)) => {
                    let at = usize::from(*at);
                    let number = u64::from_be_bytes(*packet[28..].first_chunk().expect("8 bytes"));
                    assert_eq!(number, first + at as u64);
                    assert!(!accepted[at], "{number} was accepted twice");
                    accepted[at] = true;
                    counts.accepted += 1;
                }
                (Delivery::Packet(at), Err(cause)) => {
                    assert_eq!(cause, Cause::Replay);
                    assert!(accepted[usize::from(*at)], "{} was refused", first + u64::from(*at));
                    counts.replays += 1;
                }
                (Delivery::Late(_), Err(cause)) => {
                    // A number behind the window is taken for one that is 2^32 higher (appendix A2).
                    assert_eq!(cause, Cause::Icv);
                    counts.late += 1;
                }
                (Delivery::Forged(_) | Delivery::Renumbered(_), Err(cause)) => {
                    assert!(matches!(cause, Cause::Icv | Cause::Replay), "{cause}");
                    counts.forgeries += 1;
                }
                (Delivery::Late(_), Ok(_)) => panic!("a packet behind the window was accepted"),
                (_, Ok(_)) => panic!("a forged packet was accepted"),
            }
        });
        assert!(deliveries.next().is_none());
    }

    fn end(self) {
        let sent = self.next - self.first;
        let Counts { accepted, lost, replays, forgeries, late } = self.counts;
        println!(
            "{sent} packets sent, {accepted} accepted, {lost} lost; {replays} replays, {forgeries} forged and {late} \
             late ones refused; numbers {} to {}",
            self.first,
            self.next - 1
        );
        assert_eq!(accepted + lost, sent);
        assert_eq!(self.out.use_().packets, sent);
        assert_eq!(self.inside.use_().packets, accepted);
    }
}

/// Numbers that look random (xorshift*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((self.next() >> 32) * end) >> 32
    }
}
