//! Why no index helps.

use crate::index::IndexKind;

/// Why no index helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There could be one.
    Index {
        /// The attribute's canonical name.
        attribute: String,
        /// The kind.
        kind: IndexKind,
    },
    /// None could; why not.
    Cannot(&'static str),
}
