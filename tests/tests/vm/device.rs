//! `keyway cryptod --vhost-user`: what Debian's kernel does with the device, and what ends it and the others.

use keyway_ring::Socket;
use keyway_ring::control::{Answer, Ask, ClientStatus};
use keyway_tests::cryptod::{Cryptod, eventually};
use keyway_tests::ring_client::Client;
use keyway_tests::vm::{Image, Job, Vm};
use keyway_tests::{available, finish};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

/// A daemon with a device for each of these machines.
struct Site {
    cryptod: Option<Cryptod>,
    folder: Arc<TempDir>,
    flags: Vec<String>,
}

impl Site {
    fn new(names: &[&str]) -> Site {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let device = |name: &&str| format!("{}={}", full(name), folder.path().join(name).display());
        let flags = names.iter().flat_map(|name| ["--vhost-user".to_owned(), device(name)]);
        let mut site = Site { cryptod: None, flags: flags.collect(), folder };
        site.start(&[]);
        site
    }

    fn start(&mut self, more: &[&str]) {
        let flags = self.flags.iter().map(String::as_str).chain(more.iter().copied());
        let flags: Vec<&str> = flags.collect();
        self.cryptod = Some(Cryptod::start_on(&self.folder, &flags));
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A guest with its device, whose driver is not loaded.
    fn boot(&self, image: &Image, name: &str) -> Vm {
        let socket = format!("socket,id=socket,path={}", self.socket(name).display());
        let crypto = "cryptodev-vhost-user,id=crypto,chardev=socket";
        // QEMU 7.2 without KVM has no interrupt vectors for it.
        let device = "virtio-crypto-pci,id=device,cryptodev=crypto,bus=rp0,vectors=0";
        Vm::boot(image, &["-chardev", &socket, "-object", crypto, "-device", device])
    }

    /// Takes the device out, and plugs it again.
    fn plug_again(&self, vm: &Vm, name: &str) {
        vm.qmp("device_del", &json!({ "id": "device" }));
        vm.event("DEVICE_DELETED", |data| data["device"] == "device");
        vm.qmp("object-del", &json!({ "id": "crypto" }));
        vm.qmp("chardev-remove", &json!({ "id": "socket" }));
        let address = json!({ "type": "unix", "data": { "path": self.socket(name) } });
        let backend = json!({ "type": "socket", "data": { "addr": address, "server": false } });
        vm.qmp("chardev-add", &json!({ "id": "socket", "backend": backend }));
        let crypto =
            json!({ "qom-type": "cryptodev-vhost-user", "id": "crypto", "chardev": "socket" });
        vm.qmp("object-add", &crypto);
        let mut device = json!({ "driver": "virtio-crypto-pci", "id": "device" });
        for (name, value) in
            [("cryptodev", "crypto".into()), ("bus", "rp0".into()), ("vectors", json!(0))]
        {
            device[name] = value;
        }
        vm.qmp("device_add", &device);
    }

    /// How a machine is as a client.
    fn row(&self, name: &str) -> Option<ClientStatus> {
        let client = Client::new(self.cryptod.as_ref().unwrap().socket());
        let Answer::Status(status) = client.ask(&Ask::Status) else { panic!("no status") };
        let name = format!("vm:{}", full(name));
        status.clients.into_iter().find(|row| row.name.split(' ').next() == Some(&name))
    }

    /// Requests of a machine that this daemon has done for its device as it is.
    fn requests(&self, name: &str) -> u64 {
        self.row(name).map_or(0, |row| row.requests)
    }

    /// Waits until more requests of a machine are done.
    #[track_caller]
    fn goes_on(&self, name: &str) {
        let before = self.requests(name);
        eventually("a guest is served", || self.requests(name) > before + 50);
    }
}

/// A name that no machine of another run has. Each test has names of its own.
fn full(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// The processes of a machine: its keeper, or its device.
fn processes(role: &str, name: &str) -> Vec<Pid> {
    let words = ["keyway", "cryptod", role, &full(name)].join("\0");
    let folders = fs::read_dir("/proc").unwrap().flatten();
    let pid = |name: &str| Pid::from_raw(name.parse().ok()?);
    let is_one = |folder: &Path| {
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        line.strip_prefix(words.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    };
    let found = folders.filter(|folder| is_one(&folder.path()));
    found.filter_map(|folder| pid(folder.file_name().to_str()?)).collect()
}

const KEEPER: &str = "--vhost-user-keeper";
const DEVICE: &str = "--vhost-user-device";

/// The process of a machine's device.
fn device(name: &str) -> Pid {
    let mut device = None;
    eventually("the device runs", || {
        device = processes(DEVICE, name).first().copied();
        device.is_some()
    });
    device.unwrap()
}

/// What `af_alg.c` is to encrypt, in the guest's root folder: lengths in bytes.
const TEXTS: [usize; 4] = [16, 1024, 4096, 65536];
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c762e7160f38b4da56a784d9045190cfe";
const IV: &str = "000102030405060708090a0b0c0d0e0f";

/// A guest with programs for that, and what OpenSSL makes of the texts.
fn image() -> Option<Image> {
    let image = Image::build()?;
    if !available(&["cc", "openssl", "ip"]) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vm/af_alg.c");
    let mut compile = Command::new("cc");
    compile.args(["-static", "-O2", "-Wall", "-Wextra", source, "-o"]).arg(path("af_alg"));
    finish(&mut compile, "").expect(0);
    let ip = finish(Command::new("sh").args(["-c", "command -v ip"]), "").expect(0).out;
    let modules = [
        "virtio_crypto",
        "algif_skcipher",
        "xfrm_user",
        "esp4",
        "veth",
        "echainiv",
        "authenc",
        "drbg",
        "hmac",
        "sha256_generic",
        "sha512_generic",
        "jitterentropy_rng",
        "ctr",
    ];
    let mut image = modules.iter().fold(image, |image, module| image.module(module));
    image = image.program_at(Path::new(ip.trim()), "/usr/bin/ip");
    image = image.file("/root/af_alg", &fs::read(path("af_alg")).unwrap(), 0o755);
    for bytes in TEXTS {
        let text: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        fs::write(path("text"), &text).unwrap();
        image = image.file(&format!("/root/{bytes}"), &text, 0o644);
        for bits in [128, 192, 256] {
            let cipher = format!("-aes-{bits}-cbc");
            let mut encrypt = Command::new("openssl");
            encrypt.args(["enc", &cipher, "-nopad", "-K", &KEY[..bits / 4], "-iv", IV]);
            encrypt.arg("-in").arg(path("text")).arg("-out").arg(path("encrypted"));
            finish(&mut encrypt, "").expect(0);
            let encrypted = fs::read(path("encrypted")).unwrap();
            image = image.file(&format!("/root/{bytes}.{bits}"), &encrypted, 0o644);
        }
    }
    Some(image.image())
}

/// Loads the driver, and waits until the kernel's own tests of it have passed.
const LOAD: &str = r#"
    modprobe virtio_crypto || exit
    for second in $(seq 100); do
        grep -A6 '^driver *: virtio_crypto_aes_cbc$' /proc/crypto | grep -q '^selftest *: passed$' && exit
        usleep 100000
    done
    cat /proc/crypto
    exit 1
"#;

/// All texts, there and back, with keys of each length.
fn check(vm: &Vm) {
    let (long, middle, short) = (KEY, &KEY[..48], &KEY[..32]);
    let script = format!(
        r#"
        set -e
        cd /root
        for text in {TEXTS}; do
            for key in {short} {middle} {long}; do
                encrypted=$text.$((${{#key}} * 4))
                ./af_alg encrypt $key {IV} <$text >/tmp/out
                cmp /tmp/out $encrypted
                ./af_alg decrypt $key {IV} <$encrypted >/tmp/out
                cmp /tmp/out $text
            done
        done
        "#,
        TEXTS = TEXTS.map(|bytes| bytes.to_string()).join(" "),
    );
    vm.run(&script).expect(0);
}

/// Has two processes of the guest use the device, until [`end_load`].
fn load(vm: &Vm) -> Job {
    vm.start("rm -f /tmp/end; /root/af_alg load /tmp/end & /root/af_alg load /tmp/end && wait $!")
}

fn end_load(vm: &Vm, job: &Job) {
    vm.run("touch /tmp/end").expect(0);
    assert!(vm.wait(job).expect(0).out.lines().all(|rounds| rounds != "0"));
}

/// Two network namespaces, and between them IPsec (RFC 4303, transport mode): for the last number of each address.
const ESP: &str = r#"
    set -e
    # Not that of busybox.
    ip() { /usr/bin/ip "$@"; }
    mkdir -p /run/netns
    ip netns add n1
    ip netns add n2
    ip link add v1 netns n1 type veth peer name v2 netns n2
    for own in 1 2; do
        ip -n n$own addr add 10.0.0.$own/24 dev v$own
        ip -n n$own link set v$own up
        for from in 1 2; do
            ends="src 10.0.0.$from dst 10.0.0.$((3 - from))"
            ip -n n$own xfrm state add $ends proto esp spi $from mode transport \
                auth-trunc 'hmac(sha256)' 0x$(printf %064d $from) 128 enc 'cbc(aes)' 0x$(printf %032d $from)
            direction=in
            [ $from = $own ] && direction=out
            ip -n n$own xfrm policy add $ends dir $direction tmpl $ends proto esp mode transport
        done
    done
    # The first one may wait for the kernel's modules.
    ip netns exec n1 ping -c 1 -W 60 10.0.0.2
    ip netns exec n1 ping -c 20 -i 0.1 -W 60 -s 1000 10.0.0.2
    ip -n n2 -s xfrm state
    ip netns del n1
    ip netns del n2
"#;

#[test]
fn a_kernel_has_its_aes_done_by_the_device() {
    let Some(image) = image() else { return };
    let mut site = Site::new(&["alone"]);
    let vm = site.boot(&image, "alone");
    vm.run(LOAD).expect(0);
    let tests = site.requests("alone");
    assert!(tests > 0);
    check(&vm);
    let checks = site.requests("alone");
    assert!(checks >= tests + 24, "{tests}, {checks}");
    let esp = vm.run(ESP).expect(0).out;
    assert!(esp.contains("20 packets transmitted, 20 packets received, 0% packet loss"), "{esp}");
    // Each packet is encrypted and decrypted, and so is its answer.
    let packets = site.requests("alone") - checks;
    assert!(packets >= 80, "{packets}: {esp}");
    for _ in 0..3 {
        // The kernel lets go of namespaces in its own time.
        vm.run(
            "until rmmod virtio_crypto; do usleep 10000; done; ! grep virtio_crypto /proc/crypto",
        )
        .expect(0);
        eventually("its sessions are closed", || {
            site.row("alone").is_some_and(|it| it.sessions == 0)
        });
        vm.run(LOAD).expect(0);
        check(&vm);
    }
    // A daemon takes over while it is used.
    let (its, job) = (device("alone"), load(&vm));
    for _ in 0..3 {
        site.goes_on("alone");
        let old = site.cryptod.take();
        site.start(&["--take-over"]);
        drop(old);
    }
    site.goes_on("alone");
    end_load(&vm, &job);
    assert_eq!(device("alone"), its);
    check(&vm);
}

#[test]
fn what_ends_a_machine_or_its_device_ends_no_other() {
    let Some(image) = image() else { return };
    let mut site = Site::new(&["web", "db"]);
    let (web, db) = thread::scope(|scope| {
        let web = scope.spawn(|| site.boot(&image, "web"));
        let db = site.boot(&image, "db");
        (web.join().unwrap(), db)
    });
    for vm in [&web, &db] {
        vm.run(LOAD).expect(0);
    }
    let (its, others, other) = (load(&web), load(&db), device("db"));
    for name in ["web", "db"] {
        site.goes_on(name);
    }

    // QEMU is killed.
    drop((its, web));
    site.goes_on("db");
    eventually("the dead guest's sessions are closed", || {
        site.row("web").is_some_and(|it| it.sessions == 0)
    });
    let web = site.boot(&image, "web");
    web.run(LOAD).expect(0);
    check(&web);

    // The device is killed.
    let its = load(&web);
    site.goes_on("web");
    let killed = device("web");
    kill_process(killed, Signal::KILL).unwrap();
    site.goes_on("db");
    is_started_again("web", killed);
    drop((its, web));
    let web = site.boot(&image, "web");
    web.run(LOAD).expect(0);
    check(&web);

    site.goes_on("db");
    assert_eq!(device("db"), other);
    end_load(&db, &others);

    // The daemon is killed.
    site.cryptod.as_ref().unwrap().signal(Signal::KILL);
    for name in ["web", "db"] {
        for role in [KEEPER, DEVICE] {
            eventually("all ends", || processes(role, name).is_empty());
        }
    }
    site.cryptod = None;
    site.start(&[]);
    drop(web);
    let web = site.boot(&image, "web");
    web.run(LOAD).expect(0);
    // One that has lived on gets its device again without a restart.
    site.plug_again(&db, "db");
    db.run(LOAD).expect(0);
    for vm in [&web, &db] {
        check(vm);
    }
}

#[track_caller]
fn is_started_again(name: &str, before: Pid) {
    eventually("the device is started again", || {
        processes(DEVICE, name).first().is_some_and(|it| *it != before)
    });
}

#[test]
fn a_hypervisor_that_cuts_its_memory_ends_its_own_device() {
    let site = Site::new(&["cut", "whole"]);
    let (mut cut, mut whole) =
        (FrontEnd::new(&site.socket("cut")), FrontEnd::new(&site.socket("whole")));
    let (killed, other) = (device("cut"), device("whole"));
    ftruncate(&cut.memory, 0).unwrap();
    cut.kick();
    is_started_again("cut", killed);
    assert!(!cut.answers());
    whole.kick();
    assert!(whole.answers());
    assert_eq!(device("whole"), other);
    assert!(FrontEnd::new(&site.socket("cut")).answers());
}

/// What a hypervisor is to the device, with a ring in which is nothing.
struct FrontEnd {
    stream: UnixStream,
    socket: Socket,
    /// The guest's memory.
    memory: OwnedFd,
    /// The event that notifies of requests.
    kick: OwnedFd,
}

impl FrontEnd {
    fn new(path: &Path) -> FrontEnd {
        const USER: u64 = 0x7000_0000_0000;
        const BYTES: u64 = 1 << 20;
        let stream = UnixStream::connect(path).unwrap();
        let socket = Socket::from_fd(stream.try_clone().unwrap().into());
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, BYTES).unwrap();
        let kick = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let mut its = FrontEnd { stream, socket, memory, kick };
        // SET_MEM_TABLE of one region, SET_VRING_NUM, SET_VRING_ADDR and SET_VRING_KICK of ring 0.
        its.send(5, &[1, 0, BYTES, USER, 0], &[its.memory.as_fd()]).unwrap();
        its.send(8, &[16 << 32], &[]).unwrap();
        its.send(9, &[0, USER + 0x1000, USER + 0x3000, USER + 0x2000, 0], &[]).unwrap();
        its.send(12, &[0], &[its.kick.as_fd()]).unwrap();
        assert!(its.answers());
        its
    }

    fn send(&self, request: u32, numbers: &[u64], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let header = [request, 1, 8 * numbers.len() as u32];
        let header = header.into_iter().flat_map(u32::to_le_bytes);
        let payload = numbers.iter().flat_map(|number| number.to_le_bytes());
        self.socket.send(&header.chain(payload).collect::<Vec<u8>>(), files)
    }

    /// Whether the device answers GET_FEATURES, and so has done all before that.
    fn answers(&mut self) -> bool {
        self.send(1, &[], &[]).is_ok() && self.stream.read_exact(&mut [0; 20]).is_ok()
    }

    /// Has the device look at the ring.
    fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
    }
}
