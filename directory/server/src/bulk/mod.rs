//! Much at once: import, export, and making keys anew.

mod check;
mod export;
mod import;
mod notes;
mod prepare;
mod reindex;
mod salvage;
mod spool;
mod wait;

pub use export::ExportError;
pub use import::{
    ImportError, ImportOptions, ImportReport, MemberOfReport, Progress, RecordError, Unfinished,
};
pub use notes::{Note, Noted, Notes};
pub use salvage::{Lost, Salvaged, salvage};
pub use spool::{Scratch, ScratchMaker};
