//! The file systems that are mounted, as `/proc/self/mountinfo` lists them (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mount {
    /// Where it is.
    pub point: PathBuf,
    /// Its type: `ext4`, `nfs4`.
    pub kind: String,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
}

impl Mount {
    /// Whether it has this option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|one| one == option)
    }
}

/// All in such a list, in its order. Lines that make no sense are left out.
pub(super) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

/// The file system that a path from the root, without links, is in: of those that cover it the innermost, and of
/// several at one place the last.
pub(super) fn of<'m>(path: &Path, mounts: &'m [Mount]) -> Option<&'m Mount> {
    let covers = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    covers.max_by_key(|mount| mount.point.as_os_str().len())
}

fn mount(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let (point, options) = (mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let (kind, more) = (file_system.next()?, file_system.nth(1).unwrap_or_default());
    let options = options.split(',').chain(more.split(','));
    Some(Mount {
        point: unescaped(point),
        kind: kind.to_owned(),
        options: options.filter(|one| !one.is_empty()).map(ToOwned::to_owned).collect(),
    })
}

/// Blanks and the like are there as `\040`.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let octal = match after {
            [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', ..]
                if *first == b'\\' =>
            {
                Some((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'))
            }
            _ => None,
        };
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 22 0:24 / /srv/my\\040data rw,noatime - nfs4 host:/x rw,vers=4.2
31 22 8:2 / /srv rw - xfs /dev/sda2 rw
32 31 8:3 / /srv ro shared:2 master:3 - btrfs /dev/sda3 rw,nobarrier
no mount";

    #[test]
    fn the_innermost_and_last_one_counts() {
        let mounts = parse(LIST);
        assert_eq!(mounts.len(), 4);
        let kind = |path: &str| of(Path::new(path), &mounts).map(|mount| mount.kind.as_str());
        assert_eq!(kind("/var/lib"), Some("ext4"));
        assert_eq!(kind("/srvx"), Some("ext4"));
        assert_eq!(kind("/srv/my data/store"), Some("nfs4"));
        assert_eq!(kind("/srv/other"), Some("btrfs"));
        assert!(mounts[3].has("nobarrier") && mounts[3].has("ro") && !mounts[2].has("ro"));
        assert_eq!(kind("relative"), None);
    }
}
