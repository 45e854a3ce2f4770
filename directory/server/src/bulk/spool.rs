//! Entries that came before those above them: kept aside as LDIF until the others are in. A little is
//! kept in memory, more in a file that the program provides.

use crate::limits::IMPORT_SPOOL_MEMORY_BYTES_MAX;
use keyway_codec::ldif::Writer;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// A file that no other process sees and that goes when it is closed.
pub trait Scratch: Read + Write + Seek {}

impl<T: Read + Write + Seek> Scratch for T {}

/// Makes such files.
#[derive(Clone)]
pub struct ScratchMaker(pub Arc<dyn Fn() -> io::Result<Box<dyn Scratch>> + Send + Sync>);

impl fmt::Debug for ScratchMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScratchMaker")
    }
}

/// Entries that are kept aside, in their order.
#[derive(Default)]
pub(super) struct Spool {
    memory: Vec<u8>,
    file: Option<Box<dyn Scratch>>,
}

impl Spool {
    /// Keeps an entry.
    ///
    /// # Errors
    /// The file's.
    pub fn push<'v>(
        &mut self,
        make: Option<&ScratchMaker>,
        dn: &str,
        values: impl Iterator<Item = (&'v str, &'v [u8])>,
    ) -> io::Result<()> {
        let mut writer = Writer::new(&mut self.memory);
        writer.dn(dn);
        values.for_each(|(name, value)| writer.value(name, value));
        writer.end();
        if self.memory.len() < IMPORT_SPOOL_MEMORY_BYTES_MAX {
            return Ok(());
        }
        let Some(make) = make else { return Ok(()) };
        if self.file.is_none() {
            self.file = Some((make.0)()?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.memory)?;
            self.memory.clear();
        }
        Ok(())
    }

    /// The entries that were kept, to be read as LDIF.
    ///
    /// # Errors
    /// The file's.
    pub fn read(mut self) -> io::Result<Box<dyn Read>> {
        let memory = io::Cursor::new(self.memory);
        Ok(match self.file.take() {
            None => Box::new(memory),
            Some(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                Box::new(Boxed(file).chain(memory))
            }
        })
    }
}

struct Boxed(Box<dyn Scratch>);

impl Read for Boxed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}
