//! A pair of gateways under measurement, of any make.

use super::network::Network;
use crate::process::{Process, processor_time};
use crate::ring::common::{DAEMON, processor};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A make of gateway.
pub struct Kind {
    pub name: &'static str,
    /// For the names of its network.
    pub tag: &'static str,
    /// Its version; `None` where it is not installed.
    pub version: fn() -> Option<String>,
    /// Starts one on each host, on the processor that this thread has. The folder is its own, and empty.
    pub start: fn(&Network, &Path) -> Result<Gateway, String>,
}

/// Both processes; ended when it is dropped.
pub struct Gateway {
    /// With the thread that does the system's work where a gateway left it: that of their processor.
    measured: Vec<u32>,
    /// The sender's.
    device: String,
    _processes: Vec<Process>,
}

impl Gateway {
    /// `device`: the name of that on the sender's host.
    pub fn new(processes: Vec<Process>, device: String) -> Gateway {
        let mut measured: Vec<_> = processes.iter().map(Process::id).collect();
        measured.extend(softirq_thread());
        Gateway { measured, device, _processes: processes }
    }

    /// The name of the TUN device on the sender's host.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Processor time so far of both gateways. It has the system's work for them: their reads and writes, the way over
    /// the Ethernet, which is walked in the sender's call, and the way from the device to the sink's socket.
    pub fn time(&self) -> Duration {
        processor_time(&self.measured)
    }
}

/// The thread of the gateways' processor that goes on with the network's work where it was too much for a call.
fn softirq_thread() -> Option<u32> {
    let wanted = format!("ksoftirqd/{}", processor(DAEMON)?);
    let mut processes = fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        (name.trim() == wanted).then(|| entry.file_name().to_str()?.parse().ok())?
    })
}
