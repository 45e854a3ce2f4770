//! The logs of a running server: lines for files, the journal or standard error, written by a thread of their own,
//! so that no operation waits for a disk; and read back, chosen and summed up.
#![forbid(unsafe_code)]

mod escape;
mod file;
mod format;
mod journal;
pub mod limits;
mod line;
mod logs;
mod queue;
mod reader;
mod report;
mod selection;
mod settings;
mod writer;

pub use line::Line;
pub use logs::Logs;
pub use reader::{LineCounts, Reader};
pub use report::{Report, Summary};
pub use selection::Selection;
pub use settings::{Form, Settings, To, WhenFull, folder_mode, mode};
