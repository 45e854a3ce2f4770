//! The note on changes: who has made them, when, over which connection, and why.

use crate::policy::micros;
use keyway_schema::operational::generalized_time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why something was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A client asked for it.
    Request,
    /// A bind went well or wrong, and an account's entry says so. Readers that want what users have changed may
    /// leave it out.
    Bind,
    /// A password that was right was stored again as new ones are.
    Upgrade,
    /// It was imported.
    Import,
    /// The server did it by itself.
    Server,
}

impl Reason {
    /// All of them, at the number that the note has for each.
    const ALL: [Reason; 5] =
        [Reason::Request, Reason::Bind, Reason::Upgrade, Reason::Import, Reason::Server];

    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Request => "request",
            Reason::Bind => "bind",
            Reason::Upgrade => "upgrade",
            Reason::Import => "import",
            Reason::Server => "server",
        }
    }
}

/// What the server notes with the changes of one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeNote {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// Why.
    pub reason: Reason,
    /// The number of the connection; 0 if it came over none.
    pub connection: u64,
    /// The message id of the request; 0 if there was none.
    pub operation: u32,
    /// The DN of the one who asked for it; empty if the server did it, or a client without a name.
    pub author: String,
}

const VERSION: u8 = 1;

impl ChangeNote {
    /// A note on something that no client asked for.
    pub fn own(reason: Reason, now: SystemTime) -> ChangeNote {
        ChangeNote { at: micros(now), reason, connection: 0, operation: 0, author: String::new() }
    }

    /// When, to the microsecond (RFC 3339).
    pub fn time(&self) -> String {
        let text = generalized_time(UNIX_EPOCH + Duration::from_micros(self.at));
        // The year may have more than four digits.
        let (year, rest) = text.split_at(text.len() - "MMDDhhmmssZ".len());
        let part = |at: usize| rest.get(at..at + 2).unwrap_or_default();
        let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(part);
        let micros = self.at % 1_000_000;
        format!("{year}-{month}-{day}T{hour}:{minute}:{second}.{micros:06}Z")
    }

    /// Its octets for [`Write::note`](keyway_store::Write::note):
    /// `version | reason | at (8 B BE) | connection (8 B BE) | operation (4 B BE) | author`
    pub fn encode(&self) -> Vec<u8> {
        let reason = Reason::ALL.iter().position(|reason| *reason == self.reason);
        let mut out = vec![VERSION, reason.unwrap_or_default() as u8];
        out.extend(self.at.to_be_bytes());
        out.extend(self.connection.to_be_bytes());
        out.extend(self.operation.to_be_bytes());
        out.extend(self.author.as_bytes());
        out
    }

    /// Reads a note; `None` if it is none that this version writes.
    pub fn decode(note: &[u8]) -> Option<ChangeNote> {
        let ([version, reason], rest) = note.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (connection, rest) = rest.split_first_chunk()?;
        let (operation, author) = rest.split_first_chunk()?;
        let reason = Reason::ALL.get(usize::from(*reason)).filter(|_| *version == VERSION)?;
        Some(ChangeNote {
            at: u64::from_be_bytes(*at),
            reason: *reason,
            connection: u64::from_be_bytes(*connection),
            operation: u32::from_be_bytes(*operation),
            author: str::from_utf8(author).ok()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_rfc_3339() {
        let note = |at| ChangeNote { at, ..ChangeNote::own(Reason::Server, UNIX_EPOCH) };
        assert_eq!(note(0).time(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(note(951_868_799_000_042).time(), "2000-02-29T23:59:59.000042Z");
        assert!(note(u64::MAX).time().ends_with(":49.551615Z"), "{}", note(u64::MAX).time());
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for reason in Reason::ALL {
            let author = "uid=\u{e9}ve,dc=example".to_owned();
            let note = ChangeNote { at: 1 << 50, reason, connection: 7, operation: 9, author };
            let bytes = note.encode();
            assert_eq!(ChangeNote::decode(&bytes), Some(note));
            for end in 0..22 {
                assert_eq!(ChangeNote::decode(&bytes[..end]), None);
            }
            assert_eq!(ChangeNote::decode(&[&[2], &bytes[1..]].concat()), None);
        }
        assert_eq!(ChangeNote::decode(&[]), None);
    }
}
