//! Relaxed mode: changes that are answered before they are on the disk, and a store that a cut of power has caught so.

use crate::lineage;
use keyway_folder::data::{Folder, name};
use keyway_host::failure::Failure;
use keyway_store::{OpenError, Relaxed, put_back};
use std::path::Path;

/// Words on the risk.
pub(crate) fn risk(relaxed: Relaxed) -> String {
    let Relaxed { changes_max, age_max } = relaxed;
    format!(
        "relaxed mode: a cut of power takes back the last changes, {changes_max} at most and up to {} ms old, although \
         they were answered ([relaxed] in {})",
        age_max.as_millis(),
        name::CONFIGURATION
    )
}

/// Puts a store back that a cut of power has caught in this mode. Says what is lost. `cannot` makes the error of one that
/// cannot be opened.
///
/// # Errors
/// If it cannot be put back.
pub(crate) fn mend(
    folder: &Folder,
    store: &Path,
    cannot: impl Fn(OpenError) -> Failure,
) -> Result<String, Failure> {
    // It has another identity then; the one that opens it notes that.
    folder.forget_store()?;
    let (mut position, mut failed) = (None, None);
    let made = put_back(store, &mut |cut| {
        position = cut.position;
        let row = lineage::cut_short(cut).map_err(|why| failed = Some(why));
        row.into_iter().collect()
    });
    made.map_err(cannot)?;
    if let Some(why) = failed {
        return Err(why);
    }
    let reached = position.map(|it| format!(", at position {it} of the feed")).unwrap_or_default();
    Ok(format!(
        "a cut of power came in relaxed mode, or its disk failed: the store is put back to the last state that is on \
         the disk as a whole{reached}; changes behind it are lost although they were answered, and the store has a new \
         identity"
    ))
}
