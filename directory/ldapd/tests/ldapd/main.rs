//! The network half, seen from the other end of a connection.

mod binds;
mod client;
mod clock;
mod crowd;
mod directory;
mod extended;
mod flow;
mod framing;
mod gate;
mod guessing;
mod members;
mod policy;
mod remember;
mod support;
mod tls;
