//! Keys that OpenSSL has made, at daemons with virtual machines; guests with the device; what their processes write.

use super::process::{DEPTH, KEY, STOP, message};
use keyway_engine::{Algorithm, Request};
use keyway_tests::machines::Site;
use keyway_tests::vm::{Builder, Image, Job, Vm, holds};
use keyway_tests::{available, finish};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where the test's program is in a guest.
const PROCESS: &str = "/usr/bin/process";

/// What a process is told that asks while there is no daemon.
pub const GONE: &str = "the driver is gone or has the key no more, and no other can take its place";
/// A text that is in each guest, as `/etc/text`.
pub const TEXT: &str = "a text that is to be signed";

/// An image to be put together; `None` where these tests cannot run.
pub fn image() -> Option<Builder> {
    if !available(&["openssl", "strip"]) {
        return None;
    }
    Some(Image::build()?.file("/etc/text", TEXT.as_bytes(), 0o644))
}

/// With the program that signs on and on.
pub fn with_process(image: Builder) -> Builder {
    with_program(image, &std::env::current_exe().unwrap(), PROCESS)
}

/// With a program or library of ours, without what only a debugger needs, since all of it is in the guest's memory.
pub fn with_program(image: Builder, program: &Path, guest: &str) -> Builder {
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("stripped");
    finish(Command::new("strip").arg("-o").arg(&stripped).arg(program), "").expect(0);
    image.program_at(&stripped, guest)
}

/// A key, of which the test knows all.
pub struct Known {
    folder: TempDir,
    /// DER: an ECPrivateKey (RFC 5915), or an RSAPrivateKey (RFC 8017).
    private: Vec<u8>,
}

impl Known {
    /// One of these options for `openssl genpkey`.
    fn new(options: &[&str]) -> Known {
        let folder = tempfile::tempdir().unwrap();
        let openssl = |arguments: &[&str]| {
            let mut command = Command::new("openssl");
            finish(command.args(arguments).current_dir(folder.path()), "").expect(0);
        };
        openssl(&[&["genpkey", "-out", "pair"], options].concat());
        openssl(&["pkey", "-in", "pair", "-pubout", "-out", "public"]);
        openssl(&["pkey", "-in", "pair", "-traditional", "-outform", "DER", "-out", "private"]);
        let private = fs::read(folder.path().join("private")).unwrap();
        Known { folder, private }
    }

    pub fn p256() -> Known {
        Known::new(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
    }

    pub fn rsa() -> Known {
        Known::new(&["-algorithm", "RSA"])
    }

    /// Gives it to a daemon, for a machine.
    pub fn import(&self, site: &Site, name: &str, kind: &str, machine: &str) {
        let (pair, machine) = (self.file("pair"), format!("vm:{machine}"));
        let pair = pair.to_str().unwrap();
        site.key(&["import", name, pair, "--algorithm", kind, "--for", &machine]);
    }

    /// That OpenSSL finds a signature with SHA-256 right, in base64.
    #[track_caller]
    pub fn verifies(&self, text: &str, signature: &str) {
        let decoded =
            "base64 -d >signature && openssl dgst -sha256 -verify public -signature signature text";
        fs::write(self.file("text"), text).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", decoded]).current_dir(self.folder.path());
        assert_eq!(finish(&mut shell, signature).expect(0).out, "Verified OK\n");
    }

    /// That no secret number of it is in the memory of a guest, nor in that which the guest shares with the daemon; and
    /// that this would be seen.
    pub fn is_not_in(&self, vm: &Vm, site: &Site) {
        let shared = shared(site);
        assert!(vm.remembers(TEXT.as_bytes()));
        assert!(shared.iter().any(|it| holds(it, b"keyway\0\x01")));
        let secrets = self.secrets();
        assert!(!secrets.is_empty());
        for secret in secrets {
            assert!(secret.len() >= 32);
            // As numbers are written, and as they are calculated with.
            let reversed = secret.iter().rev().copied().collect();
            for number in [secret, reversed] {
                assert!(!vm.remembers(&number) && !shared.iter().any(|it| holds(it, &number)));
            }
        }
    }

    /// The scalar; or the exponent and the primes.
    fn secrets(&self) -> Vec<Vec<u8>> {
        let number = |tag: u8, from: &mut &[u8]| {
            let (length, rest) = match from[1] {
                short @ 0..=0x7f => (usize::from(short), &from[2..]),
                0x81 => (usize::from(from[2]), &from[3..]),
                _ => (usize::from(from[2]) << 8 | usize::from(from[3]), &from[4..]),
            };
            assert_eq!(from[0], tag);
            let (number, rest) = if tag == 0x30 { (&[][..], rest) } else { rest.split_at(length) };
            *from = rest;
            number.strip_prefix(&[0]).unwrap_or(number).to_vec()
        };
        let mut rest = &self.private[..];
        number(0x30, &mut rest);
        // The version.
        number(0x02, &mut rest);
        if rest[0] == 0x04 {
            return vec![number(0x04, &mut rest)];
        }
        // The modulus and the public exponent come first.
        let numbers: Vec<_> = (0..5).map(|_| number(0x02, &mut rest)).collect();
        numbers[2..].to_vec()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The memory that a daemon shares, with machines and with others.
fn shared(site: &Site) -> Vec<File> {
    let files = fs::read_dir(format!("/proc/{}/fd", site.cryptod().pid())).unwrap();
    let is = |path: &Path| {
        fs::read_link(path).is_ok_and(|name| name.to_string_lossy().starts_with("/memfd:keyway"))
    };
    let paths = files.map(|file| file.unwrap().path()).filter(|path| is(path));
    paths.map(|path| File::open(path).unwrap()).collect()
}

/// Gives a guest the device of a daemon's machine, and waits until the guest has it.
pub fn plug(vm: &Vm, site: &Site, name: &str) {
    vm.plug("keyway", &site.socket(name), "ivshmem-doorbell", "rp0", &json!({ "vectors": 1 }));
    vm.run("until ls /sys/bus/pci/devices/*/resource2_wc; do usleep 10000; done").expect(0);
}

/// A process in a guest that signs on and on.
pub struct Signing {
    job: Job,
}

impl Signing {
    /// Starts it with a key, and so many requests in flight.
    pub fn start(vm: &Vm, key: &str, depth: usize) -> Signing {
        let more = ">/run/signed; code=$?; touch /run/ended; exit $code";
        Signing { job: vm.start(&Signing::command(key, depth, more)) }
    }

    /// The command in the guest.
    pub fn command(key: &str, depth: usize, more: &str) -> String {
        let test = "process::a_process_of_a_guest";
        format!("{KEY}={key} {DEPTH}={depth} {PROCESS} --exact {test} --nocapture {more}")
    }

    /// Waits for more signatures.
    pub fn goes_on(&self, vm: &Vm) {
        let count = "$(grep -cE '^[0-9]+ [0-9a-f]+$' /run/signed)";
        let wait = format!(
            "until [ -e /run/signed ]; do usleep 10000; done; now={count};
             until [ {count} -gt $((now + 40)) ]; do
                 usleep 20000; [ ! -e /run/ended ] || exit 9; done"
        );
        let is_there = vm.run(&wait).code == 0;
        assert!(is_there, "{}", vm.wait(&self.job).err);
    }

    /// Stops it. Each of its messages was signed once, and the key verifies each signature. Says how many there were, and
    /// the errors of other attempts.
    pub fn stop(self, vm: &Vm, key: &Known) -> (u64, BTreeSet<String>) {
        vm.run(&format!("touch {STOP}")).expect(0);
        let ended = vm.wait(&self.job);
        let lines =
            vm.run(&format!("cat /run/signed; rm {STOP} /run/signed /run/ended")).expect(0).out;
        assert_eq!(ended.code, 0, "{}", ended.err);
        let (mut signed, mut errors) = (BTreeMap::new(), BTreeSet::new());
        let mut count = None;
        for line in lines.lines() {
            let Some((number, rest)) = line.split_once(' ') else { continue };
            if number == "of" {
                count = rest.parse().ok();
            }
            let Ok(number) = number.parse::<u64>() else { continue };
            if let Some(why) = rest.strip_prefix("failed: ") {
                errors.insert(why.to_owned());
            } else {
                assert!(signed.insert(number, rest).is_none(), "{number} was signed twice");
            }
        }
        let count = count.expect("how many there were");
        assert!(signed.keys().copied().eq(0..count), "{} of {count}", signed.len());
        // The point is the last in an ECPrivateKey.
        let (engine, private) = (keyway_drivers::engine(), &key.private);
        for (number, signature) in signed {
            let signature: Vec<u8> = (0..signature.len() / 2)
                .map(|at| u8::from_str_radix(&signature[2 * at..2 * at + 2], 16).unwrap())
                .collect();
            let verify = &mut Request::Verify {
                parameters: Default::default(),
                public_key: &private[private.len() - 65..],
                message: &message(number),
                signature: &signature,
            };
            let verified = engine.run(Algorithm::EcdsaP256Sha256, verify);
            assert!(verified.is_ok(), "{number}: {verified:?}");
        }
        (count, errors)
    }
}
