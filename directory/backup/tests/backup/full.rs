//! A repository whose disk is full.

use crate::support::{Files, PIECE, at, bytes, create, engine, key, restore, stored, verified};
use keyway_backup::{Error, Keep, Repository};
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "KEYWAY_TEST_FULL_FOLDER";

/// In a process that has a disk of its own; in the others it does nothing.
#[test]
fn on_a_small_disk() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder).join("r");
    let repository = Repository::create(&folder, engine(), &key(1)).unwrap();
    let files = |seed, pieces| Files::from([("f".to_owned(), bytes(seed, pieces * PIECE))]);
    let (first, _) = create(&repository, 0, &files(1, 60), 0);
    create(&repository, 1, &files(2, 60), 0);
    let mut creating = repository.begin(at(2)).unwrap();
    let content = bytes(3, 400 * PIECE);
    let why = creating.put("f", 0o640, &mut &content[..], &mut |_| {}).unwrap_err();
    assert!(matches!(why, Error::Full(_)), "{why}");
    let why = why.to_string();
    assert!(why.contains("r is full; make room there, or remove old backups"), "{why}");
    drop(creating);
    assert_eq!(restore(&repository, &first.to_string()).unwrap(), files(1, 60));
    assert_eq!(restore(&repository, "latest").unwrap(), files(2, 60));
    assert_eq!(verified(&repository), []);
    assert!(stored(&repository, "drafts").is_empty());
    // The error's advice helps.
    let keep = Keep { last: 1, ..Keep::default() };
    assert!(repository.prune(keep, false).unwrap().chunks >= 60);
    create(&repository, 3, &files(4, 60), 0);
    assert_eq!(restore(&repository, "latest").unwrap(), files(4, 60));
}

#[test]
fn a_full_disk_is_told_and_spoils_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let script = "mount -t tmpfs -o size=8m none \"$1\" || exit 77; exec \"$2\" --exact full::on_a_small_disk";
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script, "sh"]).arg(scratch.path()).arg(test);
    match command.env(FOLDER, scratch.path()).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stdout))
        }
        other => eprintln!("skipped: a process may not have a disk of its own here: {other:?}"),
    }
}
