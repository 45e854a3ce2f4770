//! Secrets that do not fit, and disks that are full.

use crate::site::{Site, ended, files, json};
use crate::state::{check, export};
use crate::writers::administrator;
use keyway_tests::disk::Disk;
use keyway_tests::{Server, finish, keyway, nightly, secret};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// All that a folder has.
fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    files(folder).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn a_wrong_secret_is_told_and_nothing_is_written() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).into_os_string().into_string().unwrap();
    let data = at("data");
    assert!(Server::start(Path::new(&data), &["--sample", "5"]).stop().success());
    let write = |name: &str, text: &str| secret(Path::new(&at(name)), text);
    write("phrase", "correct horse battery staple\n");
    write("wrong-phrase", "correct horse battery stable\n");
    write("wrong-key", &format!("{}\n", "0b".repeat(32)));
    write("empty", "");
    let run = |words: &[&str], repository: &str, flags: &[&str]| {
        let mut command = Command::new(keyway());
        finish(command.args(words).arg(at(repository)).args(flags), "")
    };
    let create = ["backup", "create"];
    run(&create, "keyed", &["--key-file", &at("key"), "--data", &data]).expect(0);
    run(&create, "phrased", &["--passphrase-file", &at("phrase"), "--data", &data]).expect(0);

    let wrong: [(&str, &str, &str, &str); 8] = [
        ("keyed", "--key-file", "wrong-key", "the key file is not that of the backups"),
        ("keyed", "--key-file", "none", "none"),
        ("keyed", "--key-file", "empty", "64 hexadecimal digits"),
        ("keyed", "--passphrase-file", "phrase", "are opened with"),
        (
            "phrased",
            "--passphrase-file",
            "wrong-phrase",
            "the passphrase is not that of the backups",
        ),
        ("phrased", "--passphrase-file", "none", "none"),
        ("phrased", "--passphrase-file", "empty", "empty"),
        ("phrased", "--key-file", "key", "are opened with"),
    ];
    let to = at("restored");
    let commands: [(&[&str], &[&str]); 7] = [
        (&["backup", "create"], &["--data", &data]),
        (&["backup", "run"], &["--data", &data]),
        (&["restore"], &["--to", &to]),
        (&["backup", "verify"], &["--set-aside"]),
        (&["backup", "prune"], &["--keep-last", "1"]),
        (&["backup", "list"], &[]),
        (&["backup", "show"], &[]),
    ];
    let before = [contents(Path::new(&at("keyed"))), contents(Path::new(&at("phrased")))];
    for (repository, flag, file, why) in wrong {
        let file = at(file);
        for (words, flags) in commands {
            let flags = [&[flag, file.as_str()], flags].concat();
            let refused = run(words, repository, &flags).expect(1);
            assert!(refused.err.contains(why), "{words:?} {flags:?}: {}", refused.err);
        }
        assert!(!Path::new(&at("none")).exists(), "no key is made for backups that have one");
    }
    let after = [contents(Path::new(&at("keyed"))), contents(Path::new(&at("phrased")))];
    assert!(before == after);
    let mut left: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    let there = ["data", "empty", "key", "keyed", "phrase", "phrased", "wrong-key", "wrong-phrase"];
    assert_eq!(left, there);
}

/// Creates and restores on a disk that has less and less room.
fn a_full_disk_spoils_nothing(kind: &str, mib: u64) {
    let Some(disk) = Disk::new(kind, mib) else { return };
    let rooms_kib: &[usize] = match nightly() {
        true => &[0, 4, 16, 64, 128, 256, 384, 512, 768, 1_024, 1_536, 2_048, 4_096],
        false => &[0, 64, 512],
    };
    let place = tempfile::tempdir().unwrap();
    let site = Site::new(place.path(), &disk.at);
    let server = Server::start(&site.data, &["--sample", "400"]);
    let mut client = administrator(&server);
    let mut made = vec![(site.create()["backup"].as_str().unwrap().to_owned(), export(&site.data))];
    let (mut failed, mut failed_restores, mut mark) = (0, 0, 1u64);
    for (round, room_kib) in rooms_kib.iter().enumerate() {
        // What cannot be made smaller, in each page of the store.
        for (dn, _) in export(&site.data).iter().filter(|(dn, _)| dn.starts_with("uid=")) {
            let mut text = String::new();
            while text.len() < 900 {
                mark = mark.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text += &format!("{:08x}", mark >> 32);
            }
            client.replace_values(dn, "description", &[&text]).unwrap();
        }
        let state = export(&site.data);
        let reserve = disk.at.join("reserve");
        let reserved = File::create(&reserve).and_then(|mut file| {
            file.write_all(&vec![9; room_kib << 10]).and_then(|()| file.sync_all())
        });
        reserved.unwrap();
        disk.fill(round as u32);
        fs::remove_file(&reserve).unwrap();

        let created = ended(finish(&mut site.create_command(), ""));
        match created.code {
            0 => made.push((json(&created)["backup"].as_str().unwrap().to_owned(), state)),
            _ => {
                failed += 1;
                assert!(created.out.contains("is full; make room there"), "{}", created.out);
            }
        }
        site.verify(&[]).expect(0);
        assert!(site.list().iter().eq(made.iter().map(|(name, _)| name)));
        // A restore to that disk, and one to another.
        let (name, state) = made.last().unwrap();
        let to = disk.at.join("restored");
        let restored = site.try_restore(&to, &["--backup", name]);
        if restored.code == 0 {
            assert!(export(&to) == *state);
            fs::remove_dir_all(&to).unwrap();
        } else {
            failed_restores += 1;
            let is_clear =
                ["No space left", "no space", "full"].iter().any(|it| restored.out.contains(it));
            assert!(is_clear, "{}", restored.out);
            assert!(!disk.at.join(".restored.restoring").exists());
        }
        let to = place.path().join("restored");
        site.try_restore(&to, &["--backup", name]).expect(0);
        check(&to);
        assert!(export(&to) == *state);
        fs::remove_dir_all(&to).unwrap();
        disk.make_room();
    }
    assert!(failed > 0 && failed_restores > 0, "{failed} {failed_restores}");
    // With room again.
    made.push((site.create()["backup"].as_str().unwrap().to_owned(), export(&site.data)));
    assert!(server.stop().success());
    site.verify(&[]).expect(0);
    for (name, state) in &made {
        let to = disk.at.join("restored");
        site.try_restore(&to, &["--backup", name]).expect(0);
        assert!(export(&to) == *state, "{name}");
        fs::remove_dir_all(&to).unwrap();
    }
    let rounds = rooms_kib.len();
    eprintln!(
        "{kind}: {failed} of {rounds} creates and {failed_restores} restores on a full disk failed"
    );
}

#[test]
fn a_full_ext4_spoils_nothing() {
    a_full_disk_spoils_nothing("ext4", 64);
}

#[test]
fn a_full_xfs_spoils_nothing() {
    if nightly() {
        a_full_disk_spoils_nothing("xfs", 300);
    }
}

#[test]
fn a_full_btrfs_spoils_nothing() {
    if nightly() {
        a_full_disk_spoils_nothing("btrfs", 120);
    }
}
