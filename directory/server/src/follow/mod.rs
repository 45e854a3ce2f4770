//! A directory that makes the changes of another one again, and none of its own.

mod apply;
mod binds;
mod effects;
mod relist;
mod taker;

pub use apply::ApplyError;
pub(crate) use binds::{encode, taker_of};
pub use taker::{BindsTaken, BindsTaker};
