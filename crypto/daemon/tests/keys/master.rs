//! The master key's sources.

use crate::{ENGINE, MAC, Place, manager, no_report, now};
use keyway_daemon::keys::{Error, KeyStore, Master, MasterKey, Material, Passphrase};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn create(folder: &Path, master: Master<'_>) -> Result<KeyStore, Error> {
    KeyStore::create(folder, master, &ENGINE, no_report)
}

fn open(folder: &Path, master: Master<'_>) -> Result<KeyStore, Error> {
    KeyStore::open(folder, master, &ENGINE, no_report)
}

#[test]
fn a_passphrase_opens_the_store_that_it_made() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("keys");
    let right = Master::Passphrase(Passphrase(b"correct horse"));
    let store = create(&folder, right).unwrap();
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
    drop(store);
    let wrong = Master::Passphrase(Passphrase(b"correct house"));
    assert!(matches!(open(&folder, wrong), Err(Error::WrongMaster(_))));
    let empty = Master::Passphrase(Passphrase(b""));
    assert!(matches!(open(&folder, empty), Err(Error::Unfit(_))));
    let key = MasterKey::create_file(&dir.path().join("master"), &ENGINE).unwrap();
    assert!(matches!(open(&folder, Master::Key(&key)), Err(Error::WrongMaster(_))));
    assert_eq!(open(&folder, right).unwrap().list().len(), 1);
    assert_eq!(format!("{right:?} {key:?}"), "Passphrase(Passphrase(..)) MasterKey(..)");
}

#[test]
fn a_wrong_master_key_is_said_to_be_one() {
    let place = Place::new();
    let other = MasterKey::create_file(&place.dir.path().join("other"), &ENGINE).unwrap();
    let refused = open(&place.folder(), Master::Key(&other)).unwrap_err();
    assert!(matches!(&refused, Error::WrongMaster(folder) if *folder == place.folder()));
    let phrase = Master::Passphrase(Passphrase(b"words"));
    assert!(matches!(open(&place.folder(), phrase), Err(Error::WrongMaster(_))));
    place.open();
}

#[test]
fn a_file_is_made_once_and_has_32_bytes() {
    let place = Place::new();
    let path = place.master();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 32);
    assert!(matches!(MasterKey::create_file(&path, &ENGINE), Err(Error::System { .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    for wrong in [&bytes[..31], &[&bytes[..], b"\n"].concat(), b""] {
        fs::write(&path, wrong).unwrap();
        assert!(matches!(MasterKey::from_file(&path), Err(Error::Damaged { .. })));
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(MasterKey::from_file(&path), Err(Error::System { .. })));
}

/// systemd gives its rights with an access list, which shows as those of the group.
#[test]
fn a_credential_may_have_other_rights() {
    let place = Place::new();
    let path = place.dir.path().join("credential");
    fs::copy(place.master(), &path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o440)).unwrap();
    let master = MasterKey::from_credential(&path).unwrap();
    open(&place.folder(), Master::Key(&master)).unwrap();
    assert!(matches!(MasterKey::from_file(&path), Err(Error::Exposed(_))));
}

mod tpm {
    use super::*;
    use std::net::TcpListener;
    use std::process::{Child, Command, Stdio};

    /// In the environment of the process that a TPM is simulated for.
    const DIR: &str = "KEYWAY_TEST_TPM_DIR";

    /// swtpm, killed with this.
    struct Tpm {
        process: Child,
        tcti: String,
    }

    impl Tpm {
        /// One whose seed is in the folder. `None` if it is not installed.
        fn start(state: &Path) -> Option<Self> {
            fs::create_dir_all(state).unwrap();
            // Their numbers are free now, and two in a row are what tpm2-tools want.
            for _ in 0..100 {
                let first = TcpListener::bind("127.0.0.1:0").unwrap();
                let port = first.local_addr().unwrap().port();
                let Some(next) = port.checked_add(1) else { continue };
                let Ok(second) = TcpListener::bind(("127.0.0.1", next)) else { continue };
                drop((first, second));
                let mut command = Command::new("swtpm");
                command.args(["socket", "--tpm2", "--flags", "startup-clear,not-need-init"]);
                command.args(["--tpmstate", &format!("dir={}", state.display())]);
                command.args(["--server", &format!("type=tcp,bindaddr=127.0.0.1,port={port}")]);
                command.args(["--ctrl", &format!("type=tcp,bindaddr=127.0.0.1,port={next}")]);
                let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
                let mut tpm = Tpm { process, tcti: format!("swtpm:host=127.0.0.1,port={port}") };
                if tpm.answers([port, next]) {
                    return Some(tpm);
                }
            }
            panic!("swtpm does not start");
        }

        /// Tried again until it does or has ended; it listens within moments, at one port after the other.
        fn answers(&mut self, ports: [u16; 2]) -> bool {
            let listens = |port: &u16| std::net::TcpStream::connect(("127.0.0.1", *port)).is_ok();
            loop {
                if ports.iter().rev().all(listens) {
                    return true;
                }
                if self.process.try_wait().unwrap().is_some() {
                    return false;
                }
                std::thread::yield_now();
            }
        }
    }

    impl Drop for Tpm {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    fn is_installed(program: &str) -> bool {
        Command::new(program).arg("--version").output().is_ok()
    }

    /// Runs this test in a process whose environment names a TPM, as an operator's does.
    fn again(test: &str, dir: &Path, tpm: &Tpm) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("master::tpm::{test}")]);
        let output = command.env(DIR, dir).env("TPM2TOOLS_TCTI", &tpm.tcti).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn the_tpm_unseals_what_it_sealed_and_no_other_does() {
        if let Some(dir) = std::env::var_os(DIR) {
            return with_a_tpm(Path::new(&dir));
        }
        if !is_installed("swtpm") || !is_installed("tpm2_unseal") {
            let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
            assert!(!ci, "nothing may be skipped in CI, but swtpm or tpm2-tools is not installed");
            eprintln!("skipped: swtpm or tpm2-tools is not installed");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let test = "the_tpm_unseals_what_it_sealed_and_no_other_does";
        let tpm = Tpm::start(&dir.path().join("one")).unwrap();
        again(test, dir.path(), &tpm);
        // After a start of the machine.
        drop(tpm);
        let tpm = Tpm::start(&dir.path().join("one")).unwrap();
        again(test, dir.path(), &tpm);
        drop(tpm);
        let other = Tpm::start(&dir.path().join("other")).unwrap();
        fs::write(dir.path().join("other-tpm"), "").unwrap();
        again(test, dir.path(), &other);
    }

    fn with_a_tpm(dir: &Path) {
        let (folder, blob) = (dir.join("keys"), dir.join("master.tpm"));
        if dir.join("other-tpm").exists() {
            let refused = MasterKey::from_tpm(&blob).unwrap_err();
            assert!(matches!(&refused, Error::Tpm { tool: "tpm2_load", .. }), "{refused}");
        } else if blob.exists() {
            // More often than a TPM has room for objects.
            for _ in 0..4 {
                MasterKey::from_tpm(&blob).unwrap();
            }
            let master = MasterKey::from_tpm(&blob).unwrap();
            assert_eq!(open(&folder, Master::Key(&master)).unwrap().list().len(), 1);
            for spoilt in [&b""[..], b"KWYTPM2\0", b"KWYTPM2\0\xff\xff", b"other bytes"] {
                let path = dir.join("spoilt.tpm");
                fs::write(&path, spoilt).unwrap();
                assert!(matches!(MasterKey::from_tpm(&path), Err(Error::Damaged { .. })));
            }
        } else {
            let master = MasterKey::create_in_tpm(&blob, &ENGINE).unwrap();
            let store = create(&folder, Master::Key(&master)).unwrap();
            store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
            let mode = fs::metadata(&blob).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let again = MasterKey::create_in_tpm(&blob, &ENGINE);
            assert!(matches!(again, Err(Error::System { .. })));
        }
        assert!(!dir.join("master.tpm.work").exists());
    }
}
