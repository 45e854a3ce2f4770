//! Password values: what is stored, how one is made, how one is checked, and who may try one when.
//!
//! Every primitive is an engine request. Plain digests run on the caller's stack; slow derivations
//! wait for their turn and go to the engine's bounded pool, and a caller that gets no turn
//! is told [`Error::Busy`]. A driver of the engine may remember what was right lately; a client that has
//! shown a right password is answered from there first. A stored value names its scheme and its
//! cost; both are bounded by [`limits`], so that a hostile value cannot buy minutes or gigabytes of
//! ours.
//!
//! Nothing here knows of entries, of a store or of LDAP: an entry is a number, a name is bytes.
#![forbid(unsafe_code)]

mod admission;
mod check;
mod cost;
mod derivation;
mod error;
mod given;
pub mod limits;
mod passwords;
mod scheme;
mod stored;

pub use admission::{Attempt, BindHistory};
pub use check::{CheckOutcome, PasswordCheck, Pending};
pub use cost::Argon2Cost;
pub use derivation::Lap;
pub use error::{Error, StoredError};
pub use given::{Given, classify};
pub use passwords::Passwords;
pub use scheme::Scheme;

#[cfg(test)]
mod tests;
