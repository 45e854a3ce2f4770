//! An examination of a data folder and of the machine that it is on: what endangers data or keys, or will stop the
//! server, and the change that helps. It changes nothing.

mod access;
mod disks;
mod machine;
mod mounts;
mod sync_time;

use crate::finding::Finding;
use crate::offline;
use keyway_config::{Configuration, Given};
use keyway_folder::data::{self, State};
use keyway_folder::history;
use keyway_host::failure::Failure;
use keyway_host::output::grouped;
use keyway_host::timestamp::Timestamp;
use std::path::Path;

/// The part of the address space of the store that may be used, in hundredths.
const STORE_PERCENT_MAX: u64 = 80;

/// Examines the folder, also while a server runs on it. `tell` hears of each sync of the disk that was measured, and of
/// how many there will be.
///
/// # Errors
/// If there is no data folder.
pub fn examine(folder: &Path, tell: &mut dyn FnMut(u64, u64)) -> Result<Vec<Finding>, Failure> {
    if data::look(folder)? == State::Absent {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "{folder} holds no data; name the folder with --data DIR"
        )));
    }
    let (configuration, unreadable) = match Configuration::ahead(folder, &Given::none()) {
        Ok(configuration) => (Some(configuration), None),
        Err(why) => (None, Some(why)),
    };
    let configuration = configuration.as_ref();
    let history = history::read(folder);
    let mut findings = disks::look(folder, configuration);
    findings.push(sync_time::look(folder, tell));
    findings.extend(access::look(folder));
    findings.extend(machine::limits(folder, configuration));
    findings.push(machine::clock(folder, &history));
    findings.push(match unreadable {
        None => Finding::good("settings", "keyway.toml can be read"),
        Some(why) => Finding::fault("settings", why.to_string(), "keyway config check explains"),
    });
    findings.push(store(folder));
    findings.extend(backups(&history));
    Ok(findings)
}

fn store(folder: &Path) -> Finding {
    let about = "store";
    let size = offline::store_to_read(folder)
        .and_then(|store| store.size().map_err(|why| Failure::new(why.to_string())));
    let size = match size {
        Ok(size) => size,
        Err(why) => {
            return Finding::fault(about, why.to_string(), "keyway directory check says more");
        }
    };
    let percent = size.bytes.saturating_mul(100) / size.bytes_max.max(1);
    let found = format!(
        "{} entries in {} MiB, {percent} of 100 of limits.store_bytes_max",
        grouped(size.entries),
        grouped(size.bytes >> 20)
    );
    match percent {
        percent if percent > STORE_PERCENT_MAX => Finding::warning(
            about,
            found,
            "make limits.store_bytes_max larger: changes are refused when the store is full",
        ),
        _ => Finding::good(about, found),
    }
}

fn backups(history: &[history::Done]) -> Vec<Finding> {
    let about = "backups";
    let warnings = history::warnings(history, Timestamp::now());
    if warnings.is_empty() {
        let found = "the last backup, its last verification and the last check are young";
        return vec![Finding::good(about, found)];
    }
    let advice = |warning: &str| match warning {
        _ if warning.contains("verif") => {
            "keyway backup verify REPOSITORY --restore --data DIR, from time to time"
        }
        _ if warning.contains("check") => "keyway directory check",
        _ => "keyway backup create, or keyway backup run as a service",
    };
    warnings
        .into_iter()
        .map(|warning| {
            let advice = advice(&warning);
            Finding::warning(about, warning.trim_end_matches('.'), advice)
        })
        .collect()
}
