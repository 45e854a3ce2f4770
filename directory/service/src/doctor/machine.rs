//! The limits of the process that serves, or of this one; the machine's swap and its clock.

use crate::finding::Finding;
use keyway_config::{Configuration, Running};
use keyway_folder::data::name;
use keyway_folder::history::Done;
use keyway_host::output::grouped;
use keyway_host::timestamp::Timestamp;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Files that a server has open beside its connections: the store, logs, listeners, and some to spare.
const FILES_BESIDE: u64 = 64;
/// A clock may be so far off, in seconds.
const OFF_S_MAX: i64 = 60;
/// Programs that keep a clock right, as the kernel names their processes.
const TIME_SERVICES: [&str; 6] =
    ["chronyd", "ntpd", "systemd-timesyn", "ntpd-rs", "openntpd", "ptp4l"];

/// Looks at limits.
pub(super) fn limits(folder: &Path, configuration: Option<&Configuration>) -> Vec<Finding> {
    let running = Running::look(folder).map(|running| running.process);
    let process = running.map_or_else(|| "self".to_owned(), |process| process.to_string());
    let whose = if running.is_some() { "the server's" } else { "this shell's" };
    let Ok(text) = fs::read_to_string(format!("/proc/{process}/limits")) else {
        return vec![Finding::unknown("limits", format!("/proc/{process}/limits cannot be read"))];
    };
    let mut findings = Vec::new();
    if let Some(configuration) = configuration {
        let wanted = configuration.network.limits.connections_max as u64 + FILES_BESIDE;
        findings.push(open_files(hard(&text, "Max open files"), wanted, whose));
        let (space, store) =
            (hard(&text, "Max address space"), configuration.store_bytes_max as u64);
        if space.is_some_and(|space| space < store) {
            findings.push(Finding::warning(
                "limits",
                format!("{whose} address space is limited below limits.store_bytes_max"),
                "lift it (ulimit -v unlimited), or make the setting smaller",
            ));
        }
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    // The first line is a header.
    if swaps.lines().nth(1).is_some() && hard(&text, "Max locked memory").is_some() && !is_root {
        findings.push(Finding::warning(
            "swap",
            format!(
                "the machine has swap, and {whose} limit on locked memory may let keys get there"
            ),
            "LimitMEMLOCK=infinity in the unit (ulimit -Hl unlimited), or MemorySwapMax=0",
        ));
    }
    findings
}

fn open_files(hard: Option<u64>, wanted: u64, whose: &str) -> Finding {
    match hard {
        Some(hard) if hard < wanted => Finding::warning(
            "limits",
            format!(
                "{whose} limit of open files is {}, and limits.connections_max needs {}",
                grouped(hard),
                grouped(wanted)
            ),
            format!("LimitNOFILE={wanted} in the unit (ulimit -Hn {wanted})"),
        ),
        _ => {
            Finding::good("limits", format!("{whose} limit of open files lets all connections in"))
        }
    }
}

/// A hard limit of `/proc/PID/limits` (proc_pid_limits(5)); `None` without one.
fn hard(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Looks at the clock: policies, certificates and backups go by it.
pub(super) fn clock(folder: &Path, history: &[Done]) -> Finding {
    let about = "clock";
    let now = Timestamp::now().unix_s();
    let noted = history.iter().map(|done| done.unix_s);
    let data = fs::metadata(folder.join(name::STORE).join("data.mdb"));
    let written = data.ok().and_then(|data| data.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    let written = written.and_then(|time| i64::try_from(time.as_secs()).ok());
    let newest = noted.chain(written).max().unwrap_or_default();
    if newest > now.saturating_add(OFF_S_MAX) {
        let (now, newest) = (Timestamp::from_unix_s(now), Timestamp::from_unix_s(newest));
        return Finding::fault(
            about,
            format!(
                "it is {now} now, and the folder has something of {newest}: the clock was set back"
            ),
            "set the clock right before the server is started",
        );
    }
    match is_kept() {
        true => Finding::good(about, "a service keeps the clock right"),
        false => Finding::unknown(
            about,
            "no service that keeps the clock right is seen here (in a container the machine's counts)",
        ),
    }
}

fn is_kept() -> bool {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = all.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    Path::new("/run/systemd/timesync/synchronized").exists()
        || names.into_iter().any(|name| TIME_SERVICES.contains(&name.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Verdict;

    #[test]
    fn limits_are_read() {
        let text = "\
Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 4096                 files
Max address space         unlimited            unlimited            bytes
";
        assert_eq!(hard(text, "Max open files"), Some(4096));
        assert_eq!(hard(text, "Max address space"), None);
        assert_eq!(open_files(Some(4096), 10_064, "this").verdict, Verdict::Warning);
        assert_eq!(open_files(None, 10_064, "this").verdict, Verdict::Good);
    }

    #[test]
    fn a_clock_that_was_set_back_is_found() {
        let place = tempfile::tempdir().unwrap();
        let at = |unix_s| vec![Done { unix_s, ..Done::default() }];
        let now = Timestamp::now().unix_s();
        assert_eq!(clock(place.path(), &at(now + 3_600)).verdict, Verdict::Fault);
        assert_ne!(clock(place.path(), &at(now - 3_600)).verdict, Verdict::Fault);
    }
}
