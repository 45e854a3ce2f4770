//! `keyway cryptod --vm`, to a hypervisor without a guest: clients in the memory of a virtual machine.

use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Algorithm, Demand, Engine, Error, Key, Parameters, Session};
use keyway_ring::mailbox::MAILBOX_BYTES;
use keyway_tests::cryptod::{Neighbour, eventually};
use keyway_tests::hypervisor::Hypervisor;
use keyway_tests::machines::Site;
use keyway_tests::{finish, keyway};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A process of the machine.
fn process(machine: &Hypervisor) -> (Engine, Remote) {
    let engine = keyway_drivers::engine();
    let options = RemoteOptions::new(machine.device(), "test");
    let remote = Remote::connect(&engine, options).expect("the machine's daemon");
    (engine, remote)
}

fn named(engine: &Engine, name: &str) -> Result<Session, Error> {
    engine.session(Parameters::new(Algorithm::EcdsaP256Sha256, Key::Named(name)))
}

fn sign(session: &Session) -> Result<Vec<u8>, Error> {
    session.sign(b"message")
}

#[test]
fn a_machine_uses_the_keys_that_it_is_allowed_and_no_others() {
    let site = Site::new(&["web", "db"], &[]);
    for (name, caller) in [("web", "vm:web"), ("own", "everybody"), ("root", "user:root")] {
        site.key(&["generate", name, "--algorithm", "ecdsa-p256-sha-256", "--for", caller]);
    }
    let (web, db) = (site.machine("web"), site.machine("db"));
    let (engine, remote) = process(&web);
    let session = named(&engine, "web").unwrap();
    for _ in 0..100 {
        sign(&session).unwrap();
    }
    // What is for all users is for those of the host.
    assert!(named(&engine, "own").is_err() && named(&engine, "root").is_err());
    let (other, _its) = process(&db);
    assert!(named(&other, "web").is_err());
    let refused = site.audit();
    let refused: Vec<_> = refused.iter().filter(|line| line["vm"] == "db").collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!((&refused[0]["key"], &refused[0]["executable"]), (&"web".into(), &Value::Null));
    // The machine is one row.
    let row = site.row("web").unwrap();
    assert!(row.requests >= 100 && row.keys == 1 && row.process == std::process::id(), "{row:?}");
    // No process of the host passes for it.
    let options = RemoteOptions::new(site.cryptod().socket(), "vm:web");
    let posing = Remote::connect(&keyway_drivers::engine(), options);
    assert!(posing.is_err_and(|why| why.to_string().contains("that of a virtual machine")));
    // A grant that is taken back ends the session.
    site.key(&["forbid", "web", "--for", "vm:web"]);
    assert!(sign(&session).is_err());
    site.key(&["allow", "web", "--for", "vm:web"]);
    assert!(remote.wait(Duration::from_secs(60)));
    sign(&named(&engine, "web").unwrap()).unwrap();
    assert!(site.key(&["list"]).contains("vm web"));
}

#[test]
fn the_program_itself_works_in_a_machine() {
    let site = Site::new(&["web"], &[]);
    site.key(&["generate", "web", "--algorithm", "ec-p256", "--for", "vm:web"]);
    let machine = site.machine("web");
    fs::write(site.socket("text"), "a text").unwrap();
    let inside = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        command.arg("key").args(arguments).arg("--socket").arg(machine.device());
        finish(command.current_dir(site.folder.path()), "")
    };
    inside(&["sign", "web", "text", "-o", "signature"]).expect(0);
    inside(&["verify", "web", "text", "--signature", "signature"]).expect(0);
    let refused = inside(&["generate", "other", "--algorithm", "ec-p256"]).err;
    assert!(
        refused.contains("a virtual machine uses keys, and does not look after them"),
        "{refused}"
    );
}

#[test]
fn processes_come_and_go_and_leave_nothing() {
    let site = Site::new(&["web"], &[]);
    let machine = site.machine("web");
    for _ in 0..150 {
        let (engine, _remote) = process(&machine);
        let session = engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16])));
        drop(session.unwrap());
    }
    site.is_empty("web");
    // As many as there are places at a time.
    let mut all: Vec<_> = (0..64).map(|_| process(&machine)).collect();
    let engine = keyway_drivers::engine();
    let one_more = Remote::connect(&engine, RemoteOptions::new(machine.device(), "more"));
    assert!(one_more.is_err_and(|why| why.to_string().contains("as many processes")));
    all.pop();
    drop(process(&machine));
    drop(all);
    site.is_empty("web");
}

/// The other half of the test below: a process that is killed while it has something.
#[test]
fn a_process_that_waits() {
    let Some(device) = std::env::var_os("KEYWAY_TEST_DEVICE") else { return };
    let engine = keyway_drivers::engine();
    let _remote = Remote::connect(&engine, RemoteOptions::new(device, "killed")).unwrap();
    let parameters = Parameters::new(Algorithm::EcdsaP256Sha256, Key::Named("web"));
    let session = engine.session(parameters).unwrap();
    loop {
        sign(&session).unwrap();
    }
}

#[test]
fn what_a_killed_process_had_comes_back() {
    let site = Site::new(&["web"], &[]);
    site.key(&["generate", "web", "--algorithm", "ecdsa-p256-sha-256", "--for", "vm:web"]);
    let machine = site.machine("web");
    for _ in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_process_that_waits"])
            .env("KEYWAY_TEST_DEVICE", machine.device())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let before = site.row("web").map_or(0, |row| row.requests);
        eventually("it signs", || site.row("web").is_some_and(|row| row.requests > before + 10));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(site.row("web").unwrap().sessions == 1);
    }
    // The next one gives back what is left.
    drop(process(&machine));
    site.is_empty("web");
}

#[test]
fn another_daemon_takes_over_while_machines_sign() {
    let mut site = Site::new(&["web", "idle"], &[]);
    site.key(&["generate", "web", "--algorithm", "ecdsa-p256-sha-256", "--for", "vm:web"]);
    let machine = site.machine("web");
    let (done, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let (engine, _remote) = process(&machine);
                let session = named(&engine, "web").unwrap();
                while !over.load(Ordering::Relaxed) {
                    sign(&session).unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..5 {
            let before = done.load(Ordering::Relaxed);
            eventually("signatures", || done.load(Ordering::Relaxed) > before + 30);
            let old = site.cryptod.take();
            site.start(&["--take-over"]);
            drop(old);
        }
        let before = done.load(Ordering::Relaxed);
        eventually("signatures", || done.load(Ordering::Relaxed) > before + 30);
        over.store(true, Ordering::Relaxed);
    });
    assert!(!machine.is_left());
    site.is_empty("web");
    // One that comes only now is let in as before.
    let idle = site.machine("idle");
    drop(process(&idle));
    // A process that comes back after the daemon has gone finds the next one.
    let (engine, remote) = process(&machine);
    let session = named(&engine, "web").unwrap();
    sign(&session).unwrap();
    site.cryptod.take().unwrap().signal(rustix::process::Signal::KILL);
    site.start(&[]);
    let machine = machine.move_to(&site.socket("web"));
    eventually("the next daemon signs", || sign(&session).is_ok());
    drop((remote, machine));
}

#[test]
fn a_machine_that_writes_anything_anywhere_hurts_itself_only() {
    let site = Site::new(&["wild", "web"], &[]);
    let tame = site.machine("web");
    let (engine, _remote) = process(&tame);
    let session = engine.session(Parameters::new(Algorithm::Sha256, Key::None));
    drop(session);
    let all = Neighbour::all(site.cryptod());
    let mut random = 0x1234_5678_9abc_def1_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for round in 0..6 {
        let machine = site.machine("wild");
        let process = (round % 2 == 0).then(|| process(&machine));
        let session = process.as_ref().map(|(engine, _)| {
            engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16])))
        });
        let registers = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(machine.device().join("resource0"))
            .unwrap();
        let registers = keyway_ring::SharedMemory::of_device(&registers.into(), 4096).unwrap();
        for _ in 0..20_000 {
            // Words of the mailbox, of rings and regions; and bells that there are, and that there are not.
            let at = match next() % 3 {
                0 => next() as usize % 64 * 69_632 + 4096,
                1 => next() as usize % MAILBOX_BYTES,
                _ => MAILBOX_BYTES + next() as usize % (4 << 20),
            };
            let word = match next() % 4 {
                0 => u64::MAX,
                1 => next() % 70_000,
                _ => next(),
            };
            let _ = machine.memory.write(at & !7, &word.to_le_bytes());
            let peer = next() as u32 % 70;
            registers.flag(12).unwrap().store(peer << 16, Ordering::Release);
        }
        drop((session, process));
        drop(machine);
        all.iter().for_each(Neighbour::goes_on);
    }
    eventually("it is gone", || site.row("wild").is_none());
    drop(process(&site.machine("wild")));
    let (engine, _again) = process(&tame);
    engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]))).unwrap();
}

#[test]
fn a_machine_has_one_hypervisor_and_one_clients_share() {
    let site = Site::new(&["web"], &["--limit", "sessions-of-user=8"]);
    let machine = site.machine("web");
    assert!(Hypervisor::try_connect(&site.socket("web")).is_err());
    let (engine, remote) = process(&machine);
    let open = || {
        engine.session(
            Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]))
                .on(Demand::Named("remote")),
        )
    };
    let sessions: Vec<_> = (0..8).map(|_| open().unwrap()).collect();
    // Another process of the machine has the same share.
    let (other, _its) = process(&machine);
    let parameters =
        Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16])).on(Demand::Named("remote"));
    assert!(other.session(parameters).is_err());
    drop(sessions);
    eventually("there is room again", || open().is_ok());
    // The machine's memory is 256 MiB: a buffer that the daemon has no room for is an ordinary one.
    let before = site.row("web").unwrap().region_bytes;
    let buffers = [1, 300, 1].map(|mib| remote.buffer(mib << 20).unwrap());
    let after = site.row("web").unwrap().region_bytes;
    assert!(after >= before + (1 << 20) && after < 32 << 20, "{before} {after}");
    drop(buffers);
    Neighbour::all(site.cryptod());
    assert!(site.cryptod.unwrap().stop().success());
    eventually("the machine is left", || machine.is_left());
}
