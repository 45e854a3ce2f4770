//! Security associations that strongSwan's charon negotiates. Its plug-in (`packaging/strongswan`) has this gateway for
//! the system's IPsec, and for its sockets: the gateway has UDP 500 and 4500.
//!
//! ```text
//! charon ── requests ──▶ serve ─▶ negotiated: associations and policies ─▶ the gateway's tables
//!        ◀── events ──── door ◀── IKE that came in, lifetimes that end, packets that want an association
//! ```
//!
//! The keys are fresh and live in memory alone: no record is kept of them, and a gateway that starts again has none of
//! them. charon makes new ones then.

pub mod door;
pub mod message;
pub mod negotiated;
pub mod serve;
pub mod traffic;
