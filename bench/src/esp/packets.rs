//! Claim 1: packets that a pair of gateways takes from one host to the other for a second of the processor, beside other
//! programs that do that, and beside the way without any cryptography; and the share of that time which cryptography has.

use super::cryptography::Cryptography;
use super::gateway::{Gateway, Kind};
use super::network::Network;
use super::traffic::{CASES, Ends, Sample};
use super::{keyway, peers};
use crate::report::{Claim, Findings, Table, median};
use crate::ring::common::{CLIENT, DAEMON, run_on, text};
use std::time::Duration;
use tempfile::TempDir;

/// Of the way without cryptography, at the sizes of [`FULL`].
const CEILING_MIN: f64 = 0.7;
/// Cases of packets as long as they get.
const FULL: [&str; 2] = ["1,400 B", "1,400 B, GSO"];
/// Percent of the processor, for packets of [`SHARE_OF`].
const SHARE_MAX: f64 = 15.0;
const SHARE_OF: &str = "1,400 B";
/// Times libipsec.
const LIBIPSEC_MIN: f64 = 5.0;
/// Times wireguard-go.
const WIREGUARD_GO_MIN: f64 = 1.0;

/// Of one case in a round, and of one try of a window.
const RUN: Duration = Duration::from_secs(1);
const TRY: Duration = Duration::from_millis(300);

/// The first is Keyway's.
const KINDS: [&Kind; 5] =
    [&keyway::GATEWAY, &keyway::CEILING, &peers::LIBIPSEC, &peers::BORINGTUN, &peers::WIREGUARD_GO];

/// A pair that runs.
struct Side {
    kind: &'static Kind,
    ends: Ends,
    /// Of each case.
    windows: [usize; CASES.len()],
    samples: [Vec<Sample>; CASES.len()],
    gateway: Gateway,
    network: Network,
    _folder: TempDir,
}

/// The makes with their versions.
pub fn versions() -> Vec<String> {
    let version = |kind: &&Kind| match (kind.version)() {
        Some(version) => format!("{}: {version}", kind.name),
        None => format!("{} is not installed", kind.name),
    };
    KINDS[1..].iter().map(version).collect()
}

pub fn measure(rounds: usize) -> Result<Findings, String> {
    let mut sides = Vec::new();
    for kind in KINDS {
        if (kind.version)().is_some() {
            sides.push(Side::start(kind).map_err(|why| format!("{}: {why}", kind.name))?);
        }
    }
    let mut cryptography = Cryptography::new()?;
    let mut nanoseconds = Vec::new();
    for _ in 0..rounds {
        nanoseconds.push(cryptography.nanoseconds());
        for (at, case) in CASES.iter().enumerate() {
            for side in &mut sides {
                let sample =
                    side.ends.run(case, (&side.network, &side.gateway), side.windows[at], RUN);
                let sample = sample.map_err(|why| format!("{}: {why}", side.kind.name))?;
                side.samples[at].push(sample);
            }
        }
    }
    let mut claims = claims(&sides);
    claims.extend(sides.first().into_iter().flat_map(|ours| shares(ours, &nanoseconds)));
    Ok(Findings { claims, tables: tables(&sides, rounds) })
}

/// Of cryptography in the gateways' time, of packets as long as they get.
fn shares(ours: &Side, nanoseconds: &[f64]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (at, case) in CASES.iter().enumerate() {
        if !FULL.contains(&case.name) {
            continue;
        }
        let each = |sample: &Sample| sample.processor.as_nanos() as f64 / sample.arrived as f64;
        let rounds = ours.samples[at].iter().map(each).zip(nanoseconds);
        let shares: Vec<_> = rounds.map(|(all, cryptography)| 100.0 * cryptography / all).collect();
        let name = format!("1 the share of cryptography, {}", case.name);
        let claim = Claim::at_most(&name, "%", &shares, SHARE_MAX);
        claims.push(match case.name == SHARE_OF {
            true => claim,
            false => Claim { bar: None, holds: None, ..claim.secondary() },
        });
    }
    claims
}

impl Side {
    /// Starts it, and finds the window that suits it in each case.
    fn start(kind: &'static Kind) -> Result<Side, String> {
        let (network, folder) = (Network::new(kind.tag)?, tempfile::tempdir().map_err(text)?);
        run_on(DAEMON)?;
        let gateway = (kind.start)(&network, folder.path());
        run_on(CLIENT)?;
        let (gateway, mut ends) = (gateway?, Ends::open(&network)?);
        let mut windows = [0; CASES.len()];
        for (case, window) in CASES.iter().zip(&mut windows) {
            let mut best = f64::MIN;
            for tried in case.windows {
                let rate = ends.run(case, (&network, &gateway), *tried, TRY)?.rate();
                if rate > best {
                    (best, *window) = (rate, *tried);
                }
            }
        }
        let samples = Default::default();
        Ok(Side { kind, ends, windows, samples, gateway, network, _folder: folder })
    }

    fn rates(&self, case: usize) -> Vec<f64> {
        self.samples[case].iter().map(Sample::rate).collect()
    }
}

fn claims(sides: &[Side]) -> Vec<Claim> {
    let Some((ours, peers)) = sides.split_first() else { return Vec::new() };
    let mut claims = Vec::new();
    for peer in peers {
        for (at, case) in CASES.iter().enumerate() {
            let name = format!("1 {}", case.name);
            let unit = "k packets a processor second";
            let claim = Claim::rate(&name, unit, &ours.rates(at), peer.kind.name, &peer.rates(at));
            let bar = match peer.kind.name {
                "no cryptography" => FULL.contains(&case.name).then_some(CEILING_MIN),
                "libipsec" => Some(LIBIPSEC_MIN),
                "wireguard-go" => Some(WIREGUARD_GO_MIN),
                _ => None,
            };
            claims.push(match bar {
                Some(bar) => claim.demand(bar),
                None => claim.secondary(),
            });
        }
    }
    claims
}

fn tables(sides: &[Side], rounds: usize) -> Vec<Table> {
    let names = sides.iter().map(|side| side.kind.name);
    let header: Vec<_> = [""].into_iter().chain(names).collect();
    let table = |title: &str, show: &dyn Fn(&Side, usize) -> String| {
        let mut table = Table::new(title, &header);
        for (at, case) in CASES.iter().enumerate() {
            let cells = sides.iter().map(|side| show(side, at));
            table.rows.push([case.name.to_owned()].into_iter().chain(cells).collect());
        }
        table
    };
    let of = |side: &Side, at: usize, figure: &dyn Fn(&Sample) -> f64| {
        median(&side.samples[at].iter().map(figure).collect::<Vec<_>>())
    };
    let title = format!(
        "1 thousand packets a processor second, of both gateways together: medians of {rounds} rounds"
    );
    let rates = table(&title, &|side, at| format!("{:.0}", of(side, at, &Sample::rate)));
    let microseconds = |sample: &Sample| 1e3 / sample.rate();
    let costs = table("1 the same as microseconds of the processor a packet", &|side, at| {
        format!("{:.2}", of(side, at, &microseconds))
    });
    let conduct = table(
        "1 the window in packets / packets lost, % / processor time of the gateways, % of the time",
        &|side, at| {
            let lost = |sample: &Sample| 100.0 * (1.0 - sample.arrived as f64 / sample.sent as f64);
            let busy = |s: &Sample| 100.0 * s.processor.as_secs_f64() / s.elapsed.as_secs_f64();
            let window = side.windows[at];
            format!("{window} / {:.1} / {:.0}", of(side, at, &lost), of(side, at, &busy))
        },
    );
    vec![rates, costs, conduct]
}
