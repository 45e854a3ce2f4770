//! strongSwan's charon with the gateway's plug-in on one host, and a stock one with its own ESP in user space on the other.

use super::site::{Gateway, Side, Site};
use keyway_tests::cryptod::eventually;
use keyway_tests::{Finished, available, finish, secret};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

const CHARON: &str = "/usr/lib/ipsec/charon";
const PLUGINS: &str = "/usr/lib/ipsec/plugins";
const STOCK: &str = "/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so";
const OPENSSL: &str = "/usr/lib/ipsec/plugins/libstrongswan-openssl.so";
/// What `cargo xtask test` fetches.
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/packages/strongswan/headers");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/strongswan");

/// How the two hosts speak to each other.
#[derive(Clone, Copy)]
struct Way {
    suite: &'static str,
    /// Whether IKE and ESP go over IPv4.
    is_outer_v4: bool,
    /// Whether the second host has a gateway as well, and not strongSwan's own ESP.
    is_ours: bool,
    is_transport: bool,
}

const USUAL: Way =
    Way { suite: "aes128gcm16-ecp256", is_outer_v4: true, is_ours: false, is_transport: false };

/// Two hosts with their networks, and the gateway of one of them, or of both.
struct Pair {
    site: Site,
    way: Way,
    /// More about the child of the first; lines of swanctl.conf.
    child: &'static str,
}

impl Pair {
    fn new(way: Way) -> Option<Pair> {
        if !available(&["cc", "make", "swanctl", CHARON, STOCK, OPENSSL, HEADERS]) {
            return None;
        }
        let site = Site::new()?;
        if !way.is_ours {
            site.ip(Side::B, &["addr", "add", "10.1.2.1/24", "dev", "lo"]);
        }
        let pair = Pair { site, way, child: "" };
        for side in [Side::A, Side::B] {
            let number = side as usize + 1;
            let address = format!("10.1.{number}.1/24");
            // The route to the other host leads into the device: sealed packets go by their interface.
            let interface = match way.is_transport {
                true => format!("interface = \"{}\"\n", side.interface()),
                false => String::new(),
            };
            let text = format!(
                "[device]\nname = \"esp0\"\naddresses = [\"{address}\"]\n[outside]\nlisten = \"[::]:4500\"\n\
                 {interface}[ike]\nsocket = \"{}\"\n",
                pair.socket(side).display()
            );
            pair.site.configure(side, &text);
            pair.site.esp(side, &["check"]).expect(0);
            if way.is_transport {
                pair.site.reverse_path(side, "2");
            }
        }
        Some(pair)
    }

    fn socket(&self, side: Side) -> PathBuf {
        self.site.file(side, "ike.socket")
    }

    /// Where a side has its socket for traffic.
    fn inner(&self, side: Side) -> SocketAddr {
        match self.way.is_transport {
            true => SocketAddr::new(side.outer(self.way.is_outer_v4), 9000),
            false => SocketAddr::from(([10, 1, side as u8 + 1, 1], 9000)),
        }
    }

    fn has_gateway(&self, side: Side) -> bool {
        side == Side::A || self.way.is_ours
    }

    /// A folder of plug-ins, one of which is ours: built by its own Makefile.
    fn plugins(&self) -> PathBuf {
        let folder = self.site.file(Side::A, "plugins");
        if folder.exists() {
            return folder;
        }
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(PLUGINS).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
        let mut make = Command::new("make");
        make.args(["-C", SOURCE, &format!("STRONGSWAN={HEADERS}")]);
        make.arg(format!("OUT={}", folder.display()));
        finish(&mut make, "").expect(0);
        folder
    }

    /// Starts charon on a side.
    fn charon(&self, side: Side) -> Charon<'_> {
        let folder = self.site.file(side, "charon");
        fs::create_dir_all(&folder).unwrap();
        let ours = match self.has_gateway(side) {
            true => "keyway-esp kernel-netlink",
            false => "kernel-libipsec kernel-netlink socket-default",
        };
        let settings = format!(
            "charon {{\n load_modular = no\n delete_rekeyed_delay = 1\n retransmit_tries = 3\n\
             load = random nonce openssl sha1 sha2 hmac kdf gcm {ours} vici updown\n\
             filelog {{\n log {{\n path = {log}\n default = 1\n knl = 2\n flush_line = yes\n }}\n }}\n\
             plugins {{\n vici {{\n socket = unix://{vici}\n }}\n keyway-esp {{\n socket = {socket}\n }}\n }}\n}}\n",
            log = folder.join("log").display(),
            vici = folder.join("vici").display(),
            socket = self.socket(side).display(),
        );
        fs::write(folder.join("strongswan.conf"), settings).unwrap();
        let ids = ["a", "b"];
        let Way { suite, is_outer_v4, is_transport, .. } = self.way;
        let network = |side: Side| match is_transport {
            true => format!("{}[udp/9000]", side.outer(is_outer_v4)),
            false => format!("10.1.{}.0/24", side as usize + 1),
        };
        let mode = if is_transport { "mode = transport" } else { "" };
        let (own, far) = (side as usize, side.other() as usize);
        let connection = format!(
            "connections {{\n peer {{\n version = 2\n encap = yes\n proposals = aes128-sha256-ecp256\n\
             local_addrs = {}\n remote_addrs = {}\n local {{\n auth = psk\n id = {}\n }}\n\
             remote {{\n auth = psk\n id = {}\n }}\n\
             children {{\n net {{\n local_ts = {}\n remote_ts = {}\n esp_proposals = {suite}\n{mode}\n{}\n }}\n }}\n }}\n}}\n\
             secrets {{\n ike-peer {{\n secret = \"a secret of this test\"\n }}\n}}\n",
            side.outer(is_outer_v4),
            side.other().outer(is_outer_v4),
            ids[own],
            ids[far],
            network(side),
            network(side.other()),
            if side == Side::A { self.child } else { "" },
        );
        secret(&folder.join("swanctl.conf"), &connection);
        let mut command = self.site.program(side, "unshare");
        let plugins = match self.has_gateway(side) {
            true => format!("mount --bind {} {PLUGINS} && ", self.plugins().display()),
            false => String::new(),
        };
        // One charon a /run: its process id is there.
        let script = format!("mount -t tmpfs none /run && {plugins}exec {CHARON}");
        command.args(["--mount", "sh", "-c", &script]);
        command.env("STRONGSWAN_CONF", folder.join("strongswan.conf"));
        let output = File::create(folder.join("output")).unwrap();
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let _ = fs::remove_file(folder.join("vici"));
        let charon = Charon { pair: self, side, child: command.spawn().unwrap(), folder };
        eventually("charon answers", || charon.swanctl(&["--stats"]).code == 0);
        charon.swanctl(&["--load-all"]).expect(0);
        charon
    }

    fn negotiated(&self) -> Vec<Value> {
        let status = self.site.status(Side::A);
        status["negotiated"].as_array().unwrap_or_else(|| panic!("{status}")).clone()
    }

    /// The SPIs of a direction, as seen from the gateway.
    fn spis(&self, direction: &str) -> Vec<String> {
        let all = self.negotiated();
        let some = all.iter().filter(|it| it["direction"] == direction);
        some.map(|it| it["spi"].as_str().unwrap().to_owned()).collect()
    }

    fn sockets(&self) -> [UdpSocket; 2] {
        [Side::A, Side::B].map(|side| {
            let socket = self.site.udp(side, self.inner(side));
            socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            socket
        })
    }
}

/// A charon that runs. Killed when it is dropped.
struct Charon<'p> {
    pair: &'p Pair,
    side: Side,
    child: Child,
    folder: PathBuf,
}

impl Charon<'_> {
    fn swanctl(&self, arguments: &[&str]) -> Finished {
        let mut command = Command::new("swanctl");
        command
            .args(arguments)
            .args(["--uri", &format!("unix://{}", self.folder.join("vici").display())]);
        command.env("STRONGSWAN_CONF", self.folder.join("strongswan.conf"));
        command.env("SWANCTL_DIR", &self.folder);
        finish(&mut command, "")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    fn initiate(&self) {
        let done = self.swanctl(&["--initiate", "--child", "net"]);
        assert!(done.code == 0, "{}\n{}\n{}", done.out, done.err, self.log());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    /// kill -9.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
    }

    /// Rekeys, and waits until the gateway sends under a new SPI and has none of before.
    fn rekey_child(&self) {
        let before = self.pair.spis("out");
        self.swanctl(&["--rekey", "--child", "net"]).expect(0);
        self.pair.changes(&before, &format!("{:?} rekeys", self.side));
    }
}

impl Pair {
    fn changes(&self, before: &[String], what: &str) {
        eventually(what, || {
            let (out, inward) = (self.spis("out"), self.spis("in"));
            out.len() == 1 && inward.len() == 1 && out != before
        });
    }
}

impl Drop for Charon<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("charon of {:?}:\n{}", self.side, self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// B sends back what comes, and A counts what comes back, while something is done. Returns how many A has sent, and
/// which did not come back.
fn traffic([a, b]: &[UdpSocket; 2], act: impl FnOnce()) -> (u32, Vec<u32>) {
    let to = b.local_addr().unwrap();
    let (is_sent, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let sent = AtomicU32::new(0);
    let mut came = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 2048];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok((bytes, from)) = b.recv_from(&mut buffer) {
                    b.send_to(&buffer[..bytes], from).unwrap();
                }
            }
        });
        let (sender, heard) = (a.try_clone().unwrap(), &mut came);
        let (is_sent, is_over, sent) = (&is_sent, &is_over, &sent);
        scope.spawn(move || {
            let mut packet = [7; 700];
            while !is_sent.load(Ordering::Relaxed) {
                let number = sent.load(Ordering::Relaxed);
                packet[..4].copy_from_slice(&number.to_be_bytes());
                sender.send_to(&packet, to).unwrap();
                sent.store(number + 1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
        });
        let listener = scope.spawn(move || {
            let mut buffer = [0; 2048];
            // What is under way when the sender ends comes within the patience of the socket.
            loop {
                match a.recv(&mut buffer) {
                    Ok(_) => heard.push(u32::from_be_bytes(buffer[..4].try_into().unwrap())),
                    Err(_) if is_over.load(Ordering::Relaxed) => return,
                    Err(_) => {}
                }
            }
        });
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        is_sent.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(500));
        is_over.store(true, Ordering::Relaxed);
        listener.join().unwrap();
        acted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    came.sort_unstable();
    let sent = sent.into_inner();
    (sent, (0..sent).filter(|number| came.binary_search(number).is_err()).collect())
}

/// Whether a packet goes there and back.
fn goes([a, b]: &[UdpSocket; 2]) -> bool {
    let mut buffer = [0; 64];
    let _ = a.send_to(b"there", b.local_addr().unwrap());
    let Ok((bytes, from)) = b.recv_from(&mut buffer) else { return false };
    let _ = b.send_to(&buffer[..bytes], from);
    a.recv(&mut buffer).is_ok()
}

fn started(pair: &Pair) -> (Gateway, Charon<'_>, Charon<'_>) {
    let gateway = pair.site.start(Side::A);
    let (a, b) = (pair.charon(Side::A), pair.charon(Side::B));
    (gateway, a, b)
}

#[test]
fn nothing_is_lost_while_it_rekeys() {
    let Some(pair) = Pair::new(USUAL) else { return };
    let (gateway, a, b) = started(&pair);
    let log = a.log();
    assert!(log.contains("joined the gateway") && !log.contains("failed to load"), "{log}");
    a.initiate();
    let sockets = pair.sockets();
    eventually("packets go", || goes(&sockets));
    let (sent, lost) = traffic(&sockets, || {
        a.rekey_child();
        b.rekey_child();
        a.swanctl(&["--rekey", "--ike", "peer"]).expect(0);
        eventually("the IKE SA is another one", || {
            a.log().matches("] rekeyed between").count() == 1
        });
        a.rekey_child();
    });
    assert!(lost.is_empty(), "{lost:?} of {sent} packets\n{}", pair.site.status(Side::A));
    assert!(sent > 50);
    // charon sees the use of what it has negotiated.
    let seen = a.swanctl(&["--list-sas"]).expect(0).out;
    assert!(seen.contains("TUNNEL-in-UDP") && !seen.contains(" 0 packets"), "{seen}");
    a.swanctl(&["--terminate", "--ike", "peer"]).expect(0);
    assert_eq!(pair.negotiated(), Vec::<Value>::new());
    assert!(!goes(&sockets));
    let routes = finish(pair.site.program(Side::A, "ip").args(["route"]), "").expect(0).out;
    assert!(!routes.contains("10.1.2.0/24"), "{routes}");
    a.stop();
    assert!(gateway.stop().success());
    assert!(!pair.socket(Side::A).exists());
}

#[test]
fn every_suite_that_both_have() {
    let suites = [
        "aes256gcm16-ecp256",
        "aes128-sha256-ecp256",
        "aes256-sha256-ecp256",
        "aes128-sha1-ecp256",
        "aes256-sha1-ecp256",
    ];
    for (suite, is_outer_v4) in suites.into_iter().zip([true, false].into_iter().cycle()) {
        let Some(pair) = Pair::new(Way { suite, is_outer_v4, ..USUAL }) else { return };
        let (_gateway, _a, b) = started(&pair);
        // This time the other side begins.
        b.initiate();
        let sockets = pair.sockets();
        eventually(suite, || goes(&sockets));
    }
}

/// What the stock one has not: extended numbers, ChaCha20-Poly1305, transport mode.
#[test]
fn two_gateways_have_each_other() {
    let suites =
        ["aes256gcm16-ecp256-esn", "chacha20poly1305-ecp256-esn", "aes256-sha256-ecp256-esn"];
    let ways = suites.into_iter().zip([(false, true), (true, false), (true, true)]);
    for (suite, (is_transport, is_outer_v4)) in ways {
        let way = Way { suite, is_outer_v4, is_ours: true, is_transport };
        let Some(pair) = Pair::new(way) else { return };
        let _other = pair.site.start(Side::B);
        let (_gateway, a, _b) = started(&pair);
        a.initiate();
        let sockets = pair.sockets();
        eventually(suite, || goes(&sockets));
        let (sent, lost) = traffic(&sockets, || a.rekey_child());
        assert!(lost.is_empty(), "{suite}: {lost:?} of {sent} packets");
        let seen = a.swanctl(&["--list-sas"]).expect(0).out;
        assert_eq!(seen.contains("TRANSPORT"), is_transport, "{seen}");
        assert!(seen.contains("/ESN"), "{seen}");
        for side in [Side::A, Side::B] {
            assert_eq!(pair.site.dropped(side, "in", "icv"), 0);
        }
    }
}

#[test]
fn charon_is_killed_and_started_again() {
    let Some(pair) = Pair::new(USUAL) else { return };
    let (_gateway, a, _b) = started(&pair);
    a.initiate();
    let sockets = pair.sockets();
    eventually("packets go", || goes(&sockets));
    let before = pair.negotiated();
    assert_eq!(before.len(), 2);
    a.kill();
    let (sent, lost) = traffic(&sockets, || thread::sleep(Duration::from_millis(300)));
    assert!(lost.is_empty(), "{lost:?} of {sent} packets without charon");
    assert_eq!(pair.spis("out").len(), 1);
    let a = pair.charon(Side::A);
    // It deletes what the other one has left.
    assert_eq!(pair.negotiated(), Vec::<Value>::new());
    a.initiate();
    eventually("packets go", || goes(&sockets));
    assert_ne!(pair.spis("out")[0], before[0]["spi"].as_str().unwrap());
}

#[test]
fn the_gateway_is_killed_and_started_again() {
    let Some(pair) = Pair::new(USUAL) else { return };
    let (gateway, a, _b) = started(&pair);
    a.initiate();
    let sockets = pair.sockets();
    eventually("packets go", || goes(&sockets));
    gateway.kill();
    let _gateway = pair.site.start(Side::A);
    eventually("charon makes new SAs", || goes(&sockets));
    assert!(a.log().contains("the gateway is a new one"), "{}", a.log());
}

#[test]
fn the_gateway_reports_limits_and_packets_without_an_association() {
    let Some(mut pair) = Pair::new(USUAL) else { return };
    pair.child =
        "start_action = trap\n rekey_packets = 100\n rand_packets = 0\n life_packets = 100000";
    let (_gateway, a, _b) = started(&pair);
    assert_eq!(pair.negotiated(), Vec::<Value>::new());
    let sockets = pair.sockets();
    eventually("a packet makes charon negotiate", || goes(&sockets));
    assert!(a.log().contains("creating acquire job"), "{}", a.log());
    assert!(pair.site.dropped(Side::A, "out", "ike") >= 1);
    // The limit is reached again and again.
    let before = pair.spis("out");
    let (sent, lost) = traffic(&sockets, || {
        eventually("a soft limit makes charon rekey", || {
            let out = pair.spis("out");
            !out.is_empty() && out.iter().all(|spi| !before.contains(spi))
        });
    });
    assert!(lost.is_empty(), "{lost:?} of {sent} packets");
    assert!(a.log().contains("creating rekey job"), "{}", a.log());
}

#[test]
fn others_cannot_have_the_gateway() {
    let Some(pair) = Pair::new(USUAL) else { return };
    let gateway = pair.site.start(Side::A);
    let mode = fs::metadata(pair.socket(Side::A)).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    let _a = pair.charon(Side::A);
    let said = |message: &[u8]| said(&pair.socket(Side::A), message);
    // A hello of version 1 for requests, of another instance.
    let hello = |version: u8| {
        [&[1, 0, 0, 0, 0, 0, 0, 1, 0, version, 0, 0, 0, 0, 0, 0][..], &[9; 8]].concat()
    };
    let refused = said(&hello(1));
    assert!(refused.is_some_and(|it| it.ends_with(b"another charon has the gateway")));
    let refused = said(&hello(2));
    assert!(refused.is_some_and(|it| String::from_utf8_lossy(&it).contains("version 2")));
    // What is no message ends the connection.
    assert_eq!(said(&[7; 40]), None);
    assert_eq!(said(&[0; 3]), None);
    assert!(gateway.stop().success());
}

/// Says one message to the gateway, and returns its answer, if there is one.
fn said(path: &Path, message: &[u8]) -> Option<Vec<u8>> {
    use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
    let socket = net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    net::send(&socket, message, net::SendFlags::NOSIGNAL).unwrap();
    let mut buffer = [0; 512];
    let (_, bytes) = net::recv(&socket, buffer.as_mut_slice(), net::RecvFlags::empty()).ok()?;
    (bytes > 0).then(|| buffer[..bytes].to_vec())
}
