//! `keyway quic`: files and measurements over QUIC, protected by the engine.
//!
//! QUIC itself is quinn's and TLS is rustls'; here they are given the engine's keys, sockets, and
//! something to do. Results go to standard output, progress and remarks to standard error.

mod arguments;
mod endpoint;
mod get;
mod perf;
mod serve;
mod stages;
mod target;

pub use arguments::Quic;

use crate::failure::Failure;
use arguments::Transport;
use tokio::runtime::Runtime;

/// Where the server's certificate and its authority are, unless told otherwise. Not the directory's
/// folder, which a running directory has to itself.
const DATA: &str = "keyway-quic";

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

fn runtime(transport: &Transport) -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = transport.threads {
        builder.worker_threads(threads.into());
    }
    let runtime = builder.enable_all().thread_name("quic").build();
    runtime.map_err(|why| Failure::new(format!("cannot start threads: {why}")))
}
