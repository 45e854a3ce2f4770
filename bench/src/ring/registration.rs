//! How long it takes to register memory, by pages: the part of the set-up that grows. The daemon
//! makes the region, maps it and locks it, and the client maps it too; no request pays for that
//! later, but for the first touch of each page.

use super::client::Client;
use super::daemon::Daemon;
use super::{Arguments, best, text};
use crate::report::{Findings, Table, median};
use std::time::Instant;

/// Pages of a region, of 4 KiB.
const PAGES: [usize; 5] = [1, 16, 256, 1_024, 4_096];
const PAGE_BYTES: usize = 4_096;
/// Registrations of every size in a round, the quickest of which counts.
const RUNS: usize = 10;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let mut table = Table::new(
        "1 memory registered, us: medians of the rounds' bests",
        &["pages of 4 KiB", "registered", "a page", "and each page written", "a page"],
    );
    for pages in PAGES {
        let rounds = (0..arguments.rounds).map(|_| {
            let sides: [&mut dyn FnMut() -> f64; 2] =
                [&mut || register(&daemon, pages, false), &mut || register(&daemon, pages, true)];
            best(RUNS, sides)
        });
        let rounds: Vec<[f64; 2]> = rounds.collect();
        if rounds.iter().flatten().any(|figure| *figure == f64::MAX) {
            return Err(format!("{pages} pages are not registered"));
        }
        let mut row = vec![pages.to_string()];
        for side in 0..2 {
            let took = median(&super::column(&rounds, side));
            row.extend([format!("{took:.1}"), format!("{:.3}", took / pages as f64)]);
        }
        table.rows.push(row);
    }
    Ok(Findings { claims: Vec::new(), tables: vec![table] })
}

/// Microseconds until so many pages can be used, and are written if that is asked for. Not a number
/// if the daemon refuses.
fn register(daemon: &Daemon, pages: usize, written: bool) -> f64 {
    // A client of its own, so that what it has registered is let go with it.
    let Ok(client) = Client::connect(daemon.socket(), "registration") else { return f64::NAN };
    let begun = Instant::now();
    let Ok(region) = client.region(pages * PAGE_BYTES) else { return f64::NAN };
    let touch = |page: usize| region.memory.write(page * PAGE_BYTES, &[1]).is_ok();
    let done = !written || (0..pages).all(touch);
    if done { begun.elapsed().as_secs_f64() * 1e6 } else { f64::NAN }
}
