//! A create that is killed.

use crate::support::{
    Files, PIECE, at, bytes, create, engine, key, repository, restore, stored, verified,
};
use keyway_backup::Repository;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDER: &str = "KEYWAY_TEST_KILL_FOLDER";

/// Gives a file, says so, and then nothing until the process is killed.
struct Halting<'a>(&'a [u8]);

impl Read for Halting<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            println!("\nhalted");
            io::stdin().read_exact(&mut [0])?;
        }
        self.0.read(out)
    }
}

/// The process that is killed; in the others it does nothing.
#[test]
fn killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let repository = Repository::open(Path::new(&folder), engine(), &key(1)).unwrap();
    let mut creating = repository.begin(at(1)).unwrap();
    let content = bytes(2, 300 * PIECE);
    creating.put("f", 0o640, &mut Halting(&content), &mut |_| {}).unwrap();
}

#[test]
fn a_create_that_was_killed_leaves_older_backups_and_serves_the_next() {
    let (_scratch, repository) = repository();
    let files = |seed| Files::from([("f".to_owned(), bytes(seed, 300 * PIECE))]);
    create(&repository, 0, &files(1), 0);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::killed", "--nocapture"])
        .env(FOLDER, repository.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "halted"));
    let why = repository.begin(at(2)).err().unwrap().to_string();
    assert!(why.starts_with(&format!("process {} on ", child.id())), "{why}");
    child.kill().unwrap();
    // It is not waited for before the next begins.
    drop(repository.begin(at(2)).unwrap());
    child.wait().unwrap();
    // A process that is killed while it writes leaves this.
    let drafts = repository.folder().join("drafts");
    std::fs::write(drafts.join("00".repeat(32)), "half").unwrap();
    assert_eq!(restore(&repository, "latest").unwrap(), files(1));
    assert_eq!(verified(&repository), []);
    let orphans = stored(&repository, "chunks").len() as u64 - 301;
    let (_, put) = create(&repository, 3, &files(2), 0);
    assert!(orphans >= 128, "a batch was stored");
    assert_eq!(put.new_chunks + orphans, 301);
    assert_eq!(stored(&repository, "drafts"), [""; 0].map(std::path::PathBuf::from));
    assert_eq!(restore(&repository, "latest").unwrap(), files(2));
    assert_eq!(verified(&repository), []);
}
