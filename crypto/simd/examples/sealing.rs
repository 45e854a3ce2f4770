//! Measures a sealed request by the requests that wait with it, next to aws-lc doing CBC and then
//! HMAC one request after another: `cargo run --release -p keyway-simd --example sealing`.

use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::{hmac, iv::FixedLength};
use keyway_simd::{CbcBackend, CbcKey, Cipher, Hash, HmacKey, Job, Mac};
use std::hint::black_box;
use std::time::Instant;

const KEY: [u8; 16] = [7; 16];
const MAC_KEY: [u8; 20] = [9; 20];
/// SPI, sequence number and IV of an ESP packet: under the MAC, not encrypted.
const HEADER_BYTES: usize = 24;
const TAG_BYTES: usize = 12;
const WAITING: [usize; 5] = [1, 8, 16, 32, 64];
/// Short runs by turns, so that a disturbance does not hit one side only.
const RUNS: usize = 101;
const RUN_BYTES: usize = 1 << 19;

fn main() {
    let Some(backend) = CbcBackend::detect() else {
        println!("This processor has no backend that is worth a batch.");
        return;
    };
    println!("AES-128-CBC and HMAC, ns per request, median of {RUNS} runs by turns");
    print!("{:>8} {:>6} {:>10}", "hash", "bytes", "aws-lc");
    WAITING.iter().for_each(|waiting| print!(" {:>16}", format!("{waiting} waiting")));
    println!("   ({}; times aws-lc's throughput)", backend.name());
    for hash in [Hash::Sha1, Hash::Sha256] {
        for bytes in [64, 256, 512, 1024, 8192] {
            row(backend, hash, bytes);
        }
    }
}

fn row(backend: CbcBackend, hash: Hash, bytes: usize) {
    let mut backends = [const { Vec::new() }; WAITING.len()];
    let mut libraries = Vec::new();
    let mut packets = Packets::new(bytes);
    for _ in 0..RUNS {
        libraries.push(packets.library(hash, 32));
        for (times, waiting) in backends.iter_mut().zip(WAITING) {
            times.push(packets.backend(backend, hash, waiting));
        }
    }
    let library = median(libraries);
    print!("{:>8} {bytes:>6} {library:>10.0}", format!("{hash:?}"));
    for times in backends {
        let time = median(times);
        print!(" {:>16}", format!("{time:.0} ({:.1}x)", library / time));
    }
    println!();
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Packets of one size, header in front and tag behind.
struct Packets(Vec<Vec<u8>>);

impl Packets {
    fn new(bytes: usize) -> Self {
        let packet = vec![1; HEADER_BYTES + bytes + TAG_BYTES];
        Self(vec![packet; WAITING[WAITING.len() - 1]])
    }

    /// Bytes to encrypt, and the rounds that make a run of `waiting` packets.
    fn size(&self, waiting: usize) -> (usize, usize) {
        let bytes = self.0[0].len() - HEADER_BYTES - TAG_BYTES;
        (bytes, RUN_BYTES / (bytes + 256) / waiting + 1)
    }

    /// One batch after another of so many packets.
    fn backend(&mut self, backend: CbcBackend, hash: Hash, waiting: usize) -> f64 {
        let (aes, hmac) = (CbcKey::aes128(&KEY), HmacKey::new(hash, &MAC_KEY));
        let (bytes, rounds) = self.size(waiting);
        let start = Instant::now();
        for round in 0..rounds {
            let iv = (round as u128).to_ne_bytes();
            let mut jobs: Vec<_> = self.0[..waiting]
                .iter_mut()
                .map(|packet| {
                    let (message, tag) = packet.split_at_mut(HEADER_BYTES + bytes);
                    let range = HEADER_BYTES..HEADER_BYTES + bytes;
                    let cipher = Some(Cipher { key: &aes, iv, range });
                    let range = 0..HEADER_BYTES + bytes;
                    let mac = Some(Mac { key: &hmac, range, front: &[], back: &[], tag });
                    Job { message, cipher, mac }
                })
                .collect();
            backend.seal(black_box(&mut jobs)).expect("the ranges fit");
        }
        start.elapsed().as_secs_f64() * 1e9 / (rounds * waiting) as f64
    }

    /// The library's way, over as many packets.
    fn library(&mut self, hash: Hash, waiting: usize) -> f64 {
        let key = UnboundCipherKey::new(&AES_128, &KEY).expect("the key has the right length");
        let key = EncryptingKey::cbc(key).expect("the library has CBC");
        let algorithm = match hash {
            Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => hmac::HMAC_SHA256,
        };
        let hmac_key = hmac::Key::new(algorithm, &MAC_KEY);
        let (bytes, rounds) = self.size(waiting);
        let start = Instant::now();
        for round in 0..rounds {
            for packet in &mut self.0[..waiting] {
                let (message, tag) = black_box(packet).split_at_mut(HEADER_BYTES + bytes);
                let iv = FixedLength::from((round as u128).to_ne_bytes());
                let context = EncryptionContext::Iv128(iv);
                let sealed = key.less_safe_encrypt(&mut message[HEADER_BYTES..], context);
                sealed.expect("whole blocks");
                let full = hmac::sign(&hmac_key, message);
                tag.copy_from_slice(&full.as_ref()[..TAG_BYTES]);
            }
        }
        start.elapsed().as_secs_f64() * 1e9 / (rounds * waiting) as f64
    }
}
