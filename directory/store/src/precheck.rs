//! The check of the data file before LMDB opens it.

use std::fs::File;
use std::path::Path;

use crate::limits::LOOK_PAGES_MAX;
use crate::pages::{Depth, Pages};
use crate::{OpenError, header};

/// Checks the head of the data file and the tree of its tables, and gives the file the length that
/// the head says.
///
/// Up to [`LOOK_PAGES_MAX`] every page in use is looked at; of a larger store all but the leaves,
/// unless the file is too short. That may be right: the last pages may be free and never written.
pub(crate) fn check(path: &Path) -> Result<(), OpenError> {
    let attempt = |e| OpenError::system("opening the store's data file", e);
    let file = File::options().read(true).write(true).open(path).map_err(attempt)?;
    let bytes = file.metadata().map_err(attempt)?.len();
    let meta =
        header::newest(&file).map_err(attempt)?.ok_or_else(|| damaged("its head is not LMDB's"))?;
    let wanted = meta.file_bytes().ok_or_else(|| damaged("its head contradicts itself"))?;
    let depth = match meta.last_page < LOOK_PAGES_MAX || bytes < wanted {
        true => Depth::All,
        false => Depth::Branches,
    };
    let mut pages = Pages::new(file.try_clone().map_err(attempt)?, &meta, bytes);
    let (mut first, mut more) = (None, 0);
    pages.look(&meta, depth, &mut |damage| match &first {
        None => first = Some(damage),
        Some(_) => more += 1,
    });
    match first {
        Some(damage) if more > 0 => Err(damaged(&format!("{damage}; and at {more} more places"))),
        Some(damage) => Err(damaged(&damage.to_string())),
        None if bytes < wanted => file.set_len(wanted).map_err(attempt),
        None => Ok(()),
    }
}

fn damaged(what: &str) -> OpenError {
    OpenError::Damaged { what: what.into() }
}
