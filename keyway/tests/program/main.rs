//! The built program, as a user runs it: what it prints, makes, refuses, and how it ends.

mod cryptod;
mod damage;
mod data;
mod exchange;
mod exports;
mod flags;
mod hardening;
mod held_keys;
mod metrics;
mod overwriting;
mod passwords;
mod quic;
mod refusals;
mod start;
mod supervision;
mod support;
mod top;
mod users;
