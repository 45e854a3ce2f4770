//! The stores that a store was before, each until it was restored: its directory has had several identities, and
//! positions are counted on.

use keyway_folder::data::{self, StoreId};
use keyway_host::failure::Failure;
use keyway_store::Store;
use serde::{Deserialize, Serialize};

/// The store's row with its ancestors.
const META_LINEAGE: &str = "lineage";
/// The latest ones that are remembered, and the first one, which is the identity of the directory.
const ANCESTORS_MAX: usize = 100;

/// A store that another one was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ancestor {
    /// Its incarnation, in hexadecimal digits.
    pub incarnation: String,
    /// The last position that the other one has of it; `None` without a feed.
    pub position: Option<u64>,
}

/// The ancestors of a store, the oldest first.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn of(store: &Store) -> Result<Vec<Ancestor>, Failure> {
    let unreadable = |why| Failure::new(format!("cannot read the store: {why}"));
    let read = store.read().map_err(unreadable)?;
    let row = read.view().meta_get(META_LINEAGE).map_err(unreadable)?;
    row.map_or(Ok(Vec::new()), |row| {
        serde_json::from_slice(row)
            .map_err(|why| Failure::new(format!("the store's lineage makes no sense: {why}")))
    })
}

/// The identity of a store's directory, which it keeps when it is restored: the incarnation of its first store, in
/// hexadecimal digits.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn directory(store: &Store) -> Result<String, Failure> {
    let first = of(store)?.into_iter().next();
    Ok(first.map_or_else(|| data::shown(store.incarnation()), |first| first.incarnation))
}

/// Adds the store that this one was made of, which had come to a position.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn add(store: &Store, was: StoreId, position: Option<u64>) -> Result<(), Failure> {
    let mut ancestors = of(store)?;
    ancestors.push(Ancestor { incarnation: data::shown(was), position });
    if ancestors.len() > ANCESTORS_MAX {
        ancestors.remove(1);
    }
    let row = serde_json::to_vec(&ancestors).map_err(Failure::new)?;
    store
        .write_now(move |write| write.local_put(META_LINEAGE, &row))
        .map_err(|why| Failure::new(format!("cannot write to the store: {why}")))
}
