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
}

impl<R: Records> Lease<R> {
    /// Goes on after the record of this name, or begins one, with `fresh`'s base: a random number.
    ///
    /// # Errors
    /// If there is a record that cannot be read, or no base.
    pub fn open(
        records: &Arc<R>,
        name: String,
        fresh: impl FnOnce() -> io::Result<u64>,
    ) -> Result<Lease<R>, RecordError> {
        let (iv_base, end) = match records.read(&name)? {
            Some(record) => record::decode(&record).and_then(read).ok_or(RecordError::Damaged)?,
            // RFC 4303 § 3.3.3: the first number is 1.
            None => (fresh()?, 1),
        };
        Ok(Lease { records: records.clone(), name, iv_base, end, size: LEASE_MIN, last: None })
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
    /// The system's.
    pub fn take(&mut self, now: Duration) -> io::Result<Range<u64>> {
        let is_fast = self.last.is_some_and(|last| now.saturating_sub(last) < LEASE_FAST);
        let size = if is_fast { (self.size * 2).min(LEASE_MAX) } else { self.size };
        let end = self.end.saturating_add(size);
        let record = format!("iv_base {}\nend {end}\n", self.iv_base);
        self.records.write(&self.name, &record::encode(&record))?;
        let start = std::mem::replace(&mut self.end, end);
        (self.size, self.last) = (size, Some(now));
        Ok(start..end)
    }
}

fn read(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines();
    let mut next = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    let (iv_base, end) = (next("iv_base")?, next("end")?);
    (end > 0).then_some((iv_base, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Steps;
    use proptest::prelude::*;
    use std::cell::{Cell, RefCell};
    use std::collections::{BTreeMap, HashSet};

    /// A disk that loses what was not synced, and fails where it is told to.
    #[derive(Default)]
    struct Model {
        /// Files by number: their bytes, and those that are on the disk.
        files: RefCell<Vec<(Vec<u8>, Option<Vec<u8>>)>>,
        names: RefCell<BTreeMap<String, usize>>,
        names_on_disk: RefCell<BTreeMap<String, usize>>,
        /// Steps that still succeed.
        steps: Cell<Option<u32>>,
    }

    impl Model {
        fn step(&self) -> io::Result<()> {
            match self.steps.get() {
                Some(0) => Err(io::ErrorKind::StorageFull.into()),
                Some(left) => {
                    self.steps.set(Some(left - 1));
                    Ok(())
                }
                None => Ok(()),
            }
        }

        /// The disk after a power cut. `names_made_it`: the system has written names that were not synced;
        /// `bytes_made_it`: and bytes.
        fn cut(&self, names_made_it: bool, bytes_made_it: bool) -> Model {
            let names = if names_made_it { &self.names } else { &self.names_on_disk };
            let files = self.files.borrow();
            let files = files.iter().map(|(bytes, synced)| {
                let kept = if bytes_made_it { Some(bytes.clone()) } else { synced.clone() };
                (kept.clone().unwrap_or_default(), kept)
            });
            Model {
                files: RefCell::new(files.collect()),
                names: names.clone(),
                names_on_disk: names.clone(),
                steps: Cell::new(None),
            }
        }
    }

    impl Steps for Model {
        type Draft = usize;

        fn draft(&self, name: &str, bytes: &[u8]) -> io::Result<usize> {
            self.step()?;
            let mut files = self.files.borrow_mut();
            files.push((bytes.to_vec(), None));
            self.names.borrow_mut().insert(name.to_owned(), files.len() - 1);
            Ok(files.len() - 1)
        }

        fn sync(&self, draft: &usize) -> io::Result<()> {
            self.step()?;
            if let Some((bytes, synced)) = self.files.borrow_mut().get_mut(*draft) {
                *synced = Some(bytes.clone());
            }
            Ok(())
        }

        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            self.step()?;
            let mut names = self.names.borrow_mut();
            let file = names.remove(from).ok_or(io::ErrorKind::NotFound)?;
            names.insert(to.to_owned(), file);
            Ok(())
        }

        fn sync_names(&self) -> io::Result<()> {
            self.step()?;
            *self.names_on_disk.borrow_mut() = self.names.borrow().clone();
            Ok(())
        }

        fn bytes(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
            let file = self.names.borrow().get(name).copied();
            Ok(file.and_then(|file| Some(self.files.borrow().get(file)?.0.clone())))
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
                let mut lease = Lease::open(&records, "key".to_owned(), || Ok(base)).unwrap();
                for take in 0..takes {
                    // The last one is cut off.
                    records.steps.set((take + 1 == takes).then_some(steps));
                    if let Ok(range) = lease.take(Duration::ZERO) {
                        ranges.push(range);
                        bases.insert(lease.iv_base());
                    }
                }
                if tries_again {
                    // There is room again.
                    records.steps.set(None);
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
        let open = || Lease::open(&records, "key".to_owned(), || Ok(7));
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
    fn a_lease_that_is_used_up_fast_grows_and_the_last_number_is_the_end() {
        let records = Arc::new(Model::default());
        let mut lease = Lease::open(&records, "key".to_owned(), || Ok(7)).unwrap();
        let mut take = |seconds| {
            let range = lease.take(Duration::from_secs(seconds)).unwrap();
            range.end - range.start
        };
        assert_eq!((take(100), take(101), take(102)), (LEASE_MIN, 2 * LEASE_MIN, 4 * LEASE_MIN));
        assert_eq!((take(200), take(300)), (4 * LEASE_MIN, 4 * LEASE_MIN));
        assert_eq!((0..20).map(|_| take(300)).last(), Some(LEASE_MAX));
        let record = record::encode(&format!("iv_base 7\nend {}\n", u64::MAX - 1));
        records.write("key", &record).unwrap();
        let mut lease = Lease::open(&records, "key".to_owned(), || Ok(7)).unwrap();
        assert_eq!(lease.take(Duration::ZERO).unwrap(), u64::MAX - 1..u64::MAX);
        assert!(lease.take(Duration::ZERO).unwrap().is_empty());
    }
}
