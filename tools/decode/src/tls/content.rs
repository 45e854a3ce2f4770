//! The types of records, and the reason why one cannot be read.

use std::borrow::Cow;

/// Types of records.
pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;

pub(super) const HANDSHAKE: u8 = 22;

pub(super) const APPLICATION_DATA: u8 = 23;

/// Why nothing more can be read.
pub(crate) type Reason = Cow<'static, str>;
