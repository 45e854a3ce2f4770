//! The tree `cn=changelog`: the changes that the feed keeps, as entries that clients search and poll
//! (draft-good-ldap-changelog).
//!
//! An entry is made when a search comes to it, out of a row of the feed, and forgotten after it. A search that asks
//! for numbers finds the first of them by bisection, so it costs as much as it returns.

mod entry;
mod log;
mod range;

pub(crate) use log::{Changelog, Next};
