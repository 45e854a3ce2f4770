//! Names of places, kinds and choices.

use keyway_engine::{Algorithm, Kind, Place, Selection};

/// Where a driver works.
pub(super) fn place(place: Place) -> &'static str {
    match place {
        Place::Caller => "caller",
        Place::Host => "host",
        Place::Device => "device",
    }
}

/// Whether it is chosen.
pub(super) fn selection(selection: Selection) -> &'static str {
    match selection {
        Selection::Any => "yes",
        Selection::Named => "by name",
    }
}

/// A kind of algorithms.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Aead => "aead",
        Kind::Packet => "packet",
        Kind::Mask => "mask",
        Kind::Cipher => "cipher",
        Kind::Compression => "compression",
        Kind::Hash => "hash",
        Kind::Mac => "mac",
        Kind::Hkdf => "hkdf",
        Kind::Exchange => "exchange",
        Kind::Kem => "kem",
        Kind::Signature => "signature",
        Kind::Encryption => "encryption",
        Kind::Random => "random",
        Kind::Password => "password",
    }
}

/// The algorithms by kind, in the order of declaration.
pub(super) fn by_kind(algorithms: &[Algorithm]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for algorithm in algorithms {
        let kind = kind(algorithm.kind());
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, names)) => names.push(algorithm.name()),
            None => kinds.push((kind, vec![algorithm.name()])),
        }
    }
    kinds
}
