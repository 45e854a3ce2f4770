//! Several servers of one directory: tokens, by which a server joins; the connections between members, of both ends; a
//! base, which a follower begins with; and the cluster's row in the store.

mod authority;
mod base;
mod joining;
pub mod limits;
pub mod row;
mod serve;
mod service;
mod stream;
mod token;
mod tokens;
mod url;

pub use authority::Authority;
pub use serve::MemberServer;
pub use service::{Boxed, MemberService, Refused};
pub use stream::{MemberStream, StreamError};
pub use token::JoinToken;
pub use url::MemberUrl;
