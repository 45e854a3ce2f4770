//! The writer's key: its value, and the conditions by which etcd knows its holder.

use crate::error::Error;
use crate::keys::{Keys, number};
use crate::wire::{KeyValue, created, valued};
use keyway_cluster::append::Fence;
use keyway_cluster::message::MemberId;
use serde_json::Value;

/// `member lease`, 16 hexadecimal digits each. The lease is the fence's nonce: an etcd that was restored may give a
/// revision again, and hardly a lease.
pub(crate) fn value(member: MemberId, lease: u64) -> Vec<u8> {
    format!("{member} {lease:016x}").into_bytes()
}

/// The holder, by its key.
pub(crate) fn holder(found: &KeyValue) -> Result<Fence, Error> {
    let holder = || {
        let (member, lease) = found.value.split_at_checked(16)?;
        let nonce = number(lease.strip_prefix(b" ")?)?;
        Some(Fence { revision: found.create_revision, member: MemberId(number(member)?), nonce })
    };
    holder().ok_or_else(|| Error::Damaged("the writer's key makes no sense".into()))
}

/// That the key is this holder's.
pub(crate) fn holds(keys: &Keys, fence: &Fence) -> Vec<Value> {
    let key = keys.writer();
    vec![created(&key, fence.revision), valued(&key, &value(fence.member, fence.nonce))]
}

/// Whether the key, as it was found, is this holder's.
pub(crate) fn is_held(found: Option<&KeyValue>, fence: &Fence) -> bool {
    found.is_some_and(|found| holder(found).is_ok_and(|holder| holder == *fence))
}
