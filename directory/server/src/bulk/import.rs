//! Import: LDIF records, entries and changes, in large commits.

use super::notes::{Note, Notes};
use super::prepare::{Group, Prepared, Taken, may_be_top, undefined};
use super::seen::Seen;
use super::spool::{ScratchMaker, Spool};
use crate::access::Rule;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::feed::{ChangeNote, Reason};
use crate::integrity::{Disagreement, ImportedMemberOf};
use crate::limits::{
    IMPORT_DEFINED_MAX, IMPORT_ERRORS_KEPT_MAX, IMPORT_GROUP_BYTES_MAX, IMPORT_GROUP_PASSWORDS_MAX,
    IMPORT_GROUP_RECORDS_MAX, IMPORT_GROUPS_MAX, IMPORT_SCHEMES_MAX, IMPORT_WAITING_MAX,
};
use crate::state::Snapshot;
use crate::write::{Operation, take_rules};
use keyway_codec::dn::Dn;
use keyway_codec::ldif::{LdifError, Lines, Reader, Record};
use keyway_codec::message::ResultCode;
use keyway_schema::EntryName;
use keyway_store::Write;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Rows of the store's meta table: an import that has begun and not ended; which of its records wait
/// for the entries above them.
const META_IMPORT: &str = "import";
const META_WAITING: &str = "import-waiting";

/// Bytes of the input that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// How long an import waits when the committer's queue is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(2);

/// How an import is done.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The name of the input, for [`Directory::unfinished_import`].
    pub source: String,
    /// Go on after a record that is wrong.
    pub keep_going: bool,
    /// Leave out so many records at the beginning, because they have been imported. They have to be those of the
    /// import that has not ended, if there is one.
    pub skip_records: u64,
    /// Store passwords that are given as they are with a hash that is fast, {SSHA512}.
    pub fast_passwords: bool,
    /// Makes files for what has to wait; without it that is kept in memory.
    pub scratch: Option<ScratchMaker>,
    /// Whether an entry begins a tree only if it is of a class that trees begin with (`domain`, `organization`,
    /// ...). Without it a container (`organizationalUnit`) does too, if the entry above it never comes: databases
    /// of other servers have such suffixes.
    pub whole_trees: bool,
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
    /// Why it is wrong.
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

/// The outcome of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Records that were there, those aside that were to be left out.
    pub read: u64,
    /// Records that were imported.
    pub records: u64,
    /// Records that were wrong.
    pub errors: u64,
    /// Passwords that were given as they are, and hashed.
    pub passwords_hashed: u64,
    /// Passwords that were kept as they are and match nothing, because they cannot be verified
    /// here: how many, by their scheme and why. The schemes beyond [`IMPORT_SCHEMES_MAX`] are together
    /// under "others".
    pub passwords_unverified: BTreeMap<String, u64>,
    /// The differences from the input that were made without a loss.
    pub notes: Notes,
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

/// Why an import ended early. The records that were imported before stay.
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
    /// The records that are to be left out, because they have been imported, are not those.
    Another {
        /// How many records were imported.
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
            ImportError::Another { records } => {
                write!(f, "its first {records} records are not those that were imported")
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
    /// The name of the input.
    pub source: String,
    /// How many of its records are done with. With so many to skip, it goes on where it was.
    pub records: u64,
    /// Tells these records from others; an import of an earlier version has none.
    mark: Option<u64>,
}

impl Unfinished {
    /// Reads a row: `RECORDS[:MARK] SOURCE`.
    fn of_row(row: &[u8]) -> Option<Unfinished> {
        let (reached, source) = str::from_utf8(row).ok()?.split_once(' ')?;
        let (records, mark) = match reached.split_once(':') {
            Some((records, mark)) => (records, Some(u64::from_str_radix(mark, 16).ok()?)),
            None => (reached, None),
        };
        Some(Unfinished { source: source.into(), records: records.parse().ok()?, mark })
    }
}

impl Directory {
    /// Imports LDIF: entries and changes. Blocks until all is on the disk.
    ///
    /// It is done as the administrator. Operational attributes that entries come with are kept,
    /// passwords are hashed. An entry that is in no naming context makes one, if it is of a class
    /// that trees begin with, or if nothing else is left and [`ImportOptions::whole_trees`] allows it. One that
    /// comes before the entry above it waits for that; if it never comes, the record is wrong. Many records go
    /// into one commit.
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
            fills: self.entry_count()? == 0,
            group: Group::default(),
            group_bytes: 0,
            seen: Seen::default(),
            before: Seen::default(),
            skipped: self.skipped(options)?,
            held: VecDeque::new(),
            bytes: 0,
            running: VecDeque::new(),
            waiting: Vec::new(),
            waiting_names: HashSet::new(),
            before_parent: HashSet::new(),
            retried: VecDeque::new(),
            spool: Spool::default(),
            resumed: self.waiting_records(options)?,
            is_retry: false,
            outside: None,
            imported_member_of: ImportedMemberOf::default(),
            defined: 0,
            report: ImportReport::default(),
        };
        import.all(input)?;
        // Some are noticed when they are read, some when they are done.
        import.report.first_errors.sort_by_key(|error| error.line);
        import.compare_groups()?;
        let forget = |write: &mut Write<'_>| {
            write.local_delete(META_WAITING)?;
            Ok::<_, Failure>(write.local_delete(META_IMPORT)?)
        };
        self.store.write_now(forget)?;
        Ok(import.report)
    }

    /// The records of an import that is gone on with that were waiting; sorted. Forgets those of
    /// another.
    fn waiting_records(&self, options: &ImportOptions) -> Result<Vec<u64>, Failure> {
        if options.skip_records == 0 {
            let forget =
                |write: &mut Write<'_>| Ok::<_, Failure>(write.local_delete(META_WAITING)?);
            self.store.write_now(forget)?;
            return Ok(Vec::new());
        }
        let read = self.store.read()?;
        let mut waiting = read.view().meta_get(META_WAITING)?.map(waiting_of).unwrap_or_default();
        waiting.sort_unstable();
        Ok(waiting)
    }

    /// The import that was killed or stopped at a wrong record, if the last one was.
    ///
    /// # Errors
    /// The store's.
    pub fn unfinished_import(&self) -> Result<Option<Unfinished>, Failure> {
        let read = self.store.read()?;
        Ok(read.view().meta_get(META_IMPORT)?.and_then(Unfinished::of_row))
    }

    /// The mark of the records that are to be left out, where that is known.
    fn skipped(&self, options: &ImportOptions) -> Result<Option<u64>, Failure> {
        let unfinished = self.unfinished_import()?;
        let ours = unfinished.filter(|unfinished| unfinished.records == options.skip_records);
        Ok(ours.and_then(|unfinished| unfinished.mark))
    }
}

/// The records that wait, of the store's row.
fn waiting_of(row: &[u8]) -> Vec<u64> {
    let text = str::from_utf8(row).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|index| index.parse().ok()).collect()
}

/// A record of a group that was wrong, by its place in the group.
type Wrong = (usize, Failure);

/// The outcome of a group.
#[derive(Default)]
struct Outcome {
    /// How many records were done.
    done: u64,
    wrong: Vec<Wrong>,
    /// Records whose entry above is not there yet, by their places.
    waiting: Vec<usize>,
    /// Records whose entry is there already as it is, by their places.
    repeated: Vec<usize>,
    /// The access rules that entries hold now, if they have changed.
    rules: Option<Vec<Rule>>,
}

/// An entry that waits for the one above it.
struct Waiting {
    index: u64,
    line: u64,
    dn: String,
    /// No naming context holds it, so that it has not been looked at yet.
    is_outside: bool,
}

/// Why attributes could not be defined.
enum NotDefined {
    /// Something else is wrong.
    Import(ImportError),
    /// They cannot be.
    Record(Failure),
}

struct Import<'a> {
    directory: &'a Directory,
    options: &'a ImportOptions,
    progress: &'a mut dyn FnMut(Progress),
    /// Whether it fills a directory that had no entries. Its changes are left out of the feed, where each would be
    /// once more in full.
    fills: bool,
    group: Group,
    group_bytes: usize,
    /// Records that have been read.
    seen: Seen,
    /// Those before the last one.
    before: Seen,
    /// The mark of those that are left out, where that is known.
    skipped: Option<u64>,
    /// Records that an earlier try left waiting, until it is known that these are the ones.
    held: VecDeque<(u64, Result<Record, LdifError>)>,
    bytes: u64,
    /// Groups at the committer, the first one first.
    running: VecDeque<Running>,
    /// Entries that wait, and what they are, in one order.
    waiting: Vec<Waiting>,
    /// The canonical forms of their names.
    waiting_names: HashSet<Vec<u8>>,
    /// The canonical forms of the names of entries that are noted to have come before the one above them.
    before_parent: HashSet<Vec<u8>>,
    spool: Spool,
    /// Those that are tried again just now, the next one first.
    retried: VecDeque<Waiting>,
    /// Records that an earlier try left waiting.
    resumed: Vec<u64>,
    /// Whether what is read has waited.
    is_retry: bool,
    /// The entry with the shortest name of those that no naming context holds.
    outside: Option<(usize, String)>,
    /// The groups that entries name in `memberOf`.
    imported_member_of: ImportedMemberOf,
    /// Attributes that had no definition, and were given one.
    defined: usize,
    report: ImportReport,
}

/// A group that is being committed.
struct Running {
    records: Arc<Vec<Prepared>>,
    answer: Receiver<Result<Outcome, Failure>>,
    /// The row that it leaves if all of its records are done.
    row: String,
}

impl Import<'_> {
    fn all(&mut self, input: &mut dyn Read) -> Result<(), ImportError> {
        self.pass(input)?;
        while !self.waiting.is_empty() {
            let before = self.waiting.len();
            let outside = self.outside.take();
            self.again()?;
            if self.waiting.len() < before {
                continue;
            }
            let Some((_, dn)) = outside.filter(|_| !self.options.whole_trees) else { break };
            if self.directory.add_naming_context(&dn).is_err() {
                break;
            }
            self.never_came(&dn);
            self.report.notes.add(Note::Top, 1, &dn);
        }
        let left = std::mem::take(&mut self.waiting);
        left.iter().for_each(|one| self.never_came(&one.dn));
        for Waiting { line, dn, .. } in left {
            let why = match self.missing_above(&dn) {
                Some(missing) => format!(
                    "the entry above it, \"{missing}\", is neither in the directory nor among what was imported"
                ),
                None => "no naming context holds this DN".to_owned(),
            };
            self.wrong(RecordError { line, dn: Some(dn), why })?;
        }
        Ok(())
    }

    /// Forgets the note that an entry came before the one above it.
    fn never_came(&mut self, dn: &str) {
        let name = EntryName::parse(&self.directory.snapshot().schema, dn);
        if name.is_ok_and(|name| self.before_parent.remove(&name.canonical())) {
            self.report.notes.take_back(Note::BeforeParent, dn);
        }
    }

    /// The first entry above this one that does not wait itself.
    fn missing_above(&self, dn: &str) -> Option<String> {
        let mut name = EntryName::parse(&self.directory.snapshot().schema, dn).ok()?.parent();
        while self.waiting_names.contains(&name.canonical()) {
            name = name.parent();
        }
        (!name.is_root()).then(|| name.text())
    }

    /// Tries those once more that wait.
    fn again(&mut self) -> Result<(), ImportError> {
        let mut kept = std::mem::take(&mut self.spool).read().map_err(ImportError::Input)?;
        self.retried = std::mem::take(&mut self.waiting).into();
        self.waiting_names.clear();
        let mut reader = Reader::new();
        let mut piece = vec![0; PIECE_BYTES];
        self.is_retry = true;
        loop {
            let read = kept.read(&mut piece).map_err(ImportError::Input)?;
            let mut rest = piece.get(..read).unwrap_or_default();
            let mut records = Vec::new();
            while let Some(record) = reader.read(&mut rest) {
                records.push(record);
            }
            if read == 0 {
                records.extend(reader.finish());
            }
            for record in records {
                let Some(waiting) = self.retried.pop_front() else { break };
                self.group.is_told = !waiting.is_outside;
                let record = record.map(|record| Record { line: waiting.line, ..record });
                self.take(waiting.index, record)?;
            }
            if read == 0 {
                break;
            }
        }
        self.flush()?;
        self.settle()
    }

    /// Reads the input once.
    fn pass(&mut self, input: &mut dyn Read) -> Result<(), ImportError> {
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
        if self.seen.records < self.options.skip_records {
            return Err(ImportError::Another { records: self.options.skip_records });
        }
        self.flush()?;
        self.settle()
    }

    /// Says where `memberOf` and the groups, which are all in now, disagree.
    fn compare_groups(&mut self) -> Result<(), Failure> {
        let read = self.directory.store.read()?;
        let snapshot = &self.directory.snapshot();
        let (disagreements, first) =
            snapshot.disagreements(read.view(), &self.imported_member_of)?;
        self.report.member_of = MemberOfReport {
            agreeing: (self.imported_member_of.len() as u64).saturating_sub(disagreements),
            disagreeing: disagreements,
            unchecked: self.imported_member_of.unchecked,
            first,
        };
        Ok(())
    }

    fn record(&mut self, record: Result<Record, LdifError>) -> Result<(), ImportError> {
        self.before.clone_from(&self.seen);
        self.seen.add(&record);
        let (index, skipped) = (self.seen.records, self.options.skip_records);
        if index > skipped {
            self.report.read += 1;
            return self.take(index, record);
        }
        if self.resumed.binary_search(&index).is_ok() {
            self.held.push_back((index, record));
        }
        if index < skipped {
            return Ok(());
        }
        if self.skipped.is_some_and(|mark| mark != self.seen.mark()) {
            return Err(ImportError::Another { records: skipped });
        }
        self.is_retry = true;
        while let Some((index, record)) = self.held.pop_front() {
            self.report.read += 1;
            self.take(index, record)?;
        }
        self.flush()?;
        self.settle()?;
        self.is_retry = false;
        Ok(())
    }

    fn take(&mut self, index: u64, record: Result<Record, LdifError>) -> Result<(), ImportError> {
        let defined = record.as_ref().map_or(Ok(()), |record| self.define(record));
        let taken = match (record, defined) {
            (_, Err(NotDefined::Import(error))) => return Err(error),
            (Err(error), _) => Err(error.into()),
            (Ok(record), Err(NotDefined::Record(failure))) => {
                let (line, dn) = (record.line, Some(record.dn));
                Err(RecordError { line, dn, why: failure.diagnostic })
            }
            (Ok(record), Ok(())) => {
                let (line, dn) = (record.line, record.dn.clone());
                let is_fast = self.options.fast_passwords;
                self.group.before.clone_from(&self.before);
                match self.group.take(
                    self.directory,
                    index,
                    record,
                    &mut self.imported_member_of,
                    is_fast,
                ) {
                    Ok(Taken::Done) => Ok(()),
                    Ok(Taken::Outside(lines)) => self.outside(index, line, dn, &lines)?,
                    Err(failure) => {
                        Err(RecordError { line, dn: Some(dn), why: failure.diagnostic })
                    }
                }
            }
        };
        if let Err(error) = taken {
            if !self.options.keep_going {
                // The right records before it go in, and so does a row that says how far it got.
                match self.is_retry {
                    true => self.waiting.push(Waiting {
                        index,
                        line: error.line,
                        dn: error.dn.clone().unwrap_or_default(),
                        is_outside: true,
                    }),
                    false => self.seen.clone_from(&self.before),
                }
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

    /// Defines the undefined attributes of an entry that may have attributes of all kinds.
    fn define(&mut self, record: &Record) -> Result<(), NotDefined> {
        let unknown = undefined(&self.directory.snapshot().schema, record);
        if unknown.is_empty() {
            return Ok(());
        }
        // Records prepared before are done under the schema of before; this one is not among them.
        let is_told = self.group.is_told;
        let read = self.seen.clone();
        if !self.is_retry {
            self.seen.clone_from(&self.before);
        }
        let flushed = self.flush().and_then(|()| self.settle());
        self.seen = read;
        self.group.is_told = is_told;
        flushed.map_err(NotDefined::Import)?;
        if self.defined + unknown.len() > IMPORT_DEFINED_MAX {
            let text = format!(
                "more than {IMPORT_DEFINED_MAX} attributes of extensibleObject entries are not defined; \
                 give their definitions with --schema"
            );
            let failure = Failure::new(ResultCode::AdminLimitExceeded, text);
            return Err(NotDefined::Record(failure));
        }
        self.directory.define_as_text(&unknown).map_err(NotDefined::Record)?;
        self.defined += unknown.len();
        unknown.values().for_each(|one| self.report.notes.add(Note::Defined, 1, &one.name));
        Ok(())
    }

    /// Has an entry wait that no naming context holds.
    fn outside(
        &mut self,
        index: u64,
        line: u64,
        dn: String,
        lines: &Lines,
    ) -> Result<Result<(), RecordError>, ImportError> {
        let rdns = Dn::parse(&dn).map_or(usize::MAX, |dn| dn.rdns.len());
        if may_be_top(self.directory, lines)
            && self.outside.as_ref().is_none_or(|(shortest, _)| rdns < *shortest)
        {
            self.outside = Some((rdns, dn.clone()));
        }
        let values = lines.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        self.wait(Waiting { index, line, dn, is_outside: true }, values)
    }

    /// Has an entry wait until all else is in.
    fn wait<'v>(
        &mut self,
        waiting: Waiting,
        values: impl Iterator<Item = (&'v str, &'v [u8])>,
    ) -> Result<Result<(), RecordError>, ImportError> {
        if self.waiting.len() >= IMPORT_WAITING_MAX {
            let why = format!("{IMPORT_WAITING_MAX} entries come before those above them already");
            return Ok(Err(RecordError { line: waiting.line, dn: Some(waiting.dn), why }));
        }
        let name = EntryName::parse(&self.directory.snapshot().schema, &waiting.dn).ok();
        if let Some(name) = name {
            // One above it that waits itself has come before it.
            if !self.is_retry && !self.waiting_names.contains(&name.parent().canonical()) {
                self.report.notes.add(Note::BeforeParent, 1, &waiting.dn);
                self.before_parent.insert(name.canonical());
            }
            self.waiting_names.insert(name.canonical());
        }
        let scratch = self.options.scratch.as_ref();
        self.spool.push(scratch, &waiting.dn, values).map_err(ImportError::Input)?;
        self.waiting.push(waiting);
        Ok(Ok(()))
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

    /// Hands the group to the committer, which has a few others at most.
    fn flush(&mut self) -> Result<(), ImportError> {
        let mut group = std::mem::take(&mut self.group);
        self.report.notes.extend(std::mem::take(&mut group.notes));
        self.report.passwords_hashed += group.hashed + group.hashed_fast;
        for (scheme, count) in &group.unverified {
            let known = &mut self.report.passwords_unverified;
            let fits = known.len() < IMPORT_SCHEMES_MAX || known.contains_key(scheme);
            let scheme = if fits { scheme.clone() } else { "others".to_owned() };
            *known.entry(scheme).or_default() += count;
        }
        self.group_bytes = 0;
        let records = Arc::new(group.finish()?);
        // Those that are tried again are not in the order of the input: each group is to know of all before it.
        let others_max = if self.is_retry { 0 } else { IMPORT_GROUPS_MAX - 1 };
        while self.running.len() > others_max {
            self.settle_first()?;
        }
        let row = self.seen.row(&self.options.source);
        let answer = loop {
            let (sender, answer) = sync_channel(1);
            let waiting = self.waiting.iter().chain(&self.retried).map(|one| one.index);
            let waiting = waiting.chain(self.held.iter().map(|(index, _)| *index)).collect();
            let first = self.running.iter().flat_map(|group| group.records.first()).next();
            let reached = Reached {
                seen: self.seen.clone(),
                is_retry: self.is_retry,
                waiting,
                follows: self.running.back().map(|group| group.row.clone()),
                unsettled: first.map_or(u64::MAX, |record| record.index),
            };
            let records_and_fills = (records.clone(), self.fills);
            let job = job(&self.directory.snapshot(), records_and_fills, self.options, reached);
            // The receiver waits in `running`, so the answer cannot go astray.
            let done = move |result| drop(sender.send(result));
            match self.directory.store.submit(job, done) {
                Ok(()) => break answer,
                // Others write as well; an import has time.
                #[expect(clippy::disallowed_methods, reason = "an import has its own thread")]
                Err(keyway_store::Error::Busy) => thread::sleep(QUEUE_PAUSE),
                Err(error) => return Err(Failure::from(error).into()),
            }
        };
        self.running.push_back(Running { records, answer, row });
        Ok(())
    }

    /// Waits for all groups that are being committed.
    fn settle(&mut self) -> Result<(), ImportError> {
        while !self.running.is_empty() {
            self.settle_first()?;
        }
        Ok(())
    }

    /// Waits for the first of the groups that are being committed.
    fn settle_first(&mut self) -> Result<(), ImportError> {
        let Some(Running { records, answer, .. }) = self.running.pop_front() else { return Ok(()) };
        let gone = || Failure::new(keyway_codec::message::ResultCode::Unavailable, "it was closed");
        let outcome = answer.recv().map_err(|_| gone())??;
        self.report.records += outcome.done;
        if let Some(rules) = outcome.rules {
            take_rules(&self.directory.current, rules);
        }
        for prepared in outcome.waiting.iter().filter_map(|place| records.get(*place)) {
            let Prepared { index, line, dn, operation, .. } = prepared;
            let Operation::Add(add) = operation else { continue };
            let values = add.attributes.iter().flat_map(|(name, values)| {
                values.iter().map(|value| (name.as_str(), value.as_slice()))
            });
            let waiting = Waiting { index: *index, line: *line, dn: dn.clone(), is_outside: false };
            if let Err(error) = self.wait(waiting, values)? {
                self.wrong(error)?;
            }
        }
        for prepared in outcome.repeated.iter().filter_map(|place| records.get(*place)) {
            self.report.notes.add(Note::EntryTwice, 1, &prepared.dn);
        }
        for (index, failure) in outcome.wrong {
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

/// How far an import is with what it has read.
struct Reached {
    /// Records that have been read.
    seen: Seen,
    /// Whether the group's records have waited.
    is_retry: bool,
    /// Records of other groups that wait, as far as these have been answered.
    waiting: Vec<u64>,
    /// The row that the group before leaves, if that has not been answered.
    follows: Option<String>,
    /// The first record of those groups. Which of them wait stands in the store when this one is done.
    unsettled: u64,
}

/// Does a group's records in turn. A wrong one changes nothing; the rest is done without it, or
/// left if the import is to stop. Nothing is done if the group before was not done to its end.
fn job(
    snapshot: &Arc<Snapshot>,
    (records, fills): (Arc<Vec<Prepared>>, bool),
    options: &ImportOptions,
    reached: Reached,
) -> impl FnMut(&mut Write<'_>) -> Result<Outcome, Failure> + Send + 'static + use<> {
    let note = ChangeNote::own(Reason::Import, snapshot.shared.now()).encode();
    let (snapshot, keep_going, source) =
        (snapshot.clone(), options.keep_going, options.source.clone());
    move |write| {
        write.note(&note);
        if fills {
            write.leave_feed_out();
        }
        let mut outcome = Outcome::default();
        if let Some(row) = &reached.follows
            && write.view().meta_get(META_IMPORT)? != Some(row.as_bytes())
        {
            return Ok(outcome);
        }
        let before = write.view().meta_get(META_WAITING)?.map(waiting_of).unwrap_or_default();
        let mut left = 0;
        for (place, record) in records.iter().enumerate() {
            let failure = match record.operation.apply(&snapshot, write) {
                Ok(done) => {
                    outcome.done += 1;
                    outcome.rules = done.rules.or(outcome.rules);
                    continue;
                }
                Err(failure) => failure,
            };
            match (&record.operation, failure.code) {
                (Operation::Add(_), ResultCode::NoSuchObject) => outcome.waiting.push(place),
                (Operation::Add(add), ResultCode::EntryAlreadyExists)
                    if add.is_there(&snapshot, write.view())? =>
                {
                    outcome.repeated.push(place);
                }
                _ => {
                    outcome.wrong.push((place, failure));
                    if !keep_going {
                        left = records.len() - place;
                        break;
                    }
                }
            }
        }
        let left = || records.iter().rev().take(left);
        let seen = match left().next_back() {
            Some(first) if !reached.is_retry => &first.before,
            _ => &reached.seen,
        };
        write.local_put(META_IMPORT, seen.row(&source).as_bytes())?;
        let ours = outcome.waiting.iter().filter_map(|place| records.get(*place));
        let mut all = reached.waiting.clone();
        all.extend(before.into_iter().filter(|index| *index >= reached.unsettled));
        all.extend(ours.map(|record| record.index));
        all.extend(left().filter(|_| reached.is_retry).map(|record| record.index));
        all.sort_unstable();
        all.dedup();
        let row: Vec<String> = all.iter().map(u64::to_string).collect();
        write.local_put(META_WAITING, row.join(" ").as_bytes())?;
        Ok(outcome)
    }
}
