//! The lines that a connection writes into the access and the audit log, and into the error log where
//! the server itself is at fault.
//!
//! A request is noted when it is taken, without allocation where its answer follows at once, and
//! written when it is answered.

use crate::fault::is_fault;
use crate::peer::Peer;
use crate::request_record::{RequestRecord, searched};
use crate::seen::Seen;
use crate::slow::Slowest;
use keyway_codec::message::{LdapResult, Op, ResultCode};
use keyway_server::log::stages::{self, SharedTimer, Stage, Timer};
use keyway_server::log::{
    Access, Audit, AuditedChange, AuditedRequest, Field, Log, LogKind, Record, Severity, Value,
};
use keyway_server::{Clock, SearchProgress, Subject};
use std::sync::Arc;
use std::time::Instant;

/// Whose requests they are.
#[derive(Clone)]
pub(crate) struct Origin {
    pub log: Log,
    pub clock: Clock,
    /// The connection's number.
    pub connection: u64,
    pub peer: Peer,
    pub seen: Arc<Seen>,
    pub slowest: Arc<Slowest>,
}

pub(crate) struct RequestLog {
    pub(crate) origin: Origin,
    /// The peer in words, once that was needed.
    from: String,
    /// When the last bytes came in.
    received: Option<Instant>,
    /// The time now, if it is known because something has just happened: they came in, or a request was
    /// answered.
    now: Option<Instant>,
    /// How many requests were taken, from a number on that differs between connections.
    number: u64,
    /// The request being taken, or the last one.
    current: RequestRecord,
    /// How far the search that is being answered has come.
    pub(crate) progress: Option<SearchProgress>,
    /// Which index it lacked, if none helped.
    pub(crate) unindexed: Option<String>,
    /// Why the bind that is being answered is refused, where its client is not told.
    pub(crate) reason: Option<&'static str>,
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
        let at = (self.clock.wall)();
        self.log.put(&Record { at, kind: LogKind::Access, event, fields: &fields });
    }
}

impl RequestLog {
    pub fn new(origin: Origin) -> RequestLog {
        RequestLog {
            number: origin.connection,
            origin,
            from: String::new(),
            received: None,
            now: None,
            current: RequestRecord::default(),
            progress: None,
            unindexed: None,
            reason: None,
        }
    }

    /// Bytes have come in.
    pub fn received(&mut self) {
        let now = (self.origin.clock.monotonic)();
        self.origin.seen.heard(now);
        (self.received, self.now) = (Some(now), Some(now));
    }

    /// Notes that the bytes that were received and not taken wait.
    pub fn waits(&mut self) {
        self.now = None;
    }

    /// Notes what is asked.
    pub fn asked(&mut self, id: u32, op: &Op<'_>) {
        let access = self.origin.log.access();
        let taken = self.now.take().unwrap_or_else(self.origin.clock.monotonic);
        self.number += 1;
        let mut timer = Timer::start(self.received.unwrap_or(taken));
        timer.lap(Stage::Queue, taken);
        let everything = access == Access::Everything;
        let asked = &mut self.current;
        (asked.id, asked.timer, asked.shared_timer) = (id, Some(timer), None);
        (asked.progress, asked.is_paused) = (None, false);
        asked.is_left_out = everything && !self.origin.log.takes(self.number);
        asked.dn.clear();
        asked.detail.clear();
        asked.note(op, everything && !asked.is_left_out);
    }

    /// Since its last lap, a request that is done on the spot was in this stage.
    pub fn lap(&mut self, id: u32, stage: Stage) {
        let now = (self.origin.clock.monotonic)();
        let lap = |asked: &mut RequestRecord| {
            asked.is_paused = false;
            asked.timer.iter_mut().for_each(|timer| timer.lap(stage, now))
        };
        match self.current.id == id {
            true => lap(&mut self.current),
            false => self.origin.seen.waiting().iter_mut().filter(|one| one.id == id).for_each(lap),
        }
    }

    /// A search goes on later, and is so far now.
    pub fn wait_at(&mut self, id: u32, progress: SearchProgress) {
        self.lap(id, Stage::Store);
        self.wait(id);
        let mut waiting = self.origin.seen.waiting();
        if let Some(asked) = waiting.iter_mut().find(|asked| asked.id == id) {
            (asked.progress, asked.is_paused) = (Some(progress), true);
        }
    }

    /// The timer of the request that is being taken, for the threads that have a part in it.
    pub fn shared_timer(&mut self, id: u32) -> Option<Arc<SharedTimer>> {
        let asked = Some(&mut self.current).filter(|asked| asked.id == id)?;
        let (timer, clock) = (asked.timer?, self.origin.clock.monotonic);
        Some(asked.shared_timer.get_or_insert_with(|| SharedTimer::new(clock, timer)).clone())
    }

    /// The request that is being taken will be answered later.
    pub fn wait(&mut self, id: u32) {
        if self.current.timer.is_some() && self.current.id == id {
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
        let waited = match self.current.timer.is_some() && self.current.id == id {
            true => None,
            false => take(&mut self.origin.seen.waiting(), id),
        };
        let result = op.result()?;
        // A search has just looked.
        let stepped = progress.and_then(|progress| progress.at);
        let at = stepped.unwrap_or_else(self.origin.clock.monotonic);
        self.now = Some(at);
        let asked = match &waited {
            Some(asked) => asked,
            None if self.current.id == id => &self.current,
            // It could not be decoded.
            None => &RequestRecord { id, operation: operation_of(op), ..RequestRecord::default() },
        };
        let timer = asked.timer_at(at);
        let unindexed = &unindexed;
        let answered = Answered { asked, result, subject, at, timer, progress, unindexed, reason };
        self.note_if_slow(&answered);
        let is_written = self.is_written(&answered);
        // The server, its disk or its data is at fault.
        let is_ours = result.code == ResultCode::Other;
        if (is_written || is_ours) && self.from.is_empty() {
            self.from = self.origin.peer.to_string();
        }
        if is_written {
            self.write(LogKind::Access, &answered);
        }
        if is_ours {
            self.write(LogKind::Error(Severity::Error), &answered);
        }
        if waited.is_none() {
            // Its id may be another's from now on.
            (self.current.id, self.current.timer) = (0, None);
        }
        timer?.total_ns()
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
        let Answered { asked, at, timer, .. } = answered;
        let Origin { seen, slowest, .. } = &self.origin;
        let total_us = timer.as_ref().and_then(Timer::total_us);
        // A read of `cn=monitor` is not to show itself there.
        let is_looker = answered.progress.is_some_and(|progress| progress.is_virtual);
        if !is_looker && total_us.is_some_and(|total_us| slowest.wants(total_us, *at)) {
            let who = answered.subject.name().map(|name| name.to_string());
            let wall = (self.origin.clock.wall)();
            let mut operation = asked.seen(self.origin.connection, &seen.peer, who, (*at, wall));
            operation.result = Some(answered.result.code.code());
            operation.search = answered.progress.map(searched);
            slowest.note(*at, operation);
        }
    }

    fn write(&self, kind: LogKind, answered: &Answered<'_>) {
        let Answered { asked, result, subject, timer, progress, unindexed, reason, .. } = answered;
        let entries = progress.map(|progress| progress.returned);
        let time_us = timer.as_ref().and_then(Timer::total_us);
        let number = |number: Option<u64>| number.map_or(Value::None, Value::Number);
        let stages_us = timer.as_ref().map(Timer::stages_us).unwrap_or_default();
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
        let (at, event) = ((self.origin.clock.wall)(), asked.operation);
        self.origin.log.put(&Record { at, kind, event, fields: &fields });
    }

    /// The line that the audit log will have of a change when it is done, if it is to have any.
    pub fn change(
        &self,
        operation: u32,
        subject: &Subject,
        change: impl FnOnce() -> Option<AuditedChange>,
    ) -> Option<Audit> {
        let Origin { log, clock, connection, peer, .. } = &self.origin;
        let change = if log.audits() { change()? } else { return None };
        let request = AuditedRequest {
            connection: *connection,
            operation,
            from: peer.to_string(),
            author: subject.name().as_deref().unwrap_or_default().to_owned(),
        };
        Some(Audit::new(log.clone(), clock.wall, request, change))
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
        log.say((clock.wall)(), Severity::Warning, "account-locked", &fields);
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
    asked: &'a RequestRecord,
    result: &'a LdapResult<'a>,
    subject: &'a Subject,
    at: Instant,
    timer: Option<Timer>,
    progress: Option<SearchProgress>,
    unindexed: &'a str,
    reason: Option<&'static str>,
}

/// Takes out the request of an id.
fn take(waiting: &mut Vec<RequestRecord>, id: u32) -> Option<RequestRecord> {
    let position = waiting.iter().position(|asked| asked.id == id)?;
    Some(waiting.swap_remove(position))
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
