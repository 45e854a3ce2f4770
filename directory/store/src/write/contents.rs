//! The digest of all entries, kept with each change of one.

use super::Write;
use crate::contents::Contents;
use crate::feed::LargeNotes;
use crate::format::META_CONTENTS;
use crate::{EntryId, Error};

impl Write<'_> {
    /// Keeps a digest of all entries from now on, which is made of them first if there is none yet. The feed has it at
    /// each thousandth position, and a store to which such a row is applied compares it with its own. It goes with a
    /// commit that the feed does not have, and is to be asked for again then.
    ///
    /// # Errors
    /// The store's.
    pub fn keep_contents(&mut self) -> Result<(), Error> {
        if self.view().contents()?.is_none() {
            let digest = self.view().count_contents()?;
            self.begin_contents(Contents::of(&digest.0))?;
        }
        Ok(())
    }

    /// Puts an entry's record, and counts it among the contents.
    pub(super) fn put_entry(
        &mut self,
        id: EntryId,
        record: &[u8],
        notes: &LargeNotes,
    ) -> Result<(), Error> {
        self.count_entry(id, Some(record), notes)?;
        self.put(self.shared.tables.entry, &id.to_bytes(), record)
    }

    pub(super) fn count_entry(
        &mut self,
        id: EntryId,
        record: Option<&[u8]>,
        notes: &LargeNotes,
    ) -> Result<(), Error> {
        let Some(contents) = &mut self.contents else { return Ok(()) };
        let old = self.shared.get(self.shared.tables.entry, &self.txn, &id.to_bytes())?;
        if let Some(old) = old {
            contents.subtract(Contents::of_record(id, old));
        }
        if let Some(record) = record {
            contents.add(Contents::of_record(id, record));
        }
        contents.edit(id, notes.edits());
        self.contents_changed = true;
        Ok(())
    }

    /// Keeps the digest of all entries, which this is, from now on.
    fn begin_contents(&mut self, contents: Contents) -> Result<(), Error> {
        (self.contents, self.contents_changed) = (Some(contents), false);
        self.put(self.shared.tables.meta, META_CONTENTS, &contents.to_bytes())
    }

    pub(super) fn write_contents(&mut self) -> Result<(), Error> {
        match self.contents {
            Some(contents) if self.contents_changed => {
                self.put(self.shared.tables.meta, META_CONTENTS, &contents.to_bytes())
            }
            _ => Ok(()),
        }
    }
}
