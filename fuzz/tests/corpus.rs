//! Every target over its corpus: the seeds, and what once broke something.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use keyway_fuzz::TARGETS;

fn folder(path: &str) -> Vec<fs::DirEntry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.map(|entry| entry.expect("folder can be read")).collect()
}

#[test]
fn the_corpus_passes() {
    for (name, target) in TARGETS {
        let inputs = folder(&format!("corpus/{name}"));
        assert!(!inputs.is_empty(), "corpus/{name} has no seeds");
        for input in inputs {
            println!("{}", input.path().display()); // shown if the target panics
            target(&fs::read(input.path()).expect("input can be read"));
        }
    }
}

/// Bytes cut short, repeated or changed break parsers more often than random ones.
#[test]
fn the_corpus_spoilt_passes() {
    for (name, target) in TARGETS {
        for input in folder(&format!("corpus/{name}")) {
            println!("{}", input.path().display());
            let bytes = fs::read(input.path()).expect("input can be read");
            for at in 0..bytes.len().min(512) {
                target(&bytes[..at]);
                for flipped in [0x01, 0x20, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] ^= flipped;
                    target(&changed);
                }
            }
        }
    }
}

#[test]
fn targets_binaries_and_corpus_folders_are_the_same() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let corpora: BTreeSet<String> = folder("corpus").into_iter().map(name).collect();
    let binaries: BTreeSet<String> = folder("fuzz_targets")
        .into_iter()
        .map(|entry| name(entry).trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(corpora, targets);
    assert_eq!(binaries, targets);
}
