//! Nanoseconds an operation, over sizes and drivers.

use crate::error::LeftOut;
use crate::interrupt::Interrupt;
use crate::load::{Entry, Load};
use crate::plot::Line;
use crate::subject::Subject;
use crate::work::Work;
use keyway_engine::{Algorithm, Demand, Driver, Engine};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Runs of a cell.
const RUNS: usize = 7;
/// The part of a cell's time that goes to warming up.
const WARM_UP: f64 = 0.2;
/// Bytes that the operations of one cell take: what the nearest caches hold.
const CELL_BYTES: usize = 64 << 10;

/// Compares drivers. Results are not checked.
pub struct Bench<'a> {
    /// Has all the drivers.
    pub engine: &'a Engine,
    /// Those that may be measured.
    pub drivers: Vec<Arc<dyn Driver>>,
    /// Those that were asked for by name, if any were.
    pub named: &'a [String],
    /// An RSA private key in PKCS#8 DER, for the algorithms that need one.
    pub rsa: Option<Zeroizing<Vec<u8>>>,
    /// Ends it early, with what there is by then.
    pub interrupt: Interrupt,
}

/// An event during a measurement.
pub enum Event<'a> {
    /// A cell is about to be measured.
    Cell {
        /// Cells before it.
        done: u64,
        /// The work of the measurement.
        work: &'a Work,
        /// The driver that does it.
        driver: &'a str,
        /// Bytes that an operation works on.
        bytes: usize,
    },
    /// A table is complete.
    Table(&'a Table),
}

/// The outcome of a bench.
pub struct Outcome {
    /// Those with at least one cell.
    pub tables: Vec<Table>,
    /// Work, driver and why it was left out there.
    pub left_out: Vec<(String, String, LeftOut)>,
}

/// One work through one entry point: sizes down, drivers across.
pub struct Table {
    /// The work that was measured.
    pub work: Work,
    /// How operations got to the engine.
    pub entry: Entry,
    /// The columns.
    pub drivers: Vec<String>,
    /// The rows: bytes that an operation works on.
    pub sizes: Vec<usize>,
    /// By size, then by driver; `None` where it could not be measured.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// The time of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The median of the runs.
    pub nanoseconds: f64,
    /// The second slowest run less the second fastest, as a part of the median.
    pub spread: f64,
    /// How many there were.
    pub runs: usize,
}

impl Bench<'_> {
    /// The drivers to be measured: those that were named, or all that do the work, a chain step by
    /// step if need be.
    pub fn doing(&self, work: &Work) -> impl Iterator<Item = &str> {
        self.drivers.iter().map(|driver| (driver.name(), driver)).filter_map(|(name, driver)| {
            let does = |steps: &[Algorithm]| driver.supports(steps);
            let is_named = self.named.iter().any(|named| named == name);
            let can = does(&work.steps) || work.steps.iter().all(|step| does(&[*step]));
            (is_named || (self.named.is_empty() && can)).then_some(name)
        })
    }

    /// Measures it all: works, entries, sizes, drivers, in this order. `observe` hears of each cell
    /// before it is measured, and of each table when it is complete.
    ///
    /// # Errors
    /// The error that `observe` returns; then nothing more is measured.
    pub fn run<E>(
        &self,
        works: &[Work],
        entries: &[Entry],
        sizes: &[usize],
        budget: Duration,
        mut observe: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<Outcome, E> {
        let mut outcome = Outcome { tables: Vec::new(), left_out: Vec::new() };
        let mut done = 0;
        for work in works {
            let mut subjects = Vec::new();
            for name in self.doing(work) {
                let rsa = self.rsa.as_ref().map(|key| key.as_slice());
                match Subject::open(self.engine, work, Demand::Named(name), rsa) {
                    Ok(subject) => subjects.push((name.to_owned(), Arc::new(subject))),
                    Err(why) => outcome.left_out.push((work.to_string(), name.to_owned(), why)),
                }
            }
            let mut fitting: Vec<_> = sizes.iter().map(|size| work.fit(*size)).collect();
            fitting.dedup();
            for entry in entries {
                let mut table = Table {
                    work: work.clone(),
                    entry: *entry,
                    drivers: subjects.iter().map(|(name, _)| name.clone()).collect(),
                    sizes: Vec::new(),
                    cells: Vec::new(),
                };
                for size in &fitting {
                    let mut row = Vec::new();
                    for (driver, subject) in &subjects {
                        observe(Event::Cell { done, work, driver, bytes: *size })?;
                        done += 1;
                        row.push(match self.cell(subject, *size, *entry, budget) {
                            Ok(cell) => cell,
                            Err(why) => {
                                outcome.left_out.push((work.to_string(), driver.clone(), why));
                                None
                            }
                        });
                    }
                    if row.iter().any(Option::is_some) {
                        table.sizes.push(*size);
                        table.cells.push(row);
                    }
                }
                if !table.cells.is_empty() {
                    observe(Event::Table(&table))?;
                    outcome.tables.push(table);
                }
            }
        }
        outcome.left_out.dedup();
        Ok(outcome)
    }

    /// Warms up, then measures runs of equal length. `None` if there was no time for one.
    fn cell(
        &self,
        subject: &Arc<Subject>,
        size: usize,
        entry: Entry,
        budget: Duration,
    ) -> Result<Option<Cell>, LeftOut> {
        if self.interrupt.came() {
            return Ok(None);
        }
        let mut load = Load::new(self.engine, subject, size, entry, CELL_BYTES, &self.interrupt);
        let begun = Instant::now();
        let (mut operations, mut per_run) = (entry.in_flight(), 1.0);
        while begun.elapsed() < budget.mul_f64(WARM_UP) && !self.interrupt.came() {
            let (number, took) = load.run(operations);
            let run = budget.mul_f64((1.0 - WARM_UP) / RUNS as f64).as_secs_f64();
            per_run = run * number as f64 / took.as_secs_f64().max(1e-9);
            operations = (operations * 2).min(per_run as usize + 1);
            if number == 0 {
                break;
            }
        }
        let mut runs = Vec::with_capacity(RUNS);
        while runs.len() < RUNS && !self.interrupt.came() && load.errors.is_empty() {
            let (number, took) = load.run((per_run as usize).max(entry.in_flight()));
            if number > 0 {
                runs.push(took.as_secs_f64() * 1e9 / number as f64);
            }
            if begun.elapsed() > budget.mul_f64(1.5) {
                break;
            }
        }
        if let Some((name, operations)) = load.errors.iter().next() {
            return Err(LeftOut::Failed { bytes: size, operations: *operations, name });
        }
        runs.sort_by(f64::total_cmp);
        let Some(median) = runs.get(runs.len() / 2) else { return Ok(None) };
        // The fastest and the slowest are left out.
        let spread = match &runs[..] {
            [_, first, .., last, _] => (last - first) / median,
            _ => 0.0,
        };
        Ok(Some(Cell { nanoseconds: *median, spread, runs: runs.len() }))
    }
}

impl Cell {
    /// Throughput at this size, in 10^6 bytes per second.
    pub fn mb_per_second(&self, bytes: usize) -> f64 {
        bytes as f64 * 1e3 / self.nanoseconds
    }
}

impl Table {
    /// The plot's subject, in a line.
    pub fn title(&self) -> String {
        format!("{}, {}, {}", self.work, self.work.verb(), self.entry)
    }

    /// A line for each driver, called after it, and after work and entry point if there are
    /// `several` tables.
    pub fn lines(&self, several: bool) -> Vec<Line> {
        let line = |(column, driver): (usize, &String)| {
            let cells = self.sizes.iter().zip(&self.cells);
            let points = cells.filter_map(|(size, row)| {
                Some((*size as f64, (*row.get(column)?).as_ref()?.nanoseconds))
            });
            let name = match several {
                true => format!("{driver}: {}, {}", self.work, self.entry),
                false => driver.clone(),
            };
            Line { name, points: points.collect(), colour: 0, dashes: 0 }
        };
        self.drivers.iter().enumerate().map(line).collect()
    }
}
