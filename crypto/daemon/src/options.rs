//! Settings that a daemon gets when it starts.

use crate::admission::Admission;
use crate::keys::KeyStore;
use crate::limits::{ClientLimits, SharedLimits};
use crate::name_spaces::NameSpaces;
use crate::weights::Weights;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a daemon serves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The callers that are let in.
    pub admission: Admission,
    /// The limits of each client.
    pub limits: ClientLimits,
    /// Limits of all clients together, and of all clients of one user.
    pub shared: SharedLimits,
    /// How many times the time of others clients get.
    pub weights: Weights,
    /// Where clients that are no administrators may make keys.
    pub name_spaces: NameSpaces,
    /// The keys that clients may name.
    pub keys: Option<Arc<KeyStore>>,
    /// The virtual machines that may come.
    pub machines: Machines,
    /// Where its socket is, if it is the daemon's to remove when it ends; not if another process
    /// made it. One that takes over removes it only if the one before it would have.
    pub socket: Option<PathBuf>,
    /// Threads that poll rings, at least 1.
    pub pumps: usize,
    /// How long a pump polls a ring in which nothing comes before its client has to ring.
    pub spin: Duration,
}

/// Virtual machines that may be clients: [`MACHINES_MAX`](crate::limits::MACHINES_MAX) at most.
#[derive(Clone)]
pub struct Machines {
    /// Those whose processes use the daemon, each with a name of its own.
    pub all: Vec<MachineOptions>,
    /// Those whose kernels do, by a device that is a process, each with a name of its own.
    pub devices: Vec<DeviceOptions>,
    /// Where their hypervisors connect: files that the daemon removes when it ends.
    pub sockets: Vec<PathBuf>,
    /// Hears what happens to them, in sentences, from any thread.
    pub report: Report,
}

/// Says something to the administrator.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// A virtual machine.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// The name that keys are granted to.
    pub name: String,
    /// Where its hypervisor connects; `None` if the daemon before this one listens there, and hands that over.
    pub listener: Option<Arc<OwnedFd>>,
}

/// The vhost-user device of a virtual machine.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// The machine's name.
    pub name: String,
    /// The link to its process, a socket of messages, over which that asks for a connection; `None` if the daemon before
    /// this one has it, and hands it over.
    pub link: Option<Arc<OwnedFd>>,
}

impl Default for Machines {
    /// None.
    fn default() -> Self {
        Machines {
            all: Vec::new(),
            devices: Vec::new(),
            sockets: Vec::new(),
            report: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machines")
            .field("all", &self.all)
            .field("devices", &self.devices)
            .finish_non_exhaustive()
    }
}

/// The function that is called when another daemon has taken over, on a thread of this one, with
/// the other one's process.
pub type HandedOver = Box<dyn FnOnce(u32) + Send>;
