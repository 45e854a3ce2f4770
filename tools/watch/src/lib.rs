//! The figures of a running LDAP server: from the page of counters of a server on this machine, or from what a
//! server says of itself over LDAP (`cn=monitor` of Keyway, slapd and 389 Directory Server).
//!
//! A [`SnapshotSource`] is looked at, a [`ServerSnapshot`] is what was seen of it at one moment, and a [`ServerDelta`]
//! the difference of two. [`figures`] and [`rows`] say it to programs and to people, and [`views`] in tables; a page of this machine alone
//! has more, which [`PageDelta`] says. [`metrics`] has all of it for Prometheus and for OpenTelemetry.
#![forbid(unsafe_code)]

mod columns;
mod counters;
pub mod cryptod;
pub mod delta;
mod esp;
pub mod figures;
mod folder_source;
pub mod ldap;
mod ldap_source;
pub mod limits;
pub mod lines;
pub mod metrics;
mod monitor;
mod page;
pub mod rows;
mod server;
pub mod sheet;
mod snapshot;
mod source;
pub mod text;
pub mod views;

pub use counters::{EngineWork, PageCounters};
pub use cryptod::CryptodClients;
pub use delta::PageDelta;
pub use folder_source::ServerFolder;
pub use monitor::MonitorClient;
pub use page::{PageOwner, PageSample};
pub use server::{Snapshots, WatchedServer, watch, why_not};
pub use snapshot::{Facts, ServerDelta, ServerLists, ServerSnapshot};
pub use source::SnapshotSource;
