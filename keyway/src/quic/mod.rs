//! `keyway quic`: files and measurements over QUIC, protected by the engine. The work is that of
//! `keyway-quic`; here are its flags and its words.
//!
//! Results go to standard output, progress and remarks to standard error.

mod arguments;
mod failed;
mod get;
mod host;
mod perf;
mod serve;

pub use arguments::Quic;

use keyway_host::failure::Failure;

/// Does what the arguments ask for. Says whether all of it could be done.
///
/// # Errors
/// If it could not be begun, or not be finished.
pub fn run(command: &Quic) -> Result<bool, Failure> {
    match command {
        Quic::Serve(arguments) => serve::run(arguments).map(|()| true),
        Quic::Get(arguments) => get::run(arguments),
        Quic::Perf(arguments) => perf::run(arguments).map(|()| true),
    }
}
