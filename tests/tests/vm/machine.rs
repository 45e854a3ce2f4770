//! The machine itself, before Keyway has anything to do with it.

use keyway_tests::cryptod::eventually;
use keyway_tests::vm::{Image, UserModeLinux, Vm};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[test]
fn debian_boots_and_moves_to_another_qemu_while_commands_run() {
    let Some(image) = Image::build() else { return };
    let image = image
        .module("virtio_crypto")
        .program(Path::new("/usr/bin/env"))
        .file("/etc/secret", b"a word that is nowhere else", 0o600)
        .image();
    let vm = Vm::boot(&image, &[]);
    assert!(vm.run("uname -r").expect(0).out.trim().ends_with("-amd64"));
    let failed = vm.run("echo to one; echo to the other >&2; exit 3").expect(3);
    assert_eq!((&*failed.out, &*failed.err), ("to one\n", "to the other\n"));
    // Programs of this machine, with their libraries, and modules.
    assert_eq!(vm.run("/usr/bin/env -i A=b /usr/bin/env").expect(0).out, "A=b\n");
    vm.run("modprobe virtio_crypto && grep -q ^crypto_engine /proc/modules").expect(0);
    // Several commands at once, and more output than any buffer has.
    vm.run("mkfifo /tmp/a /tmp/b").expect(0);
    let long = vm.start("read line </tmp/a; seq 100000; echo $line");
    vm.run("echo hello >/tmp/a").expect(0);
    let long = vm.wait(&long).expect(0).out;
    assert_eq!((long.lines().count(), long.lines().last()), (100_001, Some("hello")));
    assert!(vm.remembers(b"a word that is nowhere else"));
    assert!(!vm.remembers(b"a word that is not there at all"));
    let waiting = vm.start("cat /tmp/b");
    let vm = vm.migrate(&[]);
    vm.run("echo it goes on >/tmp/b").expect(0);
    assert_eq!(vm.wait(&waiting).expect(0).out, "it goes on\n");
}

#[test]
fn devices_come_and_go() {
    let Some(image) = Image::build() else { return };
    let vm = Vm::boot(&image.image(), &[]);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    vm.plug("port", &socket, "virtserialport", "serial.0", &json!({ "name": "another" }));
    let mut lines = BufReader::new(listener.accept().unwrap().0).lines();
    let write = r#"
        until port=$(grep -lx another /sys/class/virtio-ports/*/name); do usleep 10000; done
        echo from the guest >/dev/$(basename ${port%/name})
    "#;
    vm.run(write).expect(0);
    assert_eq!(lines.next().unwrap().unwrap(), "from the guest");
    vm.unplug("port");
    assert!(lines.next().is_none());
    // In a root port the guest has a say.
    let find = "grep -l 0x1110 /sys/bus/pci/devices/*/device";
    vm.run(find).expect(1);
    let refused = vm.try_qmp("device_add", &json!({ "driver": "ivshmem-plain", "bus": "rp0" }));
    assert!(refused.unwrap_err().contains("memdev"));
    for round in ["first", "second"] {
        let memory = json!({ "qom-type": "memory-backend-memfd", "id": round, "size": 64 << 20, "share": true });
        vm.qmp("object-add", &memory);
        vm.qmp(
            "device_add",
            &json!({ "driver": "ivshmem-plain", "id": "device", "memdev": round, "bus": "rp0" }),
        );
        let found = vm.run(&format!("until {find}; do usleep 10000; done")).expect(0).out;
        let device = found.trim().strip_suffix("/device").unwrap();
        assert_eq!(vm.run(&format!("stat -c %s {device}/resource2")).expect(0).out, "67108864\n");
        vm.qmp("device_del", &json!({ "id": "device" }));
        vm.event("DEVICE_DELETED", |data| data["device"] == "device");
        vm.run(find).expect(1);
        vm.qmp("object-del", &json!({ "id": round }));
    }
}

#[test]
fn a_machine_that_fails_says_why() {
    let Some(image) = Image::build() else { return };
    let image = image.image();
    let why = |fails: &dyn Fn()| {
        let failed = catch_unwind(AssertUnwindSafe(fails)).unwrap_err();
        failed.downcast_ref::<String>().unwrap().clone()
    };
    let said = why(&|| drop(Vm::boot(&image, &["-device", "none-such"])));
    assert!(said.contains("'none-such' is not a valid device model name"), "{said}");
    let vm = Vm::boot(&image, &[]);
    let said = why(&|| drop(vm.run("echo last words >/dev/console; poweroff -f")));
    assert!(said.contains("the guest has gone") && said.contains("last words"), "{said}");
}

#[test]
fn a_kernel_that_is_a_program_boots_and_leaves_no_process() {
    let Some(image) = Image::build_for_user_mode() else { return };
    let image = image.file("/root/long", &[b'x'; 1 << 18], 0o644).image();
    let (guest, network) = UserModeLinux::boot(&image, "02:00:00:00:00:02");
    let failed = guest.run("echo to one; echo to the other >&2; exit 3").expect(3);
    assert_eq!((&*failed.out, &*failed.err), ("to one\n", "to the other\n"));
    // More than a terminal takes, each way, and several commands at once.
    guest.run("mkfifo /tmp/a").expect(0);
    let long = guest.start("cat /tmp/a /root/long");
    let word = "y".repeat(100_000);
    guest.run(&format!("echo {word} >/tmp/a")).expect(0);
    assert_eq!(guest.wait(&long).expect(0).out, word + "\n" + &"x".repeat(1 << 18));
    // What it sends is read here, and what is written here it receives.
    guest.run("ip address add 192.0.2.2/24 dev vec0 && ip link set vec0 up").expect(0);
    let _ping = guest.start("ping -c 1 -W 60 192.0.2.1");
    let mut frame = [0; 2000];
    let asks = |frame: &[u8]| frame[12..14] == [8, 6] && frame[38..42] == [192, 0, 2, 1];
    while !asks(&frame) {
        rustix::io::read(&network, &mut frame).unwrap();
    }
    let (ethernet, ip) = (frame[22..28].to_vec(), frame[28..32].to_vec());
    let own = [2, 0, 0, 0, 0, 1];
    let head = [&ethernet[..], &own, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
    let answer = [&head[..], &own, &[192, 0, 2, 1], &ethernet, &ip].concat();
    rustix::io::write(&network, &answer).unwrap();
    while frame[12..14] != [8, 0] {
        rustix::io::read(&network, &mut frame).unwrap();
    }
    assert_eq!(frame[30..34], [192, 0, 2, 1]);
    let why = catch_unwind(AssertUnwindSafe(|| drop(guest.run("poweroff -f")))).unwrap_err();
    let said = why.downcast_ref::<String>().unwrap();
    assert!(said.contains("the guest has gone"), "{said}");
    let another = UserModeLinux::boot(&image, "02:00:00:00:00:02");
    let its = image.initramfs().display().to_string();
    let processes = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&its)).count()
    };
    assert!(processes() > 2);
    drop(another);
    eventually("all its processes have ended", || processes() == 0);
}
