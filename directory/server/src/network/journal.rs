//! What a connection writes into the access and the audit log, and into the error log where the
//! server itself is at fault.
//!
//! What is asked is noted when a request is taken, without allocation where its answer follows at
//! once, and written when it is answered.

use super::peer::Peer;
use super::seen::Seen;
use crate::Subject;
use crate::limits::LOGGED_TEXT_BYTES_MAX;
use crate::log::{
    Access, Audit, Book, Capped, Change, Field, Log, Record, Severity, Value, hidden,
};
use keyway_codec::extended::{CANCEL, PASSWORD_MODIFY, PasswordModifyRequest, START_TLS, WHO_AM_I};
use keyway_codec::message::{Authentication, LdapResult, Op, ResultCode, Scope};
use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

/// Whose requests they are.
#[derive(Clone)]
pub(super) struct Origin {
    pub log: Log,
    pub clock: fn() -> SystemTime,
    /// The connection's number.
    pub connection: u64,
    pub peer: Peer,
    pub seen: Arc<Seen>,
}

/// What the log will say of a request.
#[derive(Default)]
struct Asked {
    id: u32,
    started: Option<SystemTime>,
    operation: &'static str,
    dn: String,
    detail: String,
}

pub(super) struct Journal {
    pub(super) origin: Origin,
    /// The request being taken, or the last one.
    current: Asked,
    /// Those that are under way.
    waiting: Vec<Asked>,
    /// Entries that the search that is being answered has returned.
    pub(super) entries: Option<u32>,
}

impl Origin {
    /// Writes a line about the connection itself.
    pub fn connection(&self, wanted: Access, event: &'static str, more: &[Field<'_>]) {
        if (self.log.access() as u8) < wanted as u8 {
            return;
        }
        let mut fields = vec![
            ("connection", Value::Number(self.connection)),
            ("from", Value::Shown(&self.peer)),
        ];
        fields.extend_from_slice(more);
        let at = (self.clock)();
        self.log.put(&Record { at, book: Book::Access, event, fields: &fields });
    }
}

impl Journal {
    pub fn new(origin: Origin) -> Journal {
        Journal { origin, current: Asked::default(), waiting: Vec::new(), entries: None }
    }

    /// Notes what is asked.
    pub fn asked(&mut self, id: u32, op: &Op<'_>) {
        let access = self.origin.log.access();
        if access == Access::Off {
            return;
        }
        let asked = &mut self.current;
        asked.id = id;
        asked.started = Some((self.origin.clock)());
        asked.dn.clear();
        asked.detail.clear();
        asked.note(op, access == Access::Everything);
    }

    /// The request that is being taken will be answered later.
    pub fn wait(&mut self, id: u32) {
        if self.origin.log.access() != Access::Off && self.current.id == id {
            self.waiting.push(std::mem::take(&mut self.current));
        }
    }

    /// The request will not be answered.
    pub fn forget(&mut self, id: u32) {
        self.waiting.retain(|asked| asked.id != id);
    }

    /// Writes down how a request ended.
    pub fn answered(&mut self, id: u32, op: &Op<'_>, subject: &Subject) {
        let entries = self.entries.take();
        let position = self.waiting.iter().position(|asked| asked.id == id);
        let waited = position.map(|position| self.waiting.swap_remove(position));
        let access = self.origin.log.access();
        let Some(result) = result_of(op) else { return };
        let is_written = match access {
            Access::Off => false,
            Access::Refused => is_fault(result.code),
            Access::Everything => true,
        };
        // The server, its disk or its data is at fault.
        let is_ours = result.code == ResultCode::Other;
        if !is_written && !is_ours {
            return;
        }
        let asked = match &waited {
            Some(asked) => asked,
            None if self.current.id == id => &self.current,
            // It could not be decoded, or was taken when nothing was written down.
            None => &Asked { id, operation: operation_of(op), ..Asked::default() },
        };
        if is_written {
            self.origin.operation(Book::Access, asked, result, subject, entries);
        }
        if is_ours {
            self.origin.operation(Book::Error(Severity::Error), asked, result, subject, entries);
        }
    }

    /// What the audit log will say of a change when it is done, if it is to say anything.
    pub fn change(
        &self,
        operation: u32,
        subject: &Subject,
        change: impl FnOnce() -> Option<Change>,
    ) -> Option<Audit> {
        let Origin { log, clock, connection, peer, .. } = &self.origin;
        let change = if log.audits() { change()? } else { return None };
        Some(Audit {
            log: log.clone(),
            clock: *clock,
            connection: *connection,
            operation,
            peer: *peer,
            author: subject.dn().unwrap_or_default().to_owned(),
            change,
        })
    }

    /// Writes down that the session is ended by the server.
    pub fn disconnected(&self, code: ResultCode, why: &str) {
        let fields = [
            ("result", Value::Number(code.code().into())),
            ("name", Value::Text(code.name())),
            ("text", Value::Text(why)),
        ];
        // A peer that was idle, or a server that goes down, is nothing that was refused.
        let wanted = match code {
            ResultCode::Unavailable => Access::Everything,
            _ => Access::Refused,
        };
        self.origin.connection(wanted, "disconnect", &fields);
    }
}

impl Origin {
    fn operation(
        &self,
        book: Book,
        asked: &Asked,
        result: &LdapResult<'_>,
        subject: &Subject,
        entries: Option<u32>,
    ) {
        let at = (self.clock)();
        let taken = asked.started.and_then(|started| at.duration_since(started).ok());
        let number = |number: Option<u64>| number.map_or(Value::None, Value::Number);
        let fields = [
            ("connection", Value::Number(self.connection)),
            ("operation", Value::Number(asked.id.into())),
            ("from", Value::Shown(&self.peer)),
            ("as", Value::Text(subject.dn().unwrap_or_default())),
            ("dn", Value::Text(&asked.dn)),
            ("detail", Value::filled(&asked.detail)),
            ("result", Value::Number(result.code.code().into())),
            ("name", Value::Text(result.code.name())),
            ("entries", number(entries.map(u64::from))),
            ("time_us", number(taken.and_then(|taken| taken.as_micros().try_into().ok()))),
            ("text", Value::filled(&result.diagnostic)),
        ];
        let event = asked.operation;
        self.log.put(&Record { at, book, event, fields: &fields });
    }
}

impl Asked {
    fn note(&mut self, op: &Op<'_>, in_full: bool) {
        let dn = &mut self.dn;
        let mut set = |text: &str| cap(dn).write_str(text).unwrap_or_default();
        self.operation = match op {
            Op::BindRequest(bind) => {
                match bind.authentication {
                    Authentication::Sasl { mechanism, credentials } => {
                        set(plain_identity(mechanism, credentials).unwrap_or(bind.name));
                        cap(&mut self.detail).write_str(mechanism).unwrap_or_default();
                    }
                    _ => set(bind.name),
                }
                "bind"
            }
            Op::SearchRequest(search) => {
                set(search.base);
                if in_full {
                    let scope = match search.scope {
                        Scope::Base => "base",
                        Scope::One => "one",
                        Scope::Subtree => "sub",
                        Scope::Subordinate => "children",
                    };
                    let mut detail = cap(&mut self.detail);
                    // What does not fit is left out.
                    let _ = match hidden(&search.filter) {
                        true => write!(detail, "{scope} (filter with a password, not shown)"),
                        false => write!(detail, "{scope} {}", search.filter),
                    };
                }
                "search"
            }
            Op::CompareRequest(compare) => {
                set(compare.dn);
                cap(&mut self.detail).write_str(compare.attribute).unwrap_or_default();
                "compare"
            }
            Op::AddRequest(add) => {
                set(add.dn);
                "add"
            }
            Op::ModifyRequest(modify) => {
                set(modify.dn);
                "modify"
            }
            Op::DeleteRequest(dn) => {
                set(dn);
                "delete"
            }
            Op::ModifyDnRequest(rename) => {
                set(rename.dn);
                "rename"
            }
            Op::ExtendedRequest(request) => {
                let user = || PasswordModifyRequest::decode(request.value).ok()?.user;
                match request.oid {
                    START_TLS => "start-tls",
                    WHO_AM_I => "who-am-i",
                    CANCEL => "cancel",
                    PASSWORD_MODIFY => {
                        set(user().unwrap_or_default());
                        "password"
                    }
                    oid => {
                        cap(&mut self.detail).write_str(oid).unwrap_or_default();
                        "extended"
                    }
                }
            }
            Op::AbandonRequest(_) => "abandon",
            Op::UnbindRequest => "unbind",
            _ => "response",
        };
    }
}

fn cap(out: &mut String) -> Capped<'_> {
    Capped { out, bytes_max: LOGGED_TEXT_BYTES_MAX }
}

/// The authentication identity of RFC 4616, of credentials that have all three parts: in others
/// anything may be the password.
fn plain_identity<'a>(mechanism: &str, credentials: Option<&'a [u8]>) -> Option<&'a str> {
    if !mechanism.eq_ignore_ascii_case("PLAIN") {
        return None;
    }
    let mut parts = credentials?.split(|byte| *byte == 0);
    let (_, identity, _) = (parts.next()?, parts.next()?, parts.next()?);
    std::str::from_utf8(identity).ok()
}

/// Whether it is an answer of fault.
pub(super) fn is_fault(code: ResultCode) -> bool {
    use ResultCode::*;
    !matches!(code, Success | CompareFalse | CompareTrue | Referral)
}

fn result_of<'a>(op: &'a Op<'_>) -> Option<&'a LdapResult<'a>> {
    match op {
        Op::BindResponse(response) => Some(&response.result),
        Op::ExtendedResponse(response) => Some(&response.result),
        Op::SearchResultDone(result)
        | Op::ModifyResponse(result)
        | Op::AddResponse(result)
        | Op::DeleteResponse(result)
        | Op::ModifyDnResponse(result)
        | Op::CompareResponse(result) => Some(result),
        _ => None,
    }
}

fn operation_of(op: &Op<'_>) -> &'static str {
    match op {
        Op::BindResponse(_) => "bind",
        Op::SearchResultDone(_) => "search",
        Op::ModifyResponse(_) => "modify",
        Op::AddResponse(_) => "add",
        Op::DeleteResponse(_) => "delete",
        Op::ModifyDnResponse(_) => "rename",
        Op::CompareResponse(_) => "compare",
        _ => "extended",
    }
}
