//! Virtual machines: Debian's kernel, as it comes, in QEMU without KVM, and commands in it.
//!
//! ```no_run
//! use keyway_tests::vm::{Image, Vm};
//!
//! let Some(image) = Image::build() else { return };
//! let image = image.module("virtio_crypto").image();
//! let vm = Vm::boot(&image, &[]);
//! assert!(vm.run("uname -r").expect(0).out.contains("amd64"));
//! ```
//!
//! A machine is a q35 with one processor, [`MEMORY`] bytes, the root ports `rp0` and `rp1` for PCI devices that come
//! and go, and a bus `serial` for further `virtserialport` devices. What a command in it writes is limited by that
//! memory. A device whose back end holds its connection until it has spoken holds all of QEMU.

mod guest;
mod image;
mod qmp;
mod user_mode;

pub use guest::Job;
pub use image::{Builder, Image};
pub use user_mode::UserModeLinux;

use crate::Finished;
use guest::{Guest, Inbox};
use memchr::memmem;
use qmp::Qmp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// The memory of each machine, in bytes. While it starts, an image with a program of 130 MB is there twice.
pub const MEMORY: u64 = 1 << 30;

/// How long anything may take that is waited for: a machine that boots while all processors have other work takes
/// twenty seconds.
const LIMIT: Duration = Duration::from_secs(180);

/// A running machine, killed when dropped. If the test ends without that, the guest powers itself off.
pub struct Vm {
    // Fields are dropped in this order.
    qemu: Running,
    qmp: Mutex<Qmp>,
    guest: Guest,
    folder: TempDir,
    image: Image,
}

impl Vm {
    /// Starts one with further arguments of QEMU's, and waits until it takes commands.
    ///
    /// # Panics
    /// If it does not, with what QEMU and the guest's kernel have said.
    #[must_use]
    pub fn boot(image: &Image, arguments: &[&str]) -> Vm {
        let vm = Vm::spawn(image, arguments, Arc::default());
        vm.guest.wait_ready(LIMIT).unwrap_or_else(|why| vm.fail(&why));
        vm
    }

    /// Moves the guest to a second QEMU with further arguments, and ends the first one. Its commands go on.
    ///
    /// # Panics
    /// If it cannot be moved: QEMU refuses that with some devices.
    #[must_use]
    pub fn migrate(self, arguments: &[&str]) -> Vm {
        let uri = format!("unix:{}", self.folder.path().join("migration").display());
        // It does not run before the first one's last words have been read.
        let arguments = [arguments, &["-incoming", &uri, "-S"]].concat();
        let other = Vm::spawn(&self.image, &arguments, self.guest.inbox());
        let events = json!([{ "capability": "events", "state": true }]);
        self.qmp("migrate-set-capabilities", &json!({ "capabilities": events }));
        self.qmp("migrate", &json!({ "uri": uri }));
        let ended = self
            .event("MIGRATION", |data| data["status"] == "completed" || data["status"] == "failed");
        if ended["status"] != "completed" {
            self.fail(&format!("it does not move: {}", self.qmp("query-migrate", &json!({}))));
        }
        self.qmp("quit", &json!({}));
        self.guest.end();
        other.qmp("cont", &json!({}));
        other
    }

    /// Runs a command of the guest's shell, as root, to its end.
    ///
    /// # Panics
    /// If it takes more than minutes, or the machine ends, with what QEMU and the guest's kernel have said.
    pub fn run(&self, command: &str) -> Finished {
        let job = self.start(command);
        let done = self.guest.wait(&job, LIMIT);
        done.unwrap_or_else(|why| self.fail(&format!("{command}: {why}")))
    }

    /// Starts a command beside others.
    ///
    /// # Panics
    /// If the machine has ended.
    #[must_use]
    pub fn start(&self, command: &str) -> Job {
        self.guest.start(command).unwrap_or_else(|why| self.fail(&format!("{command}: {why}")))
    }

    /// Waits for the end of a command that was started here, or before the guest moved here.
    ///
    /// # Panics
    /// As [`run`](Vm::run) does.
    pub fn wait(&self, job: &Job) -> Finished {
        self.guest.wait(job, LIMIT).unwrap_or_else(|why| self.fail(&why))
    }

    /// What a command of QEMU's machine protocol returns.
    ///
    /// # Panics
    /// If it is refused.
    pub fn qmp(&self, command: &str, arguments: &Value) -> Value {
        let done = self.try_qmp(command, arguments);
        done.unwrap_or_else(|why| self.fail(&format!("{command} {arguments}: {why}")))
    }

    /// Like it, or why it is refused.
    ///
    /// # Errors
    /// The description that QEMU gives.
    ///
    /// # Panics
    /// If another thread has panicked meanwhile.
    pub fn try_qmp(&self, command: &str, arguments: &Value) -> Result<Value, String> {
        self.qmp.lock().expect("a monitor").execute(command, arguments)
    }

    /// Waits for an event of QEMU's, and takes it: its data.
    ///
    /// # Panics
    /// If it does not come.
    pub fn event(&self, name: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        let event = self.qmp.lock().expect("a monitor").event(name, is_meant);
        event.unwrap_or_else(|why| self.fail(&format!("no {name}: {why}")))
    }

    /// Connects to the socket of a server, and plugs a device with that connection: `chardev`, named as the device.
    ///
    /// # Panics
    /// If QEMU refuses it.
    pub fn plug(&self, id: &str, socket: &Path, driver: &str, bus: &str, properties: &Value) {
        let address = json!({ "type": "unix", "data": { "path": socket } });
        let backend = json!({ "type": "socket", "data": { "addr": address, "server": false } });
        self.qmp("chardev-add", &json!({ "id": id, "backend": backend }));
        let mut device = json!({ "id": id, "driver": driver, "bus": bus, "chardev": id });
        for (name, value) in properties.as_object().into_iter().flatten() {
            device[name] = value.clone();
        }
        self.qmp("device_add", &device);
    }

    /// Unplugs a device that was plugged so, waits until the guest has let go of it, and closes the connection.
    ///
    /// # Panics
    /// If the guest does not let go of it.
    pub fn unplug(&self, id: &str) {
        self.qmp("device_del", &json!({ "id": id }));
        self.event("DEVICE_DELETED", |data| data["device"] == id);
        self.qmp("chardev-remove", &json!({ "id": id }));
    }

    /// Whether these bytes are anywhere in the guest's memory now. Shared memory of its devices is no part of it.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn remembers(&self, bytes: &[u8]) -> bool {
        holds(&self.memory(), bytes)
    }

    /// The file that is the guest's memory.
    ///
    /// # Panics
    /// If QEMU has ended.
    pub fn memory(&self) -> File {
        let files = format!("/proc/{}/fd", self.qemu.0.id());
        let mut files = fs::read_dir(files).expect("QEMU's files").flatten();
        let its = |name: &Path| name.to_string_lossy().starts_with("/memfd:memory-backend");
        let file = files.find(|file| fs::read_link(file.path()).is_ok_and(|name| its(&name)));
        File::open(file.expect("the guest's memory").path()).expect("the guest's memory")
    }

    /// Whether QEMU still runs.
    ///
    /// # Panics
    /// If the system does not say.
    pub fn is_up(&mut self) -> bool {
        self.qemu.0.try_wait().expect("its state").is_none()
    }

    /// The process of QEMU.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.qemu.0.id()
    }

    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        panic!("{why}\n{}", said(self.folder.path()))
    }

    fn spawn(image: &Image, arguments: &[&str], inbox: Arc<Inbox>) -> Vm {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        // QEMU connects, so that nothing waits for a socket to appear.
        let listen = |name: &str| UnixListener::bind(path(name)).expect("a socket");
        let (monitor, agent) = (listen("monitor"), listen("agent"));
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-machine", "q35,memory-backend=memory", "-accel", "tcg", "-cpu", "qemu64"]);
        // More than one processor is far slower without KVM.
        command.args(["-smp", "1", "-m", &format!("{}", MEMORY >> 20), "-object"]);
        command.arg(format!("memory-backend-memfd,id=memory,size={MEMORY},share=on"));
        command.arg("-kernel").arg(image.kernel()).arg("-initrd").arg(image.initramfs());
        // Beside others it misses ticks, and then stops at its own test of timers, or distrusts its clock.
        let kernel = "console=ttyS0 panic=-1 loglevel=4 no_timer_check clocksource=jiffies";
        command.args(["-append", kernel]);
        command.args(["-serial", &format!("file:{}", path("serial"))]);
        command.args(["-chardev", &format!("socket,id=monitor,path={}", path("monitor"))]);
        command.args(["-mon", "chardev=monitor,mode=control"]);
        command.args(["-chardev", &format!("socket,id=agent,path={}", path("agent"))]);
        command.args(["-device", "virtio-serial-pci,id=serial"]);
        command.args(["-device", "virtserialport,bus=serial.0,chardev=agent,name=agent"]);
        // The firmware gives a port that is empty no room for large devices unless it is asked to.
        for (number, port) in ["rp0", "rp1"].iter().enumerate() {
            let place = format!("chassis={},slot={}", number + 1, number + 1);
            let port = format!("pcie-root-port,id={port},{place},pref64-reserve=1G");
            command.args(["-device", &port]);
        }
        let errors = File::create(path("errors")).expect("a file");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
        let qemu = Running(child);
        let connected = || -> Result<(Qmp, UnixStream), String> {
            let monitor = accept(&monitor, &qemu.0)?;
            let agent = accept(&agent, &qemu.0)?;
            Ok((Qmp::new(monitor, LIMIT)?, agent))
        };
        let (qmp, port) =
            connected().unwrap_or_else(|why| panic!("{command:?}: {why}\n{}", said(folder.path())));
        let guest = Guest::new(port, inbox);
        Vm { qemu, qmp: Mutex::new(qmp), guest, folder, image: image.clone() }
    }
}

/// Whether these bytes are anywhere in a file of memory now.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn holds(memory: &File, bytes: &[u8]) -> bool {
    let end = memory.metadata().expect("its length").len();
    let finder = memmem::Finder::new(bytes);
    let mut block = vec![0; 1 << 20];
    let mut at = 0;
    // Most of it was never written.
    while let Ok(data) = seek(memory, SeekFrom::Data(at)) {
        let read = memory.read_at(&mut block, data).expect("the memory");
        if finder.find(&block[..read]).is_some() {
            return true;
        }
        // They may be in two blocks.
        at = data + (read - bytes.len().min(read) + 1) as u64;
        if data + read as u64 == end {
            break;
        }
    }
    false
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until QEMU connects, or ends.
fn accept(listener: &UnixListener, qemu: &Child) -> Result<UnixStream, String> {
    let pid = i32::try_from(qemu.id()).ok().and_then(Pid::from_raw).ok_or("no process")?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|why| format!("QEMU: {why}"))?;
    let mut both = [PollFd::new(listener, PollFlags::IN), PollFd::new(&process, PollFlags::IN)];
    let limit = Timespec { tv_sec: LIMIT.as_secs().cast_signed(), tv_nsec: 0 };
    while poll(&mut both, Some(&limit)) == Err(Errno::INTR) {}
    if both[0].revents().is_empty() {
        return Err("QEMU does not start".to_owned());
    }
    Ok(listener.accept().map_err(|why| format!("QEMU: {why}"))?.0)
}

/// What QEMU and the guest's kernel have said.
fn said(folder: &Path) -> String {
    let text = |name| fs::read(folder.join(name)).unwrap_or_default();
    let (errors, serial) = (text("errors"), text("serial"));
    let (errors, serial) = (String::from_utf8_lossy(&errors), String::from_utf8_lossy(&serial));
    format!("QEMU said: {errors}\nThe guest's console: {serial}")
}
