//! The data folder of a server that is a member of a cluster: which one it is, its certificate and key, and the TLS by
//! which members know each other.

mod certificate;
mod files;
mod tls;

pub use certificate::{PublicKey, issue, member_of};
pub use files::{Key, Member, complete, is_member, keep, make_key, read};
pub use tls::{MEMBER_PROTOCOL, client, joiner, peer, server};
