//! `keyway crypto bench`: nanoseconds an operation, over sizes and drivers.

use super::arguments::Bench;
use super::picture::{Line, Picture};
use super::work::{Door, Load, Subject, Work, check_memory};
use super::{Interrupt, drivers, engine, known, private_key, say};
use crate::failure::Failure;
use crate::output::{self, grouped};
use crate::progress::Progress;
use keyway_engine::{Algorithm, Demand, Driver, Engine};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZES: [usize; 7] = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Runs of a cell.
const RUNS: usize = 7;
/// The part of a cell's time that goes to warming up.
const WARM_UP: f64 = 0.2;
/// Bytes that the operations of one cell take: what the nearest caches hold.
const ROOM: usize = 64 << 10;

/// Measures, shows a table, draws a picture. Says whether there was something to measure.
///
/// # Errors
/// If it could not be begun, or the picture not be written.
pub fn run(arguments: &Bench) -> Result<bool, Failure> {
    let drivers = drivers(&arguments.more)?;
    known(&arguments.drivers, &drivers)?;
    let engine = engine(&drivers, arguments.more.legacy)?;
    let rsa = private_key(arguments.key.as_deref())?;
    let sizes = if arguments.sizes.is_empty() { &SIZES[..] } else { &arguments.sizes };
    let doors = doors(arguments);
    let deepest = doors.iter().map(|door| door.in_flight()).max().unwrap_or(1);
    check_memory(1, deepest, sizes)?;
    if let Some(path) = &arguments.svg {
        writable(path)?;
    }
    let usual = || {
        let chain = vec![Algorithm::Aes128Cbc, Algorithm::HmacSha256];
        [vec![Algorithm::Aes128Gcm], vec![Algorithm::ChaCha20Poly1305], chain]
            .map(|steps| Work { steps })
            .to_vec()
    };
    let works = match arguments.algorithms.is_empty() {
        true => usual(),
        false => arguments.algorithms.clone(),
    };
    let interrupt = Interrupt::catch()?;
    let bench = Measuring { engine: &engine, drivers, named: &arguments.drivers, rsa, interrupt };
    let budget = Duration::from_secs_f64(arguments.seconds);
    let (tables, left_out) = bench.run(&works, &doors, sizes, budget, arguments.json)?;
    if arguments.json {
        say(json!({
            "interrupted": bench.interrupt.came(),
            "cells": tables.iter().flat_map(Table::json).collect::<Vec<_>>(),
            "left_out": left_out,
        }))?;
    }
    if let Some(path) = &arguments.svg {
        let lines = tables.iter().flat_map(|table| table.lines(tables.len() > 1)).collect();
        let picture = Picture {
            title: match &tables[..] {
                [only] => only.title(),
                _ => "Time for one operation".to_owned(),
            },
            x: "bytes an operation works on",
            y: "nanoseconds an operation",
            lines,
        };
        fs::write(path, picture.to_string()).map_err(|why| Failure::system("write", path, &why))?;
        if !arguments.json {
            say(format_args!("\nThe picture is in {}", path.display()))?;
        }
    }
    Ok(tables.iter().any(|table| table.cells.iter().flatten().any(Option::is_some)))
}

fn doors(arguments: &Bench) -> Vec<Door> {
    let direct = (arguments.direct || arguments.in_flight.is_empty()).then_some(Door::Direct);
    direct.into_iter().chain(arguments.in_flight.iter().map(|n| Door::Queue(*n))).collect()
}

/// Refuses a file that cannot be written before anything is measured for it. What is in it stays.
fn writable(path: &Path) -> Result<(), Failure> {
    let opened = File::options().append(true).create(true).open(path);
    opened.map(drop).map_err(|why| Failure::system("write", path, &why))
}

struct Measuring<'a> {
    engine: &'a Engine,
    drivers: Vec<Arc<dyn Driver>>,
    /// Those that were asked for by name, if any were.
    named: &'a [String],
    rsa: Option<zeroize::Zeroizing<Vec<u8>>>,
    interrupt: Interrupt,
}

/// One work through one door: sizes down, drivers across.
struct Table {
    work: Work,
    door: Door,
    drivers: Vec<String>,
    sizes: Vec<usize>,
    /// By size, then by driver.
    cells: Vec<Vec<Option<Cell>>>,
}

/// What one operation takes.
#[derive(Clone, Copy)]
struct Cell {
    /// The median of the runs.
    nanoseconds: f64,
    /// The second slowest run less the second fastest, as a part of the median.
    spread: f64,
    runs: usize,
}

impl Measuring<'_> {
    /// The drivers to be measured: those that were named, or all that do the work, a chain step by
    /// step if need be.
    fn doing(&self, work: &Work) -> impl Iterator<Item = &str> {
        self.drivers.iter().map(|driver| (driver.name(), driver)).filter_map(|(name, driver)| {
            let does = |steps: &[Algorithm]| driver.supports(steps);
            let is_named = self.named.iter().any(|named| named == name);
            let can = does(&work.steps) || work.steps.iter().all(|step| does(&[*step]));
            (is_named || (self.named.is_empty() && can)).then_some(name)
        })
    }

    /// Measures it all, and shows each table as it is complete.
    fn run(
        &self,
        works: &[Work],
        doors: &[Door],
        sizes: &[usize],
        budget: Duration,
        quiet: bool,
    ) -> Result<(Vec<Table>, Vec<Value>), Failure> {
        let (mut tables, mut left_out) = (Vec::new(), Vec::new());
        let total = works
            .iter()
            .map(|work| self.doing(work).count() * doors.len() * sizes.len())
            .sum::<usize>();
        let bar = Progress::steps("measuring", total as u64);
        let mut done = 0;
        for work in works {
            let mut subjects = Vec::new();
            for name in self.doing(work) {
                let rsa = self.rsa.as_ref().map(|key| key.as_slice());
                match Subject::open(self.engine, work, Demand::Named(name), rsa) {
                    Ok(subject) => subjects.push((name.to_owned(), Arc::new(subject))),
                    Err(why) => left_out.push((work.to_string(), name.to_owned(), why)),
                }
            }
            let mut fitting: Vec<_> = sizes.iter().map(|size| work.fit(*size)).collect();
            fitting.dedup();
            for door in doors {
                let mut table = Table {
                    work: work.clone(),
                    door: *door,
                    drivers: subjects.iter().map(|(name, _)| name.clone()).collect(),
                    sizes: Vec::new(),
                    cells: Vec::new(),
                };
                for size in &fitting {
                    let mut row = Vec::new();
                    for (name, subject) in &subjects {
                        bar.step(done, format_args!("{work} {name} {size} bytes"));
                        done += 1;
                        row.push(match self.cell(subject, *size, *door, budget) {
                            Ok(cell) => cell,
                            Err(why) => {
                                left_out.push((work.to_string(), name.clone(), why));
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
                    if !quiet {
                        let text = table.text();
                        let between = if tables.is_empty() { "" } else { "\n" };
                        if !bar.aside(|| say(format_args!("{between}{text}")))? {
                            self.interrupt.end();
                        }
                    }
                    tables.push(table);
                }
            }
        }
        drop(bar);
        left_out.dedup();
        for (work, driver, why) in &left_out {
            output::note(format_args!("{work} on {driver} is left out: {why}"));
        }
        let value = |(work, driver, why)| json!({ "work": work, "driver": driver, "why": why });
        Ok((tables, left_out.into_iter().map(value).collect()))
    }

    /// Warms up, then measures runs of equal length. `None` if there was no time for one.
    fn cell(
        &self,
        subject: &Arc<Subject>,
        size: usize,
        door: Door,
        budget: Duration,
    ) -> Result<Option<Cell>, String> {
        if self.interrupt.came() {
            return Ok(None);
        }
        let mut load = Load::new(self.engine, subject, size, door, ROOM, &self.interrupt);
        let begun = Instant::now();
        let (mut operations, mut per_run) = (door.in_flight(), 1.0);
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
            let (number, took) = load.run((per_run as usize).max(door.in_flight()));
            if number > 0 {
                runs.push(took.as_secs_f64() * 1e9 / number as f64);
            }
            if begun.elapsed() > budget.mul_f64(1.5) {
                break;
            }
        }
        if let Some((name, number)) = load.errors.iter().next() {
            return Err(format!("{size} bytes: {number} operations failed ({name})"));
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
    fn mb_per_second(&self, bytes: usize) -> f64 {
        bytes as f64 * 1e3 / self.nanoseconds
    }
}

impl Table {
    fn title(&self) -> String {
        format!("{}, {}, {}", self.work, self.work.verb(), self.door)
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n{:>9}", self.title(), "");
        for driver in &self.drivers {
            let _ = write!(text, "  {driver:>29}");
        }
        let _ = write!(text, "\n{:>9}", "BYTES");
        for _ in &self.drivers {
            let _ = write!(text, "  {:>11} {:>9} {:>7}", "NS/OP", "MB/S", "SPREAD");
        }
        for (size, row) in self.sizes.iter().zip(&self.cells) {
            let _ = write!(text, "\n{:>9}", grouped(*size as u64));
            for cell in row {
                let _ = match cell {
                    Some(cell) => write!(
                        text,
                        "  {:>11.1} {:>9.1} {:>6.1}%",
                        cell.nanoseconds,
                        cell.mb_per_second(*size),
                        100.0 * cell.spread
                    ),
                    None => write!(text, "  {:>11} {:>9} {:>7}", "-", "-", "-"),
                };
            }
        }
        text
    }

    fn json(&self) -> Vec<Value> {
        let rows = self.sizes.iter().zip(&self.cells);
        let cells = rows
            .flat_map(|(size, row)| row.iter().zip(&self.drivers).map(move |cell| (size, cell)));
        let value = |(size, (cell, driver)): (&usize, (&Option<Cell>, &String))| {
            let cell = (*cell)?;
            Some(json!({
                "work": self.work.to_string(),
                "operation": self.work.verb(),
                "in_flight": match self.door {
                    Door::Direct => None,
                    Door::Queue(number) => Some(number),
                },
                "driver": driver,
                "bytes": size,
                "ns_per_operation": cell.nanoseconds,
                "mb_per_second": cell.mb_per_second(*size),
                "spread": cell.spread,
                "runs": cell.runs,
            }))
        };
        cells.filter_map(value).collect()
    }

    /// A line for each driver, called after it, and after work and door if there are several.
    fn lines(&self, several: bool) -> Vec<Line> {
        let line = |(column, driver): (usize, &String)| {
            let cells = self.sizes.iter().zip(&self.cells);
            let points = cells.filter_map(|(size, row)| {
                Some((*size as f64, (*row.get(column)?).as_ref()?.nanoseconds))
            });
            let name = match several {
                true => format!("{driver}: {}, {}", self.work, self.door),
                false => driver.clone(),
            };
            Line { name, points: points.collect() }
        };
        self.drivers.iter().enumerate().map(line).collect()
    }
}
