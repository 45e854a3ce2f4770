//! LDAP bytes to messages and back.
//!
//! Everything here is a function of its arguments: BER, the messages of RFC 4511, filters,
//! controls, names, syntaxes, schema descriptions and LDIF. No I/O, no clock, no state, no
//! knowledge of a store or a server may enter. Input is borrowed, never trusted, and every way in
//! which it can be wrong is an error and not a panic.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

pub mod ber;
pub mod certificate;
pub mod controls;
pub mod definitions;
pub mod description;
pub mod dn;
mod error;
pub mod extended;
pub mod filter;
pub mod ldif;
pub mod limits;
pub mod message;
pub mod password_policy;
pub mod proxy;
pub mod sasl;
pub mod secret;
pub mod standard;
pub mod syntax;

pub use error::DecodeError;
pub use filter::Filter;
pub use message::{Message, Op};
