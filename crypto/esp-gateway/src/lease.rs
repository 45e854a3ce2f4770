//! Numbers that are leased ahead, so that no key sees one twice, whenever the process or the machine ends.
//!
//! A record is on the disk *before* a number below its end is used. A start takes the numbers from that end on: those
//! that were leased and not used are lost. A record that cannot be read, or is not whole, is an error and no fresh
//! start.

use crate::limits::{LEASE_FAST, LEASE_MAX, LEASE_MIN};
use crate::record::{self, RecordError, Records};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The numbers of a key that seals.
pub struct Lease<R> {
    records: Arc<R>,
    name: String,
    /// Added to a number, wrapping, it makes the IV of an AEAD.
    iv_base: u64,
    /// The first number that is not leased.
    end: u64,
    /// Numbers that are taken at once.
    size: u64,
    /// When numbers were last taken, on the caller's clock.
    last: Option<Duration>,
    /// The record as it was read or written last; after a write that failed, as that may have left it, too.
    known: Vec<Option<Vec<u8>>>,
}

impl<R: Records> Lease<R> {
    /// Goes on after the record of this name, or begins one, with `fresh`'s base: a random number. `used` is the highest
    /// number that is known to have been used; 0 for none.
    ///
    /// # Errors
    /// If there is a record that cannot be read, is another key's, or ends before what was used; or no base.
    pub fn open(
        records: &Arc<R>,
        name: String,
        used: u64,
        fresh: impl FnOnce() -> io::Result<u64>,
    ) -> Result<Lease<R>, RecordError> {
        let record = records.read(&name)?;
        let (iv_base, end) = match &record {
            Some(record) => {
                let text = record::decode(record).ok_or(RecordError::Damaged)?;
                read(text, &name).ok_or(RecordError::Damaged)?
            }
            // RFC 4303 § 3.3.3: the first number is 1.
            None => (fresh()?, 1),
        };
        if used >= end {
            return Err(RecordError::Older);
        }
        let (records, known) = (records.clone(), vec![record]);
        Ok(Lease { records, name, iv_base, end, size: LEASE_MIN, last: None, known })
    }

    /// The name of its record.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Added to a number, wrapping, it makes the IV of an AEAD.
    pub fn iv_base(&self) -> u64 {
        self.iv_base
    }

    /// Numbers that the last lease had.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the numbers that follow. They may be used when this returns, for this key and no other; where it fails,
    /// none of them may. Of a key that needs them fast it takes more from time to time. `now` is the caller's
    /// monotonic clock.
    ///
    /// # Errors
    /// The system's; and if the record is no longer the one that was written last, since then others use the key's numbers.
    pub fn take(&mut self, now: Duration) -> io::Result<Range<u64>> {
        let is_fast = self.last.is_some_and(|last| now.saturating_sub(last) < LEASE_FAST);
        let size = if is_fast { (self.size * 2).min(LEASE_MAX) } else { self.size };
        let end = self.end.saturating_add(size);
        let there = self.records.read(&self.name)?;
        if !self.known.contains(&there) {
            return Err(io::Error::other(
                "it was changed meanwhile: another gateway uses the folder, or an old copy was put back; stop both, and \
                 give both sides new keys",
            ));
        }
        let record = format!("key {}\niv_base {}\nend {end}\n", self.name, self.iv_base);
        let record = record::encode(&record);
        self.known = vec![there, Some(record.clone())];
        self.records.write(&self.name, &record)?;
        self.known = vec![Some(record)];
        let start = std::mem::replace(&mut self.end, end);
        (self.size, self.last) = (size, Some(now));
        Ok(start..end)
    }
}

fn read(text: &str, name: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines();
    if lines.next()?.strip_prefix("key ")? != name {
        return None;
    }
    let mut next = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    let (iv_base, end) = (next("iv_base")?, next("end")?);
    (end > 0).then_some((iv_base, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Steps;
    use keyway_lock::Unpoisoned;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashSet};
    use std::sync::{Mutex, MutexGuard};

    /// A disk that loses what was not synced, and fails where it is told to.
    #[derive(Default)]
    struct Model(Mutex<Disk>);

    #[derive(Clone, Default)]
    struct Disk {
        /// Files by number.
        files: Vec<Bytes>,
        names: BTreeMap<String, usize>,
        names_on_disk: BTreeMap<String, usize>,
        /// Steps that still succeed; `None` for all.
        steps: Option<u32>,
    }

    #[derive(Clone, Default)]
    struct Bytes {
        written: Vec<u8>,
        /// Those that are on the disk.
        synced: Vec<u8>,
    }

    impl Model {
        fn fail_after(&self, steps: Option<u32>) {
            self.0.lock().unpoisoned().steps = steps;
        }

        fn step(&self) -> io::Result<MutexGuard<'_, Disk>> {
            let mut disk = self.0.lock().unpoisoned();
            match &mut disk.steps {
                Some(0) => return Err(io::ErrorKind::StorageFull.into()),
                Some(left) => *left -= 1,
                None => {}
            }
            Ok(disk)
        }

        /// The disk after a power cut. `names_made_it`: the system has written names that were not synced;
        /// `bytes_made_it`: and bytes.
        fn cut(&self, names_made_it: bool, bytes_made_it: bool) -> Model {
            let mut disk = self.0.lock().unpoisoned().clone();
            if !names_made_it {
                disk.names = disk.names_on_disk.clone();
            }
            disk.names_on_disk = disk.names.clone();
            for file in &mut disk.files {
                match bytes_made_it {
                    true => file.synced = file.written.clone(),
                    false => file.written = file.synced.clone(),
                }
            }
            disk.steps = None;
            Model(Mutex::new(disk))
        }
    }

    impl Steps for Model {
        type Draft = usize;

        fn draft(&self, name: &str, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.step()?;
            disk.files.push(Bytes { written: bytes.to_vec(), synced: Vec::new() });
            let number = disk.files.len() - 1;
            disk.names.insert(name.to_owned(), number);
            Ok(number)
        }

        fn sync(&self, draft: &usize) -> io::Result<()> {
            let mut disk = self.step()?;
            if let Some(file) = disk.files.get_mut(*draft) {
                file.synced = file.written.clone();
            }
            Ok(())
        }

        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            let mut disk = self.step()?;
            let file = disk.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
            disk.names.insert(to.to_owned(), file);
            Ok(())
        }

        fn sync_names(&self) -> io::Result<()> {
            let mut disk = self.step()?;
            disk.names_on_disk = disk.names.clone();
            Ok(())
        }

        fn names(&self) -> io::Result<Vec<String>> {
            Ok(self.0.lock().unwrap().names.keys().cloned().collect())
        }

        fn bytes(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
            let disk = self.0.lock().unpoisoned();
            let file = disk.names.get(name).and_then(|number| disk.files.get(*number));
            Ok(file.map(|file| file.written.clone()))
        }
    }

    proptest! {
        /// A model that is cut off between any two steps, however often: each number is taken once, and so is each IV.
        #[test]
        fn no_number_is_taken_twice(
            lives in prop::collection::vec((1..4_u32, 0..6_u32, any::<(bool, bool)>(), any::<bool>()), 1..12),
        ) {
            let mut records = Arc::new(Model::default());
            let mut ranges: Vec<Range<u64>> = Vec::new();
            let mut bases = HashSet::new();
            let mut base = 0_u64;
            for (takes, steps, made_it, tries_again) in lives {
                base += 1 << 40;
                let mut lease = Lease::open(&records, "key".to_owned(), 0, || Ok(base)).unwrap();
                for take in 0..takes {
                    // The last one is cut off.
                    records.fail_after((take + 1 == takes).then_some(steps));
                    if let Ok(range) = lease.take(Duration::ZERO) {
                        ranges.push(range);
                        bases.insert(lease.iv_base());
                    }
                }
                if tries_again {
                    // There is room again.
                    records.fail_after(None);
                    ranges.push(lease.take(Duration::ZERO).unwrap());
                    bases.insert(lease.iv_base());
                }
                records = Arc::new(records.cut(made_it.0, made_it.1));
            }
            ranges.sort_by_key(|range| range.start);
            prop_assert!(ranges.iter().all(|range| !range.is_empty() && range.start > 0));
            prop_assert!(ranges.is_sorted_by(|one, next| one.end <= next.start), "{ranges:?}");
            prop_assert!(bases.len() <= 1, "the base has changed: {bases:?}");
        }
    }

    #[test]
    fn a_damaged_record_is_no_fresh_start() {
        let records = Arc::new(Model::default());
        let open = || Lease::open(&records, "key".to_owned(), 0, || Ok(7));
        open().unwrap().take(Duration::ZERO).unwrap();
        let good = records.read("key").unwrap().unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            records.write("key", &bad).unwrap();
            assert!(matches!(open(), Err(RecordError::Damaged)), "{at}");
            records.write("key", &good[..at]).unwrap();
            assert!(matches!(open(), Err(RecordError::Damaged)), "{at}");
        }
        records.write("key", &[&good[..], b"\n"].concat()).unwrap();
        assert!(matches!(open(), Err(RecordError::Damaged)));
        records.write("key", &good).unwrap();
        assert_eq!(open().unwrap().take(Duration::ZERO).unwrap().start, 1 + LEASE_MIN);
    }

    #[test]
    fn a_record_that_is_gone_or_old_or_of_another_key_is_refused() {
        let records = Arc::new(Model::default());
        let open = |name: &str, used| Lease::open(&records, name.to_owned(), used, || Ok(7));
        assert!(matches!(open("key", 1), Err(RecordError::Older)));
        let mut lease = open("key", 0).unwrap();
        let numbers = lease.take(Duration::ZERO).unwrap();
        let old = records.read("key").unwrap().unwrap();
        assert_eq!(
            open("key", numbers.end - 1).unwrap().take(Duration::ZERO).unwrap().start,
            numbers.end
        );
        assert!(matches!(open("key", 2 * numbers.end), Err(RecordError::Older)));
        // Another lease has written: this one takes nothing more, and after the old copy neither.
        assert!(lease.take(Duration::ZERO).is_err());
        records.write("key", &old).unwrap();
        assert!(lease.take(Duration::ZERO).is_ok());
        records.write("key", &old).unwrap();
        assert!(lease.take(Duration::ZERO).is_err());
        records.write("other", &old).unwrap();
        assert!(matches!(open("other", 0), Err(RecordError::Damaged)));
    }

    #[test]
    fn a_lease_that_is_used_up_fast_grows_and_the_last_number_is_the_end() {
        let records = Arc::new(Model::default());
        let mut lease = Lease::open(&records, "key".to_owned(), 0, || Ok(7)).unwrap();
        let mut take = |seconds| {
            let range = lease.take(Duration::from_secs(seconds)).unwrap();
            range.end - range.start
        };
        assert_eq!((take(100), take(101), take(102)), (LEASE_MIN, 2 * LEASE_MIN, 4 * LEASE_MIN));
        assert_eq!((take(200), take(300)), (4 * LEASE_MIN, 4 * LEASE_MIN));
        assert_eq!((0..20).map(|_| take(300)).last(), Some(LEASE_MAX));
        let record = record::encode(&format!("key key\niv_base 7\nend {}\n", u64::MAX - 1));
        records.write("key", &record).unwrap();
        let mut lease = Lease::open(&records, "key".to_owned(), 0, || Ok(7)).unwrap();
        assert_eq!(lease.take(Duration::ZERO).unwrap(), u64::MAX - 1..u64::MAX);
        assert!(lease.take(Duration::ZERO).unwrap().is_empty());
    }
}
