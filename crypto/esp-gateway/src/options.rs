//! What `keyway esp up` is told.

use std::path::PathBuf;

/// Its settings beside the configuration.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Its configuration.
    pub configuration: PathBuf,
    /// The folder of its records.
    pub state: PathBuf,
    /// Its control socket.
    pub control: PathBuf,
    /// Whether it speaks JSON.
    pub json: bool,
    /// Whether it keeps the rights that it does not need.
    pub no_sandbox: bool,
}
