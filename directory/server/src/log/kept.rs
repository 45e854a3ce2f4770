//! Lines of the audit log that are kept in the store, in the transaction of the change that they tell of, until
//! the log's file is known to be on the disk: a cut of power between the two takes none of them.
//!
//! Rows are numbered without gaps, since each is written together with the number of the next.

use super::record::{LogKind, Record, Value};
use crate::failure::Result;
use keyway_store::{View, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Number of the next row.
const NEXT: &str = "audit-next";
/// Number of the first row that is there.
const FIRST: &str = "audit-first";

fn row(number: u64) -> String {
    format!("audit-{number:020}")
}

/// A line that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub(super) at: SystemTime,
    pub(super) connection: u64,
    pub(super) operation: u64,
    pub(super) event: String,
    pub(super) from: String,
    pub(super) author: String,
    pub(super) dn: String,
    pub(super) new_rdn: String,
    pub(super) new_superior: String,
    pub(super) attributes: Vec<String>,
}

impl Kept {
    /// Hands the line to `put` as a record.
    pub fn record(&self, put: impl FnOnce(&Record<'_>)) {
        let attributes = match self.attributes.is_empty() {
            true => Value::None,
            false => Value::List(&self.attributes),
        };
        let fields = [
            ("connection", Value::Number(self.connection)),
            ("operation", Value::Number(self.operation)),
            ("from", Value::Text(&self.from)),
            ("as", Value::Text(&self.author)),
            ("dn", Value::Text(&self.dn)),
            ("attributes", attributes),
            ("new_rdn", Value::filled(&self.new_rdn)),
            ("new_superior", Value::filled(&self.new_superior)),
        ];
        put(&Record { at: self.at, kind: LogKind::Audit, event: &self.event, fields: &fields });
    }

    /// Keeps it with the change that is being made. Returns the number of the row after it.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn put(&self, write: &mut Write<'_>) -> Result<u64> {
        let number = number(write.view(), NEXT)?;
        write.local_put(&row(number), &self.encode())?;
        write.local_put(NEXT, &(number + 1).to_be_bytes())?;
        Ok(number + 1)
    }

    fn encode(&self) -> Vec<u8> {
        let nanoseconds = self.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut out = Vec::new();
        for number in
            [u64::try_from(nanoseconds).unwrap_or(u64::MAX), self.connection, self.operation]
        {
            out.extend(number.to_be_bytes());
        }
        let texts =
            [&self.event, &self.from, &self.author, &self.dn, &self.new_rdn, &self.new_superior];
        for text in texts.into_iter().chain(&self.attributes) {
            // None is as long: they were cut when they were made.
            out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend(text.as_bytes());
        }
        out
    }

    /// `None` for what is no such row.
    fn decode(mut bytes: &[u8]) -> Option<Kept> {
        let mut number = || {
            let (number, rest) = bytes.split_first_chunk::<8>()?;
            bytes = rest;
            Some(u64::from_be_bytes(*number))
        };
        let (at, connection, operation) = (number()?, number()?, number()?);
        let mut texts = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            let (text, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            texts.push(String::from_utf8(text.to_vec()).ok()?);
            bytes = rest;
        }
        let mut texts = texts.into_iter();
        let mut text = || texts.next();
        let [event, from, author] = [text()?, text()?, text()?];
        let [dn, new_rdn, new_superior] = [text()?, text()?, text()?];
        let at = UNIX_EPOCH + Duration::from_nanos(at);
        let attributes = texts.collect();
        Some(Kept {
            at,
            connection,
            operation,
            event,
            from,
            author,
            dn,
            new_rdn,
            new_superior,
            attributes,
        })
    }
}

/// All that are kept, and the number of the row after them.
///
/// # Errors
/// The store's.
pub(crate) fn all(view: View<'_>) -> Result<(Vec<Kept>, u64)> {
    let (first, next) = (number(view, FIRST)?, number(view, NEXT)?);
    let mut kept = Vec::new();
    for number in first..next {
        // One that is spoilt is a line less, and no reason not to serve.
        kept.extend(view.meta_get(&row(number))?.and_then(Kept::decode));
    }
    Ok((kept, next))
}

/// The number of the first that is kept, or would be.
///
/// # Errors
/// The store's.
pub(crate) fn first(view: View<'_>) -> Result<u64> {
    number(view, FIRST)
}

/// Forgets those before a number: their lines are on the disk.
///
/// # Errors
/// The store's.
pub(crate) fn forget(write: &mut Write<'_>, until: u64) -> Result<()> {
    let first = number(write.view(), FIRST)?;
    for number in first..until {
        write.local_delete(&row(number))?;
    }
    Ok(write.local_put(FIRST, &until.max(first).to_be_bytes())?)
}

/// The number in a row; 0 if there is none.
fn number(view: View<'_>, name: &str) -> Result<u64> {
    let found = view.meta_get(name)?.and_then(|row| row.try_into().ok());
    Ok(found.map_or(0, u64::from_be_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written_and_forgotten_in_order() {
        let place = tempfile::tempdir().unwrap();
        let store =
            keyway_store::Store::open(place.path(), keyway_store::Options::default()).unwrap();
        let line = |n: u64| Kept {
            at: UNIX_EPOCH + Duration::from_micros(1_800_000_000_000_000 + n),
            connection: 7,
            operation: n,
            event: "modify".into(),
            from: "192.0.2.1:9".into(),
            author: "cn=admin,cn=keyway".into(),
            dn: "uid=\u{e9}ve,dc=example".into(),
            new_rdn: String::new(),
            new_superior: String::new(),
            attributes: (0..n).map(|n| format!("replace a{n}")).collect(),
        };
        for n in 0..5 {
            let next = store.write_now(move |write| line(n).put(write)).unwrap();
            assert_eq!(next, n + 1);
        }
        let all = || super::all(store.read().unwrap().view()).unwrap();
        assert_eq!(all(), ((0..5).map(line).collect(), 5));
        store.write_now(|write| forget(write, 3)).unwrap();
        assert_eq!(all(), ((3..5).map(line).collect(), 5));
        store.write_now(|write| forget(write, 5)).unwrap();
        assert_eq!(all(), (Vec::new(), 5));
        let whole = line(3).encode();
        for end in 0..whole.len() {
            if let Some(cut) = Kept::decode(&whole[..end]) {
                assert!(cut.attributes.len() < 3, "whole texts only");
            }
        }
    }
}
