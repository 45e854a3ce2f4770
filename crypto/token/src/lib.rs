//! Keys that live in tokens: hardware security modules, smart cards, SoftHSM, whatever has a PKCS#11 module.
//!
//! [`Tokens`] is a driver of the engine, for keys that are named. It makes keys in tokens, finds keys that are there,
//! and has the tokens sign, decrypt and agree with them. Hashes, and what the public half of a key is enough for, are
//! software's. A key that several tokens have is used in all of them: they share the work, and the work of one that
//! fails goes to the others.
//!
//! ```text
//! session of the engine ── held ──▶ token ── queue ──▶ thread with a PKCS#11 session (seat) ──▶ module
//! ```
//!
//! A module is code of others in this process, and may never return: only threads that are a token's own enter it.
//!
//! These may not enter: who may use a key, and what is saved of it (that is the daemon's).
#![forbid(unsafe_code)]

mod error;
mod held;
mod kind;
mod known;
pub mod limits;
mod module;
mod object;
mod operation;
mod pin;
mod seat;
mod token;
mod tokens;
mod trial;

pub use error::Error;
pub use held::NAME;
pub use object::{Uses, Wanted};
pub use pin::Pin;
pub use token::Report;
pub use tokens::{TokenKey, TokenOptions, TokenPlace, Tokens};
