//! Captures and conversations, decoded, and said again: `wire` makes them.

mod any_order;
mod browsed;
mod captures;
mod datagrams;
mod filters;
mod kept;
mod secrets;
mod wire;
mod words;
