//! A repository to test with, and files to put into it.

use keyway_backup::{BackupName, Error, FeedPosition, Put, Repository, Secret};
use keyway_engine::{Engine, Zeroizing};
use keyway_host::timestamp::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

pub const PIECE: usize = 64 << 10;
pub const HISTORY: [u8; 16] = [0xab; 16];

/// The files of a backup: path and content.
pub type Files = BTreeMap<String, Vec<u8>>;

pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(keyway_drivers::engine)
}

pub fn key(number: u8) -> Secret<'static> {
    Secret::KeyFile(Zeroizing::new([number; 32]))
}

/// A new repository; its folder is removed with what is returned first.
pub fn repository() -> (TempDir, Repository) {
    let scratch = tempfile::tempdir().unwrap();
    let repository = Repository::create(&scratch.path().join("r"), engine(), &key(1)).unwrap();
    (scratch, repository)
}

pub fn reopen(repository: &Repository) -> Repository {
    Repository::open(repository.folder(), engine(), &key(1)).unwrap()
}

/// Bytes that depend on nothing but their seed; every other run of them compresses.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes = Vec::with_capacity(length + 64);
    while bytes.len() < length {
        (0..4).for_each(|_| bytes.extend_from_slice(&next()));
        bytes.extend_from_slice(&[b'k'; 32]);
    }
    bytes.truncate(length);
    bytes
}

pub fn at(unix_s: i64) -> Timestamp {
    Timestamp::from_unix_s(unix_s)
}

/// Makes a backup of these files, and says what it stored.
pub fn create(
    repository: &Repository,
    now: i64,
    files: &Files,
    position: u64,
) -> (BackupName, Put) {
    let mut creating = repository.begin(at(now)).unwrap();
    let mut sum = Put::default();
    for (path, content) in files {
        let put = creating.put(path, 0o640, &mut &content[..], &mut |_| {}).unwrap();
        assert_eq!(put.bytes, content.len() as u64);
        sum.bytes += put.bytes;
        sum.chunks += put.chunks;
        sum.new_chunks += put.new_chunks;
        sum.new_bytes += put.new_bytes;
    }
    let feed = FeedPosition { history: HISTORY, position };
    let name = creating.finish(json!({ "files": files.len() }), Some(feed)).unwrap();
    (name, sum)
}

/// Reads all of a backup.
pub fn restore(repository: &Repository, name: &str) -> Result<Files, String> {
    let backup = repository.backup(name).map_err(|why| why.to_string())?;
    let mut files = Files::new();
    for file in backup.files() {
        let mut content = Vec::new();
        let read = backup.read(&file.path).unwrap().read_to_end(&mut content);
        if let Err(why) = read {
            assert!(why.get_ref().is_some_and(|why| why.is::<Error>()), "{why}");
            return Err(why.to_string());
        }
        assert_eq!((file.bytes, file.mode), (content.len() as u64, 0o640));
        files.insert(file.path.clone(), content);
    }
    Ok(files)
}

/// The files of the repository below one of its folders, with their paths in it, sorted.
pub fn stored(repository: &Repository, folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(&repository.folder().join(folder), &mut found);
    found.sort();
    found
}

/// The findings of a verification: paths, faults, and the backups that suffer.
pub fn verified(repository: &Repository) -> Vec<(PathBuf, String, Vec<String>)> {
    let mut found = Vec::new();
    let verified = repository
        .verify(&mut |_, _| ControlFlow::Continue(()), &mut |damage| {
            let backups = damage.backups.iter().map(BackupName::to_string).collect();
            found.push((damage.path, damage.fault.to_string(), backups));
        })
        .unwrap();
    assert_eq!(verified.damages, found.len() as u64);
    found
}
