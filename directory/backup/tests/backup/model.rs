//! A repository against a plain model: backups are copies of files.

use crate::support::{Files, HISTORY, bytes, create, reopen, repository, restore, verified};
use keyway_backup::{Keep, Segment};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    /// A backup, so many seconds after the last.
    Create {
        after: i64,
    },
    /// A backup that is dropped before it is finished.
    Abandon,
    /// One piece of a file is overwritten.
    Change {
        file: usize,
        piece: usize,
        seed: u64,
    },
    /// A file gets another length.
    Resize {
        file: usize,
        length: usize,
    },
    /// A file goes.
    Delete {
        file: usize,
    },
    Prune(Keep),
    Segment {
        first: u64,
        count: u64,
        seed: u64,
    },
}

const FILES: [&str; 3] = ["store/data", "keyway.toml", "cryptod/keys/one"];
const PIECE: usize = 65_536;

fn step() -> impl Strategy<Value = Step> {
    let file = 0..FILES.len();
    let keep = (0..4_usize, 0..3_usize, 0..3_usize, 0..2_usize);
    prop_oneof![
        4 => (0..400_000_i64).prop_map(|after| Step::Create { after }),
        1 => Just(Step::Abandon),
        3 => (file.clone(), 0..24_usize, 0..6_u64)
            .prop_map(|(file, piece, seed)| Step::Change { file, piece, seed }),
        2 => (file.clone(), 0..20 * PIECE)
            .prop_map(|(file, length)| Step::Resize { file, length }),
        1 => file.prop_map(|file| Step::Delete { file }),
        1 => keep.prop_map(|(last, daily, weekly, monthly)| {
            Step::Prune(Keep { last: last.max(1), daily, weekly, monthly })
        }),
        1 => (0..50_u64, 0..9_u64, 0..9_u64)
            .prop_map(|(first, count, seed)| Step::Segment { first, count, seed }),
    ]
}

/// A backup of the model.
struct Copy {
    unix_s: i64,
    files: Files,
    position: u64,
}

/// Which backups are kept, said differently: of each period the last backup, of these the last ones.
fn kept(backups: &BTreeMap<String, Copy>, keep: Keep) -> Vec<String> {
    let newest_of = |period: &dyn Fn(i64) -> i64, most: usize| -> Vec<String> {
        let mut newest: Vec<(i64, String)> = Vec::new();
        for (name, copy) in backups {
            newest.retain(|(of, _)| *of != period(copy.unix_s));
            newest.push((period(copy.unix_s), name.clone()));
        }
        newest.into_iter().rev().take(most).map(|(_, name)| name).collect()
    };
    let month = |unix_s: i64| {
        let date = keyway_host::timestamp::Timestamp::from_unix_s(unix_s).to_string();
        date[..7].replace('-', "").parse().unwrap()
    };
    let mut kept: Vec<String> = backups.keys().rev().take(keep.last).cloned().collect();
    kept.extend(newest_of(&|unix_s| unix_s / 86_400, keep.daily));
    // Days are counted from a Thursday.
    kept.extend(newest_of(&|unix_s| (unix_s / 86_400 + 3) / 7, keep.weekly));
    kept.extend(newest_of(&month, keep.monthly));
    kept.sort();
    kept.dedup();
    kept
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn backups_are_copies(steps in proptest::collection::vec(step(), 1..30)) {
        let (_scratch, mut repository) = repository();
        let mut files = Files::from([(FILES[0].to_owned(), bytes(0, 18 * PIECE + 100))]);
        let mut backups: BTreeMap<String, Copy> = BTreeMap::new();
        let mut segments: BTreeMap<Segment, Vec<u8>> = BTreeMap::new();
        let (mut now, mut position) = (1_800_000_000_i64, 0);
        for step in steps {
            match step {
                Step::Create { after } => {
                    now += after;
                    position += 5;
                    let (name, _) = create(&repository, now, &files, position);
                    let copy = Copy { unix_s: now, files: files.clone(), position };
                    prop_assert!(backups.insert(name.to_string(), copy).is_none());
                }
                Step::Abandon => {
                    let mut creating = repository.begin(crate::support::at(now)).unwrap();
                    for (path, content) in &files {
                        creating.put(path, 0o600, &mut &content[..], &mut |_| {}).unwrap();
                    }
                }
                Step::Change { file, piece, seed } => {
                    let content = files.entry(FILES[file].to_owned()).or_default();
                    let at = (piece * PIECE).min(content.len());
                    let end = content.len().min(at + PIECE);
                    content.splice(at..end, bytes(seed, end - at));
                }
                Step::Resize { file, length } => {
                    files.entry(FILES[file].to_owned()).or_default().resize(length, 7);
                }
                Step::Delete { file } => {
                    files.remove(FILES[file]);
                }
                Step::Prune(keep) => {
                    let pruned = repository.prune(keep, false).unwrap();
                    let kept = kept(&backups, keep);
                    backups.retain(|name, _| kept.contains(name));
                    let names: Vec<String> = pruned.kept.iter().map(ToString::to_string).collect();
                    prop_assert_eq!(names, kept);
                    segments.retain(|segment, _| {
                        backups.values().any(|copy| copy.position < segment.last)
                    });
                    repository = reopen(&repository);
                }
                Step::Segment { first, count, seed } => {
                    let segment = Segment { history: HISTORY, first, last: first + count };
                    let content = bytes(seed, (count * 100) as usize);
                    repository.put_segment(segment, &content).unwrap();
                    segments.insert(segment, content);
                }
            }
        }
        let names: Vec<String> =
            repository.backups().unwrap().iter().map(|it| it.name.to_string()).collect();
        prop_assert_eq!(&names, &backups.keys().cloned().collect::<Vec<_>>());
        for (name, copy) in &backups {
            prop_assert_eq!(&restore(&repository, name).unwrap(), &copy.files);
        }
        let found = repository.segments(HISTORY).unwrap();
        prop_assert_eq!(&found, &segments.keys().copied().collect::<Vec<_>>());
        for (segment, content) in &segments {
            prop_assert_eq!(&*repository.read_segment(segment).unwrap(), content);
        }
        prop_assert_eq!(verified(&repository), []);
    }
}
