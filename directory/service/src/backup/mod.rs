//! Backups: the store of a directory at one moment, and what a new server needs beside it, into an encrypted
//! repository, while a server goes on serving; and back into a new data folder, or single entries into the directory that
//! is there.
//!
//! The feed's rows that were made since are put there as segments, so that a restore can end at any position or time
//! that they reach.

mod create;
mod entries;
pub(crate) mod files;
mod meta;
mod place;
mod point;
mod restore;
mod run;
mod segments;
pub mod told;
mod verify;

pub use create::{Created, create, create_served};
pub use entries::{AskedEntries, EntriesBack};
pub(crate) use files::STORE_FILE;
pub use meta::{Meta, With};
pub use place::{Place, SecretSource};
pub use point::Point;
pub use restore::{Restored, restore};
pub use run::{Running, Step, run};
pub use verify::{Verified, verify};

pub use crate::lineage::Ancestor;
