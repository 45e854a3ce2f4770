//! The list of groups for key exchange.

use crate::exchange::Curve;
use crate::hybrid::Hybrid;
use crate::table::{leak, offers};
use keyway_engine::{Algorithm, Engine};
use rustls::NamedGroup;
use rustls::crypto::SupportedKxGroup;

/// The groups that the engine's drivers can do, best first.
pub(crate) fn groups(engine: &'static Engine) -> Vec<&'static dyn SupportedKxGroup> {
    let x25519 = Curve { engine, algorithm: Algorithm::X25519, name: NamedGroup::X25519 };
    let p256 = Curve { engine, algorithm: Algorithm::EcdhP256, name: NamedGroup::secp256r1 };
    let p384 = Curve { engine, algorithm: Algorithm::EcdhP384, name: NamedGroup::secp384r1 };
    let mut groups: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    if offers(engine, Algorithm::MlKem768) && offers(engine, Algorithm::X25519) {
        groups.push(leak(Hybrid { engine, classical: x25519 }));
    }
    for curve in [x25519, p256, p384] {
        if offers(engine, curve.algorithm) {
            groups.push(leak(curve));
        }
    }
    groups
}
