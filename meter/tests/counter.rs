//! Counters of one process.

use keyway_meter::limits::SHARDS;
use keyway_meter::{Counter, counter};
use std::sync::Barrier;
use std::thread;

const ADDITIONS: u64 = 200_000;

fn test_counter(name: &str) -> Counter {
    counter(&format!("engine.test.{name}.operations"))
}

#[test]
fn a_name_means_one_counter() {
    let first = test_counter("same");
    first.add(3);
    assert_eq!(test_counter("same"), first);
    assert_eq!(test_counter("same").value(), 3);
    assert_eq!(test_counter("other").value(), 0);
}

#[test]
fn threads_beyond_the_shards_lose_nothing() {
    let counter = test_counter("crowd");
    let late = 4;
    let all_claimed = Barrier::new(SHARDS + late);
    let all_counted = Barrier::new(SHARDS + late);
    thread::scope(|scope| {
        // These hold every shard until the others, who find none, are done.
        for _ in 0..SHARDS {
            scope.spawn(|| {
                counter.increment();
                all_claimed.wait();
                all_counted.wait();
            });
        }
        for _ in 0..late {
            scope.spawn(|| {
                all_claimed.wait();
                (0..ADDITIONS).for_each(|_| counter.increment());
                all_counted.wait();
            });
        }
    });
    assert_eq!(counter.value(), SHARDS as u64 + late as u64 * ADDITIONS);
}

#[test]
fn threads_that_come_and_go_return_their_shards() {
    let counter = test_counter("passing");
    for _ in 0..20 * SHARDS {
        thread::scope(|scope| {
            scope.spawn(|| counter.add(2));
            scope.spawn(|| counter.add(5));
        });
    }
    assert_eq!(counter.value(), 20 * SHARDS as u64 * 7);
}

#[test]
fn a_counter_works_while_its_thread_is_torn_down() {
    struct Last(Counter);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.increment();
        }
    }
    thread_local!(static LAST: Last = Last(test_counter("last")));
    thread::spawn(|| LAST.with(|last| last.0.increment())).join().unwrap();
    thread::spawn(|| {
        test_counter("last").increment();
        LAST.with(|_| ());
    })
    .join()
    .unwrap();
    // In one of the two orders of destruction the shard was given back before.
    assert_eq!(test_counter("last").value(), 4);
}

#[test]
fn additions_wrap() {
    let counter = test_counter("wrapping");
    counter.add(u64::MAX);
    counter.add(2);
    assert_eq!(counter.value(), 1);
}

#[test]
#[cfg(debug_assertions)]
fn a_counter_outside_the_list_is_noticed() {
    for name in ["ldap.serach", "engine.software.sha-256.run"] {
        assert!(std::panic::catch_unwind(|| counter(name)).is_err(), "{name}");
    }
}
