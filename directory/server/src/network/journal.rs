//! What a connection writes into the access and the audit log, and into the error log where the
//! server itself is at fault.
//!
//! What is asked is noted when a request is taken, without allocation where its answer follows at
//! once, and written when it is answered.

use super::peer::Peer;
use super::seen::Seen;
use crate::Subject;
use crate::limits::LOGGED_TEXT_BYTES_MAX;
use crate::log::stages::{self, Laps, Stage, Stopwatch};
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
    watch: Option<Stopwatch>,
    /// Its stopwatch, if it goes on with others.
    laps: Option<Arc<Laps>>,
    operation: &'static str,
    /// If it goes well, others stand for it.
    is_left_out: bool,
    dn: String,
    detail: String,
}

pub(super) struct Journal {
    pub(super) origin: Origin,
    /// The peer in words, once that was needed.
    from: String,
    /// When the last bytes came in, and whether no request was taken since.
    received: Option<SystemTime>,
    is_fresh: bool,
    /// How many requests were taken, from a number on that differs between connections.
    number: u64,
    /// The request being taken, or the last one.
    current: Asked,
    /// Those that are under way.
    waiting: Vec<Asked>,
    /// Entries that the search that is being answered has returned.
    pub(super) entries: Option<u32>,
    /// Which index it lacked, if none helped.
    pub(super) unindexed: Option<String>,
    /// Why the bind that is being answered is refused, where its client is not told.
    pub(super) reason: Option<&'static str>,
}

impl Origin {
    /// Writes a line about the connection itself.
    pub fn connection(&self, wanted: Access, event: &'static str, more: &[Field<'_>]) {
        if (self.log.access() as u8) < wanted as u8 {
            return;
        }
        if wanted == Access::Everything && !self.log.takes(self.connection) {
            return self.log.left_out();
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
        Journal {
            number: origin.connection,
            origin,
            from: String::new(),
            received: None,
            is_fresh: false,
            current: Asked::default(),
            waiting: Vec::new(),
            entries: None,
            unindexed: None,
            reason: None,
        }
    }

    /// Bytes have come in.
    pub fn received(&mut self) {
        let is_wanted = self.origin.log.access() != Access::Off;
        self.received = is_wanted.then(|| (self.origin.clock)());
        self.is_fresh = true;
    }

    /// What was received and not taken waits.
    pub fn waits(&mut self) {
        self.is_fresh = false;
    }

    /// Notes what is asked.
    pub fn asked(&mut self, id: u32, op: &Op<'_>) {
        let access = self.origin.log.access();
        if access == Access::Off {
            return;
        }
        let taken = match self.received {
            Some(received) if self.is_fresh => received,
            _ => (self.origin.clock)(),
        };
        self.is_fresh = false;
        self.number += 1;
        let mut watch = Stopwatch::start(self.received.unwrap_or(taken));
        watch.lap(Stage::Queue, taken);
        let everything = access == Access::Everything;
        let asked = &mut self.current;
        (asked.id, asked.watch, asked.laps) = (id, Some(watch), None);
        asked.is_left_out = everything && !self.origin.log.takes(self.number);
        asked.dn.clear();
        asked.detail.clear();
        asked.note(op, everything && !asked.is_left_out);
    }

    /// Since its last lap, a request that is done on the spot was in this stage.
    pub fn lap(&mut self, id: u32, stage: Stage) {
        let asked = match self.current.id == id {
            true => Some(&mut self.current),
            false => self.waiting.iter_mut().find(|asked| asked.id == id),
        };
        if let Some(watch) = asked.and_then(|asked| asked.watch.as_mut()) {
            watch.lap(stage, (self.origin.clock)());
        }
    }

    /// The stopwatch of the request that is being taken, for those who have a part in it.
    pub fn laps(&mut self, id: u32) -> Option<Arc<Laps>> {
        let asked = Some(&mut self.current).filter(|asked| asked.id == id)?;
        let (watch, clock) = (asked.watch?, self.origin.clock);
        Some(asked.laps.get_or_insert_with(|| Laps::new(clock, watch)).clone())
    }

    /// The request that is being taken will be answered later.
    pub fn wait(&mut self, id: u32) {
        if self.current.watch.is_some() && self.current.id == id {
            self.waiting.push(std::mem::take(&mut self.current));
        }
    }

    /// The request will not be answered.
    pub fn forget(&mut self, id: u32) {
        self.waiting.retain(|asked| asked.id != id);
    }

    /// Writes down how a request ended.
    pub fn answered(&mut self, id: u32, op: &Op<'_>, subject: &Subject) {
        let (entries, reason) = (self.entries.take(), self.reason.take());
        let unindexed = self.unindexed.take().unwrap_or_default();
        let position = self.waiting.iter().position(|asked| asked.id == id);
        let waited = position.map(|position| self.waiting.swap_remove(position));
        let access = self.origin.log.access();
        let Some(result) = result_of(op) else { return };
        let asked = match &waited {
            Some(asked) => asked,
            None if self.current.id == id => &self.current,
            // It could not be decoded, or was taken when nothing was written down.
            None => &Asked { id, operation: operation_of(op), ..Asked::default() },
        };
        let is_fault = is_fault(result.code);
        let is_written = match access {
            Access::Off => false,
            Access::Refused => is_fault,
            Access::Everything => is_fault || !asked.is_left_out,
        };
        if access == Access::Everything && !is_written {
            self.origin.log.left_out();
        }
        // The server, its disk or its data is at fault.
        let is_ours = result.code == ResultCode::Other;
        if !is_written && !is_ours {
            return;
        }
        if self.from.is_empty() {
            self.from = self.origin.peer.to_string();
        }
        let unindexed = &unindexed;
        let answered = Answered { asked, result, subject, entries, unindexed, reason };
        if is_written {
            self.write(Book::Access, &answered);
        }
        if is_ours {
            self.write(Book::Error(Severity::Error), &answered);
        }
    }

    fn write(&self, book: Book, answered: &Answered<'_>) {
        let Answered { asked, result, subject, entries, unindexed, reason } = answered;
        let at = (self.origin.clock)();
        let watch = asked.watch_at(at);
        let time_us = watch.as_ref().and_then(Stopwatch::total_us);
        let number = |number: Option<u64>| number.map_or(Value::None, Value::Number);
        let stages_us = watch.map(|watch| watch.stages_us()).unwrap_or_default();
        let stage = |stage: Stage| {
            let us = stages_us.get(stage as usize).filter(|us| **us > 0).copied();
            (stages::FIELDS[stage as usize], number(us))
        };
        let fields = [
            ("connection", Value::Number(self.origin.connection)),
            ("operation", Value::Number(asked.id.into())),
            ("from", Value::Text(&self.from)),
            ("as", Value::Text(subject.dn().unwrap_or_default())),
            ("dn", Value::Text(&asked.dn)),
            ("detail", Value::filled(&asked.detail)),
            ("result", Value::Number(result.code.code().into())),
            ("name", Value::Text(result.code.name())),
            ("entries", number(entries.map(u64::from))),
            ("unindexed", Value::filled(unindexed)),
            ("time_us", number(time_us)),
            stage(Stage::Queue),
            stage(Stage::Plan),
            stage(Stage::Store),
            stage(Stage::Crypto),
            stage(Stage::Write),
            ("text", reason.map_or(Value::filled(&result.diagnostic), Value::Text)),
        ];
        self.origin.log.put(&Record { at, book, event: asked.operation, fields: &fields });
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

    /// Writes down that an account is locked because of binds that failed, the last one here.
    pub fn locked(&self, dn: &str) {
        let Origin { log, clock, connection, peer, .. } = &self.origin;
        let fields = [
            ("connection", Value::Number(*connection)),
            ("from", Value::Shown(peer)),
            ("dn", Value::Text(dn)),
            ("text", Value::Text("too many binds have failed: the account is locked")),
        ];
        log.say(clock(), Severity::Warning, "account-locked", &fields);
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

/// A request that was answered.
struct Answered<'a> {
    asked: &'a Asked,
    result: &'a LdapResult<'a>,
    subject: &'a Subject,
    entries: Option<u32>,
    unindexed: &'a str,
    reason: Option<&'static str>,
}

impl Asked {
    /// Its stopwatch, when its answer is there.
    fn watch_at(&self, now: SystemTime) -> Option<Stopwatch> {
        let mut watch = match &self.laps {
            Some(laps) => laps.watch(),
            None => self.watch?,
        };
        let stage = match self.operation {
            // It was done elsewhere, and the connection has had to notice.
            _ if self.laps.is_some() => Stage::Write,
            "bind" => Stage::Crypto,
            _ => Stage::Store,
        };
        watch.lap(stage, now);
        Some(watch)
    }

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
