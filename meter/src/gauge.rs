//! Numbers that go up and down: set by one thread at a time, or moved by any.

use crate::counter::{Counter, counter_of};

/// A named number that goes up and down. Cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge(Counter);

/// The gauge of that name: the one there is, or a new one that is 0. As [`counter`](crate::counter()).
///
/// # Panics
/// In debug builds, if the name is not covered by a gauge in [`EVENTS`](crate::EVENTS).
pub fn gauge(name: &str) -> Gauge {
    Gauge(counter_of(name, |event| event.is_gauge()))
}

impl Gauge {
    /// Sets it; for a gauge that a single thread sets, and no thread moves.
    pub fn set(self, value: u64) {
        // Its place is a counter's, whose shards are summed: the sum wraps.
        self.0.add(value.wrapping_sub(self.0.value()));
    }

    /// Moves it by so much, up or down. Any thread may, and it costs what a counter costs.
    #[inline]
    pub fn move_by(self, difference: i64) {
        self.0.add(difference.cast_unsigned());
    }

    /// The value that it was set or moved to.
    pub fn value(self) -> u64 {
        self.0.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_it_was_set_to_whoever_sets_it() {
        let gauge = gauge("tls.certificate.ends");
        gauge.set(7);
        let other = std::thread::spawn(move || gauge.set(3));
        assert!(other.join().is_ok());
        assert_eq!(gauge.value(), 3);
        gauge.set(u64::MAX);
        assert_eq!(gauge.value(), u64::MAX);
        gauge.set(0);
        assert_eq!(gauge.value(), 0);
    }

    #[test]
    fn threads_move_it_together() {
        let gauge = gauge("ldap.queue");
        gauge.move_by(5);
        let other = std::thread::spawn(move || gauge.move_by(-3));
        assert!(other.join().is_ok());
        assert_eq!(gauge.value(), 2);
        gauge.move_by(-2);
        assert_eq!(gauge.value(), 0);
    }
}
