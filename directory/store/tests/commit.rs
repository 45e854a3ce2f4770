//! Group commit: the answers to each caller, and how often they come.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use keyway_store::{Entry, EntryId, Error, Options, Read, Store, Write};

fn open(dir: &Path, queue_jobs_max: usize) -> Store {
    let options =
        Options { sync: false, map_bytes_max: 64 << 20, queue_jobs_max, ..Options::default() };
    Store::open(dir, options).unwrap()
}

fn add(write: &mut Write<'_>, name: &str) -> Result<EntryId, Error> {
    write.insert(EntryId::ROOT, name.as_bytes(), &Entry::default(), &[])
}

fn is_there(store: &Store, name: &str) -> bool {
    let read = store.read().unwrap();
    read.view().check().unwrap();
    read.view().child(EntryId::ROOT, name.as_bytes()).unwrap().is_some()
}

/// Holds the committer inside a job until the gate is dropped, so that what is submitted meanwhile
/// becomes one group.
fn gate(store: &Store) -> Sender<()> {
    let (gate, closed) = channel::<()>();
    let (entered, inside) = channel();
    store
        .submit(
            move |_| {
                entered.send(()).unwrap();
                let _ = closed.recv();
                Ok::<_, Error>(())
            },
            |result| result.unwrap(),
        )
        .unwrap();
    inside.recv().unwrap();
    gate
}

/// Answers in the order they came, with the names of their jobs.
type Answers = Receiver<(&'static str, Result<EntryId, Error>)>;

struct Submitter {
    store: Store,
    answers: Sender<(&'static str, Result<EntryId, Error>)>,
}

impl Submitter {
    fn new(store: &Store) -> (Submitter, Answers) {
        let (answers, heard) = channel();
        (Submitter { store: store.clone(), answers }, heard)
    }

    fn submit(
        &self,
        name: &'static str,
        job: impl FnMut(&mut Write<'_>) -> Result<EntryId, Error> + Send + 'static,
    ) -> Result<(), Error> {
        let answers = self.answers.clone();
        self.store.submit(job, move |result| answers.send((name, result)).unwrap())
    }
}

#[test]
fn a_failing_job_undoes_itself_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), 100);
    let (submitter, answers) = Submitter::new(&store);
    let runs = Arc::new(AtomicUsize::new(0));
    let held = gate(&store);
    let counted = Arc::clone(&runs);
    submitter
        .submit("before", move |w| {
            counted.fetch_add(1, Ordering::Relaxed);
            add(w, "before")
        })
        .unwrap();
    submitter.submit("refused", |w| w.delete(EntryId(77), b"x", &[]).map(|()| EntryId(0))).unwrap();
    submitter
        .submit("undone", |w| {
            add(w, "undone")?;
            Err(Error::NotFound)
        })
        .unwrap();
    submitter.submit("between", |w| add(w, "between")).unwrap();
    submitter
        .submit("panicked", |w| {
            add(w, "panicked")?;
            panic!("as the test wants it");
        })
        .unwrap();
    submitter.submit("twice", |w| add(w, "before")).unwrap();
    submitter.submit("after", |w| add(w, "after")).unwrap();
    drop(held);
    drop(submitter);
    let mut heard: Vec<_> = answers.iter().collect();
    heard.sort_by_key(|(name, _)| *name);
    let outcome = |name: &str| {
        let mut all = heard.iter().filter(|(n, _)| *n == name);
        let (_, result) = all.next().unwrap();
        assert!(all.next().is_none(), "{name} was answered twice");
        result.clone()
    };
    assert_eq!(heard.len(), 7);
    for name in ["before", "between", "after"] {
        assert!(outcome(name).is_ok(), "{name}");
        assert!(is_there(&store, name), "{name}");
    }
    assert!(matches!(outcome("refused"), Err(Error::NotFound)));
    assert!(matches!(outcome("undone"), Err(Error::NotFound)));
    assert!(matches!(outcome("panicked"), Err(Error::JobPanicked)));
    assert!(matches!(outcome("twice"), Err(Error::Exists)));
    assert!(!is_there(&store, "undone") && !is_there(&store, "panicked"));
    assert_eq!(runs.load(Ordering::Relaxed), 2, "it ran again without the one that failed");
    assert_eq!(store.failed(), None);
}

#[test]
fn a_full_queue_says_busy_and_forgets_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), 2);
    let (submitter, answers) = Submitter::new(&store);
    let held = gate(&store);
    submitter.submit("a", |w| add(w, "a")).unwrap();
    submitter.submit("b", |w| add(w, "b")).unwrap();
    assert!(matches!(submitter.submit("c", |w| add(w, "c")), Err(Error::Busy)));
    drop(held);
    drop(submitter);
    let heard: Vec<_> = answers.iter().map(|(name, result)| (name, result.is_ok())).collect();
    assert_eq!(heard, [("a", true), ("b", true)]);
    store.write_now(|w| add(w, "c")).unwrap();
}

#[test]
fn closing_answers_all_that_was_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), 2000);
    let (submitter, answers) = Submitter::new(&store);
    let held = gate(&store);
    for n in 0..1500 {
        submitter.submit("job", move |w| add(w, &format!("n{n}"))).unwrap();
    }
    let other = store.clone();
    drop(held);
    store.close().unwrap();
    assert!(matches!(submitter.submit("late", |w| add(w, "late")), Err(Error::Failed { .. })));
    let late = other.write_now(|w| add(w, "late"));
    assert!(matches!(late, Err(Error::Failed { .. })));
    assert_eq!(other.read().unwrap().view().entry_count().unwrap(), 1500);
    drop(submitter);
    assert_eq!(answers.iter().filter(|(_, result)| result.is_ok()).count(), 1500);
}

#[test]
fn the_last_handle_may_go_in_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), 10);
    let (ended, end) = channel();
    let held = gate(&store);
    let last = store.clone();
    store
        .submit(
            |w| add(w, "a"),
            move |result: Result<EntryId, Error>| {
                result.unwrap();
                drop(last);
                ended.send(()).unwrap();
            },
        )
        .unwrap();
    drop(store);
    drop(held);
    end.recv().unwrap();
    // The committer lets go of the lock a moment later; opening waits for nothing, so try again.
    let again = loop {
        match Store::open(dir.path(), Options { sync: false, ..Options::default() }) {
            Err(keyway_store::OpenError::Locked { .. } | keyway_store::OpenError::Unfinished) => {
                std::thread::yield_now();
            }
            other => break other.unwrap(),
        }
    };
    assert!(is_there(&again, "a"));
}

#[test]
fn a_job_that_hides_a_broken_transaction_is_not_committed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { sync: false, map_bytes_max: 1 << 20, ..Options::default() };
    let store = Store::open(dir.path(), options).unwrap();
    let large = Entry { rdn: "x".repeat(2 << 20), attributes: vec![], ..Entry::default() };
    let hidden = store.write_now(move |w| {
        add(w, "small")?;
        let _ = w.insert(EntryId::ROOT, b"large", &large, &[]);
        Ok::<_, Error>(())
    });
    assert!(matches!(hidden, Err(Error::MapFull { map_bytes: 1048576 })), "{hidden:?}");
    assert!(!is_there(&store, "small"));
    store.write_now(|w| add(w, "small")).unwrap();
    assert!(is_there(&store, "small") && store.failed().is_none());
}

#[test]
fn one_read_too_many_is_refused_until_another_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), 10);
    let limit = keyway_store::limits::READERS_MAX as usize;
    let mut reads: Vec<Read> = (0..limit).map(|_| store.read().unwrap()).collect();
    assert!(matches!(store.read().map(drop), Err(Error::TooManyReaders)));
    store.write_now(|w| add(w, "a")).unwrap();
    reads.pop();
    assert!(is_there(&store, "a"));
}

#[test]
fn handles_move_between_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Read>();
    send::<Store>();
    sync::<Store>();
    send::<keyway_store::Names>();
}
