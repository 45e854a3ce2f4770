//! A look at everything: do the entries and the keys they are found by say the same?

use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::index::{Indexes, State, range};
use crate::large::{key, whole};
use keyway_codec::message::ResultCode;
use keyway_schema::{Schema, base};
use keyway_store::{Checked, EntryId, EntryRef, Names, View};

impl Directory {
    /// Reads the whole store, compares its parts, and checks that every entry is found by the keys
    /// of the present indexes and by no others; those that are being built or dropped are left out.
    /// Takes as long as reading everything does.
    /// `progress` hears now and then what is being read, and how many rows of it have been.
    ///
    /// # Errors
    /// `other` with the first contradiction, or the store's.
    pub fn check(&self, progress: &mut dyn FnMut(&'static str, u64)) -> Result<Checked> {
        let snapshot = &*self.snapshot();
        let read = self.store.read()?;
        let view = read.view();
        let state = State::read(view)?.unwrap_or_default();
        let indexes = Indexes::clone(&snapshot.indexes).only(&state.whole);
        // The indexes of a server that serves with other settings than these, if one does.
        let others = &state.whole - &snapshot.indexes.kinds();
        let unsettled = [state.unsettled(), others.iter().map(range).collect()].concat();
        let checked = view.check_and_tell(&unsettled, progress)?;
        let mut names = Names::new();
        let (mut seen, mut expected) = (0, 0);
        for entry in view.entries(EntryId::ROOT)? {
            let (id, entry) = entry?;
            seen += 1;
            if seen % 1024 == 1 {
                progress("keys of entries", seen);
            }
            let keys = indexes.keys(&snapshot.schema, &whole(view, id, &entry)?);
            check_keys(&snapshot.schema, view, id, &entry)?;
            for key in &keys {
                if !view.contains(key, id)? {
                    return Err(wrong(format!("entry {id} is not listed under a key of its own")));
                }
            }
            // The store's own lists: children of the one above, subtrees of all above and itself.
            let above = view.ancestors_of(&entry, &mut names)?.len() as u64;
            expected += keys.len() as u64 + 1 + above + 1;
        }
        if checked.postings != expected {
            let found = checked.postings;
            return Err(wrong(format!("{found} listings of entries where {expected} are due")));
        }
        Ok(checked)
    }
}

/// Checks that every value of a large attribute is where it is looked for.
fn check_keys(schema: &Schema, view: View<'_>, id: EntryId, entry: &EntryRef<'_>) -> Result<()> {
    for large in entry.large() {
        let Some(attribute) = schema.attribute(base(large.name)) else { continue };
        for value in view.large_values(id, &large)? {
            let (held, value) = value?;
            if held != key(schema, attribute, value) {
                let text = format!("a value of {} of entry {id} has a wrong key", large.name);
                return Err(wrong(text));
            }
        }
    }
    Ok(())
}

fn wrong(why: String) -> Failure {
    Failure::new(ResultCode::Other, format!("the store contradicts itself: {why}"))
}
