//! Repositories of which files are altered, cut off, lost, exchanged, or brought back from earlier: it is told, or a
//! restore has what was saved. Nothing else is restored.

use crate::points::{Run, feed, next_second, position};
use crate::site::{Site, files, json};
use crate::state::{State, difference, export};
use crate::writers::administrator;
use keyway_tests::dice::{Dice, seed};
use keyway_tests::{Server, finish, nightly};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What can be restored: flags, and the state that they give.
struct Wanted {
    flags: [String; 2],
    state: State,
}

/// A repository with backups and segments, and what they give.
struct Case {
    place: TempDir,
    site: Site,
    /// All files as they were written.
    whole: BTreeMap<PathBuf, Vec<u8>>,
    /// Those that were there before the second half of them was.
    earlier: BTreeMap<PathBuf, Vec<u8>>,
    /// Files of another repository under the key of this one.
    foreign: BTreeMap<PathBuf, Vec<u8>>,
    wanted: Vec<Wanted>,
}

/// Files by their paths in the repository, without the locks, of which nothing is read that lasts.
fn read(repository: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_lock =
        |path: &Path| path.starts_with("lock") || path.to_string_lossy().starts_with("lock.");
    let all = files(repository).into_iter().map(|path| {
        let bytes = fs::read(&path).unwrap();
        (path.strip_prefix(repository).unwrap().to_owned(), bytes)
    });
    all.filter(|(path, _)| !is_lock(path)).collect()
}

impl Case {
    fn new() -> Case {
        let place = tempfile::tempdir().unwrap();
        let site = Site::in_folder(place.path());
        let server = Server::start(&site.data, &["--sample", "150"]);
        let mut client = administrator(&server);
        let mut number = 0;
        let mut change = || {
            for _ in 0..6 {
                number += 1;
                let name = format!("g{number}");
                let dn = format!("cn={name},ou=Groups,dc=example,dc=com");
                let entry = [("objectClass", ["device"].as_slice()), ("cn", &[&name])];
                client.add(&dn, &entry).unwrap();
            }
        };
        let name = |made: &serde_json::Value| made["backup"].as_str().unwrap().to_owned();
        change();
        let mut names = vec![name(&site.create())];
        change();
        names.push(name(&site.create()));
        // Saves what has changed since.
        let ship = || {
            let mut run = Run::begin(&site, "1h", "1d");
            let told = run.next();
            assert_eq!(told["event"], "changes", "{told}");
            run.stop();
            position(&told)
        };
        let mut points = Vec::new();
        for round in 0..3 {
            change();
            points.push(ship());
            if round == 0 {
                change();
                names.push(name(&site.create()));
                // A time of which that one is known to be before.
                next_second();
            }
        }
        let earlier = read(&site.repository);
        let time = |at: u64| {
            let feed = feed(&site);
            let of = feed.iter().find(|change| position(change) == at).unwrap();
            of["time"].as_str().unwrap().to_owned()
        };
        let at = time(points[1] - 2);
        change();
        names.push(name(&site.create()));
        change();
        points.push(ship());
        assert!(server.stop().success());
        let other = place.path().join("other");
        fs::create_dir(&other).unwrap();
        let another =
            Site { repository: other.join("repository"), ..Site::in_folder(place.path()) };
        another.create();
        let mut case = Case {
            whole: read(&site.repository),
            earlier,
            foreign: read(&another.repository),
            wanted: Vec::new(),
            place,
            site,
        };
        let named = names.into_iter().map(|name| ["--backup".to_owned(), name]);
        let positions =
            [points[0] - 1, points[2] - 1].map(|at| ["--position".to_owned(), at.to_string()]);
        let mut all: Vec<[String; 2]> = named.chain(positions).collect();
        all.push(["--at".to_owned(), at]);
        for flags in all {
            let state = case.restored(&flags).expect("nothing is damaged");
            case.wanted.push(Wanted { flags, state });
        }
        let states: BTreeSet<usize> = case.wanted.iter().map(|one| one.state.len()).collect();
        assert_eq!(states.len(), case.wanted.len(), "each is another state");
        case
    }

    /// What a restore gives; `None` if it fails, and then says why and leaves nothing.
    fn restored(&self, flags: &[String; 2]) -> Option<State> {
        let to = self.place.path().join("restored");
        let restored = self.site.try_restore(&to, &[&flags[0], &flags[1]]);
        (restored.code == 0).then(|| {
            let state = export(&to);
            fs::remove_dir_all(&to).unwrap();
            state
        })
    }

    /// Puts files into the repository, or removes them.
    fn put(&self, files: &BTreeMap<PathBuf, Option<Vec<u8>>>) {
        for (path, bytes) in files {
            let path = self.site.repository.join(path);
            match bytes {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
    }

    /// A damage: files, and what is in their place; and in words.
    fn damage(&self, dice: &mut Dice) -> (BTreeMap<PathBuf, Option<Vec<u8>>>, String) {
        let class = *dice.one(&["chunks", "chunks", "manifests", "segments", "keyway-backup"]);
        let of = |files: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> {
            let is_of = |path: &&PathBuf| path.to_string_lossy().starts_with(class);
            files.keys().filter(is_of).cloned().collect()
        };
        let ours = of(&self.whole);
        let path = dice.one(&ours).clone();
        let bytes = &self.whole[&path];
        let kind = dice.below(8);
        let mut damage = BTreeMap::new();
        let what = match kind {
            0 | 1 => {
                let mut bytes = bytes.clone();
                let (at, bit) = (dice.below(bytes.len()), dice.below(8));
                bytes[at] ^= 1 << bit;
                damage.insert(path.clone(), Some(bytes));
                format!("bit {bit} of byte {at} flipped")
            }
            2 => {
                let left = dice.below(bytes.len());
                damage.insert(path.clone(), Some(bytes[..left].to_vec()));
                format!("cut off after {left} bytes")
            }
            3 => {
                damage.insert(path.clone(), None);
                "removed".to_owned()
            }
            4 => {
                let other = dice.one(&ours).clone();
                damage.insert(path.clone(), Some(self.whole[&other].clone()));
                damage.insert(other.clone(), Some(bytes.clone()));
                format!("exchanged with {}", other.display())
            }
            5 => {
                let other = dice.one(&of(&self.earlier)).clone();
                damage.insert(path.clone(), Some(self.earlier[&other].clone()));
                format!("in its place {} of earlier", other.display())
            }
            // All of this kind are as they were earlier: what was written since is gone.
            6 => {
                let gone = ours.iter().filter(|path| !self.earlier.contains_key(*path));
                damage.extend(gone.map(|path| (path.clone(), None)));
                format!("all of {class} as earlier")
            }
            _ => {
                let other = match of(&self.foreign) {
                    others if others.is_empty() => of(&self.whole)[0].clone(),
                    others => dice.one(&others).clone(),
                };
                let bytes = self.foreign.get(&other).unwrap_or(&self.whole[&ours[0]]).clone();
                damage.insert(path.clone(), Some(bytes));
                format!("in its place {} of another repository", other.display())
            }
        };
        damage.retain(|path, bytes| bytes.as_ref() != Some(&self.whole[path]));
        (damage, format!("{}: {what}", path.display()))
    }

    /// Verifies with a damage, and tries these restores. Whether it was told.
    fn judge(
        &self,
        damage: &BTreeMap<PathBuf, Option<Vec<u8>>>,
        in_words: &str,
        tries: impl Iterator<Item = usize>,
    ) -> bool {
        let scratch = self.place.path().to_str().unwrap();
        let flags = ["--restore", "--scratch", scratch];
        // Where two files are damaged or none is, with a restore.
        let verified = self.site.verify(if damage.len().is_multiple_of(2) { &flags } else { &[] });
        let said = format!("{}{}", verified.out, verified.err);
        let is_told = verified.code == 1;
        let gone = |path: &Path| damage.get(path).is_some_and(Option::is_none);
        for (path, bytes) in damage {
            // A backup or a segment that is gone as a whole leaves nothing that could tell of it.
            let is_unknown = bytes.is_none()
                && ["manifests", "segments"].iter().any(|folder| path.starts_with(folder));
            let named = self.site.repository.join(path);
            let is_named = said.contains(&format!("{}:", named.display()))
                || said.contains(&format!("{} ", named.display()))
                || said.contains(&format!("its copy, {},", path.display()));
            assert!(is_unknown || is_told && is_named, "{in_words}: {said}");
        }
        for Wanted { flags, state } in tries.map(|number| &self.wanted[number]) {
            let found = self.restored(flags);
            match &found {
                Some(found) => {
                    let why = || difference(state, found);
                    assert!(
                        found == state || self.is_beyond(flags, damage),
                        "{in_words}: {flags:?}: {}",
                        why()
                    );
                }
                None => {
                    let is_there = match flags[0].as_str() {
                        "--backup" => !gone(&Path::new("manifests").join(&flags[1])),
                        // They need backups and segments which may be those that are gone.
                        _ => !damage.values().any(Option::is_none),
                    };
                    assert!(is_told || !is_there, "{in_words}: sound, but {flags:?} fails");
                }
            }
        }
        is_told
    }

    /// Whether nothing is left that could say that there were changes up to a time.
    fn is_beyond(&self, flags: &[String; 2], damage: &BTreeMap<PathBuf, Option<Vec<u8>>>) -> bool {
        let segments = || self.whole.keys().filter(|path| path.starts_with("segments"));
        let last_left = segments().filter(|path| !matches!(damage.get(*path), Some(None))).max();
        flags[0] == "--at" && last_left != segments().max()
    }
}

#[test]
fn a_damage_is_told_or_does_no_harm() {
    let damages = if nightly() { 100 } else { 12 };
    let mut dice = Dice::new(seed("damages"));
    let case = Case::new();
    let (mut told, mut tried) = (0, 0);
    while tried < damages {
        let (damage, in_words) = case.damage(&mut dice);
        if damage.is_empty() {
            continue;
        }
        case.put(&damage);
        // All of them take long.
        let tries = (0..case.wanted.len()).filter(|number| nightly() || number % 3 == tried % 3);
        told += usize::from(case.judge(&damage, &in_words, tries));
        tried += 1;
        let undo = damage.keys().map(|path| (path.clone(), Some(case.whole[path].clone())));
        case.put(&undo.collect());
    }
    assert!(!case.judge(&BTreeMap::new(), "undone", 0..case.wanted.len()));
    let verified = finish(&mut case.site.command(&["backup", "verify"], &["--json"]), "").expect(0);
    let verified = json(&verified);
    eprintln!("damages: {tried} damages, {told} told; {verified}");
}
