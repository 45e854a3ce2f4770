//! States of the store that are kept while entries are sent in pieces.

use crate::failure::{Failure, Result};
use crate::limits::SNAPSHOTS_MAX;
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_store::Read;
use std::sync::{Arc, Mutex, Weak};

/// The states of the store that entries are sent of, by their versions.
#[derive(Default)]
pub(crate) struct KeptReads(Mutex<Vec<(u64, Weak<Mutex<Read>>)>>);

impl KeptReads {
    /// Keeps a state, or takes the one that others keep.
    ///
    /// # Errors
    /// `busy` if there are too many.
    pub(super) fn keep(&self, read: Read) -> Result<Arc<Mutex<Read>>> {
        let mut kept = self.0.lock().unpoisoned();
        kept.retain(|(_, one)| one.strong_count() > 0);
        let version = read.version();
        let same = kept.iter().find(|(one, _)| *one == version);
        if let Some(same) = same.and_then(|(_, one)| one.upgrade()) {
            return Ok(same);
        }
        if kept.len() >= SNAPSHOTS_MAX {
            let text = "too many clients read large entries slowly; try again later";
            return Err(Failure::new(ResultCode::Busy, text));
        }
        let read = Arc::new(Mutex::new(read));
        kept.push((version, Arc::downgrade(&read)));
        Ok(read)
    }
}
