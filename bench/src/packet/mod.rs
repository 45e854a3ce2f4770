//! QUIC's packet protection (RFC 9001): what a packet costs Keyway's backends, the libraries that
//! QUIC stacks use, and the processor at best.
//!
//! Every side seals the same packets under the same keys: their bytes are compared, and opened
//! again, before anything is timed. All take turns in every round; what is reported is the median
//! of the rounds. How a turn is measured is in [`sample`].

mod bound;
mod cases;
mod claims;
mod keyway;
mod libraries;
mod program;
mod sample;
mod secrets;

pub use bound::Bound;
pub use keyway::Keyway;
pub use program::compile;
pub use sample::{Algorithm, Case, HEADER_BYTES, Side, TAG_BYTES, Way, write_header};
pub use secrets::Secrets;

use crate::report::Report;
use cases::{ALGORITHMS, BATCHES, BULK_BYTES, CONNECTION_BYTES, CONNECTIONS, Figures, SIZES, WAYS};
use indicatif::{ProgressBar, ProgressStyle};
use keyway_simd::packet::PacketBackend;
use program::Program;
use sample::{Sampler, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these claims, 1 to 5, with commas between them
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=5))]
    only: Vec<u8>,
    /// Rounds; in each every side has a turn with everything
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draw pictures into this folder
    #[arg(long)]
    svg: Option<PathBuf>,
}

const OPENSSL: &str = include_str!("openssl.c");
const IPSEC_MB: &str = include_str!("ipsec_mb.c");
const BORINGSSL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/boringssl/target/release/keyway-bench-boringssl");

/// Someone who takes turns.
struct Contestant {
    name: String,
    kind: Kind,
}

enum Kind {
    /// In this process, one of each algorithm.
    Here([Box<dyn Side>; 2]),
    There(Program),
}

impl Contestant {
    fn here<S: Side + 'static>(
        secrets: &[Vec<Secrets>; 2],
        make: impl Fn(Algorithm, &[Secrets]) -> Result<S, String>,
    ) -> Result<Self, String> {
        let [aes, chacha] = secrets;
        let aes: Box<dyn Side> = Box::new(make(Algorithm::Aes128Gcm, aes)?);
        let chacha = Box::new(make(Algorithm::ChaCha20Poly1305, chacha)?);
        Ok(Contestant { name: aes.name(), kind: Kind::Here([aes, chacha]) })
    }

    fn there(name: &str, path: &Path, secrets: &[Vec<Secrets>; 2]) -> Result<Self, String> {
        let keys = [(ALGORITHMS[0], &secrets[0][..]), (ALGORITHMS[1], &secrets[1][..])];
        let program = Program::start(path, keys)?;
        Ok(Contestant { name: name.to_owned(), kind: Kind::There(program) })
    }

    fn check(&mut self, case: &Case) -> Result<Option<u64>, String> {
        match &mut self.kind {
            Kind::Here(sides) => {
                let side = &mut sides[case.algorithm as usize];
                side.does(case).then(|| sample::check(&mut **side, case)).transpose()
            }
            Kind::There(program) => program.check(case),
        }
    }

    fn turn(&mut self, sampler: &mut Sampler, case: &Case) -> Result<Turn, String> {
        match &mut self.kind {
            Kind::Here(sides) => Ok(sampler.turn(&mut *sides[case.algorithm as usize], case)),
            Kind::There(program) => program.turn(case),
        }
    }
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let begun = Instant::now();
    let wants = |claim: u8| arguments.only.is_empty() || arguments.only.contains(&claim);
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let mut peers = Vec::new();
    let bound = Bound::measure(folder.path());
    let bound = bound.map_err(|why| peers.push(format!("no bound: {why}"))).ok();
    let connections = if wants(3) { CONNECTIONS } else { 1 };
    let mut contestants = contestants(folder.path(), connections, &mut peers)?;

    let wanted = cases(wants);
    let agreed: Vec<Vec<usize>> =
        wanted.iter().map(|case| agree(&mut contestants, case)).collect::<Result<_, _>>()?;
    let progress = ProgressBar::new((arguments.rounds * wanted.len()) as u64);
    let style = "{elapsed:>4} {bar:24} {pos}/{len} cases, {eta} left";
    progress.set_style(ProgressStyle::with_template(style).map_err(|why| why.to_string())?);
    let mut sampler = Sampler::new();
    let mut turns = BTreeMap::<_, Vec<_>>::new();
    for _ in 0..arguments.rounds {
        for (case, those) in wanted.iter().zip(&agreed) {
            for index in those {
                let turn = contestants[*index].turn(&mut sampler, case)?;
                turns.entry((*index, *case)).or_default().push(turn);
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();

    let names = contestants.iter().map(|one| one.name.clone()).collect();
    let figures = Figures { names, turns, bound };
    let found = claims::all(&figures, wants);
    if let Some(folder) = &arguments.svg {
        claims::draw(&figures, folder)?;
    }
    let settings = serde_json::json!({
        "only": arguments.only, "rounds": arguments.rounds, "seconds": begun.elapsed().as_secs(),
        "clock_ghz": figures.bound.as_ref().map(|bound| bound.clock),
    });
    let report = Report::new("packet", peers, settings, found.claims, found.tables);
    report.finish(arguments.json.as_deref())?;
    println!("{} s in all", begun.elapsed().as_secs());
    Ok(())
}

/// All sides that can be had here; what they are, and why others cannot be had, goes to `peers`.
/// The last of Keyway's backends, which come first, is the one that it chooses.
fn contestants(
    folder: &Path,
    connections: usize,
    peers: &mut Vec<String>,
) -> Result<Vec<Contestant>, String> {
    let secrets = [
        (0..connections).map(|one| Secrets::new(one as u64, 16)).collect::<Vec<_>>(),
        vec![Secrets::new(0, 32)],
    ];
    let mut all = Vec::new();
    for backend in PacketBackend::available() {
        let make = |algorithm, secrets: &[Secrets]| Keyway::new(backend, algorithm, secrets);
        all.push(Contestant::here(&secrets, make)?);
    }
    all.push(Contestant::here(&secrets, libraries::Ring::new)?);
    all.push(Contestant::here(&secrets, libraries::Rustls::over_ring)?);
    all.push(Contestant::here(&secrets, libraries::AwsLc::new)?);
    all.push(Contestant::here(&secrets, libraries::Rustls::over_aws_lc)?);
    peers.extend(["ring", "aws-lc-rs", "rustls"].map(str::to_owned));
    let built = |path: &str| {
        let path = PathBuf::from(path);
        if path.exists() { Ok(path) } else { Err("not built (cargo xtask peers)".to_owned()) }
    };
    let others = [
        ("BoringSSL", built(BORINGSSL)),
        ("ipsec-mb", program::compile(folder, "ipsec_mb", IPSEC_MB, "IPSec_MB")),
        ("OpenSSL", program::compile(folder, "openssl", OPENSSL, "crypto")),
    ];
    for (name, program) in others {
        match program.and_then(|program| Contestant::there(name, &program, &secrets)) {
            Ok(contestant) => {
                if let Kind::There(program) = &contestant.kind {
                    peers.push(program.version().to_owned());
                }
                all.push(contestant);
            }
            Err(why) => peers.push(format!("{name} is left out: {why}")),
        }
    }
    Ok(all)
}

/// Everything that these claims need.
fn cases(wants: impl Fn(u8) -> bool) -> BTreeSet<Case> {
    let mut cases = BTreeSet::new();
    let aes = ALGORITHMS[0];
    if [1, 2, 5].into_iter().any(&wants) {
        for algorithm in ALGORITHMS {
            for (way, header) in WAYS.into_iter().flat_map(|way| [(way, false), (way, true)]) {
                for (bytes, batch) in SIZES.into_iter().flat_map(|b| BATCHES.map(|of| (b, of))) {
                    cases.insert(Case { algorithm, way, header, bytes, batch, keys: 1 });
                }
            }
        }
    }
    if wants(3) {
        for (header, batch) in BATCHES.into_iter().flat_map(|of| [(false, of), (true, of)]) {
            for keys in [1, CONNECTIONS] {
                let (algorithm, way, bytes) = (aes, Way::Seal, CONNECTION_BYTES);
                cases.insert(Case { algorithm, way, header, bytes, batch, keys });
            }
        }
    }
    if wants(4) {
        for bytes in BULK_BYTES {
            let (algorithm, way, header) = (aes, Way::Seal, false);
            cases.insert(Case { algorithm, way, header, bytes, batch: 1, keys: 1 });
        }
    }
    cases
}

/// Who does this; all of them put out the same bytes and open them again.
fn agree(contestants: &mut [Contestant], case: &Case) -> Result<Vec<usize>, String> {
    let (mut those, mut first) = (Vec::new(), None);
    for (index, contestant) in contestants.iter_mut().enumerate() {
        let Some(print) = contestant.check(&Case { way: Way::Seal, ..*case })? else { continue };
        if *first.get_or_insert(print) != print {
            return Err(format!("{} puts out other bytes: {case:?}", contestant.name));
        }
        those.push(index);
    }
    Ok(those)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With as many peers as can be had here.
    #[test]
    fn everyone_seals_the_same_bytes_and_opens_them() {
        let folder = tempfile::tempdir().expect("a folder for programs");
        let mut peers = Vec::new();
        let mut all = contestants(folder.path(), 3, &mut peers).expect("sides that start");
        let backends = PacketBackend::available().count();
        for mut case in cases(|_| true) {
            case.keys = case.keys.min(3);
            let those = agree(&mut all, &case).expect("sides that agree");
            assert!(those.iter().filter(|side| **side < backends).count() == backends, "{case:?}");
        }
    }

    #[test]
    fn a_side_that_differs_is_found() {
        struct Lazy;
        impl Side for Lazy {
            fn name(&self) -> String {
                "lazy".into()
            }

            fn does(&self, _: &Case) -> bool {
                true
            }

            fn call(&mut self, _: &Case, packets: &mut [u8], _: u64, _: usize) -> bool {
                packets.iter_mut().for_each(|byte| *byte ^= 1);
                true
            }
        }
        let secrets = [vec![Secrets::new(0, 16)], vec![Secrets::new(0, 32)]];
        let mut all = vec![
            Contestant::here(&secrets, libraries::Ring::new).expect("ring"),
            Contestant::here(&secrets, |_, _| Ok(Lazy)).expect("a side that seals nothing"),
        ];
        let case = cases(|claim| claim == 4).first().copied().expect("a case");
        assert!(agree(&mut all, &case).is_err_and(|why| why.contains("lazy")));
    }
}
