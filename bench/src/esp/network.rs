//! Two hosts of a pair of gateways: network namespaces of this run, with an Ethernet between them. Nothing outside
//! is reached or changed.

use keyway_tests::namespace::Namespace;
use std::path::Path;
use std::process::Command;

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

/// Both hosts; gone when it is dropped.
pub struct Network {
    tag: &'static str,
    hosts: [Namespace; 2],
}

impl Network {
    /// `tag` tells the networks of one run apart: at most eight characters, since devices are named by it.
    pub fn new(tag: &'static str) -> Result<Network, String> {
        let new = || Namespace::new().ok_or("no network namespace can be made");
        let hosts = [new()?, new()?];
        let [a, b] = hosts.each_ref().map(Namespace::path);
        let network = Network { tag, hosts };
        network.ip(
            Host::A,
            &[
                "link", "add", "outer", "netns", &a, "type", "veth", "peer", "name", "outer",
                "netns", &b,
            ],
        )?;
        for host in BOTH {
            let address = format!("{}/24", host.outer());
            network.ip(host, &["address", "add", &address, "dev", "outer"])?;
            network.ip(host, &["link", "set", "outer", "up"])?;
        }
        Ok(network)
    }

    fn host(&self, host: Host) -> &Namespace {
        &self.hosts[host as usize]
    }

    /// A device's name that no other network of this run has: wireguard's programs have sockets of that name.
    pub fn device(&self, host: Host) -> String {
        format!("kb-{}-{}", self.tag, host.letter())
    }

    /// A command that runs there. Its process is the program's own.
    pub fn command(&self, host: Host, program: impl AsRef<Path>) -> Command {
        self.host(host).command(program.as_ref())
    }

    /// Runs `ip` there; what it says is the error.
    pub fn ip(&self, host: Host, arguments: &[&str]) -> Result<(), String> {
        let output = self.command(host, "ip").args(arguments).output();
        let output = output.map_err(|why| format!("ip (of iproute2): {why}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("ip {}: {}", arguments.join(" "), said.trim()))
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
        self.host(host).within(work)
    }
}
