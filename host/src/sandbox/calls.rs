//! The system calls that a process keeps. Others are refused, not fatal: a library that tries something new
//! gets an error.

use nix::libc;

/// Those that a daemon of threads, sockets and shared memory makes.
pub const COMMON: &[i64] = &[
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
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
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
pub const OLD: &[i64] = &[
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
pub const OLD: &[i64] = &[];

/// Those with which cryptod's witness answers questions: it opens files to read them, and changes none.
pub const OF_WITNESS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_write,
];

/// Older calls, as above.
#[cfg(target_arch = "x86_64")]
pub const OLD_OF_WITNESS: &[i64] =
    &[libc::SYS_open, libc::SYS_poll, libc::SYS_readlink, libc::SYS_stat];
#[cfg(not(target_arch = "x86_64"))]
pub const OLD_OF_WITNESS: &[i64] = &[];

/// Those that PKCS#11 modules make besides: they look for files, and lock and remove them.
pub const OF_TOKENS: &[i64] = &[
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_getppid,
    libc::SYS_getrusage,
    libc::SYS_statfs,
    libc::SYS_sysinfo,
    libc::SYS_utimensat,
];

/// Older calls, as above.
#[cfg(target_arch = "x86_64")]
pub const OLD_OF_TOKENS: &[i64] = &[libc::SYS_access, libc::SYS_getdents, libc::SYS_rmdir];
#[cfg(not(target_arch = "x86_64"))]
pub const OLD_OF_TOKENS: &[i64] = &[];

/// Those that the device of a virtual machine makes besides: it sees the end of its hypervisor.
pub const OF_DEVICE: &[i64] = &[libc::SYS_pidfd_open];

/// Those that the ESP gateway makes besides: it sends and receives many packets at once.
pub const OF_ESP: &[i64] = &[
    libc::SYS_clock_getres,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_getrusage,
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sysinfo,
];

/// Those that the directory makes besides: its store's, its logs', and to find out about the machine.
pub const OF_LDAPD: &[i64] = &[
    libc::SYS_clock_getres,
    libc::SYS_copy_file_range,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_getcwd,
    libc::SYS_getppid,
    libc::SYS_getrusage,
    libc::SYS_mincore,
    libc::SYS_mlockall,
    libc::SYS_msync,
    libc::SYS_munlockall,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_recvmmsg,
    libc::SYS_sched_setaffinity,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_statfs,
    libc::SYS_sync_file_range,
    libc::SYS_sysinfo,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_utimensat,
];

/// Older calls, as above.
#[cfg(target_arch = "x86_64")]
pub const OLD_OF_LDAPD: &[i64] = &[
    libc::SYS_access,
    libc::SYS_chown,
    libc::SYS_getdents,
    libc::SYS_lchown,
    libc::SYS_rmdir,
    libc::SYS_select,
];
#[cfg(not(target_arch = "x86_64"))]
pub const OLD_OF_LDAPD: &[i64] = &[];

/// The requests of the directory on an open file: whether it is a terminal and how wide, that a socket does
/// not wait, and whether btrfs copies what is written (`ioctl_iflags`(2)).
pub const IOCTLS: &[u64] =
    &[libc::TCGETS, libc::TIOCGWINSZ, libc::FIONBIO, libc::FS_IOC_GETFLAGS, libc::FS_IOC_SETFLAGS];
