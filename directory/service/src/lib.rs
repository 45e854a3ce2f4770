//! The processes of a directory: `up`, which supervises, `ldapd` and `cryptod`: their start, their reload and their
//! end. A data folder's directory, opened, filled, and worked on while no process serves it; what its feed of changes
//! says, and changes undone by it; its backups and snapshots; an examination of it and of its machine. An SSH agent,
//! which is a client of cryptod.
#![forbid(unsafe_code)]

pub mod admin;
pub mod backup;
mod backups;
mod banner;
pub mod callers;
mod certificates;
pub mod changes;
pub mod changing;
pub mod client;
pub mod client_certificate;
pub mod cluster;
pub mod cryptod;
pub mod doctor;
pub mod edited;
pub mod export;
pub mod feed_check;
pub mod finding;
mod forecast;
mod gauges;
pub mod index_advice;
pub mod instance;
pub mod key_files;
pub mod key_list;
pub mod key_use;
pub mod ldapd;
pub mod ldif_source;
pub mod limit;
pub mod limits;
mod lineage;
pub mod master;
pub mod offline;
pub mod options;
mod places;
mod plain_file;
pub mod populate;
mod reindex;
mod reload;
pub mod sample;
mod scratch;
pub mod snapshot;
pub mod ssh_agent;
pub mod start_check;
mod tasks;
pub mod tokens;
pub mod told;
pub mod undo;
pub mod up;
pub mod vhost_user;
pub mod vm_check;
pub mod vms;
pub mod witness;

pub use reload::{PushMetrics, Pushing};
