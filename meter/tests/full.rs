//! A page that has no room for more; alone in its process.

use keyway_meter::limits::{COUNTERS_MAX, HISTOGRAMS_MAX, NAME_BYTES_MAX};
use keyway_meter::{counter, histogram};

#[test]
fn what_has_no_room_shares_one_counter() {
    let make = |name: &str| counter(&format!("engine.test.{name}.operations"));
    let full_length = "x".repeat(NAME_BYTES_MAX - "engine.test..operations".len());
    let overflow = make(&format!("{full_length}x"));
    assert_eq!(make("with space"), overflow);
    assert_eq!(make("\u{e4}"), overflow);
    assert_ne!(make(&full_length), overflow);
    // The overflow itself and the one of full length are there already.
    for n in 2..COUNTERS_MAX {
        assert_ne!(make(&n.to_string()), overflow);
    }
    assert_eq!(make("one-more"), overflow);
    make("and-another").add(3);
    assert_eq!(overflow.value(), 3);
    assert_ne!(make("2"), overflow);
}

#[test]
fn what_has_no_room_shares_one_histogram() {
    let make = |name: &str| histogram(&format!("engine.test.{name}.run"));
    let overflow = make(&"x".repeat(NAME_BYTES_MAX));
    for n in 1..HISTOGRAMS_MAX {
        assert_ne!(make(&n.to_string()), overflow);
    }
    assert_eq!(make("one-more"), overflow);
    make("and-another").record(3);
    assert_eq!(overflow.read().count, 1);
    assert_eq!(make("2").read().count, 0);
}
