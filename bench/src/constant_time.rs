//! Whether the time of packet protection depends on secrets, by statistics: two classes of secret
//! data by turns of chance, and Welch's t of their times (Reparaz, Balasch and Verbauwhede, "Dude,
//! is my code constant time?", 2017).
//!
//! Both classes have the same buffer and the same places for keys, and what goes before a
//! measurement differs in bytes, not in steps. It is a weak test all the same: how buffers lie, and
//! memory that is read soon after it was written, move times by fractions of a nanosecond, which
//! many measurements make significant. A |t| above 4.5 is a reason to look, one below it no proof.
//! The portable backend is aws-lc, which is known to be good, so its rows say what this machine
//! does by itself, and so do the rows of two classes that do not differ; the control stops at the
//! first difference and has to be found.

use crate::packet::{Algorithm, Case, HEADER_BYTES, Keyway, Secrets, Side, TAG_BYTES, Way};
use crate::report::{Report, Table};
use fastrand::Rng;
use indicatif::{ProgressBar, ProgressStyle};
use keyway_simd::packet::PacketBackend;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// The options of this check.
#[derive(clap::Args)]
pub struct Arguments {
    /// Measurements of each pair of classes
    #[arg(long, default_value_t = 100_000)]
    measurements: usize,
    /// Bytes of a payload
    #[arg(long, default_value_t = 64)]
    bytes: usize,
    /// Write the figures to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Packets of a call, all of one class.
const PACKETS: usize = 16;
/// The part of the times that counts; above it are interruptions.
const CROP: f64 = 0.9;
/// The usual threshold.
const T_MAX: f64 = 4.5;

const ALGORITHMS: [(&str, Algorithm, usize); 2] = [
    ("AES-128-GCM", Algorithm::Aes128Gcm, 16),
    ("ChaCha20-Poly1305", Algorithm::ChaCha20Poly1305, 32),
];

/// The difference between the classes.
#[derive(Clone, Copy, PartialEq)]
enum Differ {
    Nothing,
    /// Equal payloads every time, or a fresh one.
    Payload,
    /// One key every time and for all packets, or fresh ones.
    Key,
    /// One header key every time, or fresh ones.
    HeaderKey,
    /// A tag that is wrong in its first byte, or in its last.
    Tag,
    /// A tag that is right, or wrong: that is no secret, and what is refused is wiped.
    Verdict,
}

const CHECKS: [(&str, Way, bool, Differ); 9] = [
    ("seal: no difference", Way::Seal, false, Differ::Nothing),
    ("seal: fixed, random payload", Way::Seal, false, Differ::Payload),
    ("seal: fixed, random keys", Way::Seal, false, Differ::Key),
    ("open: fixed, random payload", Way::Open, false, Differ::Payload),
    ("open: tag wrong first, last", Way::Open, false, Differ::Tag),
    ("open: right, wrong tag", Way::Open, false, Differ::Verdict),
    ("protect: fixed, random payload", Way::Seal, true, Differ::Payload),
    ("protect: fixed, random header keys", Way::Seal, true, Differ::HeaderKey),
    ("unprotect: fixed, random header keys", Way::Open, true, Differ::HeaderKey),
];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let mut table = Table::new(
        "Welch's t of the times of two classes, 16 packets a call; a look is worth where |t| > 4.5",
        &["backend", "algorithm", "", "ns a packet", "second less first", "|t|", ""],
    );
    let backends: Vec<_> = PacketBackend::available().collect();
    let progress = ProgressBar::new((backends.len() * ALGORITHMS.len() * CHECKS.len()) as u64);
    let style = "{elapsed:>4} {bar:24} {pos}/{len} {eta} left";
    progress.set_style(ProgressStyle::with_template(style).map_err(|why| why.to_string())?);
    let mut row =
        |backend: &str, algorithm: &str, what: &str, seen: Seen, differ: Option<Differ>| {
            let look = match (seen.t.abs() > T_MAX, differ) {
                (true, None) => "found, as it must be",
                (false, None) => "NOT FOUND: measure more",
                (_, Some(Differ::Verdict)) => "public",
                (true, Some(_)) => "look",
                (false, Some(_)) => "",
            };
            let figures = [
                format!("{:.2}", seen.first / PACKETS as f64),
                format!("{:+.3}", (seen.second - seen.first) / PACKETS as f64),
                format!("{:.1}", seen.t.abs()),
            ];
            let names = [backend, algorithm, what].map(str::to_owned);
            table.rows.push([&names[..], &figures, &[look.to_owned()]].concat());
        };
    row("control", "", "a comparison that stops early", control(arguments.measurements)?, None);
    for backend in backends {
        for (name, algorithm, key_bytes) in ALGORITHMS {
            for (what, way, header, differ) in CHECKS {
                let key = (algorithm, key_bytes);
                let bytes = arguments.bytes.max(4);
                let mut subject = Subject::new(backend, key, (way, header), differ, bytes)?;
                let seen = compare(arguments.measurements, |second, random| {
                    subject.prepare(second, random)?;
                    Ok(subject.time())
                })?;
                row(backend.name(), name, what, seen, Some(differ));
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    let settings = serde_json::json!({
        "measurements": arguments.measurements, "bytes": arguments.bytes,
    });
    let peers = vec!["the portable backend is aws-lc-rs".to_owned()];
    Report::new("constant-time", peers, settings, Vec::new(), vec![table])
        .finish(arguments.json.as_deref())?;
    println!(
        "\nA |t| above {T_MAX} is a reason to look and one below it no proof: store forwarding and \
         alignment\nalone raise it on code that is known to be good. An exact check steps through \
         the call."
    );
    Ok(())
}

/// One backend, one pair of classes.
struct Subject {
    backend: PacketBackend,
    side: Keyway,
    case: Case,
    differ: Differ,
    secrets: Vec<Secrets>,
    packets: Vec<u8>,
}

impl Subject {
    fn new(
        backend: PacketBackend,
        (algorithm, key_bytes): (Algorithm, usize),
        (way, header): (Way, bool),
        differ: Differ,
        bytes: usize,
    ) -> Result<Self, String> {
        let secrets: Vec<_> = (0..PACKETS).map(|_| Secrets::new(0, key_bytes)).collect();
        let case = Case { algorithm, way, header, bytes, batch: PACKETS, keys: PACKETS };
        let side = Keyway::new(backend, algorithm, &secrets)?;
        let packets = vec![0; PACKETS * case.packet_bytes()];
        Ok(Subject { backend, side, case, differ, secrets, packets })
    }

    fn prepare(&mut self, second: bool, random: &mut Rng) -> Result<(), String> {
        let differs = |what| 0_u8.wrapping_sub(u8::from(second & (self.differ == what)));
        choose(random, &mut self.packets, differs(Differ::Payload));
        for secrets in &mut self.secrets {
            choose(random, &mut secrets.key, differs(Differ::Key));
            choose(random, &mut secrets.header_key, differs(Differ::HeaderKey));
        }
        if matches!(self.differ, Differ::Key | Differ::HeaderKey) {
            self.side = Keyway::new(self.backend, self.case.algorithm, &self.secrets)?;
        }
        if self.case.way == Way::Open {
            let sealing = Case { way: Way::Seal, ..self.case };
            self.side.call(&sealing, &mut self.packets, 1000, 0);
            let last = differs(Differ::Tag);
            let first = differs(Differ::Verdict)
                | !last & 0_u8.wrapping_sub(u8::from(self.differ == Differ::Tag));
            let tag = HEADER_BYTES + self.case.bytes;
            for packet in self.packets.chunks_exact_mut(self.case.packet_bytes()) {
                packet[tag] ^= first & 1;
                packet[tag + TAG_BYTES - 1] ^= last & 1;
            }
        }
        Ok(())
    }

    fn time(&mut self) -> f64 {
        let begun = Instant::now();
        black_box(self.side.call(&self.case, black_box(&mut self.packets), 1000, 0));
        begun.elapsed().as_nanos() as f64
    }
}

/// Fills with 7, or where the mask is set with something else.
fn choose(random: &mut Rng, all: &mut [u8], mask: u8) {
    for bytes in all.chunks_mut(8) {
        let random = random.u64(..).to_le_bytes();
        for (byte, random) in bytes.iter_mut().zip(random) {
            *byte = random & mask | 7 & !mask;
        }
    }
}

/// The control that must be seen: tags compared byte by byte up to the first difference.
fn control(measurements: usize) -> Result<Seen, String> {
    let mut tags = [[[7; TAG_BYTES]; 2]; PACKETS];
    compare(measurements, |second, _| {
        for [_, tag] in &mut tags {
            (tag[0], tag[TAG_BYTES - 1]) = if second { (7, 0) } else { (0, 7) };
        }
        let begun = Instant::now();
        for [one, other] in black_box(&tags) {
            black_box(one.iter().zip(other).position(|(one, other)| one != other));
        }
        Ok(begun.elapsed().as_nanos() as f64)
    })
}

/// Nanoseconds of the two classes.
#[derive(Debug)]
struct Seen {
    first: f64,
    second: f64,
    t: f64,
}

/// Measures one class or the other, as chance will have it.
fn compare(
    measurements: usize,
    mut measure: impl FnMut(bool, &mut Rng) -> Result<f64, String>,
) -> Result<Seen, String> {
    let mut random = Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let mut times = Vec::with_capacity(measurements);
    for _ in 0..measurements {
        let second = random.bool();
        times.push((second, measure(second, &mut random)?));
    }
    // The first tenth warms up.
    let counts = &times[measurements / 10..];
    let of = |class| counts.iter().filter(|one| one.0 == class).map(|one| one.1).collect();
    Ok(welch([of(false), of(true)]))
}

fn welch(mut times: [Vec<f64>; 2]) -> Seen {
    let mut all = times.concat();
    all.sort_by(f64::total_cmp);
    let limit = all.get((all.len() as f64 * CROP) as usize).copied().unwrap_or(f64::MAX);
    times.iter_mut().for_each(|times| times.retain(|time| *time <= limit));
    let moments = |times: &[f64]| {
        let number = (times.len() as f64).max(2.0);
        let mean = times.iter().sum::<f64>() / number;
        let square = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
        (mean, square / (number - 1.0) / number)
    };
    let [(first, one), (second, other)] = times.each_ref().map(|times| moments(times));
    Seen { first, second, t: (second - first) / (one + other).sqrt().max(1e-9) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_is_large_only_where_the_means_differ() {
        let spread =
            |shift: f64| (0..1000).map(|at| f64::from(at % 10) + shift).collect::<Vec<_>>();
        assert!(welch([spread(0.0), spread(0.0)]).t.abs() < 1e-6);
        let seen = welch([spread(0.0), spread(3.0)]);
        assert!(seen.t > T_MAX && seen.second > seen.first, "{seen:?}");
    }
}
