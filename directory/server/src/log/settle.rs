//! Kept lines of the audit log: handed out after a start, and forgotten when the log has them on the disk.

use super::kept::{self, Kept};
use crate::directory::Directory;
use crate::failure::Result;
use crate::limits::AUDIT_KEPT_MAX;

impl Directory {
    /// Lines of the audit log that are not known to be on the disk: those of the changes before a cut of power.
    /// A caller that takes them over writes those that the log does not have.
    ///
    /// # Errors
    /// The store's.
    pub fn kept_lines(&self) -> Result<Vec<Kept>> {
        let (kept, next) = kept::all(self.store.read()?.view())?;
        self.shared.log.said(next);
        Ok(kept)
    }

    /// Brings lines of the audit log to the disk, and forgets those that are kept for as long as they are not
    /// there. Where that fails again and again, the oldest beyond [`AUDIT_KEPT_MAX`] go all the same. It waits
    /// for the disk.
    ///
    /// # Errors
    /// The store's.
    pub fn settle_audit(&self) -> Result<()> {
        let until = self.shared.log.said_until();
        let first = kept::first(self.store.read()?.view())?;
        let until = match until > first {
            false => return Ok(()),
            true if self.shared.log.sync() => until,
            true => until.saturating_sub(AUDIT_KEPT_MAX),
        };
        match until > first {
            true => self.store.write_now(move |write| kept::forget(write, until)),
            false => Ok(()),
        }
    }
}
