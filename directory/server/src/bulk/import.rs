//! Import: LDIF records, entries and changes, in large commits.

use super::prepare::{Group, Prepared};
use crate::directory::{Core, Directory};
use crate::failure::Failure;
use crate::integrity::{Claims, Disagreement};
use crate::limits::{
    IMPORT_ERRORS_KEPT_MAX, IMPORT_GROUP_BYTES_MAX, IMPORT_GROUP_PASSWORDS_MAX,
    IMPORT_GROUP_RECORDS_MAX, IMPORT_SCHEMES_MAX,
};
use keyway_codec::ldif::{LdifError, Reader, Record};
use keyway_store::Write;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Row of the store's meta table: an import that has begun and not ended.
const META_IMPORT: &str = "import";

/// Bytes of the input that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// How long an import waits when the committer's queue is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(2);

/// How an import is done.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// What is imported, for [`Directory::unfinished_import`].
    pub source: String,
    /// Go on after a record that is wrong.
    pub keep_going: bool,
    /// Leave out so many records at the beginning, because they have been imported.
    pub skip_records: u64,
}

/// How far an import has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records that are on the disk.
    pub records: u64,
    /// Bytes that have been read.
    pub bytes: u64,
    /// Records that were wrong.
    pub errors: u64,
    /// Passwords that have been hashed.
    pub passwords_hashed: u64,
}

/// A record that was not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The line of the input that is wrong, or that the record begins on.
    pub line: u64,
    /// The entry, if the record names one.
    pub dn: Option<String>,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(dn) = &self.dn {
            write!(f, ", entry \"{dn}\"")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl From<LdifError> for RecordError {
    fn from(error: LdifError) -> Self {
        RecordError { line: error.line, dn: error.dn, why: error.why.into() }
    }
}

/// What an import came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Records that were imported.
    pub records: u64,
    /// Records that were wrong.
    pub errors: u64,
    /// Passwords that were given as they are, and hashed.
    pub passwords_hashed: u64,
    /// Passwords that were kept as they are and match nothing, because they cannot be verified
    /// here: how many, by their scheme and why. Of more than [`IMPORT_SCHEMES_MAX`] schemes the
    /// rest is under "others".
    pub passwords_unverified: BTreeMap<String, u64>,
    /// Values that were left out, because they mean something only to the server that wrote them.
    pub left_out: u64,
    /// How what entries said of their groups compares with the groups.
    pub member_of: MemberOfReport,
    /// The first wrong records, up to [`IMPORT_ERRORS_KEPT_MAX`].
    pub first_errors: Vec<RecordError>,
}

/// Values of `memberOf` that came with entries. None is stored: it is worked out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberOfReport {
    /// Values that name a group which has the entry.
    pub agreeing: u64,
    /// Values that name one which has it not, or none.
    pub disagreeing: u64,
    /// Values that were too many to compare.
    pub unchecked: u64,
    /// The first of those that disagree.
    pub first: Vec<Disagreement>,
}

/// Why an import ended early. What was imported before stays.
#[derive(Debug)]
pub enum ImportError {
    /// The input cannot be read.
    Input(io::Error),
    /// A record is wrong, and the import was not to go on.
    Record {
        /// Which one, and why.
        error: RecordError,
        /// Records that were imported before it.
        records: u64,
    },
    /// The directory is at fault.
    Directory(Failure),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Input(error) => write!(f, "reading the import: {error}"),
            ImportError::Record { error, records } => {
                write!(f, "{error} ({records} records before it were imported)")
            }
            ImportError::Directory(failure) => f.write_str(&failure.diagnostic),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<Failure> for ImportError {
    fn from(failure: Failure) -> Self {
        ImportError::Directory(failure)
    }
}

/// An import that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// What was imported.
    pub source: String,
    /// How many of its records are done with. With so many to skip, it goes on where it was.
    pub records: u64,
}

impl Directory {
    /// Imports LDIF: entries, parents first, and changes. Blocks until all is on the disk.
    ///
    /// It is done as the administrator. Operational attributes that entries come with are kept,
    /// passwords are hashed. An entry that is in no naming context makes one, if it is of a class
    /// that trees begin with or the first entry of all. Many records go into one commit.
    ///
    /// # Errors
    /// The first wrong record, unless it is to go on; the input's errors and the store's.
    pub fn import(
        &self,
        input: &mut dyn Read,
        options: &ImportOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportReport, ImportError> {
        let mut import = Import {
            directory: self,
            options,
            progress,
            group: Group::default(),
            group_bytes: 0,
            seen: 0,
            bytes: 0,
            running: None,
            claims: Claims::default(),
            report: ImportReport::default(),
        };
        import.all(input)?;
        // Some are noticed when they are read, some when they are done.
        import.report.first_errors.sort_by_key(|error| error.line);
        import.compare_groups()?;
        let forget = |write: &mut Write<'_>| Ok::<_, Failure>(write.meta_delete(META_IMPORT)?);
        self.store.write_now(forget)?;
        Ok(import.report)
    }

    /// The import that was killed or stopped at a wrong record, if the last one was.
    ///
    /// # Errors
    /// The store's.
    pub fn unfinished_import(&self) -> Result<Option<Unfinished>, Failure> {
        let read = self.store.read()?;
        let row = read.view().meta_get(META_IMPORT)?;
        Ok(row.and_then(|row| {
            let (records, source) = str::from_utf8(row).ok()?.split_once(' ')?;
            Some(Unfinished { source: source.into(), records: records.parse().ok()? })
        }))
    }
}

/// A record of a group that was wrong, by its place in the group.
type Wrong = (usize, Failure);

struct Import<'a> {
    directory: &'a Directory,
    options: &'a ImportOptions,
    progress: &'a mut dyn FnMut(Progress),
    group: Group,
    group_bytes: usize,
    /// Records that have been read.
    seen: u64,
    bytes: u64,
    running: Option<Running>,
    /// What entries say of their groups.
    claims: Claims,
    report: ImportReport,
}

/// A group that is being committed.
struct Running {
    records: Arc<Vec<Prepared>>,
    answer: Receiver<Result<Vec<Wrong>, Failure>>,
}

impl Import<'_> {
    fn all(&mut self, input: &mut dyn Read) -> Result<(), ImportError> {
        let mut reader = Reader::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = match input.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ImportError::Input(error)),
            };
            self.bytes += read as u64;
            self.group_bytes += read;
            let mut rest = piece.get(..read).unwrap_or_default();
            while let Some(record) = reader.read(&mut rest) {
                self.record(record)?;
            }
        }
        if let Some(record) = reader.finish() {
            self.record(record)?;
        }
        self.flush()?;
        self.settle()
    }

    /// Says where `memberOf` and the groups, which are all in now, disagree.
    fn compare_groups(&mut self) -> Result<(), Failure> {
        let read = self.directory.store.read()?;
        let core = &self.directory.core;
        let (disagreements, first) = core.disagreements(read.view(), &self.claims)?;
        self.report.member_of = MemberOfReport {
            agreeing: (self.claims.len() as u64).saturating_sub(disagreements),
            disagreeing: disagreements,
            unchecked: self.claims.unchecked,
            first,
        };
        Ok(())
    }

    fn record(&mut self, record: Result<Record, LdifError>) -> Result<(), ImportError> {
        self.seen += 1;
        if self.seen <= self.options.skip_records {
            return Ok(());
        }
        let taken = match record {
            Err(error) => Err(error.into()),
            Ok(record) => {
                let (line, dn) = (record.line, record.dn.clone());
                let taken = self.group.take(self.directory, record, &mut self.claims);
                taken.map_err(|failure| RecordError { line, dn: Some(dn), why: failure.diagnostic })
            }
        };
        if let Err(error) = taken {
            if !self.options.keep_going {
                // What is right before it goes in, and so does a row that says how far it got.
                self.seen -= 1;
                self.flush()?;
                self.settle()?;
            }
            self.wrong(error)?;
        }
        if self.group.len() >= IMPORT_GROUP_RECORDS_MAX
            || self.group.hashed >= IMPORT_GROUP_PASSWORDS_MAX
            || self.group_bytes >= IMPORT_GROUP_BYTES_MAX
        {
            self.flush()?;
        }
        Ok(())
    }

    /// Notes a wrong record, or ends the import with it.
    fn wrong(&mut self, error: RecordError) -> Result<(), ImportError> {
        if !self.options.keep_going {
            return Err(ImportError::Record { error, records: self.report.records });
        }
        self.report.errors += 1;
        if self.report.first_errors.len() < IMPORT_ERRORS_KEPT_MAX {
            self.report.first_errors.push(error);
        }
        Ok(())
    }

    /// Hands the group to the committer, after the one before has been answered.
    fn flush(&mut self) -> Result<(), ImportError> {
        let group = std::mem::take(&mut self.group);
        self.report.left_out += group.left_out;
        self.report.passwords_hashed += group.hashed;
        for (scheme, count) in &group.unverified {
            let known = &mut self.report.passwords_unverified;
            let fits = known.len() < IMPORT_SCHEMES_MAX || known.contains_key(scheme);
            let scheme = if fits { scheme.clone() } else { "others".to_owned() };
            *known.entry(scheme).or_default() += count;
        }
        self.group_bytes = 0;
        let records = Arc::new(group.finish()?);
        self.settle()?;
        let answer = loop {
            let (sender, answer) = sync_channel(1);
            let job = job(&self.directory.core, records.clone(), self.options, self.seen);
            // The receiver waits in `running`, so the answer cannot go astray.
            let done = move |result| drop(sender.send(result));
            match self.directory.store.submit(job, done) {
                Ok(()) => break answer,
                // Others write as well; an import has time.
                Err(keyway_store::Error::Busy) => thread::sleep(QUEUE_PAUSE),
                Err(error) => return Err(Failure::from(error).into()),
            }
        };
        self.running = Some(Running { records, answer });
        Ok(())
    }

    /// Waits for the group that is being committed.
    fn settle(&mut self) -> Result<(), ImportError> {
        let Some(Running { records, answer }) = self.running.take() else { return Ok(()) };
        let gone = || Failure::new(keyway_codec::message::ResultCode::Unavailable, "it was closed");
        let wrong = answer.recv().map_err(|_| gone())??;
        let done = match wrong.last() {
            Some((last, _)) if !self.options.keep_going => *last,
            _ => records.len() - wrong.len(),
        };
        self.report.records += done as u64;
        for (index, failure) in wrong {
            let Some(Prepared { line, dn, .. }) = records.get(index) else { continue };
            let (line, dn) = (*line, Some(dn.clone()));
            self.wrong(RecordError { line, dn, why: failure.diagnostic })?;
        }
        (self.progress)(Progress {
            records: self.report.records,
            bytes: self.bytes,
            errors: self.report.errors,
            passwords_hashed: self.report.passwords_hashed,
        });
        Ok(())
    }
}

/// Does a group's records in turn. A wrong one changes nothing; the rest is done without it, or
/// left if the import is to stop.
fn job(
    core: &Arc<Core>,
    records: Arc<Vec<Prepared>>,
    options: &ImportOptions,
    seen: u64,
) -> impl FnMut(&mut Write<'_>) -> Result<Vec<Wrong>, Failure> + Send + 'static + use<> {
    let (core, keep_going, source) = (core.clone(), options.keep_going, options.source.clone());
    move |write| {
        let mut wrong = Vec::new();
        let mut left = 0;
        for (index, record) in records.iter().enumerate() {
            if let Err(failure) = record.operation.apply(&core, write) {
                wrong.push((index, failure));
                if !keep_going {
                    left = records.len() - index;
                    break;
                }
            }
        }
        let row = format!("{} {source}", seen.saturating_sub(left as u64));
        write.meta_put(META_IMPORT, row.as_bytes())?;
        Ok(wrong)
    }
}
