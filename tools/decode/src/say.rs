//! Operations in the words of other programs: commands of ldap-utils, LDIF, Python.
//!
//! A request that has no such form, or hides a password, stands as a comment: no request that is
//! repeated sets a password to `*`.

mod ldapsearch;
mod ldif;
mod packets;
mod python;
mod quoting;
mod scenario;

use crate::operation::{Note, Operation};
use crate::view::{Line, View};
use std::collections::HashSet;

pub use packets::Packets;
pub use scenario::Scenario;

/// Commands of ldap-utils, for a shell.
#[derive(Debug, Default)]
pub struct Commands;

/// Changes, as change records of RFC 2849.
#[derive(Debug, Default)]
pub struct Changes {
    is_begun: bool,
}

/// A program in Python that does the same, with python-ldap.
#[derive(Debug, Default)]
pub struct Python {
    is_begun: bool,
    /// Connections that were opened in it.
    opened: HashSet<u64>,
}

/// A line that other programs pass over.
fn comment(operation: &Operation<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"# ");
    Line.operation(operation, out);
}

fn comment_note(note: &Note<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"# ");
    Line.note(note, out);
}
