//! The use that keys have had: how far a key that opens has come, since when, and how much each has done.
//!
//! One file for all keys, written every few seconds. After a crash the last seconds are not in it: so much more may a
//! key be used than its lifetime says, and so many packets may be replayed. The numbers of keys that seal are leased
//! and not here.

use crate::limits::KEYS_KEPT_MAX;
use crate::record::{self, RecordError, Records};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::sync::Arc;

/// The file's name.
const NAME: &str = "use";

/// The use of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// When it was first used, in seconds since 1970.
    pub since: u64,
    /// Of a key that opens, the highest number that was seen; 0 for none.
    pub highest: u64,
    /// Packets that it has done.
    pub packets: u64,
    /// Bytes of what was inside of them.
    pub bytes: u64,
}

/// The use of all keys, by the names of their records.
pub struct Uses<R> {
    records: Arc<R>,
    keys: BTreeMap<String, Used>,
    has_changed: bool,
}

impl<R: Records> Uses<R> {
    /// As it was left.
    ///
    /// # Errors
    /// If there is a record that cannot be read.
    pub fn open(records: &Arc<R>) -> Result<Uses<R>, RecordError> {
        let keys = match records.read(NAME)? {
            Some(record) => record::decode(&record).and_then(read).ok_or(RecordError::Damaged)?,
            None => BTreeMap::new(),
        };
        Ok(Uses { records: records.clone(), keys, has_changed: false })
    }

    /// That of a key, which is used from `now` on (in seconds since 1970) if it was not before.
    pub fn of(&mut self, key: &str, now: u64) -> Used {
        if let Some(used) = self.keys.get(key) {
            return *used;
        }
        if self.keys.len() >= KEYS_KEPT_MAX {
            let oldest = self.keys.iter().min_by_key(|(_, used)| used.since);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.keys.remove(&key));
        }
        let used = Used { since: now, ..Used::default() };
        self.set(key, used);
        used
    }

    /// Says what that of a key is now.
    pub fn set(&mut self, key: &str, used: Used) {
        let before = self.keys.insert(key.to_owned(), used);
        self.has_changed |= before != Some(used);
    }

    /// Has it on the disk.
    ///
    /// # Errors
    /// The system's. The next time it is tried again.
    pub fn keep(&mut self) -> io::Result<()> {
        if !self.has_changed {
            return Ok(());
        }
        let mut text = String::new();
        for (key, Used { since, highest, packets, bytes }) in &self.keys {
            // To write to a string does not fail.
            let _ = writeln!(text, "{key} {since} {highest} {packets} {bytes}");
        }
        self.records.write(NAME, &record::encode(&text))?;
        self.has_changed = false;
        Ok(())
    }
}

fn read(text: &str) -> Option<BTreeMap<String, Used>> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let key = words.next()?.to_owned();
        let mut next = || words.next()?.parse().ok();
        let used = Used { since: next()?, highest: next()?, packets: next()?, bytes: next()? };
        words.next().is_none().then_some((key, used))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateFolder;

    #[test]
    fn it_is_as_it_was_left() {
        let place = tempfile::tempdir().unwrap();
        let records = Arc::new(StateFolder::open(&place.path().join("state")).unwrap());
        let mut uses = Uses::open(&records).unwrap();
        assert_eq!(uses.of("a", 5), Used { since: 5, ..Used::default() });
        let used = Used { since: 5, highest: 1 << 40, packets: 7, bytes: 9 };
        uses.set("b", used);
        uses.keep().unwrap();
        uses.set("b", Used::default());
        let mut again = Uses::open(&records).unwrap();
        assert_eq!(
            (again.of("b", 99), again.of("a", 99).since, again.of("c", 99).since),
            (used, 5, 99)
        );
        records.write(NAME, &record::encode("a 1 2 3\n")).unwrap();
        assert!(matches!(Uses::open(&records), Err(RecordError::Damaged)));
    }
}
