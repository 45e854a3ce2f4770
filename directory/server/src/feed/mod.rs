//! The feed of changes, with what the server knows of them: who made each, when and why; how long they are kept,
//! and who is still to read them; changes described for people and programs.

mod described;
mod describer;
mod differing;
mod ldif;
mod names;
mod note;
mod readers;
mod retention;
mod setting;

pub use described::{
    AttributeChange, AttributeValues, DescribedChange, EntryChange, Extent, Operation, Renaming,
    RowOrEntry, Values,
};
pub use describer::Describer;
pub use names::Room;
pub use note::{ChangeNote, Reason};
pub use readers::{FeedReader, META_READERS};
pub use retention::FeedStatus;
pub use setting::FeedRetention;
