//! A kept message says the same as its source, and has no more in it.

use super::wire::*;
use super::words::conversation;
use keyway_decode::view::{Full, Json, Printer, View};
use keyway_decode::{Kept, Note, Operation, Options, Secrets};

/// Tells of each operation, and of what is kept of it.
struct Both {
    first: Vec<u8>,
    second: Vec<u8>,
    octets: Vec<u8>,
}

impl View for Both {
    fn operation(&mut self, operation: &Operation<'_>, _: &mut Vec<u8>) {
        let kept = Kept::new(operation);
        Json.operation(operation, &mut self.first);
        Full.operation(operation, &mut self.first);
        Json.operation(&kept.operation(), &mut self.second);
        Full.operation(&kept.operation(), &mut self.second);
        kept.messages().for_each(|message| self.octets.extend_from_slice(message));
        assert!(kept.bytes() > kept.messages().map(<[u8]>::len).sum());
    }

    fn note(&mut self, _: &Note<'_>, _: &mut Vec<u8>) {}
}

#[test]
fn what_is_kept_says_the_same() {
    for secrets in [Secrets::Hidden, Secrets::Shown] {
        let both = Both { first: Vec::new(), second: Vec::new(), octets: Vec::new() };
        let mut printer = Printer::new(both, None, std::io::sink());
        let options = Options { secrets, keep_answers: true };
        into(&capture(&conversation().segments(1000)), options, &mut printer);
        let Both { first, second, octets } = printer.into_view();
        assert!(!first.is_empty());
        assert_eq!(String::from_utf8(first), String::from_utf8(second));
        let shown = octets.windows(7).any(|window| window == b"hunter2");
        assert_eq!(shown, secrets == Secrets::Shown);
    }
}
