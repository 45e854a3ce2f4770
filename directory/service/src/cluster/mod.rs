//! Several servers of one directory: tokens, by which a server joins; the connections between members, of both ends; a
//! base, which a follower begins with; and the cluster's row in the store.

mod asking;
mod authority;
mod base;
mod copied;
mod feeding;
mod following;
mod join;
mod joining;
pub mod limits;
mod link;
mod node;
mod own_changes;
mod own_url;
mod placing;
mod reaching;
mod receive;
mod rejoin;
pub mod row;
mod serve;
mod service;
mod serving;
mod shown;
mod start;
mod stream;
mod token;
mod tokening;
mod tokens;

pub use asking::{Asked, Members, members, promote, status};
pub use authority::Authority;
pub use join::{JoinOptions, join};
pub use link::{Link, LinkError};
pub use node::{Node, NodeSettings, Parts};
pub use own_changes::OwnChanges;
pub use own_url::reached_at;
pub use rejoin::{Rejoined, rejoin};
pub use serve::MemberServer;
pub use service::{Boxed, Follow, MemberService, Refused};
pub use start::{Running, Serving, follows, node_settings, start};
pub use stream::{MemberStream, StreamError};
pub use token::JoinToken;
pub use tokening::{MadeToken, join_token, make_token, member_name};
