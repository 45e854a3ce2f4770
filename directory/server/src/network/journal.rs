//! What a connection writes into the access and the audit log, and into the error log where the
//! server itself is at fault.
//!
//! What is asked is noted when a request is taken, without allocation where its answer follows at
//! once, and written when it is answered.

use super::peer::Peer;
use super::seen::Seen;
use super::slow::{Operation, Searched, Slowest};
use crate::Subject;
use crate::limits::LOGGED_TEXT_BYTES_MAX;
use crate::log::stages::{self, Laps, Stage, Stopwatch};
use crate::log::{
    Access, Audit, Book, Capped, Change, Field, Log, Record, Severity, Value, hidden,
};
use crate::search::Progress;
use keyway_codec::extended::{CANCEL, PASSWORD_MODIFY, PasswordModifyRequest, START_TLS, WHO_AM_I};
use keyway_codec::message::{Authentication, LdapResult, Op, ResultCode, Scope};
use std::fmt::Write;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
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
    pub slowest: Arc<Slowest>,
}

/// What the log will say of a request.
#[derive(Default)]
pub(super) struct Asked {
    id: u32,
    watch: Option<Stopwatch>,
    /// Its stopwatch, if it goes on with others.
    laps: Option<Arc<Laps>>,
    operation: &'static str,
    /// If it goes well, others stand for it.
    is_left_out: bool,
    dn: String,
    detail: String,
    /// How far it is, if it is a search.
    progress: Option<Progress>,
}

pub(super) struct Journal {
    pub(super) origin: Origin,
    /// The peer in words, once that was needed.
    from: String,
    /// When the last bytes came in.
    received: Option<SystemTime>,
    /// The time now, if it is known because something has just happened: they came in, or a request was
    /// answered.
    now: Option<SystemTime>,
    /// How many requests were taken, from a number on that differs between connections.
    number: u64,
    /// The request being taken, or the last one.
    current: Asked,
    /// How far the search that is being answered has come.
    pub(super) progress: Option<Progress>,
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
            now: None,
            current: Asked::default(),
            progress: None,
            unindexed: None,
            reason: None,
        }
    }

    /// Bytes have come in.
    pub fn received(&mut self) {
        let now = (self.origin.clock)();
        self.origin.seen.heard(now);
        (self.received, self.now) = (Some(now), Some(now));
    }

    /// What was received and not taken waits.
    pub fn waits(&mut self) {
        self.now = None;
    }

    /// Notes what is asked.
    pub fn asked(&mut self, id: u32, op: &Op<'_>) {
        let access = self.origin.log.access();
        let taken = self.now.take().unwrap_or_else(self.origin.clock);
        self.number += 1;
        let mut watch = Stopwatch::start(self.received.unwrap_or(taken));
        watch.lap(Stage::Queue, taken);
        let everything = access == Access::Everything;
        let asked = &mut self.current;
        (asked.id, asked.watch, asked.laps) = (id, Some(watch), None);
        asked.progress = None;
        asked.is_left_out = everything && !self.origin.log.takes(self.number);
        asked.dn.clear();
        asked.detail.clear();
        asked.note(op, everything && !asked.is_left_out);
    }

    /// Since its last lap, a request that is done on the spot was in this stage.
    pub fn lap(&mut self, id: u32, stage: Stage) {
        let now = (self.origin.clock)();
        let lap =
            |asked: &mut Asked| asked.watch.iter_mut().for_each(|watch| watch.lap(stage, now));
        match self.current.id == id {
            true => lap(&mut self.current),
            false => self.origin.seen.waiting().iter_mut().filter(|one| one.id == id).for_each(lap),
        }
    }

    /// A search goes on later, and is so far now.
    pub fn wait_at(&mut self, id: u32, progress: Progress) {
        self.lap(id, Stage::Store);
        self.wait(id);
        let mut waiting = self.origin.seen.waiting();
        if let Some(asked) = waiting.iter_mut().find(|asked| asked.id == id) {
            asked.progress = Some(progress);
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
            let asked = std::mem::take(&mut self.current);
            self.origin.seen.waiting().push(asked);
        }
    }

    /// The request will not be answered.
    pub fn forget(&mut self, id: u32) {
        self.origin.seen.waiting().retain(|asked| asked.id != id);
    }

    /// Writes down how a request ended; how long it took, in nanoseconds, if that is known.
    pub fn answered(&mut self, id: u32, op: &Op<'_>, subject: &Subject) -> Option<u64> {
        let (progress, reason) = (self.progress.take(), self.reason.take());
        let unindexed = self.unindexed.take().unwrap_or_default();
        let waited = match self.current.watch.is_some() && self.current.id == id {
            true => None,
            false => take(&mut self.origin.seen.waiting(), id),
        };
        let result = result_of(op)?;
        // A search has just looked.
        let stepped = progress.and_then(|progress| progress.at);
        let at = stepped.unwrap_or_else(self.origin.clock);
        self.now = Some(at);
        let asked = match &waited {
            Some(asked) => asked,
            None if self.current.id == id => &self.current,
            // It could not be decoded.
            None => &Asked { id, operation: operation_of(op), ..Asked::default() },
        };
        let watch = asked.watch_at(at);
        let unindexed = &unindexed;
        let answered = Answered { asked, result, subject, at, watch, progress, unindexed, reason };
        self.note_if_slow(&answered);
        let is_written = self.is_written(&answered);
        // The server, its disk or its data is at fault.
        let is_ours = result.code == ResultCode::Other;
        if (is_written || is_ours) && self.from.is_empty() {
            self.from = self.origin.peer.to_string();
        }
        if is_written {
            self.write(Book::Access, &answered);
        }
        if is_ours {
            self.write(Book::Error(Severity::Error), &answered);
        }
        if waited.is_none() {
            // Its id may be another's from now on.
            (self.current.id, self.current.watch) = (0, None);
        }
        watch?.total_ns()
    }

    fn is_written(&self, answered: &Answered<'_>) -> bool {
        let is_fault = is_fault(answered.result.code);
        match self.origin.log.access() {
            Access::Off => false,
            Access::Refused => is_fault,
            Access::Everything if is_fault || !answered.asked.is_left_out => true,
            Access::Everything => {
                self.origin.log.left_out();
                false
            }
        }
    }

    /// Keeps it for a while if few of this minute took longer.
    fn note_if_slow(&self, answered: &Answered<'_>) {
        let Answered { asked, at, watch, .. } = answered;
        let Origin { seen, slowest, .. } = &self.origin;
        let total_us = watch.as_ref().and_then(Stopwatch::total_us);
        // Whoever looks on is not what there is to be seen.
        let is_looker = answered.progress.is_some_and(|progress| progress.is_made);
        if !is_looker && total_us.is_some_and(|total_us| slowest.wants(total_us, *at)) {
            let who = answered.subject.name().map(|name| name.to_string());
            let mut operation = asked.seen(self.origin.connection, seen, who, *at);
            operation.result = Some(answered.result.code.code());
            operation.search = answered.progress.map(searched);
            slowest.note(operation);
        }
    }

    fn write(&self, book: Book, answered: &Answered<'_>) {
        let Answered { asked, result, subject, at, watch, progress, unindexed, reason } = answered;
        let entries = progress.map(|progress| progress.returned);
        let time_us = watch.as_ref().and_then(Stopwatch::total_us);
        let number = |number: Option<u64>| number.map_or(Value::None, Value::Number);
        let stages_us = watch.as_ref().map(Stopwatch::stages_us).unwrap_or_default();
        let stage = |stage: Stage| {
            let us = stages_us.get(stage as usize).filter(|us| **us > 0).copied();
            (stages::FIELDS[stage as usize], number(us))
        };
        let name = subject.name();
        let fields = [
            ("connection", Value::Number(self.origin.connection)),
            ("operation", Value::Number(asked.id.into())),
            ("from", Value::Text(&self.from)),
            ("as", Value::Text(name.as_deref().unwrap_or_default())),
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
        let event = asked.operation;
        self.origin.log.put(&Record { at: *at, book, event, fields: &fields });
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
            author: subject.name().as_deref().unwrap_or_default().to_owned(),
            change,
            at: OnceLock::new(),
            next: AtomicU64::new(0),
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
    at: SystemTime,
    watch: Option<Stopwatch>,
    progress: Option<Progress>,
    unindexed: &'a str,
    reason: Option<&'static str>,
}

/// Takes out the request of an id.
fn take(waiting: &mut Vec<Asked>, id: u32) -> Option<Asked> {
    let position = waiting.iter().position(|asked| asked.id == id)?;
    Some(waiting.swap_remove(position))
}

/// A search as others may see it.
fn searched(progress: Progress) -> Searched {
    let Progress { candidates, returned, shape, .. } = progress;
    let (filter, way) = (shape.text.clone(), shape.way());
    Searched { scope: shape.scope, filter, candidates, returned, way }
}

impl Asked {
    /// When it came in.
    pub fn began(&self) -> Option<SystemTime> {
        Some(self.watch?.started())
    }

    /// It, as others may see it.
    pub fn seen(
        &self,
        connection: u64,
        seen: &Seen,
        who: Option<String>,
        at: SystemTime,
    ) -> Operation {
        let watch = self.watch_at(at);
        Operation {
            at,
            connection,
            id: self.id,
            from: seen.peer.to_string(),
            who,
            operation: self.operation,
            dn: self.dn.clone(),
            result: None,
            total_us: watch.as_ref().and_then(Stopwatch::total_us).unwrap_or_default(),
            stages_us: watch.as_ref().map(Stopwatch::stages_us).unwrap_or_default(),
            search: self.progress.map(searched),
        }
    }

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
