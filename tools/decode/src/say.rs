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
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

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

/// A capture of what was decoded, as pcapng.
#[derive(Debug, Default)]
pub struct Packets {
    is_begun: bool,
    streams: HashMap<u64, packets::Stream>,
}

/// A scenario for a load generator, which [`Scenario::files`] gives in the end.
#[derive(Debug, Default)]
pub struct Scenario {
    server: Option<SocketAddr>,
    has_tls: bool,
    has_start_tls: bool,
    jobs: scenario::Jobs,
    /// Who asked what is no bind, and how often.
    bound: BTreeMap<String, u64>,
    left_out: BTreeMap<&'static str, u64>,
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
