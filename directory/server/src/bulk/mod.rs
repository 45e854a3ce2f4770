//! Much at once: import, export, and making keys anew.

mod check;
mod export;
mod import;
mod prepare;
mod reindex;
mod salvage;
mod wait;

pub use export::ExportError;
pub use import::{
    ImportError, ImportOptions, ImportReport, MemberOfReport, Progress, RecordError, Unfinished,
};
pub use salvage::{Lost, Salvaged, salvage};
