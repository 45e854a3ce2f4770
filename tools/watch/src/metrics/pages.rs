//! The pages of counters that metrics are made of.

use super::model::{Metric, metrics};
use super::prometheus;
use keyway_folder::data::name;
use keyway_meter::{Reader, Snapshot};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The process that a page is of, and where it lies; without a place it is this process's own.
pub struct PageSource {
    process: &'static str,
    page: Option<PathBuf>,
}

/// The pages of what runs on a data folder.
#[must_use]
pub fn of_folder(folder: &Path) -> Vec<PageSource> {
    let page = Some(folder.join(name::METER));
    vec![PageSource { process: "directory", page }, of_cryptod(folder)]
}

/// The pages of a server that is this process, and of the cryptod beside it.
#[must_use]
pub fn of_server(folder: &Path) -> Vec<PageSource> {
    vec![PageSource { process: "directory", page: None }, of_cryptod(folder)]
}

/// The page of an ESP gateway, by the folder of its state.
#[must_use]
pub fn of_gateway(state: &Path) -> PageSource {
    PageSource { process: "esp", page: Some(state.join(name::METER)) }
}

fn of_cryptod(folder: &Path) -> PageSource {
    PageSource { process: "cryptod", page: Some(name::meter_at(folder)) }
}

/// All that can be seen now, in Prometheus' text format.
#[must_use]
pub fn render(sources: &[PageSource]) -> String {
    prometheus::render(&collect(sources).0)
}

/// All that can be seen now, and when that is, in milliseconds since 1970. A page that is not there, or that no
/// process counts into, is no error: it may come.
pub fn collect(sources: &[PageSource]) -> (Vec<Metric>, u64) {
    let pages: Vec<_> = sources.iter().map(|source| (source.process, source.look())).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_unix_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    (metrics(&pages, now.as_secs()), now_unix_ms)
}

impl PageSource {
    fn look(&self) -> Option<Snapshot> {
        let Some(page) = &self.page else { return Snapshot::own() };
        let reader = Reader::open(page).ok().filter(Reader::alive)?;
        reader.snapshot().ok()
    }
}
