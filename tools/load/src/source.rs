//! Where the values in requests come from, and which of them is taken.

use fastrand::Rng;
use keyway_data::Plan;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A named supply of values. One value of each is drawn for a sequence and is the same in all its
/// steps.
#[derive(Debug)]
pub struct Source {
    /// The name that `{name}` in a text refers to.
    pub name: String,
    pub(crate) values: Values,
    pub(crate) pick: Pick,
    /// The next one, where the order matters.
    next: AtomicU64,
    /// The number of this agent, of how many: each takes other values where each is taken once.
    pub(crate) share: (u64, u64),
}

/// The values that there are.
#[derive(Debug)]
pub(crate) enum Values {
    /// Whole numbers from `low`, `count` of them, with zeros in front up to `width` digits.
    Range { low: u64, count: u64, width: usize },
    /// The lines of a file.
    Lines(Lines),
    /// Whole numbers from here on, each once.
    Counter { from: u64 },
    /// Entries of a template, each once.
    Entries(Entries),
}

/// The entries of a template.
#[derive(Debug, Clone)]
pub(crate) struct Entries {
    pub(crate) plan: Arc<Plan>,
    /// The number of the plan's template.
    pub(crate) template: usize,
    /// The number of the first that is used.
    pub(crate) from: u64,
}

/// Lines in one buffer, so that millions of them cost little.
#[derive(Debug)]
pub(crate) struct Lines {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    /// Lines that are not empty.
    pub(crate) fn new(mut text: Vec<u8>) -> Lines {
        let mut ends = Vec::new();
        let mut kept = 0;
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let next = at + line + 1;
            let end = if rest[..line].last() == Some(&b'\r') { line - 1 } else { line };
            if end > 0 {
                text.copy_within(at..at + end, kept);
                kept += end;
                ends.push(kept);
            }
            at = next;
        }
        text.truncate(kept);
        Lines { text, ends }
    }

    pub(crate) fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    fn get(&self, index: u64) -> &[u8] {
        let index = index as usize;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).unwrap_or(&0);
        let end = self.ends.get(index).unwrap_or(start);
        self.text.get(*start..*end).unwrap_or_default()
    }
}

/// The choice of the next value.
#[derive(Debug, Clone)]
pub(crate) enum Pick {
    /// Each as likely as the others.
    Uniform,
    /// This part of the values gets that part of the draws, the others the rest.
    Hot { hot: f64, share: f64 },
    /// The k-th value as often as k to the power of -s.
    Zipf(Zipf),
    /// One after the other, and from the first again.
    Sequential,
}

impl Source {
    pub(crate) fn new(name: String, values: Values, pick: Pick) -> Source {
        Source { name, values, pick, next: AtomicU64::new(0), share: (0, 1) }
    }

    /// Where it is, if its values come in order.
    pub(crate) fn place(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Goes back to a place. A value that is given out once is not given out again.
    pub(crate) fn go_to(&self, place: u64) {
        if self.count().is_some() {
            self.next.store(place, Ordering::Relaxed);
        }
    }

    /// How many values there are; counters and templates have no end.
    pub(crate) fn count(&self) -> Option<u64> {
        match &self.values {
            Values::Range { count, .. } => Some(*count),
            Values::Lines(lines) => Some(lines.count()),
            Values::Counter { .. } | Values::Entries(_) => None,
        }
    }

    /// The index of a value.
    pub(crate) fn draw(&self, random: &mut Rng) -> u64 {
        let Some(count) = self.count() else { return self.following() };
        match &self.pick {
            Pick::Uniform => random.u64(0..count),
            Pick::Sequential => self.following() % count,
            Pick::Zipf(zipf) => zipf.draw(random) - 1,
            Pick::Hot { hot, share } => {
                let few = ((count as f64 * hot) as u64).clamp(1, count);
                match few == count || random.f64() < *share {
                    true => random.u64(0..few),
                    false => random.u64(few..count),
                }
            }
        }
    }

    fn following(&self) -> u64 {
        let (agent, agents) = self.share;
        self.next.fetch_add(1, Ordering::Relaxed).wrapping_mul(agents).wrapping_add(agent)
    }

    /// Appends the value of an index, or one of its columns, which tabs part.
    pub(crate) fn write(&self, index: u64, column: Option<usize>, out: &mut Vec<u8>) {
        match &self.values {
            Values::Range { low, width, .. } => number(low + index, *width, out),
            Values::Counter { from } => number(from.wrapping_add(index), 0, out),
            // Only the maker knows its values (`text`).
            Values::Entries(_) => {}
            Values::Lines(lines) => {
                let line = lines.get(index);
                let part = match column {
                    None => Some(line),
                    Some(column) => line.split(|byte| *byte == b'\t').nth(column),
                };
                out.extend_from_slice(part.unwrap_or_default());
            }
        }
    }
}

fn number(value: u64, width: usize, out: &mut Vec<u8>) {
    // Into memory it cannot fail.
    let _ = write!(out, "{value:0width$}");
}

/// Whole numbers from 1 to n, k with a probability in proportion to k^-s, in constant time and
/// memory: rejection-inversion (W. Hörmann and G. Derflinger, ACM TOMACS 6(3), 1996).
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    n: f64,
    s: f64,
    /// The integral at 1.5 less the first bar, and at n + 0.5.
    low: f64,
    high: f64,
    /// How far left of a bar's middle is surely below the bar.
    sure: f64,
}

impl Zipf {
    pub(crate) fn new(n: u64, s: f64) -> Zipf {
        let n = n as f64;
        let (low, high) = (integral(1.5, s) - 1.0, integral(n + 0.5, s));
        let sure = 2.0 - inverse(integral(2.5, s) - 2f64.powf(-s), s);
        Zipf { n, s, low, high, sure }
    }

    fn draw(&self, random: &mut Rng) -> u64 {
        loop {
            let u = self.high + random.f64() * (self.low - self.high);
            let x = inverse(u, self.s);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.sure || u >= integral(k + 0.5, self.s) - k.powf(-self.s) {
                return k as u64;
            }
        }
    }
}

/// The integral of x^-s, as (x^(1-s) - 1) / (1 - s), which at s = 1 goes over into ln x.
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    let y = (1.0 - s) * log;
    if y.abs() < 1e-8 { log * (1.0 + y / 2.0) } else { y.exp_m1() / (1.0 - s) }
}

/// The x whose integral is y.
fn inverse(y: f64, s: f64) -> f64 {
    let t = (y * (1.0 - s)).max(-1.0);
    if t.abs() < 1e-8 { (y * (1.0 - t / 2.0)).exp() } else { (t.ln_1p() / (1.0 - s)).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pick: Pick, n: u64, draws: usize) -> Vec<usize> {
        let values = Values::Range { low: 0, count: n, width: 0 };
        let source = Source::new("x".into(), values, pick);
        let mut random = Rng::with_seed(7);
        let mut counts = vec![0; n as usize];
        (0..draws).for_each(|_| counts[source.draw(&mut random) as usize] += 1);
        counts
    }

    #[test]
    fn zipf_is_in_proportion() {
        for s in [0.5, 1.0, 1.1, 2.0] {
            let counts = counts(Pick::Zipf(Zipf::new(1_000, s)), 1_000, 200_000);
            let sum: f64 = (1..=1_000).map(|k| f64::from(k).powf(-s)).sum();
            for k in [1, 2, 3, 10] {
                let expected = 200_000.0 * f64::from(k).powf(-s) / sum;
                let found = counts[k as usize - 1] as f64;
                assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{s} {k}: {found}");
            }
        }
    }

    #[test]
    fn the_hot_ones_get_their_share() {
        let counts = counts(Pick::Hot { hot: 0.2, share: 0.8 }, 100, 100_000);
        let hot: usize = counts[..20].iter().sum();
        assert!((78_000..82_000).contains(&hot), "{hot}");
        assert!(counts.iter().all(|count| *count > 0));
    }

    #[test]
    fn sequential_is_each_once() {
        assert!(counts(Pick::Sequential, 50, 100).iter().all(|count| *count == 2));
    }

    #[test]
    fn lines_and_their_columns() {
        let lines = Lines::new(b"ada\tsecret\r\n\nbob\tother".to_vec());
        assert_eq!(lines.count(), 2);
        let source = Source::new("l".into(), Values::Lines(lines), Pick::Uniform);
        let read = |index, column| {
            let mut out = Vec::new();
            source.write(index, column, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(read(0, None), "ada\tsecret");
        assert_eq!(read(0, Some(1)), "secret");
        assert_eq!(read(1, Some(0)), "bob");
        assert_eq!(read(1, Some(7)), "");
    }
}
