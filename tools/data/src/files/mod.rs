//! The part of this crate that opens files: templates and what they name, and entries that are written.

mod filter_list;
mod outputs;
mod read;
mod source;

pub use filter_list::write_filters;
pub use outputs::{EntryFiles, EntryOutput, WriteError, Written, look_for_twice};
pub use source::{CsvSource, TemplateSource};
