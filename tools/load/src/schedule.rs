//! When sequences are to start. Only this decides it; how fast the server answers does not.

use fastrand::Rng;
use std::time::Duration;

/// A part of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// How long starts are made.
    pub length: Duration,
    /// How many.
    pub rate: Rate,
    /// Whether what starts in it counts, or only warms up.
    pub record: bool,
    /// How many starts it has at most; the last phase may be over with them, before its time.
    pub most: Option<u64>,
}

/// How many sequences start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As many as get done: each connection goes on when it has its answer (a closed loop).
    AsAnswered,
    /// So many a second at the beginning and at the end, in a straight line (an open loop).
    Line {
        /// At the beginning.
        from: f64,
        /// At the end.
        to: f64,
    },
}

impl Phase {
    /// How many starts an open loop's phase has, as a real number.
    #[must_use]
    pub fn starts(&self) -> Option<f64> {
        let most = self.most.map_or(f64::INFINITY, |most| most as f64);
        match self.rate {
            Rate::AsAnswered => None,
            Rate::Line { from, to } => {
                Some(((from + to) / 2.0 * self.length.as_secs_f64()).min(most))
            }
        }
    }

    /// How many starts it is to have, if that is known.
    #[must_use]
    pub fn planned(&self) -> Option<f64> {
        self.starts().or(self.most.map(|most| most as f64))
    }

    /// When so many starts are made, in seconds from the phase's beginning: the inverse of
    /// `from t + (to - from) t^2 / 2 d`, in the form that also holds where the line is level.
    fn at(&self, starts: f64) -> f64 {
        let Rate::Line { from, to } = self.rate else { return f64::INFINITY };
        let slope = (to - from) / self.length.as_secs_f64();
        let root = (from * from + 2.0 * slope * starts).max(0.0).sqrt();
        let below = from + root;
        if below > 0.0 { 2.0 * starts / below } else { 0.0 }
    }
}

/// How starts are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Even,
    /// As those of many who know nothing of one another: a Poisson process.
    Random,
}

/// A start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Start {
    /// When, in nanoseconds from the run's beginning.
    pub at_ns: u64,
    /// In which phase.
    pub phase: usize,
    /// Its number, of all threads.
    pub index: u64,
}

/// The starts of one of several threads, in order. Those of all together have the rate asked for.
#[derive(Debug, Clone)]
pub struct Starts {
    phases: Vec<Phase>,
    /// How long each was planned to be.
    lengths_ns: Vec<u64>,
    arrivals: Arrivals,
    random: Rng,
    thread: u64,
    threads: u64,
    /// Where we are: the phase, when it began, starts of phases before.
    phase: usize,
    began_ns: u64,
    before: u64,
    /// How often the rate was changed.
    levels: u64,
    /// Starts of this phase that are this thread's: how many were made, and the position of the next.
    made: u64,
    position: f64,
}

impl Starts {
    /// Those of the thread with this number, from 0.
    #[must_use]
    pub fn new(
        phases: &[Phase],
        arrivals: Arrivals,
        seed: u64,
        thread: u64,
        threads: u64,
    ) -> Starts {
        let random = Rng::with_seed(seed ^ (thread << 32));
        let mut starts = Starts {
            phases: phases.to_vec(),
            lengths_ns: phases.iter().map(|phase| phase.length.as_nanos() as u64).collect(),
            arrivals,
            random,
            thread,
            threads,
            phase: 0,
            began_ns: 0,
            before: 0,
            levels: 0,
            made: 0,
            position: 0.0,
        };
        starts.first();
        starts
    }

    /// From a moment on, in nanoseconds from the run's beginning, so many starts a second to the end of the
    /// last phase. Phases that have none of their own stay so.
    pub(crate) fn level(&mut self, at_ns: u64, rate: f64) {
        let mut end_ns = 0;
        let mut ends = self.lengths_ns.iter().map(|length| {
            end_ns += length;
            end_ns
        });
        let Some(phase) = ends.position(|end| at_ns < end) else { return };
        // Positions are those of all threads together.
        let position = if phase == self.phase { self.position as u64 } else { 0 };
        // Threads hear of it at different moments; no number is given twice all the same.
        self.levels += 1;
        self.before = (self.levels << 40).next_multiple_of(self.threads);
        (self.phase, self.began_ns) = (phase, at_ns);
        for (index, (later, length)) in self.phases.iter_mut().zip(&self.lengths_ns).enumerate() {
            if index >= phase && later.rate != Rate::AsAnswered {
                later.rate = Rate::Line { from: rate, to: rate };
                later.length = Duration::from_nanos(*length);
            }
        }
        if let Some(now) = self.phases.get_mut(phase) {
            now.length = Duration::from_nanos(end_ns - at_ns);
            now.most = now.most.map(|most| most.saturating_sub(position));
        }
        self.first();
    }

    fn first(&mut self) {
        self.made = 0;
        self.position = match self.arrivals {
            Arrivals::Even => self.thread as f64,
            Arrivals::Random => self.gap(),
        };
    }

    fn gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Even => self.threads as f64,
            Arrivals::Random => -(1.0 - self.random.f64()).ln() * self.threads as f64,
        }
    }
}

impl Iterator for Starts {
    type Item = Start;

    fn next(&mut self) -> Option<Start> {
        loop {
            let phase = self.phases.get(self.phase)?;
            if let Some(total) = phase.starts()
                && self.position + 1e-9 < total
            {
                let at_ns = self.began_ns + (phase.at(self.position) * 1e9) as u64;
                let index = self.before + self.made * self.threads + self.thread;
                let start = Start { at_ns, phase: self.phase, index };
                self.made += 1;
                self.position += self.gap();
                return Some(start);
            }
            let starts = phase.starts().unwrap_or_default().ceil() as u64;
            self.before += match self.levels {
                0 => starts,
                _ => starts.next_multiple_of(self.threads),
            };
            self.began_ns += phase.length.as_nanos() as u64;
            self.phase += 1;
            self.first();
        }
    }
}

/// How long all phases take together.
#[must_use]
pub fn length(phases: &[Phase]) -> Duration {
    phases.iter().map(|phase| phase.length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(seconds: u64, from: f64, to: f64) -> Phase {
        let length = Duration::from_secs(seconds);
        Phase { length, rate: Rate::Line { from, to }, record: true, most: None }
    }

    fn all(phases: &[Phase], threads: u64) -> Vec<Start> {
        let of = |thread| Starts::new(phases, Arrivals::Even, 1, thread, threads);
        let mut all: Vec<Start> = (0..threads).flat_map(of).collect();
        all.sort_by_key(|start| start.at_ns);
        all
    }

    #[test]
    fn an_even_rate_is_even_over_any_number_of_threads() {
        for threads in [1, 2, 3, 7] {
            let starts = all(&[phase(2, 1_000.0, 1_000.0)], threads);
            assert_eq!(starts.len(), 2_000, "{threads}");
            for (number, start) in starts.iter().enumerate() {
                assert!(start.at_ns.abs_diff(number as u64 * 1_000_000) <= 1, "{start:?}");
                assert_eq!(start.index, number as u64);
            }
        }
    }

    #[test]
    fn a_ramp_has_the_area_below_it() {
        let starts = all(&[phase(10, 0.0, 200.0), phase(5, 200.0, 100.0)], 2);
        let until = |seconds: f64| {
            starts.iter().filter(|start| (start.at_ns as f64) < seconds * 1e9).count() as i64
        };
        assert!((until(5.0) - 250).abs() <= 1, "{}", until(5.0));
        assert!((until(10.0) - 1_000).abs() <= 1);
        assert_eq!(starts.len(), 1_750);
        assert!(starts.iter().all(|start| start.at_ns < 15_000_000_000));
    }

    #[test]
    fn random_ones_keep_the_rate() {
        let phases = [phase(20, 500.0, 500.0)];
        let of = |thread| Starts::new(&phases, Arrivals::Random, 3, thread, 4).count();
        let count: usize = (0..4).map(of).sum();
        assert!((9_500..10_500).contains(&count), "{count}");
    }

    #[test]
    fn the_rate_can_be_changed_on_the_way() {
        let phases = [phase(2, 1_000.0, 1_000.0), phase(2, 10.0, 10.0)];
        for threads in [1, 3] {
            let of = |thread| {
                let mut starts = Starts::new(&phases, Arrivals::Even, 1, thread, threads);
                let mut all: Vec<Start> =
                    starts.by_ref().take_while(|start| start.at_ns < 1_000_000_000).collect();
                starts.level(1_000_000_000, 100.0);
                all.extend(starts.by_ref().take_while(|start| start.at_ns < 1_500_000_000));
                starts.level(1_500_000_000, 200.0);
                all.extend(starts);
                all
            };
            let all: Vec<Start> = (0..threads).flat_map(of).collect();
            let within = |from: f64, to: f64| {
                let is_within = |start: &&Start| {
                    let at = start.at_ns as f64 / 1e9;
                    (from..to).contains(&at)
                };
                all.iter().filter(is_within).count().cast_signed()
            };
            for (from, to, expected) in
                [(0.0, 1.0, 1_000), (1.0, 1.5, 50), (1.5, 2.0, 100), (2.0, 4.0, 400)]
            {
                let count = within(from, to);
                assert!((count - expected).abs() <= 4, "{count} from {from} to {to}");
            }
            assert!(all.iter().all(|start| (start.phase == 1) == (start.at_ns >= 2_000_000_000)));
            let mut numbers: Vec<u64> = all.iter().map(|start| start.index).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all.len());
        }
    }

    #[test]
    fn there_are_no_more_starts_than_wanted() {
        for threads in [1, 3] {
            let few = Phase { most: Some(10), ..phase(5, 100.0, 100.0) };
            let starts = all(&[phase(1, 2.0, 2.0), few], threads);
            assert_eq!(starts.len(), 12);
            assert!(starts.iter().all(|start| start.at_ns < 1_100_000_000), "{starts:?}");
        }
    }

    #[test]
    fn as_answered_has_no_starts_of_its_own() {
        let closed = Phase {
            length: Duration::from_secs(3),
            rate: Rate::AsAnswered,
            record: false,
            most: None,
        };
        let starts = all(&[closed, phase(1, 10.0, 10.0)], 1);
        assert_eq!(starts.len(), 10);
        assert_eq!(starts[0], Start { at_ns: 3_000_000_000, phase: 1, index: 0 });
    }
}
