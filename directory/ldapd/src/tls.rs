//! The TLS configuration, which may change while a server runs.

use keyway_lock::Unpoisoned;
use std::sync::{Arc, RwLock};
use tokio_rustls::rustls::ServerConfig;

/// A TLS configuration that can be replaced. Clones are one; connections that are open keep what
/// they began with.
#[derive(Clone, Debug)]
pub struct CurrentTls(Arc<RwLock<Arc<ServerConfig>>>);

impl CurrentTls {
    /// Begins with this one.
    pub fn new(config: impl Into<Arc<ServerConfig>>) -> CurrentTls {
        CurrentTls(Arc::new(RwLock::new(config.into())))
    }

    /// Takes another for the handshakes to come.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write().unpoisoned() = config;
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.0.read().unpoisoned().clone()
    }
}
