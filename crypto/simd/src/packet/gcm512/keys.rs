//! Whether keys are for this backend.

use crate::aes::Rounds;
use crate::packet::gcm::GcmKey;
use crate::packet::key::{AeadForm, AeadKey, HeaderForm, HeaderKey};
use crate::packet::message::Message;
use std::ptr;

/// The length of both keys, if they are for this backend and as long as each other.
pub(super) fn same_rounds(header_key: &HeaderKey, key: &AeadKey) -> Option<Rounds> {
    match (&header_key.0, &key.0) {
        (HeaderForm::Aes(mask), AeadForm::Gcm(key)) if mask.aes.rounds == key.aes.rounds => {
            Some(key.aes.rounds)
        }
        _ => None,
    }
}

/// The length of the key, if it and the header's are for this backend.
#[inline]
pub(super) fn rounds<'k, M: Message<'k>>(message: &M) -> Option<Rounds> {
    match message.header_key().map(|key| &key.0) {
        None | Some(HeaderForm::Aes(_)) => gcm(message).map(|key| key.aes.rounds),
        Some(_) => None,
    }
}

/// Whether both are the same key.
#[inline]
pub(super) fn same(a: Option<&HeaderKey>, b: Option<&HeaderKey>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => ptr::eq(a, b),
        _ => true,
    }
}

/// The key, if it is for this backend.
#[inline]
pub(super) fn gcm<'k, M: Message<'k>>(message: &M) -> Option<&'k GcmKey> {
    match &message.key().0 {
        AeadForm::Gcm(key) => Some(key),
        AeadForm::Library(_) => None,
    }
}
