//! From packets, or the octets of a connection, to LDAP operations, and from these to words.
//!
//! [`Capture`] reads packets from a file, [`Decoder`] makes streams of them and operations of those, and
//! a [`Sink`] reports them: as a line, in full, as JSON, in the words of another program, or summed up.
//! [`Session`] is the part for one connection, for a caller that has its octets already. Reports contain
//! no passwords ([`Secrets`]).
//!
//! Only the module `io` has files, sockets and clocks, and it is there with the feature `io` alone. Input is
//! hostile, always: everything that grows has its limit in [`limits`], and input that cannot be decoded is reported
//! and passed over.
#![forbid(unsafe_code)]

pub mod browse;
pub mod capture;
pub mod decoder;
mod direction;
mod error;
pub mod framing;
#[cfg(feature = "io")]
pub mod io;
mod kept;
pub mod limits;
pub mod network;
mod operation;
mod pairing;
pub mod parameters;
pub mod proxy_protocol;
pub mod query;
pub mod replay;
mod report;
pub mod say;
pub mod secrets;
mod server_address;
mod session;
pub mod starttls;
mod tap;
pub mod tcp;
mod tls;
pub mod tree;
pub mod view;

pub use capture::Capture;
pub use decoder::{Counts, Decoder};
pub use direction::{Direction, Side};
pub use error::Error;
pub use kept::Kept;
pub use operation::{Answers, Connection, End, Event, Kind, Note, Operation, Part, Sink};
pub use pairing::Options;
pub use parameters::extended_name;
pub use query::Query;
pub use report::Report;
pub use secrets::Secrets;
pub use server_address::ServerAddress;
pub use session::Session;
pub use tap::Tap;
pub use tls::Keys;
