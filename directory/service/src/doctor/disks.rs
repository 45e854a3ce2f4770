//! The disks that hold the data: their file systems, how these are mounted, and the room that is left.

use super::mounts::{self, Mount};
use crate::finding::Finding;
use keyway_config::Configuration;
use keyway_folder::data::name;
use keyway_host::output::grouped;
use rustix::fs::statvfs;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File systems of other machines beside those that the store refuses; `fuse` cannot be told by its number.
const REMOTE: [&str; 4] = ["fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"];
/// File systems on which the power cut tests run.
const TESTED: [&str; 3] = ["ext4", "xfs", "btrfs"];
/// Room below which a server is about to refuse changes, in bytes.
const ROOM_BYTES_MIN: u64 = 256 << 20;
/// Room below which it should be made larger, in hundredths of the disk.
const ROOM_PERCENT_MIN: u64 = 10;

/// Looks at the disks of the folder, of the store and of the logs.
pub(super) fn look(folder: &Path, configuration: Option<&Configuration>) -> Vec<Finding> {
    let list = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts::parse(&list);
    let store = folder.join(name::STORE);
    let log = configuration.map_or_else(|| name::LOG.into(), |it| it.log.folder.clone());
    let mut findings = Vec::new();
    let mut kinds = HashSet::new();
    for place in [folder, &store] {
        let Ok(place) = fs::canonicalize(place) else { continue };
        match mounts::of(&place, &mounts) {
            Some(mount) if kinds.insert(mount.point.clone()) => {
                findings.push(file_system(&place, mount));
                findings.extend(options(mount));
            }
            Some(_) => {}
            None => findings.push(Finding::unknown(
                "file system",
                format!("/proc/self/mountinfo does not say what {} is on", place.display()),
            )),
        }
    }
    let mut devices = HashSet::new();
    for place in [store, folder.to_owned(), folder.join(log)] {
        // Where the logs go to the journal there is no folder of them.
        if let Ok(found) = fs::metadata(&place)
            && devices.insert(found.dev())
        {
            findings.push(room(&place));
        }
    }
    findings
}

fn file_system(place: &Path, mount: &Mount) -> Finding {
    let (about, kind) = ("file system", mount.kind.as_str());
    let found = format!("{} is on {kind}, mounted at {}", place.display(), mount.point.display());
    let refused = keyway_store::network_file_system(place).ok().flatten();
    let elsewhere = "move the folder to a local disk: ext4 or xfs";
    match kind {
        _ if refused.is_some() || REMOTE.contains(&kind) => Finding::fault(
            about,
            format!(
                "{found}: a disk of another machine, on which locks and mapped memory do not hold"
            ),
            elsewhere,
        ),
        "tmpfs" | "ramfs" => {
            Finding::fault(about, format!("{found}: it is gone when the machine stops"), elsewhere)
        }
        "overlay" | "aufs" => Finding::warning(
            about,
            format!("{found}: the container's own layer, which goes with it"),
            "mount a volume for the data folder",
        ),
        kind if TESTED.contains(&kind) => Finding::good(about, found),
        _ => Finding::unknown(
            about,
            format!("{found}; no power cuts were tried on it (they were on ext4, xfs and btrfs)"),
        ),
    }
}

fn options(mount: &Mount) -> Vec<Finding> {
    let about = "mount options";
    let point = mount.point.display();
    let mut findings = Vec::new();
    if mount.has("ro") {
        let found = format!("{point} is mounted read-only");
        findings.push(Finding::fault(about, found, format!("mount -o remount,rw {point}")));
    }
    if ["nobarrier", "barrier=0"].iter().any(|option| mount.has(option)) {
        findings.push(Finding::fault(
            about,
            format!(
                "{point} is mounted without barriers: a power cut takes changes that were answered"
            ),
            format!("take nobarrier and barrier=0 out of /etc/fstab and mount {point} anew"),
        ));
    }
    if mount.kind == "ext4" && mount.has("errors=continue") {
        findings.push(Finding::warning(
            about,
            format!("{point} goes on after errors of the disk (errors=continue)"),
            format!("mount -o remount,errors=remount-ro {point}"),
        ));
    }
    findings
}

fn room(place: &PathBuf) -> Finding {
    let about = "free space";
    let shown = place.display();
    let found = match statvfs(place) {
        Ok(found) => found,
        Err(why) => return Finding::unknown(about, format!("{shown}: {why}")),
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let all = found.f_blocks.saturating_mul(found.f_frsize);
    let percent = free.saturating_mul(100) / all.max(1);
    let text = format!("{shown} has {} MiB free, {percent} of 100", grouped(free >> 20));
    let advice =
        "make room, or move it to a larger disk: changes are refused when the disk is full";
    // File systems that make them as they need them say 0 of 0.
    let names_left = found.f_files == 0 || found.f_favail.saturating_mul(100) / found.f_files > 1;
    match free {
        free if free < ROOM_BYTES_MIN => Finding::fault(about, text, advice),
        _ if !names_left => {
            let text = format!("{shown}: nearly all inodes are used ({} left)", found.f_favail);
            Finding::warning(about, text, "remove small files, or move it to another disk")
        }
        _ if percent < ROOM_PERCENT_MIN => Finding::warning(about, text, advice),
        _ => Finding::good(about, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Verdict;

    fn mount(kind: &str, options: &[&str]) -> Mount {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Mount { point: "/x".into(), kind: kind.to_owned(), options }
    }

    #[test]
    fn kinds_and_options_are_judged() {
        let here = std::env::temp_dir();
        let verdict = |kind: &str| file_system(&here, &mount(kind, &[])).verdict;
        for (kind, wanted) in [
            ("ext4", Verdict::Good),
            ("zfs", Verdict::Unknown),
            ("overlay", Verdict::Warning),
            ("tmpfs", Verdict::Fault),
            ("fuse.sshfs", Verdict::Fault),
        ] {
            assert_eq!(verdict(kind), wanted, "{kind}");
        }
        let found = |given: &[&str]| {
            options(&mount("ext4", given)).iter().map(|it| it.verdict).collect::<Vec<_>>()
        };
        assert_eq!(found(&["rw", "relatime", "errors=remount-ro"]), []);
        assert_eq!(found(&["ro", "barrier=0"]), [Verdict::Fault, Verdict::Fault]);
        assert_eq!(found(&["errors=continue"]), [Verdict::Warning]);
    }
}
