//! Damaged repositories: a verification names every damaged file and the backups that suffer, and a restore
//! gives the right bytes or an error.

use crate::support::{
    Files, HISTORY, PIECE, bytes, create, engine, key, repository, restore, stored, verified,
};
use keyway_backup::{Error, Repository, Segment};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A repository with two backups that share most pieces, and three pieces of feeds.
struct Case {
    _scratch: TempDir,
    repository: Repository,
    /// The content of each backup.
    backups: BTreeMap<String, Files>,
    segments: Vec<(Segment, Vec<u8>)>,
    damages: usize,
}

impl Case {
    fn new() -> Case {
        let (_scratch, repository) = repository();
        let mut files = Files::from([
            ("store/data".to_owned(), bytes(1, 20 * PIECE + 30)),
            ("keyway.toml".to_owned(), b"listen = 389".to_vec()),
        ]);
        let mut backups = BTreeMap::new();
        for number in [1, 2] {
            backups.insert(create(&repository, number, &files, 0).0.to_string(), files.clone());
            files.get_mut("store/data").unwrap()[3 * PIECE] ^= 1;
        }
        let segments = [([2; 16], 1, 5), (HISTORY, 1, 5), (HISTORY, 6, 9)];
        let segments = segments.map(|(history, first, last)| {
            let (segment, content) = (Segment { history, first, last }, bytes(first, 3_000));
            repository.put_segment(segment, &content).unwrap();
            (segment, content)
        });
        Case { _scratch, repository, backups, segments: segments.into(), damages: 0 }
    }

    /// All files that a backup or a restore needs.
    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = ["chunks", "manifests", "segments"]
            .iter()
            .flat_map(|folder| stored(&self.repository, folder))
            .collect();
        files.extend(
            ["keyway-backup", "keyway-backup.copy"].map(|it| self.repository.folder().join(it)),
        );
        files
    }

    /// That these files, and no others, are found to be damaged, in such words.
    fn check(&mut self, damaged: &[&Path], words: &[&str]) {
        self.damages += 1;
        let repository = Repository::open(self.repository.folder(), engine(), &key(1)).unwrap();
        let mut suffering = Vec::new();
        for (name, files) in &self.backups {
            match restore(&repository, name) {
                Ok(found) => assert!(found == *files, "{damaged:?}: {name} is wrong"),
                Err(_) => suffering.push(name.clone()),
            }
        }
        for (segment, content) in &self.segments {
            match repository.read_segment(segment) {
                Ok(found) => assert!(*found == *content, "{damaged:?}: {segment:?} is wrong"),
                Err(why) => assert!(matches!(why, Error::Damaged { .. }), "{why}"),
            }
        }
        for listed in repository.backups().unwrap() {
            let is_damaged = damaged.iter().any(|it| it.ends_with(listed.name.to_string()));
            assert_eq!(listed.manifest.is_err(), is_damaged, "{damaged:?}");
        }
        let mut found = verified(&repository);
        let mut named: Vec<String> = found.iter().flat_map(|it| it.2.clone()).collect();
        named.sort();
        named.dedup();
        // A manifest that is gone is seen by who expects it.
        if !words.contains(&"unlisted") {
            assert_eq!(named, suffering, "{damaged:?}: {found:?}");
            found.sort();
            let mut damaged = damaged.to_vec();
            damaged.sort();
            let paths: Vec<&Path> = found.iter().map(|it| &*it.0).collect();
            assert_eq!(paths, damaged, "{found:?}");
            for (path, fault, _) in &found {
                let fits = words.is_empty() || words.iter().any(|word| fault.contains(word));
                assert!(fits, "{path:?}: {fault}");
            }
        }
    }
}

/// Some places of a file of this length: all of its head, and others.
fn places(length: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length.min(13)).collect();
    places.extend([20, 43, 47, 54, 58, 60, 70, length / 2, length - 17, length - 1]);
    places.retain(|place| *place < length);
    places
}

/// A chunk that is a list, one of a piece that both backups have, the other files.
fn samples(case: &Case) -> Vec<PathBuf> {
    let chunks = stored(&case.repository, "chunks");
    // Lists do not compress, and pieces here do by a half.
    let kind = |path: &Path| fs::read(path).unwrap()[5];
    let lists = chunks.iter().filter(|path| kind(path) == 2);
    let pieces = chunks.iter().filter(|path| kind(path) == 1);
    let mut samples: Vec<PathBuf> = lists.take(2).chain(pieces.take(4)).cloned().collect();
    samples.extend(stored(&case.repository, "manifests"));
    samples.extend(stored(&case.repository, "segments").into_iter().skip(1));
    samples
}

#[test]
fn flipped_bits_and_cut_ends_are_named() {
    let mut case = Case::new();
    case.check(&[], &[]);
    for path in samples(&case) {
        let whole = fs::read(&path).unwrap();
        for place in places(whole.len()) {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            fs::write(&path, &changed).unwrap();
            case.check(&[&path], &["altered", "cut off", "later version"]);
        }
        for length in [0, 1, 11, 45, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            case.check(&[&path], &["cut off"]);
        }
        fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        case.check(&[&path], &["altered"]);
        fs::write(&path, vec![0; whole.len()]).unwrap();
        case.check(&[&path], &["altered"]);
        fs::write(&path, &whole).unwrap();
    }
    case.check(&[], &[]);
    assert!(case.damages > 250, "{}", case.damages);
}

#[test]
fn missing_files_and_things_that_are_no_files_are_named() {
    let mut case = Case::new();
    for path in case.files() {
        let whole = fs::read(&path).unwrap();
        let is_in = |folder: &str| path.starts_with(case.repository.folder().join(folder));
        let (is_header, is_listed) =
            (!is_in("chunks") && !is_in("manifests") && !is_in("segments"), is_in("chunks"));
        fs::remove_file(&path).unwrap();
        if is_listed || is_header {
            case.check(&[&path], &["missing"]);
        } else {
            case.check(&[&path], &["unlisted"]);
        }
        // A link to what it was, a folder, a pipe.
        let elsewhere = case.repository.folder().join("drafts/elsewhere");
        fs::write(&elsewhere, &whole).unwrap();
        symlink(&elsewhere, &path).unwrap();
        case.check(&[&path], &["no plain file"]);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        case.check(&[&path], &["no plain file"]);
        fs::remove_dir(&path).unwrap();
        if is_header {
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            case.check(&[&path], &["no plain file"]);
            fs::remove_file(&path).unwrap();
        }
        // More than there is memory.
        File::create(&path).unwrap().set_len(1 << 42).unwrap();
        case.check(&[&path], &["longer than any such file"]);
        fs::write(&path, &whole).unwrap();
    }
    case.check(&[], &[]);
    assert!(case.damages > 100, "{}", case.damages);
}

#[test]
fn files_in_the_place_of_others_are_named() {
    let mut case = Case::new();
    let samples = samples(&case);
    for (index, path) in samples.iter().enumerate() {
        for other in &samples[index + 1..] {
            let (ours, theirs) = (fs::read(path).unwrap(), fs::read(other).unwrap());
            fs::write(path, &theirs).unwrap();
            case.check(&[path], &["put in its place"]);
            fs::write(other, &ours).unwrap();
            case.check(&[path, other], &["put in its place"]);
            fs::write(path, &ours).unwrap();
            case.check(&[other], &["put in its place"]);
            fs::write(other, &theirs).unwrap();
        }
    }
    case.check(&[], &[]);
    assert!(case.damages > 100, "{}", case.damages);
}

#[test]
fn an_older_manifest_does_not_pass_for_a_newer_one() {
    let case = Case::new();
    let manifests = stored(&case.repository, "manifests");
    fs::copy(&manifests[0], &manifests[1]).unwrap();
    let why = restore(&case.repository, "latest").unwrap_err();
    assert!(why.contains("a file of another name"), "{why}");
    // The other's name under the number after it.
    let later = manifests[0].with_file_name("00000003-20990101T000000Z");
    fs::copy(&manifests[0], &later).unwrap();
    let why = restore(&case.repository, "latest").unwrap_err();
    assert!(why.contains("a file of another name"), "{why}");
}

#[test]
fn a_damaged_header_is_read_from_its_copy_and_written_anew() {
    let mut case = Case::new();
    let folder = case.repository.folder().to_owned();
    let [header, copy] = ["keyway-backup", "keyway-backup.copy"].map(|name| folder.join(name));
    let whole = fs::read(&header).unwrap();
    for path in [&header, &copy] {
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            fs::write(path, &changed).unwrap();
            case.check(&[path], &["altered"]);
        }
        fs::write(path, &whole[..20]).unwrap();
        case.check(&[path], &["cut off"]);
        drop(case.repository.begin(crate::support::at(5)).unwrap());
        case.check(&[], &[]);
    }
    fs::write(&header, &whole[..20]).unwrap();
    fs::write(&copy, b"").unwrap();
    let why = Repository::open(&folder, engine(), &key(1)).err().unwrap();
    assert!(matches!(why, Error::Damaged { .. }), "{why}");
    let why = Repository::create(&folder, engine(), &key(1)).err().unwrap();
    assert!(matches!(why, Error::Exists(_)), "{why}");
}

#[test]
fn a_header_of_another_repository_does_not_replace_its_copy() {
    let mut case = Case::new();
    let folder = case.repository.folder().to_owned();
    let [header, copy] = ["keyway-backup", "keyway-backup.copy"].map(|name| folder.join(name));
    let whole = fs::read(&header).unwrap();
    // Under the same key.
    let (_scratch, other) = repository();
    let foreign = fs::read(other.folder().join("keyway-backup")).unwrap();
    for path in [&header, &copy] {
        fs::write(path, &foreign).unwrap();
        let why = Repository::open(&folder, engine(), &key(1)).err().unwrap().to_string();
        assert!(why.contains("are of two repositories"), "{why}");
        fs::remove_file(path).unwrap();
        let opened = Repository::open(&folder, engine(), &key(1)).unwrap();
        drop(opened.begin(crate::support::at(5)).unwrap());
        assert_eq!(
            (fs::read(&header).unwrap(), fs::read(&copy).unwrap()),
            (whole.clone(), whole.clone())
        );
        case.check(&[], &[]);
    }
}

#[test]
fn a_chunk_that_lost_all_its_bytes_is_stored_anew() {
    let mut case = Case::new();
    let chunks = stored(&case.repository, "chunks");
    for path in &chunks {
        File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    }
    for files in case.backups.clone().values() {
        let (name, _) = create(&case.repository, 8, files, 0);
        case.backups.insert(name.to_string(), files.clone());
    }
    assert_eq!(stored(&case.repository, "chunks"), chunks);
    case.check(&[], &[]);
}

#[test]
fn a_damaged_chunk_that_is_set_aside_is_stored_anew() {
    let mut case = Case::new();
    let files = case.backups.last_key_value().unwrap().1.clone();
    let (mut damaged, mut wholes) = (Vec::new(), Vec::new());
    for path in samples(&case).into_iter().filter(|path| path.to_string_lossy().contains("chunks"))
    {
        wholes.push(fs::read(&path).unwrap());
        let mut spoilt = wholes[damaged.len()].clone();
        *spoilt.last_mut().unwrap() ^= 1;
        fs::write(&path, spoilt).unwrap();
        damaged.push(path);
    }
    assert_eq!(verified(&case.repository).len(), damaged.len());
    // A backup does not look into chunks that are there.
    assert_eq!(create(&case.repository, 7, &files, 0).1.new_chunks, 0);
    assert!(restore(&case.repository, "latest").is_err());
    let mut damages = Vec::new();
    case.repository
        .verify(&mut |_, _| ControlFlow::Continue(()), &mut |damage| damages.push(damage))
        .unwrap();
    // One is well again, and stays.
    let (path, moved) = (damaged.pop().unwrap(), damaged.len() as u64);
    fs::write(&path, wholes.pop().unwrap()).unwrap();
    assert_eq!(case.repository.set_aside(&damages).unwrap(), moved);
    assert!(path.is_file());
    assert_eq!(case.repository.set_aside(&damages).unwrap(), 0);
    for files in case.backups.clone().values() {
        let (name, _) = create(&case.repository, 8, files, 0);
        case.backups.insert(name.to_string(), files.clone());
    }
    case.check(&[], &[]);
}

#[test]
fn links_in_the_folder_are_not_followed() {
    let (scratch, repository) = repository();
    let files = Files::from([("f".to_owned(), bytes(1, 100_000))]);
    create(&repository, 1, &files, 0);
    let victim = scratch.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "mine").unwrap();
    let folder = repository.folder().to_owned();
    for name in ["drafts", "chunks", "chunks/07", "manifests", "segments", "damaged"] {
        let (path, kept) = (folder.join(name), scratch.path().join("kept"));
        fs::rename(&path, &kept).unwrap();
        symlink(&victim, &path).unwrap();
        let why = repository.begin(crate::support::at(2)).err().unwrap();
        assert!(why.to_string().contains("open the folder"), "{why}");
        if !name.contains('/') {
            let why = Repository::open(&folder, engine(), &key(1)).err().unwrap();
            assert!(matches!(why, Error::System { .. }), "{why}");
        }
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
    for name in ["lock", "lock.readers", "lock.segments"] {
        fs::remove_file(folder.join(name)).unwrap();
        symlink(victim.join("file"), folder.join(name)).unwrap();
    }
    assert!(repository.begin(crate::support::at(2)).is_err());
    assert!(repository.backup("latest").is_err());
    let segment = Segment { history: HISTORY, first: 1, last: 2 };
    assert!(repository.put_segment(segment, b"changes").is_err());
    // A name that is replaced is no longer a link.
    fs::remove_file(folder.join("lock")).unwrap();
    let header = fs::read(folder.join("keyway-backup")).unwrap();
    fs::remove_file(folder.join("keyway-backup")).unwrap();
    symlink(victim.join("file"), folder.join("keyway-backup")).unwrap();
    create(&repository, 3, &files, 0);
    assert_eq!(fs::read(folder.join("keyway-backup")).unwrap(), header);
    let left: Vec<_> = victim.read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
    assert_eq!(fs::read(victim.join("file")).unwrap(), b"mine");
}
