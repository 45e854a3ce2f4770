//! Network namespaces, each with a thread that lives in it. A namespace goes with its thread.

use rustix::process::geteuid;
use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// A namespace. Files that were opened in it stay in it, wherever they are used.
pub struct Namespace {
    jobs: Sender<Job>,
    thread: i32,
}

/// Whether there may be namespaces and packages for them; if not, says so.
///
/// # Panics
/// If not, in CI, where nothing may be skipped.
pub fn is_possible() -> bool {
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    let why = match geteuid().is_root() {
        false => "a network namespace takes root",
        true if !has_ip => "`ip` is not installed (iproute2)",
        true => return true,
    };
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "nothing may be skipped in CI, but {why}");
    eprintln!("skipped: {why}");
    false
}

impl Namespace {
    pub fn new() -> Namespace {
        let (jobs, received) = channel::<Job>();
        let (tell, told) = channel();
        thread::spawn(move || {
            // SAFETY: only this thread's network changes: no memory, and no descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("a namespace");
            tell.send(gettid().as_raw_nonzero().get()).expect("its maker waits");
            received.iter().for_each(|job| job());
        });
        let namespace = Namespace { jobs, thread: told.recv().expect("a namespace") };
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs there; a panic goes on here.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        let job = move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            tell.send(result).expect("the caller waits");
        };
        self.jobs.send(Box::new(job)).expect("the thread lives");
        told.recv().expect("an answer").unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs `ip` there; its output.
    pub fn ip(&self, arguments: &str) -> String {
        let arguments = arguments.to_owned();
        self.run(move || {
            let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip");
            let why = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "ip {arguments}: {why}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
    }

    /// Two, with a cable, and neighbours that know each other: 10.8.0.1 and fd08::1 on `left` here, 10.8.0.2 and fd08::2 on `right` there.
    pub fn pair() -> (Namespace, Namespace) {
        let (left, right) = (Namespace::new(), Namespace::new());
        let thread = right.thread;
        let (first, second) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
        left.ip(&format!(
            "link add name left address {first} type veth peer name right address {second} netns {thread}"
        ));
        for (namespace, name, number, other, ethernet) in
            [(&left, "left", 1, 2, second), (&right, "right", 2, 1, first)]
        {
            namespace.ip(&format!("addr add 10.8.0.{number}/24 dev {name}"));
            namespace.ip(&format!("addr add fd08::{number}/64 dev {name} nodad"));
            namespace.ip(&format!("link set {name} up"));
            // While a neighbour is looked for, few packets wait.
            for address in [format!("10.8.0.{other}"), format!("fd08::{other}")] {
                namespace.ip(&format!("neigh add {address} lladdr {ethernet} dev {name}"));
            }
        }
        let receiver = right.run(|| UdpSocket::bind("10.8.0.2:5").unwrap());
        let sender = left.run(|| UdpSocket::bind("10.8.0.1:5").unwrap());
        receiver.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        // The kernel notices somewhat later that the cable is plugged; what is sent before is lost.
        while receiver.recv(&mut [0]).is_err() {
            sender.send_to(&[0], "10.8.0.2:5").unwrap();
        }
        (left, right)
    }
}
