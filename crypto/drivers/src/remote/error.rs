//! Errors of a remote driver that no request caused.

use keyway_engine::Error;

/// The daemon, or what leads to it, has failed.
pub(super) const fn failed(why: &'static str) -> Error {
    Error::Driver { driver: "remote", why }
}
