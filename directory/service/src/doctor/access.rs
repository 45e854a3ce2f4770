//! Who may get at the data folder.

use crate::finding::Finding;
use keyway_folder::data::name;
use keyway_host::output::shell;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const ABOUT: &str = "permissions";
/// Bits of a mode: others and the group may read, write or search; the group and others may write; only owners remove.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
/// The files that are their owner's alone. Logs have a mode of their own, and certificates are for all.
const SECRET: [&str; 5] =
    [name::CA_KEY, name::SERVER_KEY, name::ADMIN_PASSWORD, name::HISTORY, name::STORE];

/// Looks at the folder, at what is in it, and at the folders above it.
pub(super) fn look(folder: &Path) -> Vec<Finding> {
    let Ok(folder) = fs::canonicalize(folder) else { return Vec::new() };
    let owner = match fs::metadata(&folder) {
        Ok(found) => found.uid(),
        Err(why) => return vec![Finding::unknown(ABOUT, format!("{}: {why}", folder.display()))],
    };
    let mut findings = Vec::new();
    findings.extend(private(&folder));
    findings.extend(SECRET.iter().filter_map(|name| private(&folder.join(name))));
    // That of cryptod may be another user's.
    let cryptod = folder.join(name::CRYPTOD);
    findings.extend(private(&cryptod));
    let names = name::ALL.iter().filter(|&&name| name != name::CRYPTOD);
    findings.extend(names.filter_map(|name| owned(&folder.join(name), owner)));
    let above = folder.ancestors().skip(1);
    findings.extend(above.filter_map(|above| safe(above, owner)));
    if findings.is_empty() {
        let found = format!("{} is its owner's alone (user {owner})", folder.display());
        findings.push(Finding::good(ABOUT, found));
    }
    findings
}

/// A path that is not there is nothing to look at.
fn metadata(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok()
}

fn private(path: &Path) -> Option<Finding> {
    let found = metadata(path)?;
    if found.is_symlink() || found.mode() & OTHERS == 0 {
        return None;
    }
    let text = format!("{} is open to others (mode {:o})", path.display(), found.mode() & 0o7777);
    Some(Finding::fault(ABOUT, text, format!("chmod go= {}", shell(&path.to_string_lossy()))))
}

fn owned(path: &Path, owner: u32) -> Option<Finding> {
    let found = metadata(path)?;
    if found.uid() == owner {
        return None;
    }
    let text = format!("{} is of user {}, the folder of user {owner}", path.display(), found.uid());
    let advice = format!("chown -R {owner} {}", shell(&path.to_string_lossy()));
    Some(Finding::fault(ABOUT, text, advice))
}

/// A folder above, in which others could put another data folder in the place of this one.
fn safe(above: &Path, owner: u32) -> Option<Finding> {
    let found = metadata(above)?;
    let is_trusted = found.uid() == 0 || found.uid() == owner;
    if is_trusted && (found.mode() & OTHERS_WRITE == 0 || found.mode() & STICKY != 0) {
        return None;
    }
    let text = format!(
        "other users may put another folder in the place of one in {} (user {}, mode {:o})",
        above.display(),
        found.uid(),
        found.mode() & 0o7777
    );
    Some(Finding::warning(ABOUT, text, "move the data folder to a place that only root may change"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Verdict;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_others_may_do_is_found() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        fs::create_dir(&folder).unwrap();
        let mode =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let verdicts = || look(&folder).iter().map(|it| it.verdict).collect::<Vec<_>>();
        mode(&folder, 0o700);
        fs::write(folder.join(name::CA_KEY), "").unwrap();
        mode(&folder.join(name::CA_KEY), 0o600);
        assert_eq!(verdicts(), [Verdict::Good]);
        mode(&folder.join(name::CA_KEY), 0o640);
        assert_eq!(verdicts(), [Verdict::Fault]);
        mode(&folder, 0o755);
        assert_eq!(verdicts(), [Verdict::Fault, Verdict::Fault]);
        mode(&folder, 0o700);
        mode(&folder.join(name::CA_KEY), 0o600);
        mode(place.path(), 0o777);
        assert_eq!(verdicts(), [Verdict::Warning]);
        mode(place.path(), 0o1777);
        assert_eq!(verdicts(), [Verdict::Good]);
    }
}
