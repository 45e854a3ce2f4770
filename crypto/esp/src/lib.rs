//! ESP (RFC 4303) without sockets, files, clocks or randomness of its own: IP packets are sealed and opened in batches by
//! an engine of Keyway's.
//!
//! ```text
//! IP packet ─▶ InnerPacket ─▶ Outbound::find ─▶ Sealer::push … seal ─▶ Sealed: an ESP packet in parts
//! datagram ─▶ encapsulated ─▶ Opener::push … open ─▶ IP packet, or a Cause to drop it
//! ```
//!
//! - **A security association** is an [`OutboundSa`], with numbers and the base of initialisation vectors, or an
//!   [`InboundSa`], with a window and [`Selectors`]. Threads share it. Its key is a session of the engine: the bytes are
//!   there, or a driver has them ([`SaKey::Named`]).
//! - **A batch** has packets of any associations. A [`Sealer`] or an [`Opener`] of each thread copies them in, gives all
//!   to the engine at once ([`Dispatch::Queued`]), and hands them out in their order. It allocates nothing for a packet
//!   once it is warm.
//! - **A number** is reserved for all packets of an association in a batch with one atomic operation. The window of a
//!   receiver is locked twice a batch: to leave out what it has, and to note what was authentic. It is exactly as wide as
//!   it was said to be.
//! - **Formats**: AES-GCM (RFC 4106), ChaCha20-Poly1305 (RFC 7634), AES-CBC (RFC 3602) with HMAC-SHA-256-128 (RFC 4868)
//!   or HMAC-SHA-1-96 (RFC 2404); extended numbers (RFC 4303 appendix A), UDP encapsulation (RFC 3948), congestion
//!   notification (RFC 6040), selectors (RFC 4301 § 4.4.1.1).
//!
//! ```
//! # use keyway_esp::*;
//! # use std::sync::Arc;
//! let engine = keyway_drivers::engine();
//! let parameters = SaParameters {
//!     spi: 0x1001,
//!     suite: Suite::Aes128Gcm,
//!     key: SaKey::Secret(&[7; 16]),
//!     salt: [1, 2, 3, 4],
//!     mode: Mode::Tunnel,
//!     esn: true,
//!     lifetime: Lifetime::default(),
//! };
//! let now = Time(0);
//! let out = Arc::new(OutboundSa::new(&engine, &parameters, 1..1_000, 0, now)?);
//! let inside = InboundSa::new(&engine, &parameters, 1024, Selectors::any(), now)?;
//! let inbound = Inbound::new([Arc::new(inside)])?;
//! let (mut sealer, mut opener) =
//!     (Sealer::new(&engine, Dispatch::Queued), Opener::new(&engine, Dispatch::Queued));
//!
//! let packet = [0x45, 0, 0, 20, 0, 0, 0x40, 0, 64, 59, 0, 0, 10, 1, 0, 5, 10, 2, 0, 7];
//! sealer.push(&out, &InnerPacket::parse(&packet)?, 0)?;
//! let mut sent = Vec::new();
//! sealer.seal(now, |_, sealed| sealed.expect("it has a number").write_to(&mut sent));
//!
//! let outer = Outer { source: [192, 0, 2, 1].into(), destination: [192, 0, 2, 2].into(), ecn: 0 };
//! opener.push(&inbound, &sent, outer)?;
//! opener.open(now, |received, _| assert_eq!(received, Ok(&mut packet.clone()[..])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `suite` has algorithms and lengths; `inner_packet` reads IP headers; `selector` and `outbound` choose; `window`,
//! `lifetime` and `parameters` are what associations are made of; `tasks`, `groups` and `dispatch` are a batch.
//!
//! These may not enter: any primitive, which is the engine's; I/O; clocks. The caller says what the time is.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

mod cause;
mod checksum;
mod dispatch;
mod ecn;
mod encapsulated;
mod groups;
mod inbound_sa;
mod inner_packet;
mod lifetime;
pub mod limits;
mod opener;
mod outbound;
mod outbound_sa;
mod parameters;
mod sealer;
mod selector;
mod suite;
mod tasks;
mod too_big;
mod trailer;
mod window;

pub use cause::Cause;
pub use dispatch::Dispatch;
pub use encapsulated::{Encapsulated, KEEPALIVE, NON_ESP_MARKER, encapsulated};
pub use inbound_sa::{DuplicateSpi, Inbound, InboundSa};
pub use inner_packet::{InnerPacket, Malformed};
pub use lifetime::{Life, Lifetime, Limit, Time, Use};
pub use opener::{Opener, Outer};
pub use outbound::Outbound;
pub use outbound_sa::OutboundSa;
pub use parameters::{Mode, SaError, SaKey, SaParameters};
pub use sealer::{Sealed, Sealer};
pub use selector::{Prefix, PrefixError, Selector, Selectors};
pub use suite::Suite;
pub use too_big::too_big;
