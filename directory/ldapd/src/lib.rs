//! The network half of the directory server: listeners, TLS, connections, sessions, extended operations, and what
//! they show of themselves below `cn=monitor`.
//!
//! ```text
//! listener ── connection (bytes, turns) ── session (requests, answers) ── Directory
//!                  │                       └─ bind, extended
//!                  └─ stream (plain or TLS)
//! ```
//!
//! Each connection is one task. It never waits for a single request: reads are answered on the
//! spot, searches are cursors, the rest are futures. Peers share nothing but the processor.
//!
//! Not allowed in here: the meaning of an operation (that of `keyway-server`), the form of messages (the codec's).
#![forbid(unsafe_code)]

mod administrator;
mod answer;
mod bind;
mod budget;
mod carried;
mod carrying;
mod channel;
mod connection;
mod crowd;
mod elsewhere;
mod extended;
mod fault;
mod forward;
mod handshake;
mod limits;
mod listen;
mod listener;
mod members;
mod meters;
mod monitor;
mod must_change;
mod on_behalf;
mod outcome;
mod peer;
mod proxied;
mod registry;
mod request_log;
mod request_record;
mod requested_controls;
mod second_read;
mod secured;
mod seen;
mod server;
mod session;
mod settings;
mod slow;
mod state;
mod strangers;
mod stream;
mod tls;
mod writes;
mod written;

pub use administrator::Administrator;
pub use forward::Forwarder;
pub use limits::Limits;
pub use listen::{Listener, ListenerKind, Mode, Socket};
pub use members::{MEMBER_PROTOCOL, Members, Served};
pub use monitor::branch as monitor_branch;
pub use server::{LdapServer, ServerHandle};
pub use settings::{ConnectionSettings, Local, Proxies};
pub use tls::CurrentTls;
pub use writes::{Forwarding, Writes};
