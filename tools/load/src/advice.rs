//! Advice on a step that fails.

use crate::scenario::{Job, Step};
use crate::tally::Fault;

/// A server's answers to a user who may not see or change something (RFC 4511 § A.2).
const NO_SUCH_OBJECT: u32 = 32;
const INAPPROPRIATE_AUTHENTICATION: u32 = 48;
const INVALID_CREDENTIALS: u32 = 49;
const INSUFFICIENT_ACCESS_RIGHTS: u32 = 50;

/// Advice on a step that fails, beginning with a semicolon; nothing where there is none.
pub(crate) fn advice(job: &Job, step: usize, fault: Fault) -> &'static str {
    let kind = match job.steps.get(step) {
        Some(Step::Operation(operation)) => operation.kind,
        _ => "",
    };
    match (kind, fault) {
        ("bind", Fault::Code(INVALID_CREDENTIALS | INAPPROPRIATE_AUTHENTICATION)) => {
            "; users have another password (--user-password, --user-password-file) or other names \
             (--users, --user-dn)"
        }
        ("search", Fault::Empty) => {
            "; no entry was found, or the asking user may not see it: say who the users are (--users, \
             --filter, --base) or who asks (--bind-dn DN --password-file FILE)"
        }
        ("search", Fault::WrongEntries) => "; say how a user is found (--filter)",
        ("search" | "compare", Fault::Code(NO_SUCH_OBJECT)) => {
            "; it is not there, or the asking user may not see it: say where entries are (--base), who the \
             users are (--users, --user-dn) or who asks (--bind-dn DN --password-file FILE)"
        }
        (_, Fault::Code(NO_SUCH_OBJECT)) => {
            "; the entry, or the one above it, is not there: say who the users are (--users, --user-dn) \
             and where entries are (--base)"
        }
        ("search" | "compare", Fault::Code(INSUFFICIENT_ACCESS_RIGHTS)) => {
            "; say who may see that (--bind-dn DN --password-file FILE), or what others may (--users, \
             --filter, --base)"
        }
        (_, Fault::Code(INSUFFICIENT_ACCESS_RIGHTS)) => {
            "; say who may do that (--bind-dn DN --password-file FILE)"
        }
        _ => "",
    }
}
