//! The measurement: a pool of packets, a gauge, samples.
//!
//! A pool is what a buffer for the network card's segmentation holds: 64 packets of one size, one
//! behind the other. A sample works on it again and again for some 15 µs, with a gauge before and
//! after: a loop that slows down when a neighbour takes half of the core. A sample between gauges
//! that are not at their best is thrown away. A turn is 9 samples, and its figure their median.

use crate::gauge::Gauge;
use crate::report::median;
use std::time::Instant;

/// A QUIC short header: first byte, 8 bytes of connection ID, 2 bytes of packet number.
pub const HEADER_BYTES: usize = 11;
/// Where the packet number starts.
pub const NUMBER_AT: usize = 9;
/// Where the mask's sample starts: 4 bytes behind the number's start (RFC 9001 § 5.4.2).
pub const SAMPLE_AT: usize = 13;
pub const SAMPLE_BYTES: usize = 16;
pub const TAG_BYTES: usize = 16;
/// Most packets of a batch.
pub const BATCH_MAX: usize = 64;
/// Packets of a pool; of more than [`PACKET_BYTES_MAX`] there is one.
const POOL: usize = 64;
const PACKET_BYTES_MAX: usize = 2000;
/// The number of a pool's first packet.
const NUMBER: usize = 1000;

const SAMPLES: usize = 9;
/// Samples after which a turn is content with fewer.
const TRIED_MAX: usize = 400;
const SAMPLES_MIN: usize = 3;
const SAMPLE_NS: f64 = 15e3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    Aes128Gcm,
    ChaCha20Poly1305,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    Seal,
    Open,
}

/// One thing that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Case {
    pub algorithm: Algorithm,
    pub way: Way,
    /// With header protection.
    pub header: bool,
    /// Bytes of a payload.
    pub bytes: usize,
    /// Packets of a call.
    pub batch: usize,
    /// Keys that take turns, packet by packet.
    pub keys: usize,
}

impl Case {
    pub fn packet_bytes(&self) -> usize {
        HEADER_BYTES + self.bytes + TAG_BYTES
    }
}

/// Packets of one size.
pub struct Pool {
    memory: Vec<u8>,
    /// Where the first packet starts in `memory`: at the start of a cache line.
    start: usize,
    stride: usize,
    packets: usize,
}

impl Pool {
    fn new(case: &Case) -> Self {
        let packets = if case.bytes > PACKET_BYTES_MAX { 1 } else { POOL };
        let stride = case.packet_bytes();
        let memory = vec![0; packets * stride + 64];
        let start = memory.as_ptr().align_offset(64).min(64);
        let mut pool = Pool { memory, start, stride, packets };
        for number in 0..packets {
            let payload = pool.bytes().chunks_exact_mut(stride).nth(number);
            let payload = payload.map(|packet| &mut packet[HEADER_BYTES..stride - TAG_BYTES]);
            for (at, byte) in payload.into_iter().flatten().enumerate() {
                *byte = (number * 31 + at * 7) as u8;
            }
        }
        pool
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.packets * self.stride]
    }

    fn payloads(&mut self) -> Vec<u8> {
        let stride = self.stride;
        let packets = self.bytes().chunks_exact(stride);
        packets.flat_map(|packet| packet[HEADER_BYTES..stride - TAG_BYTES].to_vec()).collect()
    }
}

/// Writes a header as it is before it is masked.
pub fn write_header(packet: &mut [u8], number: u64) {
    packet[0] = 0x41;
    packet[1..9].copy_from_slice(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
    packet[9..11].copy_from_slice(&(number as u16).to_be_bytes());
}

/// The packet number of a header that is not masked.
pub fn read_number(packet: &[u8]) -> u64 {
    u64::from(u16::from_be_bytes([packet[9], packet[10]]))
}

/// An implementation that protects packets in this process.
pub trait Side {
    fn name(&self) -> String;
    fn does(&self, case: &Case) -> bool;
    /// Seals or opens a batch, packets that lie one behind the other; the first has the number
    /// `number` and the key `key`, the next the next. Says whether all were authentic.
    fn call(&mut self, case: &Case, packets: &mut [u8], number: u64, key: usize) -> bool;

    /// Every packet of the pool once; `done` counts such passes.
    fn pass(&mut self, case: &Case, pool: &mut Pool, done: &mut usize) -> bool {
        let first = *done * pool.packets % case.keys;
        *done += 1;
        let (stride, mut right) = (pool.stride, true);
        for (call, packets) in pool.bytes().chunks_exact_mut(case.batch * stride).enumerate() {
            let packet = call * case.batch;
            let key = (first + packet) % case.keys;
            right &= self.call(case, packets, (NUMBER + packet) as u64, key);
        }
        right
    }
}

/// The result of a turn.
#[derive(Clone, Copy)]
pub struct Turn {
    /// Nanoseconds a packet.
    pub nanoseconds: f64,
    /// Samples without a disturbance.
    pub good: usize,
    /// All of them.
    pub tried: usize,
}

/// Takes samples of sides in this process.
pub struct Sampler {
    gauge: Gauge,
    /// The time that looking at the clock adds, in nanoseconds.
    clock: f64,
}

impl Sampler {
    pub fn new() -> Self {
        let clock = (0..200).map(|_| since(Instant::now())).fold(f64::MAX, f64::min);
        Sampler { gauge: Gauge::new(), clock }
    }

    pub fn turn(&mut self, side: &mut dyn Side, case: &Case) -> Turn {
        let mut pool = Pool::new(case);
        side.pass(&Case { way: Way::Seal, ..*case }, &mut pool, &mut 0);
        let (wire, mut done) = (pool.bytes().to_vec(), 0);
        // All keys once, so that what is measured is the turn after the first.
        for _ in (0..case.keys).step_by(POOL) {
            self.sample(side, case, &mut pool, &wire, &mut done, 1);
        }
        let packets = wire.len() / case.packet_bytes();
        let once = self.sample(side, case, &mut pool, &wire, &mut done, 2);
        let passes = (SAMPLE_NS / packets as f64 / once) as usize;
        let (mut good, mut all) = (Vec::new(), Vec::new());
        while good.len() < SAMPLES && all.len() < TRIED_MAX {
            let before = self.gauge.is_calm();
            let figure = self.sample(side, case, &mut pool, &wire, &mut done, passes.max(1));
            if self.gauge.is_calm() && before {
                good.push(figure);
            }
            all.push(figure);
        }
        all.sort_by(f64::total_cmp);
        let (goods, tried) = (good.len(), all.len());
        // Where neighbours leave no peace, the better ones stand for what is not disturbed.
        let nanoseconds = if goods >= SAMPLES_MIN { median(&good) } else { all[tried / 4] };
        Turn { nanoseconds, good: goods, tried }
    }

    /// Nanoseconds a packet. Opening gets packets that were sealed just before, and is timed without
    /// that.
    fn sample(
        &self,
        side: &mut dyn Side,
        case: &Case,
        pool: &mut Pool,
        wire: &[u8],
        done: &mut usize,
        passes: usize,
    ) -> f64 {
        let mut spent = 0.0;
        if case.way == Way::Open {
            for _ in 0..passes {
                pool.bytes().copy_from_slice(wire);
                let begun = Instant::now();
                side.pass(case, pool, done);
                spent += since(begun) - self.clock;
            }
        } else {
            let begun = Instant::now();
            for _ in 0..passes {
                side.pass(case, pool, done);
            }
            spent = since(begun) - self.clock;
        }
        spent / (passes * pool.packets) as f64
    }
}

/// The fingerprint of what a side seals, after it has opened it again.
pub fn check(side: &mut dyn Side, case: &Case) -> Result<u64, String> {
    let mut pool = Pool::new(case);
    let plain = pool.payloads();
    side.pass(case, &mut pool, &mut 0);
    // FNV-1a.
    let step = |print: u64, byte: &u8| (print ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let print = pool.bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    let right = side.pass(&Case { way: Way::Open, ..*case }, &mut pool, &mut 0);
    if right && pool.payloads() == plain {
        Ok(print)
    } else {
        Err(format!("{} does not open what it sealed: {case:?}", side.name()))
    }
}

fn since(begun: Instant) -> f64 {
    begun.elapsed().as_nanos() as f64
}
