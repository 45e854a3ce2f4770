//! `keyway crypto bench`: nanoseconds an operation, over sizes and drivers.

use super::arguments;
use super::shared::{interrupt, private_key, say, words};
use crate::crypto::failed::failed;
use keyway_cryptotest::report::{cells_value, plot, table_text};
use keyway_cryptotest::{Bench, Entry, Event, Work, check_memory, drivers, engine, known};
use keyway_engine::Algorithm;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::progress::Progress;
use keyway_host::same_file::is_no_input;
use serde_json::json;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

const SIZES: [usize; 7] = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Measures, shows a table, draws a picture. Says whether there was something to measure.
///
/// # Errors
/// If it could not be begun, or the picture not be written.
pub fn run(arguments: &arguments::Bench) -> Result<bool, Failure> {
    let drivers = drivers(&arguments.more.with).map_err(failed)?;
    known(&arguments.drivers, &drivers).map_err(failed)?;
    let engine = engine(&drivers, arguments.more.legacy).map_err(failed)?;
    let rsa = private_key(arguments.key.as_deref())?;
    let sizes = match arguments.profile {
        Some(profile) => profile.sizes(),
        None if arguments.sizes.is_empty() => &SIZES,
        None => &arguments.sizes,
    };
    let entries = entries(arguments);
    let deepest = entries.iter().map(|entry| entry.in_flight()).max().unwrap_or(1);
    check_memory(1, deepest, sizes).map_err(failed)?;
    if let Some(path) = &arguments.svg {
        is_no_input(path, &arguments.key)?;
        writable(path)?;
    }
    let usual = || {
        let steps = vec![Algorithm::Aes128Cbc, Algorithm::HmacSha256];
        let chain = Work { steps, verifies: false };
        vec![Algorithm::Aes128Gcm.into(), Algorithm::ChaCha20Poly1305.into(), chain]
    };
    let works = match arguments.algorithms.is_empty() {
        true => usual(),
        false => arguments.algorithms.clone(),
    };
    let bench = Bench {
        engine: &engine,
        drivers: drivers.to_vec(),
        named: &arguments.drivers,
        rsa,
        interrupt: interrupt()?,
    };
    let budget = Duration::from_secs_f64(arguments.seconds);
    let cells = |work| bench.doing(work).count() * entries.len() * sizes.len();
    let bar = Progress::steps("measuring", works.iter().map(cells).sum::<usize>() as u64);
    let mut is_first = true;
    let outcome = bench.run(&works, &entries, sizes, budget, |event| {
        match event {
            Event::Cell { done, work, driver, bytes } => {
                bar.step(done, format_args!("{work} {driver} {bytes} bytes"));
            }
            Event::Table(table) if !arguments.json => {
                let between = if std::mem::take(&mut is_first) { "" } else { "\n" };
                let text = table_text(table);
                if !bar.aside(|| say(format_args!("{between}{text}")))? {
                    bench.interrupt.end();
                }
            }
            Event::Table(_) => {}
        }
        Ok::<_, Failure>(())
    })?;
    drop(bar);
    let tables = outcome.tables;
    let mut left_out = Vec::new();
    for (work, driver, why) in outcome.left_out {
        let why = words(&why);
        output::note(format_args!("{work} on {driver} is left out: {why}"));
        left_out.push(json!({ "work": work, "driver": driver, "why": why }));
    }
    if arguments.json {
        say(json!({
            "interrupted": bench.interrupt.came(),
            "cells": tables.iter().flat_map(cells_value).collect::<Vec<_>>(),
            "left_out": left_out,
        }))?;
    }
    if let Some(path) = &arguments.svg {
        let plot = plot(&tables);
        fs::write(path, plot.to_string()).map_err(|why| Failure::system("write", path, &why))?;
        if !arguments.json {
            say(format_args!("\nThe picture is in {}", path.display()))?;
        }
    }
    Ok(tables.iter().any(|table| table.cells.iter().flatten().any(Option::is_some)))
}

fn entries(arguments: &arguments::Bench) -> Vec<Entry> {
    let direct = (arguments.direct || arguments.in_flight.is_empty()).then_some(Entry::Direct);
    direct.into_iter().chain(arguments.in_flight.iter().map(|n| Entry::Queue(*n))).collect()
}

/// Refuses a file that cannot be written before anything is measured for it. Its content stays.
fn writable(path: &Path) -> Result<(), Failure> {
    let opened = File::options().append(true).create(true).open(path);
    opened.map(drop).map_err(|why| Failure::system("write", path, &why))
}
