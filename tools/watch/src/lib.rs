//! The figures of a running LDAP server: from the page of counters of a server on this machine, or from what a
//! server says of itself over LDAP (`cn=monitor` of Keyway, slapd and 389 Directory Server).
//!
//! A [`ServerSnapshot`] is what was seen of a server at one moment, and a [`ServerDelta`] the difference of two.
//! [`metrics`] has them for Prometheus and for OpenTelemetry.
#![forbid(unsafe_code)]

pub mod ldap;
pub mod limits;
pub mod metrics;
mod monitor;
mod snapshot;

pub use monitor::MonitorClient;
pub use snapshot::{Facts, ServerDelta, ServerLists, ServerSnapshot};
