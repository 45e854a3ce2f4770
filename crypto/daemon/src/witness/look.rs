//! A look at a process.
//!
//! Everything is read by way of the process's own folder in `/proc`, which is of that process and of none that
//! gets its number later, and counts only if the process still lives afterwards. No call here can be made to
//! wait: paths that the process chose are only compared, and file systems are not asked for what the kernel
//! does not know already.
//!
//! A program is the file that the daemon finds at its path. So a process in another mount namespace, or with
//! another root, has none: the same path is another file there. Nor has one that has got a user, group or
//! capabilities from its file: the system keeps its user from changing what it does (`LD_PRELOAD`, `ptrace`),
//! but the user could pass for it by connecting before starting it.

use crate::keys::Unseen;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, openat, readlinkat, statx};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Namespaces in which its names mean what they mean to this process.
const NAMESPACES: [&str; 3] = ["mnt", "user", "pid"];
/// Longest file of the kernel's about a process that is read, in bytes. One has a number for each group.
const STATUS_BYTES_MAX: u64 = 1 << 20;

/// The path of the program that a process runs, which connected as this user and group.
pub fn look(process: BorrowedFd<'_>, uid: u32, gid: u32) -> Result<PathBuf, Unseen> {
    let folder = folder(process).ok_or(Unseen::Gone)?;
    let seen = program(&folder, uid, gid);
    // Else what was read may be another's, or nothing.
    if is_alive(process) { seen } else { Err(Unseen::Gone) }
}

fn program(folder: &OwnedFd, uid: u32, gid: u32) -> Result<PathBuf, Unseen> {
    let status = status(folder).ok_or(Unseen::Hidden)?;
    if !is_as_it_was(&status, uid, gid) {
        return Err(Unseen::Raised);
    }
    for namespace in NAMESPACES {
        let name = format!("ns/{namespace}");
        let its = link(folder, &name).ok_or(Unseen::Hidden)?;
        let own = fs::read_link(format!("/proc/self/{name}")).map_err(|_| Unseen::Hidden)?;
        if its != own {
            return Err(Unseen::Elsewhere);
        }
    }
    let root = fs::read_link("/proc/self/root").map_err(|_| Unseen::Hidden)?;
    if link(folder, "root").ok_or(Unseen::Hidden)? != root {
        return Err(Unseen::Elsewhere);
    }
    let path = link(folder, "exe").ok_or(Unseen::Hidden)?;
    let runs = stat(folder.as_fd(), "exe".as_ref(), AtFlags::empty()).ok_or(Unseen::Hidden)?;
    let there = stat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok_or(Unseen::Replaced)?;
    let is_it = path.is_absolute()
        && (runs.stx_dev_major, runs.stx_dev_minor, runs.stx_ino)
            == (there.stx_dev_major, there.stx_dev_minor, there.stx_ino);
    if is_it { Ok(path) } else { Err(Unseen::Replaced) }
}

/// The process's folder in `/proc`.
fn folder(process: BorrowedFd<'_>) -> Option<OwnedFd> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    let pid = about.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    // -1 if it has gone, 0 if it has no number here.
    let pid: u32 = pid.trim().parse().ok().filter(|pid| *pid > 0)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, format!("/proc/{pid}"), flags, Mode::empty()).ok()
}

fn is_alive(process: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(process, PollFlags::IN)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    // It can be read when the process has ended.
    poll(&mut fds, Some(&now)) == Ok(0)
}

fn status(folder: &OwnedFd) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(folder, "status", flags, Mode::empty()).ok()?;
    let mut text = Vec::new();
    File::from(file).take(STATUS_BYTES_MAX).read_to_end(&mut text).ok()?;
    // Its name may be any bytes.
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Whether all its users and groups are those that it connected as, and it has no capability that was not
/// its parent's to give.
fn is_as_it_was(status: &str, uid: u32, gid: u32) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let are = |name: &str, wanted: u32| {
        let numbers = field(name).map(|numbers| numbers.split_ascii_whitespace());
        numbers.is_some_and(|mut numbers| {
            numbers.clone().count() == 4 && numbers.all(|number| number.parse() == Ok(wanted))
        })
    };
    let set = |name: &str| field(name).and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let (Some(permitted), Some(ambient)) = (set("CapPrm:"), set("CapAmb:")) else { return false };
    are("Uid:", uid) && are("Gid:", gid) && (uid == 0 || permitted & !ambient == 0)
}

fn link(folder: &OwnedFd, name: &str) -> Option<PathBuf> {
    let target = readlinkat(folder, name, Vec::new()).ok()?;
    Some(path(target.as_bytes()))
}

/// A path of these bytes.
pub fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

/// The file's identity, as far as the kernel knows without asking a file system's server.
fn stat(folder: BorrowedFd<'_>, path: &Path, flags: AtFlags) -> Option<Statx> {
    let flags = flags | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    statx(folder, path.as_os_str().as_bytes(), flags, StatxFlags::INO).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_as_it_was_if_nothing_was_added() {
        let status = |uid: &str, gid: &str, permitted: &str, ambient: &str| {
            format!(
                "Name:\tx\nUid:\t{uid}\nGid:\t{gid}\nCapPrm:\t{permitted}\nCapAmb:\t{ambient}\n"
            )
        };
        let (none, some) = ("0000000000000000", "0000000000000400");
        let good = "7\t7\t7\t7";
        let seen = |text: &str| is_as_it_was(text, 7, 7);
        assert!(seen(&status(good, good, none, none)));
        assert!(seen(&status(good, good, some, some)));
        assert!(!seen(&status(good, good, some, none)));
        assert!(!seen(&status("7\t0\t0\t0", good, none, none)));
        assert!(!seen(&status(good, "7\t8\t8\t8", none, none)));
        assert!(!seen(&status("8\t8\t8\t8", good, none, none)));
        assert!(!seen("Uid:\t7\t7\t7\t7\nGid:\t7\t7\t7\t7\n"));
        let root = "0\t0\t0\t0";
        assert!(is_as_it_was(&status(root, root, some, none), 0, 0));
    }
}
