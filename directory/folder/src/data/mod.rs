//! The data folder: whose it is, which process uses it, and how files get into it.

mod files;
mod folder;
mod lock;
pub mod name;

pub use files::{
    is_private, is_secret, lock_edits, plain_file, read, read_bytes, read_password, read_secret,
    replace, scratch, write, write_secret,
};
pub use folder::{
    Folder, State, StoreId, has_had_store, is_not_own, look, may_look, shown, store_of,
};
pub use lock::{holder_of, user, user_id};
