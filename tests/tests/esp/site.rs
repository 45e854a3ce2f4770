//! Two hosts, each a network namespace, with a wire between them and a gateway on each.

use keyway_tests::cryptod::eventually;
use keyway_tests::namespace::Namespace;
use keyway_tests::{Finished, finish, keyway, secret};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

impl Side {
    pub fn other(self) -> Side {
        if self == Side::A { Side::B } else { Side::A }
    }

    /// Its address on the wire.
    pub fn outer(self, is_v4: bool) -> IpAddr {
        let text = match (self, is_v4) {
            (Side::A, true) => "192.0.2.1",
            (Side::B, true) => "192.0.2.2",
            (Side::A, false) => "2001:db8::1",
            (Side::B, false) => "2001:db8::2",
        };
        text.parse().unwrap()
    }

    /// Its end of the wire.
    pub fn interface(self) -> &'static str {
        if self == Side::A { "wire-a" } else { "wire-b" }
    }
}

/// Both hosts, without gateways yet.
pub struct Site {
    hosts: [Namespace; 2],
    pub folder: TempDir,
}

impl Site {
    /// `None`, which is said, where the machine has no namespaces for us.
    pub fn new() -> Option<Site> {
        let hosts = [Namespace::new()?, Namespace::new()?];
        let [a, b] = hosts.each_ref().map(Namespace::path);
        hosts[0].ip(&format!("link add wire-a netns {a} type veth peer name wire-b netns {b}"));
        let site = Site { hosts, folder: tempfile::tempdir().unwrap() };
        for side in [Side::A, Side::B] {
            let wire = side.interface();
            // One that watches the wire sees each packet by itself.
            site.ip(side, &["link", "set", wire, "gso_max_segs", "1", "up"]);
            for is_v4 in [true, false] {
                let address = format!("{}/{}", side.outer(is_v4), if is_v4 { 24 } else { 64 });
                let mut arguments = vec!["addr", "add", &address, "dev", wire];
                if !is_v4 {
                    arguments.push("nodad");
                }
                site.ip(side, &arguments);
            }
            site.reverse_path(side, "1");
        }
        Some(site)
    }

    fn host(&self, side: Side) -> &Namespace {
        &self.hosts[side as usize]
    }

    /// `ip` in a namespace.
    pub fn ip(&self, side: Side, arguments: &[&str]) {
        self.host(side).ip(&arguments.join(" "));
    }

    /// Sets how strict the filter of reverse paths is.
    pub fn reverse_path(&self, side: Side, value: &str) {
        let value = value.to_owned();
        self.inside(side, move || {
            for name in ["all", side.interface()] {
                fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), &value).unwrap();
            }
        });
    }

    /// Does something on a thread that is in a namespace. Sockets that it makes are there.
    pub fn inside<T: Send>(&self, side: Side, action: impl FnOnce() -> T + Send) -> T {
        self.host(side).within(action)
    }

    /// A socket of UDP.
    pub fn udp(&self, side: Side, address: SocketAddr) -> UdpSocket {
        let socket = self.inside(side, || UdpSocket::bind(address));
        let socket = socket.unwrap_or_else(|why| panic!("{side:?} {address}: {why}"));
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    /// A socket that sees all packets of a namespace, from their IP headers on.
    pub fn watch(&self, side: Side) -> OwnedFd {
        let all = Protocol::from_raw(NonZeroU32::new(u32::from(3_u16.to_be())).unwrap());
        let flags = SocketFlags::CLOEXEC;
        let watch = || socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, Some(all));
        let socket = self.inside(side, watch).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 256 << 20).unwrap();
        rustix::net::sockopt::set_socket_timeout(
            &socket,
            rustix::net::sockopt::Timeout::Recv,
            Some(Duration::from_millis(200)),
        )
        .unwrap();
        socket
    }

    /// The path of a file of a side's.
    pub fn file(&self, side: Side, name: &str) -> PathBuf {
        self.folder.path().join(format!("{side:?}-{name}"))
    }

    /// Writes the configuration of a side.
    pub fn configure(&self, side: Side, text: &str) {
        secret(&self.file(side, "esp.toml"), text);
    }

    /// `keyway esp` of a side, to be run to its end.
    pub fn esp(&self, side: Side, arguments: &[&str]) -> Finished {
        let mut command = Command::new(keyway());
        command.arg("esp").args(arguments);
        if arguments != ["check"] {
            command.arg("--control").arg(self.file(side, "control"));
        } else {
            command.arg(self.file(side, "esp.toml"));
        }
        finish(&mut command, "")
    }

    /// The gateway's status.
    pub fn status(&self, side: Side) -> Value {
        let done = self.esp(side, &["status", "--json"]).expect(0);
        serde_json::from_str(&done.out).unwrap()
    }

    /// How many packets were dropped for a cause.
    pub fn dropped(&self, side: Side, way: &str, cause: &str) -> u64 {
        let status = self.status(side);
        status["figures"][way]["dropped"][cause]["packets"].as_u64().unwrap_or(0)
    }

    /// A program in a namespace.
    pub fn program(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        self.host(side).command(program)
    }

    /// The command that starts a gateway.
    pub fn command(&self, side: Side, state: &std::path::Path) -> Command {
        let mut command = self.program(side, keyway());
        command.args(["esp", "up", "--json"]).arg(self.file(side, "esp.toml"));
        command.arg("--state").arg(state).arg("--control").arg(self.file(side, "control"));
        command
    }

    /// Starts a gateway.
    pub fn start(&self, side: Side) -> Gateway {
        Gateway::start(&mut self.command(side, &self.file(side, "state")))
    }

    /// Starts both.
    pub fn start_both(&self) -> (Gateway, Gateway) {
        (self.start(Side::A), self.start(Side::B))
    }
}

/// A gateway that runs. Killed when it is dropped.
pub struct Gateway {
    child: Child,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Gateway {
    #[track_caller]
    pub fn start(command: &mut Command) -> Gateway {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let events = Arc::new(Mutex::new(Vec::new()));
        loop {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            let event: Value = serde_json::from_str(&line)
                .unwrap_or_else(|why| panic!("the gateway did not come up: {line:?}: {why}"));
            match event["event"].as_str() {
                Some("ready") => break,
                Some("failed") => panic!("the gateway did not come up: {line}"),
                _ => events.lock().unwrap().push(event),
            }
        }
        let told = events.clone();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                told.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Gateway { child, events }
    }

    /// Whether it has said an event in which a text is.
    pub fn said(&self, event: &str, text: &str) -> bool {
        let events = self.events.lock().unwrap();
        events.iter().any(|it| it["event"] == event && it.to_string().contains(text))
    }

    /// Waits until it says that.
    #[track_caller]
    pub fn says(&self, event: &str, text: &str) {
        eventually(&format!("it says {event} {text}"), || self.said(event, text));
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().unwrap()
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn is_up(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a socket that watches has seen, until nothing comes for a while or `is_over`.
pub fn seen(socket: &OwnedFd, mut each: impl FnMut(&[u8]), mut is_over: impl FnMut() -> bool) {
    let mut buffer = vec![0; 65_536];
    loop {
        match recv(socket, buffer.as_mut_slice(), RecvFlags::empty()) {
            Ok((_, bytes)) => each(&buffer[..bytes]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) if is_over() => return,
            Err(_) => {}
        }
    }
}

/// The next datagram: its length and source. A signal to the test's process is no end of the wait.
pub fn hear_from(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(buffer) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            heard => return heard,
        }
    }
}

/// Its length.
pub fn hear(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    hear_from(socket, buffer).map(|(bytes, _)| bytes)
}

/// A tunnel of both sides' configurations.
#[derive(Clone)]
pub struct Tunnel {
    pub name: String,
    pub suite: &'static str,
    pub mode: &'static str,
    pub is_outer_v4: bool,
    /// Whether it is in UDP, and not raw.
    pub is_udp: bool,
    /// Its number, which its SPIs, keys and networks are made of.
    pub number: u16,
    /// The networks of A and B; `None` in transport mode.
    pub networks: Option<[String; 2]>,
    /// Lines more, in each.
    pub more: String,
    /// Lines more of its selector.
    pub selector: String,
}

impl Tunnel {
    /// In tunnel mode, between networks of its number.
    pub fn new(number: u16, suite: &'static str, is_outer_v4: bool, is_inner_v4: bool) -> Tunnel {
        let networks = match is_inner_v4 {
            true => [format!("10.{number}.1.0/24"), format!("10.{number}.2.0/24")],
            false => [format!("fd00:{number}:1::/64"), format!("fd00:{number}:2::/64")],
        };
        Tunnel {
            name: format!("t{number}"),
            suite,
            mode: "tunnel",
            is_outer_v4,
            is_udp: true,
            number,
            networks: Some(networks),
            more: String::new(),
            selector: String::new(),
        }
    }

    /// The inner address of a side.
    pub fn inner(&self, side: Side) -> IpAddr {
        let Some(networks) = &self.networks else { return side.outer(self.is_outer_v4) };
        let network = &networks[side as usize];
        let text = network.replace(".0/24", ".1").replace("::/64", "::1");
        text.parse().unwrap()
    }

    pub fn key(&self, from: Side) -> String {
        let bytes = match self.suite {
            "aes-128-gcm" => 20,
            "aes-256-gcm" | "chacha20-poly1305" => 36,
            "aes-128-cbc-hmac-sha-256" => 48,
            "aes-256-cbc-hmac-sha-256" => 64,
            "aes-128-cbc-hmac-sha-1" => 36,
            "aes-256-cbc-hmac-sha-1" => 52,
            other => panic!("{other}"),
        };
        format!("{:04x}{:02x}", self.number, from as u8 + 1).repeat(bytes)[..2 * bytes].to_owned()
    }

    fn spi(&self, from: Side) -> String {
        format!("{:#x}", 0x1000 + u32::from(self.number) * 2 + from as u32)
    }

    fn text(&self, side: Side) -> String {
        let Tunnel { name, suite, mode, more, selector, .. } = self;
        let (own, theirs) = (side.outer(self.is_outer_v4), side.other().outer(self.is_outer_v4));
        let remote = match self.is_udp {
            true => SocketAddr::new(theirs, 4500).to_string(),
            false => theirs.to_string(),
        };
        let networks = match &self.networks {
            Some(networks) => {
                [networks[side as usize].clone(), networks[side.other() as usize].clone()]
            }
            None => [own.to_string(), theirs.to_string()],
        };
        let [local, far] = networks;
        let way = |from: Side| {
            format!("{{ spi = \"{}\", key = \"{}\" }}", self.spi(from), self.key(from))
        };
        format!(
            "[[tunnel]]\nname = \"{name}\"\nmode = \"{mode}\"\nlocal = \"{own}\"\nremote = \"{remote}\"\n\
             algorithm = \"{suite}\"\nout = {}\nin = {}\n{more}\n[[tunnel.selector]]\nlocal = \"{local}\"\n\
             remote = \"{far}\"\n{selector}\n",
            way(side),
            way(side.other())
        )
    }
}

/// The configuration of a side.
pub fn configuration(side: Side, tunnels: &[Tunnel]) -> String {
    let inner = tunnels.iter().filter(|it| it.networks.is_some()).map(|it| it.inner(side));
    let mut addresses: Vec<_> =
        inner.map(|it| format!("\"{it}/{}\"", if it.is_ipv4() { 24 } else { 64 })).collect();
    addresses.sort();
    addresses.dedup();
    let mut text = format!(
        "[device]\nname = \"esp0\"\naddresses = [{}]\n[outside]\nlisten = \"[::]:4500\"\nesp = true\n\
         interface = \"{}\"\n",
        addresses.join(", "),
        side.interface()
    );
    text.extend(tunnels.iter().map(|it| it.text(side)));
    text
}
