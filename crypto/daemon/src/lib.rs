//! The daemon, `cryptod`: it holds keys and works with them for clients who never see them.
//!
//! [`keys`] is its key store: keys sealed on disk under a master key, who may use each of them for
//! what, and the log of who changed what.
//!
//! What may not enter: a primitive (that is a driver's, through the engine that is handed in), a clock
//! (times are arguments), anything of a directory.
#![forbid(unsafe_code)]

pub mod keys;
pub mod limits;
