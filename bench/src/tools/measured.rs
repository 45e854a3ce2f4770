//! A run of a process whose time is taken once it is warm.

use crate::process::processor_time;
use std::io::{BufRead, BufReader, Read};

/// The result of a run.
pub struct Run {
    /// The processor time of one thing that was done, in microseconds.
    pub cost_us: f64,
    /// How many were done a second.
    pub rate: f64,
}

/// Takes lines that are printed once a second, of which `done` says how many things were done in it, until
/// the process with this number is warm, and then for so many seconds.
///
/// # Errors
/// The rest of the output, if it ends too early.
pub fn run(
    lines: impl Read,
    process: u32,
    (warm_up, seconds): (usize, usize),
    done: impl Fn(&str) -> Option<f64>,
) -> Result<Run, String> {
    let (mut all, mut before, mut seen, mut said) = (0.0, None, 0, String::new());
    for line in BufReader::new(lines).lines() {
        let line = line.map_err(|why| why.to_string())?;
        let Some(count) = done(&line) else {
            said.push_str(&line);
            continue;
        };
        let cpu = processor_time(&[process]);
        seen += 1;
        let Some(before) = before else {
            before = (seen == warm_up).then_some(cpu);
            continue;
        };
        all += count;
        if seen == warm_up + seconds {
            let cost_us = (cpu - before).as_secs_f64() * 1e6 / f64::max(all, 1.0);
            return Ok(Run { cost_us, rate: all / seconds as f64 });
        }
    }
    Err(format!("it ends too early: {said}"))
}
