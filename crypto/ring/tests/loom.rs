//! Every order in which two processors may see what the other does, where loom is built in:
//! `RUSTFLAGS="--cfg loom" cargo test -p keyway-ring --test loom --release`.
#![cfg(loom)]

use keyway_ring::{Consumer, Producer, Words};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use loom::thread;

#[derive(Clone)]
struct Memory(Arc<Vec<AtomicU64>>);

impl Words for Memory {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

fn memory(words: usize) -> Memory {
    Memory(Arc::new((0..words).map(|_| AtomicU64::new(0)).collect()))
}

/// A client with one request more than the ring has entries, and a daemon that answers each: every
/// request is taken whole and answered once.
#[test]
fn requests_and_completions_cross_whole_and_once() {
    loom::model(|| {
        let memory = memory(8);
        let (submissions, completions) = (memory.clone(), memory.clone());
        let daemon = thread::spawn(move || {
            let mut requests = Consumer::<_, 2>::new(submissions, 0, 2, 0).unwrap();
            let mut answers = Producer::<_, 2>::new(completions, 4, 2, 0).unwrap();
            for _ in 0..3 {
                let [value, check] = loop {
                    match requests.pop() {
                        Some(entry) => break entry,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(value + 1, check);
                answers.push([value * 2, check]);
            }
        });
        let mut requests = Producer::<_, 2>::new(memory.clone(), 0, 2, 0).unwrap();
        let mut answers = Consumer::<_, 2>::new(memory, 4, 2, 0).unwrap();
        let (mut pushed, mut answered) = (0, 0);
        while answered < 3 {
            while pushed < 3 && pushed - answered < 2 {
                requests.push([pushed, pushed + 1]);
                pushed += 1;
            }
            match answers.pop() {
                Some(entry) => {
                    assert_eq!(entry, [answered * 2, answered + 1]);
                    answered += 1;
                }
                None => thread::yield_now(),
            }
        }
        daemon.join().unwrap();
    });
}

/// Arm, look again, sleep; publish, fence, look whether armed: a sleeper is never left asleep with
/// an entry in its ring.
#[test]
fn no_side_sleeps_over_an_entry() {
    loom::model(|| {
        let memory = memory(4);
        let (armed, rung) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let producer = {
            let (memory, armed, rung) = (memory.clone(), armed.clone(), rung.clone());
            thread::spawn(move || {
                Producer::<_, 2>::new(memory, 0, 2, 0).unwrap().push([7, 7]);
                fence(Ordering::SeqCst);
                if armed.swap(false, Ordering::Relaxed) {
                    rung.store(true, Ordering::Release);
                }
            })
        };
        let mut consumer = Consumer::<_, 2>::new(memory, 0, 2, 0).unwrap();
        armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = consumer.is_ready();
        producer.join().unwrap();
        // With nothing found it sleeps, and by now the bell must have rung.
        assert!(found || rung.load(Ordering::Acquire));
        assert_eq!(consumer.pop(), Some([7, 7]));
    });
}
