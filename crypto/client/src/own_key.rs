//! A key that the program has itself and gives to the daemon, for programs that know no keys by name.

use keyway_engine::Algorithm;
use keyway_ring::control;
use std::sync::atomic::{AtomicU64, Ordering};

/// A secret key of the program's, and the algorithm that it is for. The program's bytes go to the daemon over its
/// socket whenever a connection uses the key for the first time: also after the daemon was away, and in a process that
/// was forked. They are wiped when this value is dropped; [`KeyClient::forget`](crate::KeyClient::forget) closes the
/// daemon's session.
#[derive(Debug)]
pub struct OwnKey {
    /// No other key of this process, and of those that it was forked from, has the number.
    pub(crate) number: u64,
    pub(crate) algorithm: Algorithm,
    pub(crate) step: control::Step,
}

static LAST: AtomicU64 = AtomicU64::new(0);

impl OwnKey {
    /// The key of these bytes. Whether they fit the algorithm, the daemon says.
    pub fn new(algorithm: Algorithm, secret: &[u8]) -> OwnKey {
        let key = control::Key::Secret(secret.into());
        OwnKey {
            number: LAST.fetch_add(1, Ordering::Relaxed),
            algorithm,
            step: control::Step { algorithm: algorithm.name().to_owned(), key },
        }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
