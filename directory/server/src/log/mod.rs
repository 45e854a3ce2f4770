//! The lines that are written down: those of the access, the error and the audit log.
//!
//! A [`Log`] is a handle that every part of the server has. Where the lines go, and in which form,
//! is for the program that made it; without one nothing is written, and asking costs a comparison.
//! Nothing secret may be put into a [`Record`]: no password, no value of a password attribute, no
//! credentials. Texts of clients may be in it as they were sent; the program that writes it escapes them.

mod audit;
mod handle;
pub(crate) mod kept;
mod record;
mod settle;
pub mod stages;
mod text;

pub use audit::{Audit, AuditedChange, AuditedRequest};
pub use handle::Log;
pub use kept::Kept;
pub use record::{Access, Field, LogKind, Record, Severity, Value};
pub use text::{Capped, hidden};
