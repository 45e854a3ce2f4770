//! When a process that has ended is started again.

use crate::limits::{RESTART_FORGET, RESTART_PAUSE, RESTARTS_MAX};
use std::time::Duration;

/// How often one process has ended in a row.
#[derive(Default)]
pub struct Restarts {
    in_a_row: u32,
}

/// The step after an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another start, of this number in the row, after a pause.
    Start(u32, Duration),
    /// It has ended too often.
    GiveUp,
}

impl Restarts {
    /// Counts an end of a process that served for so long.
    pub fn after(&mut self, served: Duration) -> Next {
        if served >= RESTART_FORGET {
            self.in_a_row = 0;
        }
        self.in_a_row += 1;
        match self.in_a_row {
            1 => Next::Start(1, Duration::ZERO),
            number if number > RESTARTS_MAX => Next::GiveUp,
            number => Next::Start(number, RESTART_PAUSE * (1 << (number - 2))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_it_is_enough() {
        let mut restarts = Restarts::default();
        let mut row = || -> Vec<_> {
            let ends = |_| match restarts.after(Duration::from_millis(1)) {
                Next::Start(_, pause) => Some(pause.as_millis()),
                Next::GiveUp => None,
            };
            (0..=RESTARTS_MAX).map(ends).collect()
        };
        let expected =
            [Some(0), Some(100), Some(200), Some(400), Some(800), Some(1600), None].to_vec();
        assert_eq!(row(), expected);
        // One that has served for long begins anew, also behind others that have not.
        let mut restarts = Restarts::default();
        for _ in 0..100 {
            for number in 1..=RESTARTS_MAX {
                let pause = |next| matches!(next, Next::Start(row, _) if row == number);
                assert!(pause(restarts.after(RESTART_FORGET * u32::from(number == 1))));
            }
            assert_eq!(restarts.after(RESTART_FORGET), Next::Start(1, Duration::ZERO));
        }
    }
}
