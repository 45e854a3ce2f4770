//! Snapshots: moments of a directory's store, kept in its data folder, for the moment before a risky change; and the
//! way back to one.
//!
//! Each is a folder `snapshots/NAME` with the store's data file and `meta.json`. What begins with a dot there is not
//! done yet, or was cut off.

mod create;
mod list;
mod meta;
mod place;
mod rollback;
pub mod told;

pub use create::{Created, create};
pub use list::{delete, list};
pub use meta::Meta;
pub use place::Listed;
pub use rollback::{RolledBack, rollback};
