//! Files and measurements over QUIC (RFC 9000): what `keyway quic` does, without its flags and
//! output.
//!
//! QUIC itself is quinn's and TLS is rustls'. A [`Host`] gives them cryptography (any rustls
//! `CryptoProvider`; `keyway-tls` makes one of an engine) and sockets. [`Server`] serves the files
//! of a folder, [`fetch`] gets them, [`Side`] measures, and [`report`] puts that into words.
//!
//! Nothing here prints, and nothing listens to signals. Everything runs on the caller's tokio
//! runtime. A future that is dropped leaves no unfinished file behind.
#![forbid(unsafe_code)]

mod endpoint;
mod error;
mod fetch;
mod perf;
pub mod report;
mod serve;
mod stages;
mod target;

pub use endpoint::{HQ, Host, NO_ERROR, Options, PERF, close, connect};
pub use error::Error;
pub use fetch::{Fetched, Wanted, fetch, part_of};
pub use perf::{Measured, Plan, Progress, Side, Test, Used};
pub use serve::{Served, Server};
pub use stages::{Stage, Stages, Took};
pub use target::{Target, address, target};
