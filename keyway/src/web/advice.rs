//! The indexes that searches lack, held against the configuration of a data folder.

use keyway_config::{Configuration, Given};
use keyway_server::IndexSetting;
use keyway_service::index_advice;
use keyway_web::{Advisor, IndexAdvice};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the indexes that a file names are believed.
const SETTINGS_AGAIN: Duration = Duration::from_secs(10);

/// Gives advice for the server on a data folder.
pub fn advisor(folder: &Path) -> Advisor {
    let folder = folder.to_owned();
    let mut known: Option<(Instant, Vec<IndexSetting>)> = None;
    Box::new(move |page| {
        if known.as_ref().is_none_or(|(at, _)| at.elapsed() > SETTINGS_AGAIN) {
            let configuration = Configuration::ahead(&folder, &Given::none());
            let indexes = configuration.map(|it| it.directory.indexes).unwrap_or_default();
            known = Some((Instant::now(), indexes));
        }
        let indexes = known.as_ref().map(|(_, indexes)| indexes.as_slice());
        let lines = index_advice::lines(page, indexes.unwrap_or_default()).into_iter();
        lines.map(|(attribute, index, line)| IndexAdvice { attribute, index, line }).collect()
    })
}
