//! Measures packets and bulk data under AES-128-GCM with every backend there is, next to aws-lc
//! doing one packet after another:
//! `cargo run --release -p keyway-simd --example packet [BACKEND...]`.

use aws_lc_rs::aead::quic::{self, HeaderProtectionKey};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use keyway_simd::packet::{
    Aead, HeaderKey, Open, PacketBackend, PacketKey, Phases, Protect, Refusal, Seal, TAG_BYTES,
    Unprotect,
};
use std::hint::black_box;
use std::time::Instant;

const SIZES: [usize; 8] = [16, 64, 256, 600, 1000, 1200, 1280, 1450];
const BULK: [usize; 3] = [1536, 16384, 65536];
/// First byte, connection identifier, packet number.
const HEADER: [u8; 11] = [0x41, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0];
/// Packets in memory: a full GSO buffer.
const POOL: usize = 64;
/// Packets of the smallest sizes, so that a sample is longer than the clock's grain.
const SMALL_POOL: usize = 512;
const CONNECTIONS: usize = 8192;
/// Short samples by turns, so that a disturbance does not hit one side only.
const SAMPLES: usize = 301;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let backends: Vec<_> = PacketBackend::available()
        .filter(|backend| wanted.is_empty() || wanted.iter().any(|name| name == backend.name()))
        .collect();
    let clock = clock();
    println!("AES-128-GCM; ns a packet, the least and (median) of {SAMPLES} samples by turns;");
    println!("the clock's {clock:.2} GHz make the least into [cycles]");
    for backend in backends {
        println!("\n{}", backend.name());
        print!("{:>24}", "payload bytes");
        SIZES.iter().for_each(|size| print!(" {size:>19}"));
        println!();
        let benches: [(&str, Run); 11] = [
            ("protect, 64 a call", Bench::protect::<64>),
            ("protect, 16 a call", Bench::protect::<16>),
            ("protect, 1 a call", Bench::protect::<1>),
            ("unprotect, 64 a call", Bench::unprotect::<64>),
            ("unprotect, 16 a call", Bench::unprotect::<16>),
            ("unprotect, 1 a call", Bench::unprotect::<1>),
            ("AEAD only, seal, 16", Bench::seal::<16>),
            ("AEAD only, open, 16", Bench::open::<16>),
            ("AEAD only, seal, 1", Bench::seal::<1>),
            ("aws-lc, seal and mask", Bench::library),
            ("protect, cold keys, 64", Bench::cold),
        ];
        let table: Vec<_> = SIZES
            .iter()
            .map(|size| {
                let mut bench = Bench::new(backend, *size);
                let mut times = [const { Vec::new() }; 11];
                for sample in 0..SAMPLES {
                    for (times, (_, run)) in times.iter_mut().zip(benches) {
                        // A pass over all connections takes long.
                        if !std::ptr::fn_addr_eq(run, Bench::cold as Run)
                            || (sample < 12 && *size == 1200)
                        {
                            times.push(run(&mut bench));
                        }
                    }
                }
                times.map(least_and_median)
            })
            .collect();
        for (row, (name, _)) in benches.iter().enumerate() {
            print!("{name:>24}");
            for column in &table {
                match column[row] {
                    Some((least, median)) => {
                        let cycles = least * clock;
                        print!(" {:>19}", format!("{least:.1} ({median:.1}) [{cycles:.0}]"));
                    }
                    None => print!(" {:>19}", "-"),
                }
            }
            println!();
        }
        println!("\n{:>24} {:>30} {:>30}", "bulk, seal", backend.name(), "aws-lc");
        for size in BULK {
            let mut bench = Bench::new(backend, size);
            let (mut ours, mut opened, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..SAMPLES {
                ours.push(bench.bulk());
                opened.push(bench.bulk_open());
                theirs.push(bench.bulk_library());
            }
            print!("{size:>24}");
            for times in [ours, opened, theirs] {
                let (least, median) = least_and_median(times).unwrap_or_default();
                let (speed, usual) = (size as f64 / least, size as f64 / median);
                let cycles = clock / speed;
                print!(" {:>30}", format!("{speed:.1} ({usual:.1}) GB/s [{cycles:.3} c/B]"));
            }
            println!();
        }
    }
}

fn least_and_median(mut times: Vec<f64>) -> Option<(f64, f64)> {
    times.sort_by(f64::total_cmp);
    Some((*times.first()?, times[times.len() / 2]))
}

/// In GHz, by a chain of multiplications and additions: 3 and 1 cycles on every processor that has
/// AVX-512.
fn clock() -> f64 {
    let (mut best, factor, term) = (f64::MAX, black_box(3_u64), black_box(5));
    for _ in 0..200 {
        let start = Instant::now();
        let mut number = black_box(1_u64);
        for _ in 0..20_000 {
            number = number.wrapping_mul(factor) ^ term;
        }
        black_box(number);
        best = best.min(start.elapsed().as_secs_f64());
    }
    80_000.0 / best / 1e9
}

/// Nanoseconds a packet or a message.
type Run = fn(&mut Bench) -> f64;

struct Bench {
    backend: PacketBackend,
    size: usize,
    packets: Vec<Vec<u8>>,
    key: PacketKey,
    header_key: HeaderKey,
    connections: Vec<(PacketKey, HeaderKey)>,
    library: LessSafeKey,
    library_header: HeaderProtectionKey,
    number: u64,
    tags: Vec<[u8; TAG_BYTES]>,
}

impl Bench {
    fn new(backend: PacketBackend, size: usize) -> Self {
        let pool = if size < 256 { SMALL_POOL } else { POOL };
        let mut packet = HEADER.to_vec();
        packet.resize(HEADER.len() + size + TAG_BYTES, 7);
        let keys = |number: usize| {
            let mut key = [7; 16];
            key[..8].copy_from_slice(&number.to_be_bytes());
            let made = backend.aead_key(Aead::Aes128Gcm, &key).expect("16 bytes");
            let header = backend.header_key(Aead::Aes128Gcm, &key).expect("16 bytes");
            (PacketKey::new(made, [3; 12]), header)
        };
        let (key, header_key) = keys(0);
        let connections =
            if size == 1200 { (0..CONNECTIONS).map(keys).collect() } else { Vec::new() };
        let library = UnboundKey::new(&AES_128_GCM, &[7; 16]).expect("16 bytes");
        Self {
            backend,
            size,
            packets: vec![packet; pool],
            key,
            header_key,
            connections,
            library: LessSafeKey::new(library),
            library_header: HeaderProtectionKey::new(&quic::AES_128, &[7; 16]).expect("16 bytes"),
            number: 0,
            tags: vec![[0; TAG_BYTES]; pool],
        }
    }

    /// Nanoseconds a packet.
    fn time(&self, start: Instant, packets: usize) -> f64 {
        start.elapsed().as_secs_f64() * 1e9 / packets as f64
    }

    fn protect<const N: usize>(&mut self) -> f64 {
        let packets = self.packets.len();
        let start = Instant::now();
        let mut rest = self.packets.iter_mut();
        let mut batch = Vec::with_capacity(N);
        for _ in 0..packets / N {
            batch.extend(rest.by_ref().take(N).map(|packet| {
                packet[..HEADER.len()].copy_from_slice(&HEADER);
                self.number += 1;
                let (key, header_key, number) = (&self.key, &self.header_key, self.number);
                Protect { key, header_key, number, header_bytes: HEADER.len(), packet }
            }));
            self.backend.protect(black_box(&mut batch)).expect("they fit");
            batch.clear();
        }
        self.time(start, packets)
    }

    fn unprotect<const N: usize>(&mut self) -> f64 {
        self.protect::<64>();
        let packets = self.packets.len();
        let mut number = self.number - packets as u64;
        let start = Instant::now();
        let mut rest = self.packets.iter_mut();
        let mut batch = Vec::with_capacity(N);
        for _ in 0..packets / N {
            batch.extend(rest.by_ref().take(N).map(|packet| {
                let largest = Some(number);
                number += 1;
                let (keys, header_key) = (Phases::only(&self.key), &self.header_key);
                let verdict = Err(Refusal::Waiting);
                let number_at = HEADER.len() - 2;
                Unprotect { keys, header_key, largest, number_at, packet, verdict }
            }));
            self.backend.unprotect(black_box(&mut batch));
            for packet in batch.drain(..) {
                assert!(packet.verdict.is_ok(), "{:?}", packet.verdict);
            }
        }
        self.time(start, packets)
    }

    fn seal<const N: usize>(&mut self) -> f64 {
        let packets = self.packets.len();
        let start = Instant::now();
        let mut rest = self.packets.iter_mut().zip(&mut self.tags);
        let mut batch = Vec::with_capacity(N);
        for _ in 0..packets / N {
            batch.extend(rest.by_ref().take(N).map(|(packet, tag)| {
                packet[..HEADER.len()].copy_from_slice(&HEADER);
                self.number += 1;
                let (aad, data) = packet.split_at_mut(HEADER.len());
                let data = &mut data[..self.size];
                let (key, nonce) = (self.key.key(), self.key.nonce(self.number));
                Seal { key, nonce, aad, data, tag }
            }));
            self.backend.seal(black_box(&mut batch)).expect("they fit");
            batch.clear();
        }
        self.time(start, packets)
    }

    fn open<const N: usize>(&mut self) -> f64 {
        self.seal::<N>();
        let packets = self.packets.len();
        let mut number = self.number - packets as u64;
        let start = Instant::now();
        let mut rest = self.packets.iter_mut().zip(&self.tags);
        let mut batch = Vec::with_capacity(N);
        for _ in 0..packets / N {
            batch.extend(rest.by_ref().take(N).map(|(packet, tag)| {
                number += 1;
                let (aad, data) = packet.split_at_mut(HEADER.len());
                let data = &mut data[..self.size];
                let (key, nonce) = (self.key.key(), self.key.nonce(number));
                Open { key, nonce, aad, data, tag: *tag, authentic: false }
            }));
            self.backend.open(black_box(&mut batch)).expect("they fit");
            assert!(batch.drain(..).all(|open| open.authentic));
        }
        self.time(start, packets)
    }

    fn library(&mut self) -> f64 {
        let start = Instant::now();
        for packet in &mut self.packets {
            packet[..HEADER.len()].copy_from_slice(&HEADER);
            self.number += 1;
            let nonce = Nonce::assume_unique_for_key(self.key.nonce(self.number));
            let (header, rest) = packet.split_at_mut(HEADER.len());
            let (data, tag) = rest.split_at_mut(self.size);
            let made = self.library.seal_in_place_separate_tag(nonce, Aad::from(header), data);
            tag.copy_from_slice(made.expect("it fits").as_ref());
            let mask = self.library_header.new_mask(&packet[13..29]).expect("a sample");
            packet[0] ^= mask[0] & 0x1f;
            packet[9] ^= mask[1];
            packet[10] ^= mask[2];
        }
        self.time(start, self.packets.len())
    }

    /// Every packet is another connection's.
    fn cold(&mut self) -> f64 {
        let start = Instant::now();
        for connections in self.connections.as_chunks::<64>().0 {
            let packets = self.packets.iter_mut().zip(connections);
            let mut batch: Vec<_> = packets
                .map(|(packet, (key, header_key))| {
                    packet[..HEADER.len()].copy_from_slice(&HEADER);
                    self.number += 1;
                    let header_bytes = HEADER.len();
                    Protect { key, header_key, number: self.number, header_bytes, packet }
                })
                .collect();
            self.backend.protect(black_box(&mut batch)).expect("they fit");
        }
        self.time(start, self.connections.len())
    }

    fn bulk(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..8 {
            self.number += 1;
            let (key, nonce) = (self.key.key(), self.key.nonce(self.number));
            let (aad, data) = self.packets[0].split_at_mut(HEADER.len());
            let data = &mut data[..self.size];
            let mut batch = [Seal { key, nonce, aad, data, tag: &mut self.tags[0] }];
            self.backend.seal(black_box(&mut batch)).expect("they fit");
        }
        self.time(start, 8)
    }

    /// Once only: what comes out is no longer what was sealed.
    fn bulk_open(&mut self) -> f64 {
        self.bulk();
        let start = Instant::now();
        let (key, nonce) = (self.key.key(), self.key.nonce(self.number));
        let (aad, data) = self.packets[0].split_at_mut(HEADER.len());
        let data = &mut data[..self.size];
        let mut batch = [Open { key, nonce, aad, data, tag: self.tags[0], authentic: false }];
        self.backend.open(black_box(&mut batch)).expect("they fit");
        assert!(batch[0].authentic);
        self.time(start, 1)
    }

    fn bulk_library(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..8 {
            self.number += 1;
            let nonce = Nonce::assume_unique_for_key(self.key.nonce(self.number));
            let (aad, data) = self.packets[0].split_at_mut(HEADER.len());
            let aad = Aad::from(aad);
            let data = &mut data[..self.size];
            let made = self.library.seal_in_place_separate_tag(nonce, aad, data);
            self.tags[0].copy_from_slice(made.expect("it fits").as_ref());
        }
        self.time(start, 8)
    }
}
