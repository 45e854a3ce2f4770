//! Two hosts of a pair of gateways: network namespaces of this run, with an Ethernet between them. Nothing outside
//! is reached or changed.

use crate::ring::common::text;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, id};
use std::thread;

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// The sender's.
    A,
    /// The sink's.
    B,
}

pub const BOTH: [Host; 2] = [Host::A, Host::B];

impl Host {
    pub fn letter(self) -> char {
        match self {
            Host::A => 'a',
            Host::B => 'b',
        }
    }

    pub fn other(self) -> Host {
        match self {
            Host::A => Host::B,
            Host::B => Host::A,
        }
    }

    /// Its address on the Ethernet.
    pub fn outer(self) -> &'static str {
        match self {
            Host::A => "192.0.2.1",
            Host::B => "192.0.2.2",
        }
    }

    /// Its address in the tunnel.
    pub fn inner(self) -> &'static str {
        match self {
            Host::A => "10.1.0.1",
            Host::B => "10.2.0.1",
        }
    }

    /// The network that the tunnel brings to the other host.
    pub fn subnet(self) -> &'static str {
        match self {
            Host::A => "10.1.0.0/24",
            Host::B => "10.2.0.0/24",
        }
    }
}

/// The longest IP packet in a tunnel, in bytes: libipsec cuts longer ones, whatever its device's MTU.
pub const MTU: usize = 1400;

/// Where the system has namespaces by name.
const NAMES: &str = "/run/netns";
/// How those of this program's runs begin; the run's process id is next.
const OURS: &str = "keyway-bench-";

/// Both hosts; gone when it is dropped.
pub struct Network {
    tag: &'static str,
}

impl Network {
    /// `tag` tells the networks of one run apart: at most eight characters, since devices are named by it.
    pub fn new(tag: &'static str) -> Result<Network, String> {
        let network = Network { tag };
        for host in BOTH {
            ip(&["netns", "add", &network.name(host)])?;
        }
        let [a, b] = BOTH.map(|host| network.name(host));
        ip(&[
            "link", "add", "outer", "netns", &a, "type", "veth", "peer", "name", "outer", "netns",
            &b,
        ])?;
        for host in BOTH {
            let address = format!("{}/24", host.outer());
            network.ip(host, &["address", "add", &address, "dev", "outer"])?;
            for device in ["lo", "outer"] {
                network.ip(host, &["link", "set", device, "up"])?;
            }
        }
        Ok(network)
    }

    fn name(&self, host: Host) -> String {
        format!("{OURS}{}-{}-{}", id(), self.tag, host.letter())
    }

    /// A device's name that no other network of this run has: wireguard's programs have sockets of that name.
    pub fn device(&self, host: Host) -> String {
        format!("kb-{}-{}", self.tag, host.letter())
    }

    /// A command that runs there. Its process is the program's own.
    pub fn command(&self, host: Host, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host)]).arg(program.as_ref());
        command
    }

    /// Runs `ip` there.
    pub fn ip(&self, host: Host, arguments: &[&str]) -> Result<(), String> {
        let name = self.name(host);
        ip(&[&["-n", name.as_str()], arguments].concat())
    }

    /// Gives a tunnel's device its address, brings it up, and sends the other host's network there.
    pub fn configure(&self, host: Host, device: &str) -> Result<(), String> {
        let address = format!("{}/24", host.inner());
        self.ip(host, &["address", "add", &address, "dev", device])?;
        self.ip(host, &["link", "set", device, "mtu", &MTU.to_string(), "up"])?;
        self.ip(host, &["route", "add", host.other().subnet(), "dev", device])
    }

    /// Does something on a thread that is there: sockets stay where they are made.
    pub fn inside<R: Send>(
        &self,
        host: Host,
        work: impl FnOnce() -> Result<R, String> + Send,
    ) -> Result<R, String> {
        let file = File::open(Path::new(NAMES).join(self.name(host))).map_err(text)?;
        let enter = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(text)?;
            work()
        };
        thread::scope(|scope| scope.spawn(enter).join()).map_err(|_| "a thread panicked")?
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in BOTH {
            let _ = ip(&["netns", "del", &self.name(host)]);
        }
    }
}

/// Removes the namespaces of runs that were killed.
pub fn sweep() {
    for entry in fs::read_dir(NAMES).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let process = name.strip_prefix(OURS).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// Runs `ip`; what it says is the error.
fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|why| format!("ip (of iproute2): {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {}: {}", arguments.join(" "), said.trim()))
}
