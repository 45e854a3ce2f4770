//! The feed of changes, with what the server knows of them: who made each, when and why; how long they are kept,
//! and who is still to read them.

mod note;
mod readers;
mod retention;
mod setting;

pub use note::{ChangeNote, Reason};
pub use readers::FeedReader;
pub use setting::FeedRetention;
