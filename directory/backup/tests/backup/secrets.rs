//! The secret that a repository is opened with.

use crate::support::{Files, create, engine, key, restore};
use keyway_backup::{Error, Protection, Repository, Sealer, Secret};
use keyway_engine::Zeroizing;
use std::io::{self, ErrorKind};

fn passphrase(text: &str) -> Secret<'static> {
    Secret::Passphrase(Zeroizing::new(text.as_bytes().to_vec()))
}

/// A key that seals by turning bits, and knows its own.
struct Turning {
    label: &'static str,
    by: u8,
    is_there: bool,
}

impl Sealer for Turning {
    fn label(&self) -> &str {
        self.label
    }

    fn seal(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let turned = bytes.iter().map(|byte| byte ^ self.by);
        Ok(turned.chain([self.by]).collect())
    }

    fn unseal(&self, bytes: &[u8]) -> io::Result<Zeroizing<Vec<u8>>> {
        if !self.is_there {
            return Err(io::Error::new(ErrorKind::ConnectionRefused, "no daemon listens"));
        }
        match bytes.split_last() {
            Some((by, bytes)) if *by == self.by => {
                Ok(Zeroizing::new(bytes.iter().map(|byte| byte ^ by).collect()))
            }
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

#[test]
fn a_secret_opens_what_it_has_made_and_no_other_does() {
    let ours = Turning { label: "backups", by: 0x5a, is_there: true };
    let others = Turning { label: "backups", by: 0x5b, is_there: true };
    let named_otherwise = Turning { label: "mail", by: 0x5a, is_there: true };
    let away = Turning { label: "backups", by: 0x5a, is_there: false };
    let held = Protection::Held { label: "backups".to_owned() };
    let secrets: [(Secret<'_>, Protection, &[Secret<'_>], &[Secret<'_>]); 3] = [
        (
            passphrase("correct horse"),
            Protection::Passphrase,
            &[passphrase("correct horses"), passphrase("x")],
            &[key(1), Secret::Held(&ours)],
        ),
        (key(1), Protection::KeyFile, &[key(2)], &[passphrase("\x01"), Secret::Held(&ours)]),
        (
            Secret::Held(&ours),
            held,
            &[Secret::Held(&others)],
            &[key(1), passphrase("x"), Secret::Held(&named_otherwise)],
        ),
    ];
    for (right, protection, wrong, other) in secrets {
        let scratch = tempfile::tempdir().unwrap();
        let repository = Repository::create(scratch.path(), engine(), &right).unwrap();
        let files = Files::from([("f".to_owned(), b"content".to_vec())]);
        create(&repository, 0, &files, 0);
        let folder = repository.folder();
        assert_eq!(Repository::protection(folder).unwrap(), protection);
        for secret in wrong {
            let why = Repository::open(folder, engine(), secret).err().unwrap();
            assert!(matches!(why, Error::WrongSecret { .. }), "{secret:?}: {why}");
        }
        for secret in other {
            let why = Repository::open(folder, engine(), secret).err().unwrap();
            assert!(matches!(why, Error::OtherSecret { .. }), "{secret:?}: {why}");
            assert!(why.to_string().ends_with(&protection.to_string()), "{why}");
        }
        let repository = Repository::open(folder, engine(), &right).unwrap();
        assert_eq!(restore(&repository, "latest").unwrap(), files);
        if matches!(right, Secret::Held(_)) {
            let why = Repository::open(folder, engine(), &Secret::Held(&away)).err().unwrap();
            assert!(matches!(why, Error::Held { .. }), "{why}");
            assert!(why.to_string().contains("backups: no daemon listens"), "{why}");
        }
    }
}

#[test]
fn an_empty_passphrase_makes_no_repository() {
    let scratch = tempfile::tempdir().unwrap();
    let why = Repository::create(scratch.path(), engine(), &passphrase("")).err().unwrap();
    assert!(why.to_string().contains("the passphrase is empty"), "{why}");
    Repository::create(scratch.path(), engine(), &key(1)).unwrap();
}

#[test]
fn a_chunk_of_another_repository_with_the_same_key_file_is_no_chunk_of_this_one() {
    let scratch = tempfile::tempdir().unwrap();
    let made = ["a", "b"].map(|name| {
        let repository = Repository::create(&scratch.path().join(name), engine(), &key(1)).unwrap();
        create(&repository, 0, &Files::from([("f".to_owned(), b"content".to_vec())]), 0);
        repository
    });
    let [chunk, others] = made.each_ref().map(|it| crate::support::stored(it, "chunks").remove(0));
    assert_ne!(chunk.file_name(), others.file_name(), "names do not show that contents are equal");
    std::fs::copy(&others, &chunk).unwrap();
    assert!(restore(&made[0], "latest").unwrap_err().contains("it was altered"));
}
