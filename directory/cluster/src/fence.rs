//! The right to append to a tail.

use crate::message::MemberId;

/// The right to append. It holds while the writer's key in etcd was created by this revision and has this value. The
/// revision is not enough: etcd that was restored from a snapshot counts some again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Fence {
    /// The create revision of the key.
    pub revision: u64,
    /// The member that took it.
    pub member: MemberId,
    /// A random number that it took it with.
    pub nonce: u64,
}
