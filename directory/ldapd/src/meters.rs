//! The counters of the network.

use crate::fault::is_fault;
use keyway_codec::message::{LdapResult, Op, ResultCode};
use keyway_meter::{Counter, Gauge, Histogram, Striped, counter, gauge, histogram, striped};
use std::sync::OnceLock;

pub(crate) struct Meters {
    pub opened: Counter,
    pub closed: Counter,
    pub made_room: Counter,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    refused: Counter,
    pub unbind: Counter,
    pub abandon: Counter,
    pub entries_sent: Counter,
    /// Requests read and not begun.
    pub queue: Gauge,
    pub handshakes: Counter,
    pub resumed: Counter,
    pub failed: Counter,
    pub handshake: Histogram,
    busy: Counter,
    /// By result code; a counter is made when its code is answered for the first time.
    errors: Vec<(ResultCode, OnceLock<Counter>)>,
    bind: Kind,
    search: Kind,
    compare: Kind,
    add: Kind,
    delete: Kind,
    modify: Kind,
    modify_dn: Kind,
    extended: Kind,
}

/// A kind of operation.
#[derive(Clone, Copy)]
struct Kind {
    count: Counter,
    time: Striped,
}

impl Kind {
    fn new(name: &str) -> Kind {
        Kind {
            count: counter(&format!("ldap.{name}")),
            time: striped(&format!("ldap.time.{name}")),
        }
    }
}

impl Meters {
    pub fn new() -> Self {
        Meters {
            opened: counter("ldap.connection.opened"),
            closed: counter("ldap.connection.closed"),
            made_room: counter("ldap.connection.made_room"),
            bytes_in: counter("ldap.bytes_in"),
            bytes_out: counter("ldap.bytes_out"),
            refused: counter("ldap.refused"),
            entries_sent: counter("ldap.entries_sent"),
            queue: gauge("ldap.queue"),
            handshakes: counter("tls.handshakes"),
            resumed: counter("tls.resumed"),
            failed: counter("tls.failed"),
            handshake: histogram("tls.handshake"),
            busy: counter("ldap.busy"),
            errors: ResultCode::ALL.iter().map(|code| (*code, OnceLock::new())).collect(),
            bind: Kind::new("bind"),
            unbind: counter("ldap.unbind"),
            search: Kind::new("search"),
            compare: Kind::new("compare"),
            add: Kind::new("add"),
            delete: Kind::new("delete"),
            modify: Kind::new("modify"),
            modify_dn: Kind::new("modify_dn"),
            abandon: counter("ldap.abandon"),
            extended: Kind::new("extended"),
        }
    }

    /// Counts an answer: its operation, how long it took if that is known, in nanoseconds, and whether its
    /// result code is one of fault.
    pub fn answer(&self, op: &Op<'_>, time_ns: Option<u64>) {
        let (kind, result) = match op {
            Op::BindResponse(response) => (self.bind, &response.result),
            Op::ExtendedResponse(response) => (self.extended, &response.result),
            Op::SearchResultDone(result) => (self.search, result),
            Op::ModifyResponse(result) => (self.modify, result),
            Op::AddResponse(result) => (self.add, result),
            Op::DeleteResponse(result) => (self.delete, result),
            Op::ModifyDnResponse(result) => (self.modify_dn, result),
            Op::CompareResponse(result) => (self.compare, result),
            _ => return,
        };
        kind.count.increment();
        if let Some(time_ns) = time_ns {
            kind.time.record(time_ns);
        }
        self.result(result);
    }

    fn result(&self, result: &LdapResult<'_>) {
        if is_fault(result.code) {
            self.refuse(result.code);
        }
    }

    /// Counts a refusal.
    pub fn refuse(&self, code: ResultCode) {
        self.refused.increment();
        if code == ResultCode::Busy {
            self.busy.increment();
        }
        if let Some((_, error)) = self.errors.iter().find(|(known, _)| *known == code) {
            let new = || counter(&format!("ldap.error.{}", code.name()));
            error.get_or_init(new).increment();
        }
    }
}
