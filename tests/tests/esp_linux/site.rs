//! `keyway esp up` in a namespace, a guest, and the wire between them.

use crate::cases::{self, Case, Family, Side};
use crate::frames::{Frame, Kind};
use crate::probe::{Asks, Probe};
use crate::{machine, tap};
use keyway_tests::cryptod::eventually;
use keyway_tests::link::{End, Link};
use keyway_tests::namespace::Namespace;
use keyway_tests::vm::UserModeLinux;
use keyway_tests::{finish, keyway, secret};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

/// The gateway's device outside, and its end of the wire.
pub const OUTSIDE: &str = "eth0";
/// Its device inside.
pub const INSIDE: &str = "esp0";
pub const GATEWAY: End = End::Left;
pub const GUEST: End = End::Right;
/// Of the gateway's device inside. With it and ESP around it no packet of the tests is longer than the wire takes.
pub const INSIDE_MTU: u32 = 1500;

pub struct Site {
    // Fields are dropped in this order.
    pub gateway: Option<Gateway>,
    pub link: Arc<Link>,
    pub guest: UserModeLinux,
    pub namespace: Namespace,
    pub folder: TempDir,
    pub cases: Vec<Case>,
}

/// Packets, by direction and cause.
pub type Drops = BTreeMap<String, u64>;

/// A running `keyway esp up`. Killed when it is dropped.
pub struct Gateway {
    child: Child,
}

impl Site {
    /// Starts all with these cases; `None`, which is said, where something is missing.
    pub fn new(cases: Vec<Case>) -> Option<Site> {
        let mut site = Site::bare(cases)?;
        site.configure(Some(INSIDE_MTU));
        site.start();
        Some(site)
    }

    /// Starts all but the gateway.
    pub fn bare(cases: Vec<Case>) -> Option<Site> {
        let image = machine::image(&cases)?;
        let namespace = Namespace::new()?;
        let device = namespace.within(|| tap::open_device(OUTSIDE)).unwrap();
        namespace.ip(&format!("link set {OUTSIDE} address {}", Side::Gateway.ethernet()));
        namespace.ip(&cases::network(Side::Gateway, OUTSIDE, UserModeLinux::MTU));
        namespace.ip(&cases::far(OUTSIDE));
        let (guest, network) = machine::boot(&image, Side::Guest);
        let link = Arc::new(Link::new(device, network));
        let folder = tempfile::tempdir().unwrap();
        Some(Site { gateway: None, link, guest, namespace, folder, cases })
    }

    /// Writes the configuration, with this MTU of the gateway's device or without one.
    pub fn configure(&self, mtu: Option<u32>) {
        let (v4, v6) = (cases::gateway_inside(Family::V4), cases::gateway_inside(Family::V6));
        let mtu = mtu.map_or(String::new(), |mtu| format!("mtu = {mtu}\n"));
        let mut text = format!(
            "[device]\nname = \"{INSIDE}\"\naddresses = [\"{v4}/32\", \"{v6}/128\"]\n{mtu}\
             [outside]\nlisten = \"[::]:4500\"\nesp = true\ninterface = \"{OUTSIDE}\"\n"
        );
        text.extend(self.cases.iter().map(Case::gateway));
        secret(&self.configuration(), &text);
    }

    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("esp.toml")
    }

    /// Starts the gateway, and waits until it says that it is ready.
    pub fn start(&mut self) {
        let mut command = self.namespace.command(keyway().to_str().unwrap());
        command.args(["esp", "up"]).arg(self.configuration()).arg("--json");
        command.arg("--state").arg(self.folder.path().join("state"));
        command.arg("--control").arg(self.control());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_ready = |line: &str| {
            serde_json::from_str(line).is_ok_and(|line: Value| line["event"] == "ready")
        };
        let mut said = Vec::new();
        while !said.last().is_some_and(|line: &String| is_ready(line)) {
            match lines.next() {
                Some(line) => said.push(line.unwrap()),
                None => {
                    let (status, said) = (child.wait().unwrap(), said.join("\n"));
                    panic!("the gateway did not come up: {status}\n{said}")
                }
            }
        }
        // It would stop where nothing reads.
        thread::spawn(move || lines.for_each(drop));
        self.gateway = Some(Gateway { child });
    }

    /// Has `ip` do these lines in the guest.
    pub fn ip(&self, lines: &str) {
        self.guest.run(&format!("/usr/bin/ip -batch - <<'E'\n{lines}\nE\n")).expect(0);
    }

    fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    /// What `keyway esp` says to a running gateway's user.
    pub fn esp(&self, arguments: &[&str]) -> String {
        let mut command = self.namespace.command(keyway().to_str().unwrap());
        command.arg("esp").args(arguments).arg("--control").arg(self.control());
        finish(&mut command, "").expect(0).out
    }

    /// All that the gateway counts.
    pub fn status(&self) -> Value {
        let status = self.esp(&["status", "--json"]);
        serde_json::from_str(&status).unwrap_or_else(|why| panic!("{status}: {why}"))
    }

    /// The packets that the gateway has dropped so far, by direction and cause: `in.replay`.
    pub fn drops(&self) -> Drops {
        let status = self.status();
        let mut drops = Drops::new();
        for way in ["in", "out"] {
            let causes = status["figures"][way]["dropped"].as_object();
            for (cause, count) in causes.unwrap_or_else(|| panic!("no drops in {status}")) {
                // The system's own packets come when they like.
                if cause != "noise" {
                    let count = count["packets"].as_u64().expect("a count");
                    drops.insert(format!("{way}.{cause}"), count);
                }
            }
        }
        drops.retain(|_, count| *count > 0);
        drops
    }

    /// Those since.
    pub fn drops_since(&self, before: &Drops) -> Drops {
        let mut drops = self.drops();
        for (cause, count) in &mut drops {
            *count -= before.get(cause).copied().unwrap_or(0);
        }
        drops.retain(|_, count| *count > 0);
        drops
    }

    /// Waits until the gateway has dropped so many packets since, for these reasons.
    #[track_caller]
    pub fn has_dropped(&self, before: &Drops, wanted: &[(&str, u64)]) {
        let wanted: Drops = wanted.iter().map(|(cause, n)| ((*cause).to_owned(), *n)).collect();
        let total = |drops: &Drops| drops.values().sum::<u64>();
        eventually(&format!("{wanted:?} are dropped"), || {
            total(&self.drops_since(before)) >= total(&wanted)
        });
        assert_eq!(self.drops_since(before), wanted);
    }

    /// A probe between the insides of a case.
    pub fn probe(&self, asks: Asks, case: &Case) -> Probe {
        self.probe_from(asks, case.inside(Side::Gateway), case.inside(Side::Guest), case.number)
    }

    pub fn probe_from(&self, asks: Asks, from: IpAddr, to: IpAddr, mark: u16) -> Probe {
        self.namespace.within(|| Probe::new(asks, from, to, mark)).unwrap()
    }

    /// The case that is so.
    pub fn case(&self, is_meant: impl Fn(&Case) -> bool) -> &Case {
        self.cases.iter().find(|case| is_meant(case)).expect("a case")
    }

    /// From now on the frames with ESP packets that are for this end are kept back, and come out here.
    pub fn hold(&self, to: End) -> Receiver<Vec<u8>> {
        let (sender, held) = channel();
        self.link.rule(to, move |frame| match Frame::of(&frame).kind {
            Kind::Esp { .. } => {
                // The test may have all that it wants.
                let _ = sender.send(frame);
                Vec::new()
            }
            _ => vec![frame],
        });
        held
    }

    /// From now on notes frames in both directions that are no ESP packets of a case, and lets all pass.
    pub fn watch(&self) -> Arc<Mutex<Vec<String>>> {
        let clear: Arc<Mutex<Vec<String>>> = Arc::default();
        for end in [GATEWAY, GUEST] {
            let clear = clear.clone();
            self.link.rule(end, move |bytes| {
                if let Kind::Other { protocol } = Frame::of(&bytes).kind {
                    let line = format!("to {end:?}: protocol {protocol}: {}", cases::hex(&bytes));
                    clear.lock().unwrap().push(line);
                }
                vec![bytes]
            });
        }
        clear
    }
}

impl Gateway {
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
