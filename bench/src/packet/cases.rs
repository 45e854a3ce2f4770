//! The cases that are measured, and the results.

use super::bound::Bound;
use super::sample::{Algorithm, Case, Way};
use super::sample::{BATCH_MAX, Turn};
use std::collections::BTreeMap;

pub(super) const ALGORITHMS: [Algorithm; 2] = [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305];

pub(super) const WAYS: [Way; 2] = [Way::Seal, Way::Open];

/// Bytes of a payload.
pub(super) const SIZES: [usize; 9] = [4, 16, 64, 256, 600, 1000, 1200, 1280, 1450];

pub(super) const BATCHES: [usize; 3] = [1, 16, BATCH_MAX];

/// Connections in turn, and the payload they are measured with.
pub(super) const CONNECTIONS: usize = 8192;

pub(super) const CONNECTION_BYTES: usize = 1200;

pub(super) const BULK_BYTES: [usize; 3] = [1536, 16_384, 65_536];

/// The results: for each contestant that does a case, a turn each round.
pub(super) struct Figures {
    pub(super) names: Vec<String>,
    pub(super) turns: BTreeMap<(usize, Case), Vec<Turn>>,
    pub(super) bound: Option<Bound>,
}
