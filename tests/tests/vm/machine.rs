//! The machine itself, before Keyway has anything to do with it.

use keyway_tests::vm::{Image, Vm};
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
