//! A hypervisor without a guest: it takes a virtual machine's memory and bells from the daemon as QEMU does, and shows
//! them to processes of this system in a folder like that of a PCI device. So a process of the test is one of the
//! machine's, with the driver, the modules and the program as they are.

use keyway_ring::{Doorbell, SharedMemory};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;

/// The register that rings.
const RING: usize = 12;
/// Between two looks at it: those that are tested need the processor.
const PAUSE: Duration = Duration::from_micros(50);

/// A virtual machine that is there, until it is dropped.
pub struct Hypervisor {
    socket: UnixStream,
    device: TempDir,
    /// The machine's memory.
    pub memory: Arc<SharedMemory>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hypervisor {
    /// Connects to a machine's socket.
    ///
    /// # Panics
    /// If the daemon does not say what QEMU waits for, in that order.
    pub fn connect(socket: &Path) -> Hypervisor {
        Hypervisor::try_connect(socket).expect("the daemon serves the machine")
    }

    /// As [`Hypervisor::connect`].
    ///
    /// # Errors
    /// If the daemon hangs up.
    ///
    /// # Panics
    /// As [`Hypervisor::connect`].
    pub fn try_connect(socket: &Path) -> io::Result<Hypervisor> {
        let socket = UnixStream::connect(socket)?;
        if hear(&socket)?.0 != 0 {
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "it is sent away"));
        }
        let own = hear(&socket)?.0;
        let (message, memory) = hear(&socket)?;
        assert_eq!(message, -1, "the memory");
        let memory = memory.expect("the memory's file");
        let mut bells: Vec<(i64, Doorbell)> = Vec::new();
        socket.set_nonblocking(true)?;
        loop {
            match hear(&socket) {
                Ok((peer, file)) => {
                    assert!(peer != own && bells.iter().all(|(known, _)| *known != peer));
                    bells.push((peer, Doorbell::from_fd(file.expect("a bell"))));
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock && bells.len() >= 65 => break,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                Err(why) => return Err(why),
            }
        }
        Hypervisor::plug(socket, memory, bells, tempfile::tempdir()?)
    }

    /// The device is taken out, and one that another daemon serves put in its place.
    ///
    /// # Panics
    /// As [`Hypervisor::connect`].
    pub fn move_to(mut self, socket: &Path) -> Hypervisor {
        self.unplug();
        let device = std::mem::replace(&mut self.device, tempfile::tempdir().expect("a folder"));
        drop(self);
        let mut next = Hypervisor::connect(socket);
        for name in ["resource0", "resource2"] {
            let (from, to) = (next.device.path().join(name), device.path().join(name));
            fs::rename(from, to).expect("a file of the device");
        }
        next.device = device;
        next
    }

    fn plug(
        socket: UnixStream,
        memory: OwnedFd,
        bells: Vec<(i64, Doorbell)>,
        device: TempDir,
    ) -> io::Result<Hypervisor> {
        symlink(
            format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd()),
            device.path().join("resource2"),
        )?;
        let registers = device.path().join("resource0");
        File::create(&registers)?.set_len(4096)?;
        let registers = OpenOptions::new().read(true).write(true).open(registers)?;
        let registers = SharedMemory::of_device(&registers.into(), 4096)?;
        let memory = Arc::new(SharedMemory::adopt(memory, usize::MAX)?);
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        // Nothing tells of a store to the register, and a second one may come before the first is seen: so all bells ring.
        let thread = thread::spawn(move || {
            let register = registers.flag(RING).expect("a register");
            while !ends.load(Ordering::Relaxed) {
                match register.swap(0, Ordering::AcqRel) {
                    0 => thread::sleep(PAUSE),
                    _ => bells.iter().for_each(|(_, bell)| bell.ring()),
                }
            }
        });
        let thread = Some(thread);
        Ok(Hypervisor { socket, device, memory, over, thread })
    }

    /// The folder of the device, which processes of the machine name as the daemon's socket.
    pub fn device(&self) -> &Path {
        self.device.path()
    }

    /// Whether the daemon has hung up.
    pub fn is_left(&self) -> bool {
        !matches!(hear(&self.socket), Err(why) if why.kind() == io::ErrorKind::WouldBlock)
    }

    /// The device is taken out: its files are no more.
    ///
    /// # Panics
    /// If they cannot be removed.
    pub fn unplug(&self) {
        for name in ["resource0", "resource2"] {
            fs::remove_file(self.device.path().join(name)).expect("a file of the device");
        }
    }
}

impl Drop for Hypervisor {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One message, and the file that it brings.
fn hear(socket: &UnixStream) -> io::Result<(i64, Option<OwnedFd>)> {
    let mut bytes = [0; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes != 8 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut file = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last();
        }
    }
    Ok((i64::from_le_bytes(bytes), file))
}
