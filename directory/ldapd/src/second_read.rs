//! Whether a connection is read from once more when it has been answered, before it waits for the poller.
//!
//! A client that an answer wakes on this core runs before the answering thread goes on, and may have sent its next
//! request by then: one read then saves a round through the poller. Where clients run elsewhere the read finds
//! nothing and is lost, which costs about a microsecond. So each connection goes by what its own reads found.

/// Reads after which it is decided whether they go on.
const TRIED: u8 = 8;

/// How many of these have to find something.
const FOUND_MIN: u8 = 4;

/// Answers without such a read, after reads that mostly found nothing.
const PAUSE: u8 = 248;

/// What the second reads of a connection have found.
#[derive(Default)]
pub(crate) struct SecondRead {
    tried: u8,
    found: u8,
    /// Answers before the next one is tried.
    pause: u8,
}

impl SecondRead {
    /// Whether to read once more behind an answer.
    pub fn is_worth_it(&mut self) -> bool {
        match self.pause.checked_sub(1) {
            Some(pause) => self.pause = pause,
            None => return true,
        }
        false
    }

    /// Notes whether such a read found anything.
    pub fn note(&mut self, found: bool) {
        self.tried += 1;
        self.found += u8::from(found);
        if self.tried == TRIED {
            self.pause = if self.found < FOUND_MIN { PAUSE } else { 0 };
            (self.tried, self.found) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PAUSE, SecondRead, TRIED};

    /// How many of so many answers are followed by a read, if `finds` says what each finds.
    fn reads(answers: usize, finds: impl Fn(usize) -> bool) -> usize {
        let (mut second, mut reads) = (SecondRead::default(), 0);
        for _ in 0..answers {
            if second.is_worth_it() {
                second.note(finds(reads));
                reads += 1;
            }
        }
        reads
    }

    #[test]
    fn reads_go_on_while_half_of_them_find_something() {
        assert_eq!(reads(10_000, |_| true), 10_000);
        assert_eq!(reads(10_000, |read| read % 2 == 0), 10_000);
    }

    #[test]
    fn reads_that_find_nothing_are_tried_now_and_then() {
        let round = usize::from(TRIED) + usize::from(PAUSE);
        assert_eq!(reads(10 * round, |_| false), 10 * usize::from(TRIED));
        assert_eq!(reads(10 * round, |read| read % 4 == 0), 10 * usize::from(TRIED));
    }

    #[test]
    fn they_begin_again_when_clients_come_nearer() {
        let tried = usize::from(TRIED);
        let (pause, answers) = (usize::from(PAUSE), 10_000);
        assert_eq!(reads(answers, |read| read >= tried), answers - pause);
    }
}
