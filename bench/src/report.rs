//! The form in which every benchmark ends: a table for people, a list of claims for programs.

use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;

/// One comparison. `bar` and `holds` are `null` where no bar is set yet.
#[derive(Serialize)]
pub struct Claim {
    /// The claim.
    pub claim: String,
    /// Keyway's figure.
    pub value: f64,
    /// The unit of `value` and `peer_value`.
    pub unit: &'static str,
    /// Who it is compared with.
    pub peer: String,
    /// The peer's figure in the same run.
    pub peer_value: f64,
    /// How many times better Keyway is: above 1 favours Keyway. Median of the rounds' ratios.
    pub ratio: f64,
    /// The ratio that is demanded.
    pub bar: Option<f64>,
    /// Whether `ratio` reaches `bar`.
    pub holds: Option<bool>,
    /// Largest less smallest of the rounds' ratios, over their median.
    pub spread: f64,
    /// Whether it only helps to read the others: shown after them.
    pub secondary: bool,
}

impl Claim {
    /// Compares costs (less is better) measured in the same rounds.
    pub fn cost(claim: &str, unit: &'static str, ours: &[f64], peer: &str, theirs: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(o, t)| t / o).collect();
        let ratio = median(&ratios);
        let (low, high) = ratios
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
        Claim {
            claim: claim.into(),
            value: median(ours),
            unit,
            peer: peer.into(),
            peer_value: median(theirs),
            ratio,
            bar: None,
            holds: None,
            spread: if ratio == 0.0 { 0.0 } else { (high - low) / ratio },
            secondary: false,
        }
    }

    /// Compares rates (more is better) measured in the same rounds.
    pub fn rate(claim: &str, unit: &'static str, ours: &[f64], peer: &str, theirs: &[f64]) -> Self {
        let swapped = Claim::cost(claim, unit, theirs, peer, ours);
        Claim { value: swapped.peer_value, peer_value: swapped.value, ..swapped }
    }

    /// Compares costs with the most they may be.
    pub fn at_most(claim: &str, unit: &'static str, ours: &[f64], limit: f64) -> Self {
        Claim::cost(claim, unit, ours, "the most it may be", &vec![limit; ours.len()]).demand(1.0)
    }

    /// Says that it only helps to read the others.
    #[must_use]
    pub fn secondary(self) -> Self {
        Claim { secondary: true, ..self }
    }

    fn print(&self) {
        let bar = match (self.bar, self.holds) {
            (Some(bar), Some(true)) => format!("≥ {} holds", three_digits(bar)),
            (Some(bar), _) => format!("≥ {} MISSED", three_digits(bar)),
            (None, _) => "none yet".into(),
        };
        println!(
            "{:<52} {:>10.2} {:>10.2}  {:<22} {:>6}× {:>6.0}%  {bar}",
            format!("{}, {}", self.claim, self.unit),
            self.value,
            self.peer_value,
            self.peer,
            three_digits(self.ratio),
            self.spread * 100.0,
        );
    }

    /// Demands this ratio.
    #[must_use]
    pub fn demand(self, bar: f64) -> Self {
        Claim { bar: Some(bar), holds: Some(self.ratio >= bar), ..self }
    }
}

/// Figures beside the claims.
#[derive(Serialize)]
pub struct Table {
    /// The title, with the unit.
    pub title: String,
    /// The columns' names.
    pub header: Vec<String>,
    /// One text for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: &str, header: &[&str]) -> Self {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Table { title: title.into(), header, rows: Vec::new() }
    }

    fn print(&self) {
        println!("\n{}", self.title);
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<_> = (0..self.header.len()).map(|c| width(c).unwrap_or(0)).collect();
        for line in lines() {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
            println!("  {}", cells.collect::<Vec<_>>().join("  "));
        }
    }
}

/// The report of a claim's file.
#[derive(Default)]
pub struct Findings {
    pub claims: Vec<Claim>,
    pub tables: Vec<Table>,
}

/// Everything a reader needs to judge the claims.
#[derive(Serialize)]
pub struct Report {
    benchmark: &'static str,
    machine: Machine,
    commit: String,
    peers: Vec<String>,
    settings: serde_json::Value,
    claims: Vec<Claim>,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    load_average: String,
}

impl Report {
    /// `peers`: their names and versions; `settings`: what the run was asked to do.
    pub fn new(
        benchmark: &'static str,
        peers: Vec<String>,
        settings: serde_json::Value,
        claims: Vec<Claim>,
        tables: Vec<Table>,
    ) -> Self {
        let (machine, commit) = (Machine::here(), commit());
        Report { benchmark, machine, commit, peers, settings, claims, tables }
    }

    /// Prints the table, and writes the JSON if a file is named.
    pub fn finish(&self, json: Option<&Path>) -> Result<(), String> {
        self.print();
        let Some(path) = json else { return Ok(()) };
        let text = serde_json::to_string_pretty(self).map_err(|why| why.to_string())?;
        fs::write(path, text + "\n").map_err(|why| format!("{}: {why}", path.display()))
    }

    fn print(&self) {
        let m = &self.machine;
        println!("\n{} at commit {}", self.benchmark, self.commit);
        println!("{} × {}, {} MiB, Linux {}", m.cores, m.processor, m.memory_mib, m.kernel);
        println!("load average {}; peers: {}\n", m.load_average, self.peers.join(", "));
        println!(
            "{:<52} {:>10} {:>10}  {:<22} {:>7} {:>7}  bar",
            "claim", "Keyway", "peer", "", "ratio", "spread"
        );
        let (beside, first): (Vec<_>, Vec<_>) =
            self.claims.iter().partition(|claim| claim.secondary);
        first.into_iter().for_each(Claim::print);
        if !beside.is_empty() {
            println!("\nsecondary: to read the others by");
            beside.into_iter().for_each(Claim::print);
        }
        self.tables.iter().for_each(Table::print);
        println!("\nratio: how many times better Keyway is; above 1 favours Keyway");
    }
}

impl Machine {
    fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kib = memory.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        Machine {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            load_average: read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) if git(&["status", "--porcelain"]).is_some_and(|s| s.is_empty()) => commit,
        Some(commit) => commit + " and changes",
        None => "unknown".into(),
    }
}

/// With three digits that mean something, so that a very small ratio is not shown as none.
fn three_digits(value: f64) -> String {
    let digits = (2.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0);
    format!("{value:.0$}", digits as usize)
}

/// The middle one, or the mean of the two in the middle; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_keep_three_digits() {
        let shown = [0.000_307, 0.42, 2.386, 15.02, 1234.0].map(three_digits);
        assert_eq!(shown, ["0.000307", "0.420", "2.39", "15.0", "1234"]);
    }

    #[test]
    fn a_cost_half_the_peers_is_a_ratio_of_two() {
        let claim = Claim::cost("x", "us", &[1.0, 2.0, 3.0], "p", &[2.0, 4.0, 6.0]);
        assert_eq!((claim.value, claim.peer_value, claim.ratio), (2.0, 4.0, 2.0));
        assert_eq!((claim.spread, claim.bar, claim.holds), (0.0, None, None));
    }

    #[test]
    fn half_the_peers_rate_is_a_ratio_of_a_half_and_misses_a_bar_of_one() {
        let claim = Claim::rate("x", "Mbit/s", &[1.0, 2.0], "p", &[2.0, 4.0]).demand(1.0);
        assert_eq!((claim.value, claim.peer_value, claim.ratio), (1.5, 3.0, 0.5));
        assert_eq!(claim.holds, Some(false));
        assert_eq!(Claim::at_most("x", "ns", &[14.0, 15.0], 15.0).holds, Some(true));
    }
}
