//! Entries that are not stored: the trees `cn=config` and `cn=monitor`, made when a client asks.
//!
//! A tree is published by the one that knows what is in it: the program for the configuration, the network half for
//! the monitor. Here they are found, and changes of them handed over.

mod change;
mod entry;
mod kind;
mod maker;
mod publish;
mod tree;
mod wanted;

pub(crate) use change::Handover;
pub use entry::MadeEntry;
pub use kind::MadeTree;
pub(crate) use maker::MadeTrees;
pub use maker::{Maker, Modification, ModifiedAttribute, Reply};
pub use wanted::Wanted;
