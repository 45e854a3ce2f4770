//! Read transactions that are used again: what they see, and what they hold up.

use keyway_store::{Error, Options, Read, Store, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const ROW: &str = "count";

fn store(dir: &tempfile::TempDir) -> Store {
    let options = Options { sync: false, map_bytes_max: 256 << 20, ..Options::default() };
    Store::open(&dir.path().join("store"), options).unwrap()
}

fn count(read: &Read) -> u64 {
    let row = read.view().meta_get(ROW).unwrap().unwrap_or_default();
    row.try_into().map_or(0, u64::from_be_bytes)
}

/// Adds one, and returns what there is then.
fn add(store: &Store) -> u64 {
    let job = |write: &mut Write<'_>| {
        let row = write.view().meta_get(ROW)?.unwrap_or_default();
        let count = row.try_into().map_or(0, u64::from_be_bytes) + 1;
        write.meta_put(ROW, &count.to_be_bytes())?;
        Ok::<_, Error>(count)
    };
    store.write_now(job).unwrap()
}

#[test]
fn no_read_sees_less_than_one_before_it_or_than_was_answered() {
    const WRITERS: usize = 16;
    const READERS: usize = 6;
    const WRITES: u64 = 60;
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    // The greatest count that a reader has seen, or a writer was told of.
    let known = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let look = |store: &Store, known: &AtomicU64| {
        let before = known.load(Ordering::SeqCst);
        let read = store.read().unwrap();
        let seen = count(&read);
        assert!(seen >= before, "{before} was known and {seen} is there");
        known.fetch_max(seen, Ordering::SeqCst);
    };
    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    look(&store, &known);
                }
            });
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..WRITES {
                        let written = add(&store);
                        known.fetch_max(written, Ordering::SeqCst);
                        look(&store, &known);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(count(&store.read().unwrap()), WRITERS as u64 * WRITES);
    store.close().unwrap();
}

#[test]
fn reads_that_ended_hold_up_nothing() {
    /// Pages that the data file has after so many changes, beside reads that come and go.
    fn bytes(reads: usize) -> u64 {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir);
        for _ in 0..300 {
            add(&store);
            let open: Vec<Read> = (0..reads).map(|_| store.read().unwrap()).collect();
            drop(open);
            let size = store.size().unwrap();
            assert_eq!((size.readers, size.reader_lag), (0, 0));
        }
        let bytes = store.size().unwrap().bytes;
        store.close().unwrap();
        bytes
    }
    assert_eq!(bytes(20), bytes(0));
}

#[test]
fn a_read_is_used_again_and_ends_with_the_next_change() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    add(&store);
    let long = store.read().unwrap();
    drop(store.read().unwrap());
    assert_eq!(count(&store.read().unwrap()), 1);
    assert_eq!(store.size().unwrap().readers, 1, "one is open, and the other is kept");
    add(&store);
    assert_eq!((count(&long), count(&store.read().unwrap())), (1, 2));
    // It sees an earlier state, so it is not kept.
    drop(long);
    assert_eq!(count(&store.read().unwrap()), 2);
    assert_eq!(store.size().unwrap().reader_lag, 0);
    store.close().unwrap();
}

#[test]
fn a_change_that_failed_leaves_reads_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    add(&store);
    drop(store.read().unwrap());
    let fail = |write: &mut Write<'_>| {
        write.meta_put(ROW, &9u64.to_be_bytes())?;
        Err::<(), _>(Error::Exists)
    };
    assert!(matches!(store.write_now(fail), Err(Error::Exists)));
    assert_eq!(count(&store.read().unwrap()), 1);
    add(&store);
    assert_eq!(count(&store.read().unwrap()), 2);
    store.close().unwrap();
}
