//! The device by which a process of a virtual machine reaches the daemon of its host: a PCI device of shared memory
//! (ivshmem), used from user space by its files in sysfs.
//!
//! `resource2` is the memory, which the daemon has made; a lock on its byte N is slot N of the [mailbox](crate::mailbox).
//! `resource0` has the register that rings a bell of the daemon's.

use crate::files::lock_byte;
use crate::limits::{REGION_BYTES_MAX, STEP_MAX, STEP_MIN};
use crate::mailbox::{self, Header, Heard, SlotEnd};
use crate::registers::Registers;
use crate::{Doorbell, Received, SharedMemory};
use keyway_lock::Unpoisoned;
use rustix::io::fcntl_dupfd_cloexec;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Where the system shows its PCI devices. As the path of a daemon's socket it means the first of them that is one of
/// ours.
pub const DEVICES: &str = "/sys/bus/pci/devices";
/// The device that QEMU calls `ivshmem`: Red Hat's vendor number, and its number there.
const IVSHMEM: [(&str, &str); 2] = [("vendor", "0x1af4"), ("device", "0x1110")];

/// A device, mapped. Used by all threads at once.
#[derive(Debug)]
pub struct Device {
    memory: Arc<SharedMemory>,
    registers: Arc<Registers>,
    /// `resource2`, on which the lock is.
    file: OwnedFd,
    header: Header,
}

impl Device {
    /// The first device of ours that this process may use.
    ///
    /// # Errors
    /// `NotFound` if there is none; `PermissionDenied` if there is one that this process may not use.
    pub fn find() -> io::Result<Arc<Device>> {
        let mut refused = io::Error::new(
            io::ErrorKind::NotFound,
            "no device of a Keyway daemon is in this virtual machine",
        );
        for folder in candidates()? {
            match Device::open(&folder) {
                Ok(device) => return Ok(device),
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    /// The device of that folder of sysfs.
    ///
    /// # Errors
    /// The system's; `NotFound` if the device is not a Keyway daemon's, `ConnectionRefused` if the daemon serves it no
    /// more.
    pub fn open(folder: &Path) -> io::Result<Arc<Device>> {
        let told = |path: &Path, why: io::Error| {
            io::Error::new(why.kind(), format!("{}: {why}", path.display()))
        };
        let open = |name: &str| {
            let path = folder.join(name);
            let file = OpenOptions::new().read(true).write(true).open(&path);
            // A number that a standard stream could have is none of ours.
            let file = file.and_then(|file| Ok(fcntl_dupfd_cloexec(&file, 3)?));
            file.map_err(|why| told(&path, why))
        };
        let (file, registers) = (open("resource2")?, open("resource0")?);
        let bytes = File::from(file.try_clone()?).metadata()?.len();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(REGION_BYTES_MAX);
        let memory = SharedMemory::of_device(&file, bytes).map_err(|why| told(folder, why))?;
        let registers = Arc::new(Registers::map(registers)?);
        let Some(header) = mailbox::header(&memory) else {
            let why = format!("{}: it is no device of a Keyway daemon", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        };
        if !mailbox::is_open(&memory) {
            let why = format!("{}: the daemon of the host serves it no more", folder.display());
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, why));
        }
        Ok(Arc::new(Device { memory: Arc::new(memory), registers, file, header }))
    }

    /// A bell of the daemon's.
    pub fn doorbell(&self, peer: u32) -> Doorbell {
        Doorbell::of_registers(self.registers.clone(), peer)
    }

    fn ring_mailbox(&self) {
        if !self.memory.is_lost() {
            self.registers.ring(self.header.bell);
        }
    }

    /// Whether the daemon serves it no more, or it is gone.
    pub fn is_over(&self) -> bool {
        !mailbox::is_open(&self.memory)
    }

    /// A part of its memory.
    pub fn part(&self, at: u64, bytes: u64) -> Option<SharedMemory> {
        let at = usize::try_from(at).ok()?;
        self.memory.part(at..at.checked_add(usize::try_from(bytes).ok()?)?, None)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Folders of devices that may be ours.
fn candidates() -> io::Result<Vec<PathBuf>> {
    let is = |folder: &Path, (name, value): (&str, &str)| {
        fs::read_to_string(folder.join(name)).is_ok_and(|text| text.trim() == value)
    };
    let mut folders: Vec<_> = fs::read_dir(DEVICES)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| IVSHMEM.into_iter().all(|it| is(folder, it)))
        .collect();
    folders.sort_unstable();
    Ok(folders)
}

/// A process' place in a device's mailbox. Used by all threads at once, one message at a time.
#[derive(Debug)]
pub struct Slot {
    device: Arc<Device>,
    index: usize,
    end: Mutex<SlotEnd>,
}

impl Slot {
    /// Takes a free one. Slots whose owners ended without a word are given back by the way.
    ///
    /// # Errors
    /// `ResourceBusy` if no slot is free; the system's.
    pub fn take(device: Arc<Device>) -> io::Result<Slot> {
        let mut taken = None;
        let mut has_freed = false;
        for index in 0..device.header.slots {
            if !lock_byte(&*device, index, true)? {
                continue;
            }
            if taken.is_none() {
                taken = SlotEnd::claim(&device.memory, index).map(|end| (index, end));
                has_freed |= taken.is_some();
                continue;
            }
            if SlotEnd::is_abandoned(&device.memory, index)
                && let Some(abandoned) = SlotEnd::claim(&device.memory, index)
            {
                abandoned.end();
                has_freed = true;
            }
            lock_byte(&*device, index, false)?;
        }
        if has_freed {
            device.ring_mailbox();
        }
        let Some((index, end)) = taken else {
            let why = "as many processes of this virtual machine use its device as can";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        };
        Ok(Slot { device, index, end: Mutex::new(end) })
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Says a message, and waits for its answer for so long. `None` at the end.
    ///
    /// # Errors
    /// `TimedOut` if none comes.
    pub fn ask(&self, message: &[u8], most: Duration) -> io::Result<Option<Received>> {
        let mut end = self.end.lock().unpoisoned();
        let begun = Instant::now();
        if !self.wait(begun, most, || end.is_free())? || end.say(message).is_none() {
            return Ok(None);
        }
        self.device.ring_mailbox();
        let mut heard = Heard::Nothing;
        let answered = self.wait(begun, most, || {
            heard = end.hear();
            !matches!(heard, Heard::Nothing)
        })?;
        Ok(match heard {
            Heard::Answer(bytes) if answered => Some(Received { bytes, fds: Vec::new() }),
            _ => None,
        })
    }

    /// Says what has no answer.
    ///
    /// # Errors
    /// `TimedOut` if the daemon does not take the message before, `BrokenPipe` at the end.
    pub fn tell(&self, message: &[u8], most: Duration) -> io::Result<()> {
        let mut end = self.end.lock().unpoisoned();
        if !self.wait(Instant::now(), most, || end.is_free())? || end.say(message).is_none() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.device.ring_mailbox();
        Ok(())
    }

    /// Looks again and again, with longer and longer sleeps, since no one wakes this side. Whether it is so, or the
    /// connection is over.
    fn wait(
        &self,
        begun: Instant,
        most: Duration,
        mut is_so: impl FnMut() -> bool,
    ) -> io::Result<bool> {
        let mut step = STEP_MIN;
        loop {
            if is_so() {
                return Ok(true);
            }
            if self.device.is_over() {
                return Ok(false);
            }
            if begun.elapsed() >= most {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(step);
            step = (2 * step).min(STEP_MAX);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A forked child has a copy of what is its parent's.
        if self.device.memory.is_here() {
            self.end.get_mut().unpoisoned().end();
            self.device.ring_mailbox();
            let _ = lock_byte(&*self.device, self.index, false);
        }
    }
}
