//! Debian's User-Mode Linux: a kernel that is a program. It boots in seconds, and has what a virtual machine's kernel
//! has but its hardware.

use super::guest::{Guest, Job};
use super::image::Image;
use crate::Finished;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The memory of each guest, in MiB.
const MEMORY: u64 = 128;
/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(120);
/// An environment for the guest's programs: their C library uses no registers that the kernel would lose.
const NO_LARGE_REGISTERS: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load";
/// What `unshare` runs.
const IN_NAMESPACES: &str = r#"mount -t tmpfs memory /dev/shm && exec "$@""#;

/// A running guest, killed when dropped. If the test ends without that, the guest powers itself off.
///
/// It has one network device, `vec0`.
pub struct UserModeLinux {
    // Fields are dropped in this order.
    _kernel: Running,
    guest: Guest,
    folder: TempDir,
    /// Commands so far.
    commands: AtomicU64,
    // Its files go with it.
    _image: Image,
}

impl UserModeLinux {
    /// The largest packet of `vec0` where both ends of it agree, in bytes, without the Ethernet header.
    pub const MTU: u32 = 1600;

    /// Starts one, and waits until it takes commands: it, and the other end of `vec0`. A read from that end is a frame
    /// that the guest has sent, a write is one that it receives.
    ///
    /// # Panics
    /// If it does not start, with what its kernel has said.
    #[must_use]
    pub fn boot(image: &Image, ethernet_address: &str) -> (UserModeLinux, OwnedFd) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (port, its_port) = UnixStream::pair().expect("a pair of sockets");
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (network, its_network) = pair.expect("a pair of sockets");
        // All its processes end with the first one, in a namespace of their own: its helpers would stay. Its memory is
        // a file in a tmpfs whose pages may be executed, which is not so of every `/dev/shm`.
        let mut command = Command::new("unshare");
        command.args([
            "--pid",
            "--mount",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            IN_NAMESPACES,
            "-",
        ]);
        for name in ["TMPDIR", "TMP", "TEMP"] {
            command.env_remove(name);
        }
        command.arg(image.kernel());
        command.arg(format!("mem={MEMORY}M")).arg(format!("uml_dir={}", folder.path().display()));
        command.arg(format!("initrd={}", image.initramfs().display()));
        // Its standard input is its port and its standard output its network.
        command.args(["con=null", "con0=null,fd:2", "ssl=null", "ssl0=fd:0", "agent=ttyS0"]);
        command.arg(format!("host={}", folder.path().display()));
        let mtu = UserModeLinux::MTU;
        command.arg(format!("vec0:transport=fd,fd=1,mtu={mtu},mac={ethernet_address}"));
        command.args(["quiet", "panic=-1", NO_LARGE_REGISTERS]);
        let console = File::create(path("console")).expect("a file");
        command.stdin(Stdio::from(OwnedFd::from(its_port))).stdout(its_network).stderr(console);
        let child = without_large_registers(&mut command);
        // It has the guest's ends, which would hide that the guest has gone.
        drop(command);
        let guest = Guest::new(port, Arc::default());
        let (commands, _image) = (AtomicU64::new(0), image.clone());
        let uml = UserModeLinux { _kernel: Running(child), guest, folder, commands, _image };
        uml.guest.wait_ready(LIMIT).unwrap_or_else(|why| uml.fail(&why));
        (uml, network)
    }

    /// Runs a command of the guest's shell, as root, to its end.
    ///
    /// # Panics
    /// If it takes more than minutes, or the guest ends, with what its kernel has said.
    #[track_caller]
    pub fn run(&self, command: &str) -> Finished {
        let job = self.start(command);
        self.wait(&job)
    }

    /// Starts a command beside others.
    ///
    /// # Panics
    /// If the guest has ended.
    #[must_use]
    #[track_caller]
    pub fn start(&self, command: &str) -> Job {
        // Its serial line is slow, and stops for good at some thousands of bytes.
        let file = format!("command-{}", self.commands.fetch_add(1, Ordering::Relaxed));
        fs::write(self.folder.path().join(&file), command).expect("a file");
        let started = self.guest.start(&format!(". /run/host/{file}"));
        started.unwrap_or_else(|why| self.fail(&format!("{command}: {why}")))
    }

    /// Waits for the end of a command that was started here.
    ///
    /// # Panics
    /// As [`run`](UserModeLinux::run) does.
    #[track_caller]
    pub fn wait(&self, job: &Job) -> Finished {
        self.guest.wait(job, LIMIT).unwrap_or_else(|why| self.fail(&why))
    }

    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        let console = fs::read(self.folder.path().join("console")).unwrap_or_default();
        panic!("{why}\nThe guest's console: {}", String::from_utf8_lossy(&console))
    }
}

/// Starts a kernel that keeps the registers of its processes as every processor has them.
///
/// Linux 6.1 keeps them in 4 KiB, and stops where the processor's are larger, as they are with AMX. Where it cannot ask for
/// the large ones it asks for those of x87 and SSE, and loses the rest at each page fault. All that it starts inherits the
/// filter, which only a thread of its own can have alone.
fn without_large_registers(command: &mut Command) -> Child {
    /// `PTRACE_GETREGSET` and `NT_X86_XSTATE` (`linux/ptrace.h`, `linux/elf.h`).
    const ASKED: [(u8, u64); 2] = [(0, 0x4204), (2, 0x202)];
    const PTRACE: i64 = 101;
    let filter = || -> Result<BpfProgram, seccompiler::BackendError> {
        let conditions = ASKED.map(|(argument, value)| {
            let (length, equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
            SeccompCondition::new(argument, length, equal, value)
        });
        let rule = SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)?;
        let invalid = SeccompAction::Errno(Errno::INVAL.raw_os_error().unsigned_abs());
        let rules = BTreeMap::from([(PTRACE, vec![rule])]);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, invalid, ARCH.try_into()?)?;
        filter.try_into()
    };
    thread::scope(|scope| {
        let started = scope.spawn(|| {
            seccompiler::apply_filter(&filter().expect("a filter")).expect("a filter is taken");
            command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"))
        });
        started.join().expect("a process")
    })
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
