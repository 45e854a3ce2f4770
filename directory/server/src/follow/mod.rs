//! A directory that makes the changes of another one again, and none of its own.

mod apply;
mod binds;
mod effects;
mod relist;

pub use apply::ApplyError;
pub use binds::{BindsTaken, BindsTaker};
pub(crate) use binds::{encode, taker_of};
