//! `cn=tasks`: exports, backups and verifications that a client starts by adding an entry, and that the server's own
//! process does, one after the other.

mod board;
mod run;
mod thread;
mod work;

pub use run::Runner;
pub use thread::Tasks;
