//! The tail of the feed, the writer's lease and the members of a cluster, in etcd 3.6 or later.
//!
//! etcd is spoken to over its JSON gateway, with HTTP/1.1. It keeps the order of rows and who may write them, not entries:
//! rows that each member has are trimmed, and a member that comes later takes a base from another one.
//!
//! **Fence.** A member that wins [`Etcd::take`] has created the writer's key in a revision that no other one has. Each
//! change of the writer is a transaction that asks for this key, so that a member that was paused, or whose clock is
//! wrong, changes nothing after another one has won.
//!
//! **Doubt.** A call that has no answer may still be done. All calls here may be made again, and are, at the next
//! endpoint; [`Appended::Unknown`] says that the time was over before there was an answer.
//!
//! **Continuity.** A row names the digest of the row before it, and the feed's end is a key with position and digest,
//! changed together with each row. So an etcd that was restored from an older copy is noticed by digests, at an append
//! and by a [`Follower`]; revisions are compared nowhere but in the fence, together with the lease's number.
#![forbid(unsafe_code)]

mod alive;
mod append;
mod client;
mod connection;
mod endpoint;
mod error;
mod etcd;
mod fence;
mod follow;
mod keys;
mod lease;
pub mod limits;
mod member;
mod members;
mod row;
mod rows;
mod tail;
mod trim;
mod wire;

pub use append::Appended;
pub use endpoint::Endpoint;
pub use error::Error;
pub use etcd::{Etcd, Options};
pub use follow::{Followed, Follower};
pub use keyway_cluster::append::Fence;
pub use keyway_cluster::message::{ClusterId, Digest, MemberId};
pub use lease::State;
pub use member::Member;
pub use members::Presence;
pub use row::{Point, Row};
pub use rows::read_rows;
pub use tail::Tail;
