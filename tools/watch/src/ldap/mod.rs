//! A small LDAP client: the address of a server, a connection to it, searches, and changes.

mod client;
mod connect;
mod login;
mod own;
mod url;

pub use client::{FoundEntry, RefusedRequest, SearchClient, SearchResult};
pub use connect::{ConnectOptions, LdapStream};
pub use login::{Login, logins};
pub use url::ServerUrl;
