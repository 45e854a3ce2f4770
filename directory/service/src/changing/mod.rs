//! Changes that the program makes by itself, as the administrator: planned as change records, shown, and carried out
//! one by one in the running server, or in a folder that none serves.

mod in_folder;
mod planned;
mod sending;
mod stored;

pub use in_folder::in_folder;
pub use planned::PlannedChange;
pub use sending::{carry_out, not_reached, show};
pub(crate) use stored::{StoredEntry, is_left_to_server};
