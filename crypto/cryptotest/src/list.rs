//! The abilities of drivers, and where it pays to take another.

use keyway_engine::{Algorithm, CostReport, Driver, DriverReport, Kind, Linear, Selection};
use std::sync::Arc;

/// The sizes at which a crossover is looked for, in bytes: up to the longest text of a request in
/// practice.
const CROSSOVER_BYTES_MAX: f64 = 16_777_216.0;

/// The driver that finishes a lone request of one work first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossover {
    /// The work's name.
    pub work: String,
    /// From which size on, in bytes, which driver; the first from 1 byte on.
    pub first: Vec<(u64, String)>,
}

/// Abilities of a driver beside its algorithms, in words.
pub fn features(driver: &Arc<dyn Driver>) -> Vec<String> {
    let mut features = Vec::new();
    if driver.name() == "simd"
        && let Ok(backend) = keyway_drivers::chosen_backend()
    {
        features.push(format!("instructions: {}", backend.name()));
    }
    if driver.queue(&keyway_engine::Waker::new()).is_some() {
        features.push("queues of its own".to_owned());
    }
    if driver.stream(Algorithm::Sha256).is_ok() {
        features.push("hashes fed in pieces".to_owned());
    }
    features
}

/// The chains that a driver does whole and of which `asked` wants a step: of a cipher and a MAC, in
/// either order, and of compression, cipher and MAC.
pub fn chains(driver: &Arc<dyn Driver>, asked: impl Fn(&Algorithm) -> bool) -> Vec<String> {
    let of = |kind| Algorithm::ALL.iter().copied().filter(move |step| step.kind() == kind);
    let mut chains = Vec::new();
    for cipher in of(Kind::Cipher) {
        for mac in of(Kind::Mac) {
            chains.extend([vec![cipher, mac], vec![mac, cipher]]);
            chains.extend(of(Kind::Compression).map(|compression| vec![compression, cipher, mac]));
        }
    }
    let there = |steps: &Vec<Algorithm>| driver.supports(steps) && steps.iter().any(&asked);
    let name = |steps: Vec<Algorithm>| steps.iter().map(|s| s.name()).collect::<Vec<_>>().join("+");
    chains.into_iter().filter(there).map(name).collect()
}

/// For each work that several drivers are chosen for, the driver that is first from each size on.
pub fn crossovers(reports: &[DriverReport], costs: &[CostReport]) -> Vec<Crossover> {
    let chosen = |name: &str| {
        let is_chosen = |report: &DriverReport| report.selection == Selection::Any;
        reports.iter().any(|report| report.name == name && is_chosen(report))
    };
    let mut works: Vec<(String, Vec<(&str, Linear)>)> = Vec::new();
    for cost in costs.iter().filter(|cost| chosen(&cost.driver)) {
        let line = (cost.driver.as_str(), cost.single);
        match works.iter_mut().find(|(work, _)| *work == cost.work) {
            Some((_, lines)) => lines.push(line),
            None => works.push((cost.work.clone(), vec![line])),
        }
    }
    works.retain(|(_, lines)| lines.len() > 1);
    let crossover = |(work, lines): (String, Vec<_>)| Crossover { work, first: envelope(&lines) };
    works.into_iter().map(crossover).collect()
}

/// The lowest of the lines, from 1 byte on: where each piece begins, and whose it is.
fn envelope(lines: &[(&str, Linear)]) -> Vec<(u64, String)> {
    let mut pieces = Vec::new();
    let at = |line: &Linear, bytes: f64| line.fixed + line.per_byte * bytes;
    let lower = |a: &&(&str, Linear), b: &&(&str, Linear)| {
        at(&a.1, 1.0).total_cmp(&at(&b.1, 1.0)).then(a.1.per_byte.total_cmp(&b.1.per_byte))
    };
    let mut from = 1.0;
    let mut current = lines.iter().min_by(lower);
    while let Some((name, line)) = current {
        pieces.push((from as u64, (*name).to_owned()));
        // A line that rises more slowly and begins higher crosses this one once.
        let crossing = |(_, other): &(&str, Linear)| {
            let gain = line.per_byte - other.per_byte;
            let bytes = (other.fixed - line.fixed) / gain;
            (gain > 0.0 && bytes.max(from) < CROSSOVER_BYTES_MAX).then_some(bytes.max(from).ceil())
        };
        let next = lines.iter().filter_map(|other| Some((crossing(other)?, other)));
        let next = next.min_by(|(a, one), (b, other)| {
            a.total_cmp(b).then(one.1.per_byte.total_cmp(&other.1.per_byte))
        });
        current = next.map(|(bytes, other)| {
            from = bytes;
            other
        });
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_finish_changes_where_the_lines_cross() {
        let line = |fixed, per_byte| Linear { fixed, per_byte };
        let lines = [
            ("near", line(100.0, 1.0)),
            ("far", line(10_000.0, 0.1)),
            ("between", line(1_000.0, 0.5)),
            ("never", line(20_000.0, 2.0)),
        ];
        let pieces = envelope(&lines);
        let expected = [(1, "near"), (1_800, "between"), (22_500, "far")];
        assert_eq!(pieces, expected.map(|(from, name)| (from, name.to_owned())));
    }
}
