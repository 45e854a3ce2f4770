//! tcpdump on loopback, `keyway decode` on what it captures, and tshark beside it.

use crate::{Server, available, finish, keyway};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// tcpdump on loopback, its output in a file and, as it comes, in `keyway decode -`.
pub struct Capture {
    tcpdump: Child,
    tee: Child,
    decode: Child,
    /// Read as they come: a program that waits for a reader captures nothing.
    lines: Receiver<Value>,
    file: PathBuf,
}

impl Capture {
    /// Starts all of them, on the connections of a port.
    ///
    /// # Panics
    /// If one does not start.
    pub fn start(folder: &Path, port: &str) -> Capture {
        let file = folder.join("traffic.pcap");
        let mut tcpdump = Command::new("tcpdump")
            .args(["-i", "lo", "-B", "65536", "-U", "-w", "-", "--immediate-mode", "-Z", "root"])
            .args(["tcp", "port"])
            .arg(port)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tcpdump starts");
        // Once it says so, nothing is missed.
        let mut said = BufReader::new(tcpdump.stderr.take().expect("its messages")).lines();
        assert!(said.any(|line| line.is_ok_and(|line| line.contains("listening on"))));
        let output = tcpdump.stdout.take().expect("its output");
        let mut tee = Command::new("tee")
            .arg(&file)
            .stdin(output)
            .stdout(Stdio::piped())
            .spawn()
            .expect("tee starts");
        let mut decode = Command::new(keyway())
            .args(["decode", "-", "--json", "--port", port])
            .stdin(tee.stdout.take().expect("its output"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("keyway starts");
        let output = BufReader::new(decode.stdout.take().expect("its output"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let line = serde_json::from_str(&line.expect("a line")).expect("JSON");
                // A receiver that has heard enough has gone.
                let _ = send.send(line);
            }
        });
        Capture { tcpdump, tee, decode, lines, file }
    }

    /// Ends once so many connections are closed: what was told, and the file.
    ///
    /// # Panics
    /// If one ends before.
    pub fn end(mut self, connections: usize) -> (Vec<Value>, PathBuf) {
        let mut all: Vec<Value> = Vec::new();
        let closed = |all: &[Value]| all.iter().filter(|one| one["event"] == "closed").count();
        while closed(&all) < connections {
            all.push(self.lines.recv().unwrap_or_else(|_| panic!("no more than {all:#?}")));
        }
        let pid = Pid::from_raw(self.tcpdump.id() as i32).expect("a pid");
        kill_process(pid, Signal::TERM).expect("a signal");
        self.tcpdump.wait().expect("its end");
        self.tee.wait().expect("its end");
        all.extend(self.lines);
        assert!(self.decode.wait().expect("its end").success());
        (all, self.file)
    }
}

/// The port of LDAP without TLS.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn port(server: &Server) -> &str {
    server.address().rsplit(':').next().expect("a port")
}

/// How many messages of each protocolOp there are, by tag.
pub type Messages = BTreeMap<u64, u64>;

/// Those of what `keyway decode --json` has told.
///
/// # Panics
/// If it is not that.
#[must_use]
pub fn messages_of_ours(told: &[Value]) -> Messages {
    const OPS: [(&str, u64, Option<u64>); 10] = [
        ("bind", 0, Some(1)),
        ("unbind", 2, None),
        ("search", 3, Some(5)),
        ("modify", 6, Some(7)),
        ("add", 8, Some(9)),
        ("delete", 10, Some(11)),
        ("modrdn", 12, Some(13)),
        ("compare", 14, Some(15)),
        ("abandon", 16, None),
        ("extended", 23, Some(24)),
    ];
    let mut messages = Messages::new();
    let mut count = |tag, number| *messages.entry(tag).or_default() += number;
    for operation in told.iter().filter(|one| one["event"] == "operation") {
        let name = operation["op"].as_str().expect("a name");
        let known = OPS.iter().find(|(op, ..)| *op == name).unwrap_or(&OPS[9]);
        count(known.1, 1);
        if let Some(response) = known.2.filter(|_| operation["end"] == "answered") {
            count(response, 1);
        }
        for (field, tag) in [("entries", 4), ("references", 19), ("intermediate", 25)] {
            if let Some(number) = operation[field].as_u64() {
                count(tag, number);
            }
        }
    }
    messages
}

/// Those that tshark finds.
///
/// # Panics
/// If it does not run.
#[must_use]
pub fn messages_of_tshark(file: &Path, port: &str) -> Messages {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-d", &format!("tcp.port=={port},ldap")]);
    tshark.args(["-Y", "ldap", "-T", "fields", "-e", "ldap.protocolOp"]);
    let mut messages = Messages::new();
    for tag in finish(&mut tshark, "").expect(0).out.split([',', '\n', '\t']) {
        if let Ok(tag) = tag.trim().parse() {
            *messages.entry(tag).or_default() += 1;
        }
    }
    messages
}

/// Whether loopback can be captured, and tshark is there to compare with.
#[must_use]
pub fn can_capture() -> bool {
    // Only who has the right can.
    available(&["tcpdump", "tshark", "ldapsearch"])
        && Command::new("tcpdump")
            .args(["-i", "lo", "-d"])
            .output()
            .is_ok_and(|it| it.status.success())
}

/// The records of a little-endian pcap file: the header, and each packet with its own.
fn records(file: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let (header, mut rest) = file.split_at(24);
    let mut all = Vec::new();
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_le_bytes(length.try_into().expect("four octets")) as usize;
        let (record, others) = rest.split_at(16 + length);
        all.push(record);
        rest = others;
    }
    (header, all)
}

/// The output of `keyway decode --json` for a file.
///
/// # Panics
/// If it does not run, or does not end well.
#[must_use]
pub fn told(file: &Path, port: &str) -> Vec<Value> {
    let mut command = Command::new(keyway());
    command.arg("decode").arg(file).args(["--json", "--port", port]);
    let done = finish(&mut command, "").expect(0);
    done.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Writes a capture again, without one of its packets whose records are of such a length, in the middle.
///
/// # Panics
/// If there is none.
pub fn without_a_packet(file: &Path, holed: &Path, is_meant: impl Fn(usize) -> bool) {
    let whole = std::fs::read(file).expect("the file");
    let (header, mut packets) = records(&whole);
    let meant: Vec<_> = (0..packets.len()).filter(|at| is_meant(packets[*at].len())).collect();
    packets.remove(meant[meant.len() / 2]);
    std::fs::write(holed, [header, &packets.concat()].concat()).expect("the file");
}
