//! The control thread: lets clients in and sets up for them what the fast path needs.
//!
//! It answers one message of each client that has sent any, and then of each again: a client with
//! many delays the others by one message each. It never waits for a client. One that does not read
//! its answers is sent away, and so is one whose messages make no sense.
//!
//! Its data is in `state`, its work in `serving`; the answers are in `setting_up` and `sessions`.
//! In the end another daemon may take its place: `handing_over` is this daemon's part of that,
//! `taking_over` the other one's.

mod budget;
mod changes;
mod guest;
mod handing_over;
mod serving;
mod sessions;
mod setting_up;
mod state;
mod taking_over;

pub use state::{Before, Server};
