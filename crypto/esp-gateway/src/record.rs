//! Records on a disk: whole, with a checksum, put in place in steps between any two of which the power may be cut.

use keyway_host::failure::plain;
use std::fmt;
use std::io;

/// The first line of a record.
const HEAD: &str = "keyway esp 1";
/// The end of a record's name until it is whole.
const DRAFT_END: &str = ".new";

/// A place that keeps records by name. After a power cut a record is that of the last [`write`](Records::write) that
/// returned, or of a later one that has failed or was under way.
pub trait Records {
    /// The record of a name, if there is one.
    ///
    /// # Errors
    /// The system's.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Puts a record in the place of the one before. It is on the disk when this returns.
    ///
    /// # Errors
    /// The system's. Then either of the two may be there.
    fn write(&self, name: &str, record: &[u8]) -> io::Result<()>;
}

/// The steps of [`Records::write`], in their order. A test has them fail, and cuts the power between any two.
pub trait Steps {
    /// A file that is being made.
    type Draft;

    /// Makes a file of a name with these bytes, in the place of one that was left there.
    ///
    /// # Errors
    /// The system's.
    fn draft(&self, name: &str, bytes: &[u8]) -> io::Result<Self::Draft>;

    /// Has its bytes on the disk.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self, draft: &Self::Draft) -> io::Result<()>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Has the names on the disk.
    ///
    /// # Errors
    /// The system's.
    fn sync_names(&self) -> io::Result<()>;

    /// The bytes of a file, if there is one of that name.
    ///
    /// # Errors
    /// The system's.
    fn bytes(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
}

impl<S: Steps> Records for S {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.bytes(name)
    }

    fn write(&self, name: &str, record: &[u8]) -> io::Result<()> {
        let draft_name = format!("{name}{DRAFT_END}");
        let draft = self.draft(&draft_name, record)?;
        self.sync(&draft)?;
        self.rename(&draft_name, name)?;
        self.sync_names()
    }
}

/// Why a record is of no use.
#[derive(Debug)]
pub enum RecordError {
    /// The system refuses to read or to write.
    System(io::Error),
    /// It is not whole.
    Damaged,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::System(why) => f.write_str(&plain(why)),
            RecordError::Damaged => f.write_str("it is damaged"),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<io::Error> for RecordError {
    fn from(why: io::Error) -> RecordError {
        RecordError::System(why)
    }
}

/// A record of this text, whose lines all end.
pub fn encode(text: &str) -> Vec<u8> {
    let text = format!("{HEAD}\n{text}");
    format!("{text}crc32 {:08x}\n", crc32fast::hash(text.as_bytes())).into_bytes()
}

/// The text of a record; `None` if it is not whole.
pub fn decode(record: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(record).ok()?;
    let text = text.strip_prefix(HEAD)?.strip_prefix('\n')?;
    let (text, _) = text.split_at(text.rfind("crc32 ")?);
    (encode(text) == record).then_some(text)
}
