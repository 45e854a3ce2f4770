//! The part of this crate with files, sockets and clocks: captures that are read, a proxy, and a replay.
//!
//! The program that starts these says where remarks go ([`Say`]), makes the TLS configurations, and reads the
//! signals.

pub mod file;
pub mod live;
pub mod proxy;
pub mod reading;
pub mod recording;
pub mod replay;

use std::fmt::Display;

/// Takes remarks, a line each.
pub type Say = dyn Fn(&dyn Display) + Send + Sync;
