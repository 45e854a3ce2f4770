//! The way on which the ends of binds go to the server that writes.

use std::pin::Pin;

/// Resolves to whether the server that writes has them, and this one their consequences.
pub type BindsTaken = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Takes the ends of binds to the server that writes, as `Directory::note_binds` of that one has them.
pub trait BindsTaker: Send + Sync {
    /// Takes them; the future resolves when this server has applied what came of it.
    fn take(&self, binds: Vec<u8>) -> BindsTaken;
}
