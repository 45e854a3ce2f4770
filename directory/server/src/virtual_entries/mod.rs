//! Virtual entries, which are not stored: the trees `cn=config`, `cn=monitor` and `cn=tasks`, made when a client asks.
//!
//! A tree is published by the one that knows what is in it: the program for the configuration and the tasks, the
//! network half for the monitor. Here they are found, and changes of them handed over. The entries of `cn=changelog`, which may be very
//! many, are made one by one (`changelog`).

mod change;
mod entry;
mod provider;
mod publish;
mod tree;
mod tree_name;
mod wanted;

pub(crate) use change::Handover;
pub use entry::VirtualEntry;
pub(crate) use provider::VirtualTrees;
pub use provider::{Modification, ModifiedAttribute, Placement, Provider, Reply};
pub use tree_name::VirtualTree;
pub use wanted::Wanted;
