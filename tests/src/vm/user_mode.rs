//! Debian's User-Mode Linux: a kernel that is a program. It boots in seconds, and has what a virtual machine's kernel
//! has but its hardware.

use super::guest::{Guest, Job};
use super::image::Image;
use crate::Finished;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// The memory of each guest, in MiB.
const MEMORY: u64 = 128;
/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(120);
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
        command.args(["quiet", "panic=-1"]);
        let console = File::create(path("console")).expect("a file");
        command.stdin(Stdio::from(OwnedFd::from(its_port))).stdout(its_network).stderr(console);
        let child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
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

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
