//! What the daemon takes from itself before it lets anybody in: the file system but for its own
//! folder (Landlock), and system calls that it never makes (seccomp).

use crate::failure::Failure;
use crate::output;
use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::path::Path;

/// Takes it all, from this thread and those that it will start, but for its own folder and the
/// right to remove its socket. Whether files are closed off too is a choice, since a process that
/// gives them up cannot see which program its clients run.
///
/// # Errors
/// If the system has these means and refuses them. A system that lacks them is warned of.
pub fn enter(folder: &Path, socket: Option<&Path>, files: bool) -> Result<(), Failure> {
    if files {
        close_files(folder, socket).map_err(|why| refused(&why))?;
    } else {
        output::note(
            "the daemon keeps the right to open files, since it has to see which programs its \
             clients run (--allow-program)",
        );
    }
    close_calls().map_err(|why| refused(&why))
}

fn refused(why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("the system refuses the sandbox ({why}); --no-sandbox starts without one"))
}

fn close_files(folder: &Path, socket: Option<&Path>) -> Result<(), landlock::RulesetError> {
    let abi = ABI::V4;
    let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
    let mut ruleset = Ruleset::default().handle_access(all)?.create()?;
    // Its own files; what says whose a client is, and how many processors there are.
    let places =
        [(folder, all), (Path::new("/proc"), read), (Path::new("/sys/devices/system"), read)];
    let beside = socket.and_then(Path::parent).map(|folder| match folder.as_os_str().is_empty() {
        true => (Path::new("."), AccessFs::RemoveFile.into()),
        false => (folder, AccessFs::RemoveFile.into()),
    });
    for (path, access) in places.into_iter().chain(beside) {
        if let Ok(place) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(place, access))?;
        }
    }
    if ruleset.restrict_self()?.ruleset == RulesetStatus::NotEnforced {
        output::note("warning: this system has no Landlock, so the daemon may open files");
    }
    Ok(())
}

/// The calls that a daemon of threads, sockets and shared memory makes.
const CALLS: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_connect,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_linkat,
    libc::SYS_listen,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_mkdirat,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munlock,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_socketpair,
    libc::SYS_statx,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Older calls that the C library makes where there is nothing newer.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_epoll_wait,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[i64] = &[];

fn close_calls() -> Result<(), Box<dyn std::error::Error>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.iter().chain(OLD_CALLS).map(|call| (*call, Vec::new())).collect();
    // Sockets of this machine only.
    let local =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::AF_UNIX as u64)?;
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(vec![local])?]);
    // What it never does is refused, not fatal: a library that tries something new gets an error.
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind;
    use std::net::TcpListener;
    use std::os::unix::net::UnixDatagram;

    /// On a thread of its own, which alone gives it all up.
    #[test]
    fn what_was_given_up_is_refused_and_the_rest_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (folder, beside) = (place.path().join("own"), place.path().join("beside"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&beside).unwrap();
        let socket = beside.join("socket");
        fs::write(&socket, "").unwrap();
        fs::write(beside.join("other"), "secret").unwrap();
        let given_up = move || {
            enter(&folder, Some(&socket), true).unwrap();
            assert_eq!(TcpListener::bind("127.0.0.1:0").unwrap_err().kind(), PERMISSION);
            assert!(UnixDatagram::unbound().is_ok());
            fs::write(folder.join("file"), "text").unwrap();
            fs::rename(folder.join("file"), folder.join("renamed")).unwrap();
            assert_eq!(fs::read_to_string(folder.join("renamed")).unwrap(), "text");
            assert!(fs::read_to_string("/proc/self/status").is_ok());
            fs::remove_file(&socket).unwrap();
            fs::read_to_string(beside.join("other")).map_err(|why| why.kind())
        };
        let read = std::thread::spawn(given_up).join().unwrap();
        if read.is_ok() {
            let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
            assert!(!ci, "nothing may be skipped in CI, but this system has no Landlock");
            eprintln!("skipped in part: this system has no Landlock");
            return;
        }
        assert_eq!(read, Err(PERMISSION));
    }

    const PERMISSION: ErrorKind = ErrorKind::PermissionDenied;
}
