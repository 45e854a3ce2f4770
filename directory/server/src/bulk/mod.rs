//! Much at once: import, export, and a look at everything.

mod check;
mod definitions;
mod error;
mod export;
mod frame;
mod import;
mod notes;
mod prepare;
mod salvage;
mod seen;
mod spool;
mod verify;
mod wait;

pub use definitions::TakenDefinitions;
pub use error::ExportError;
pub use import::{
    ImportError, ImportOptions, ImportReport, MemberOfReport, Progress, RecordError, Unfinished,
};
pub use notes::{Note, Noted, Notes};
pub use salvage::{Lost, Salvaged, salvage};
pub use spool::{Scratch, ScratchMaker};
pub use verify::{Verdict, Verifying};
