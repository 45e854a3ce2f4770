//! What the network counts.

use super::journal::is_fault;
use keyway_codec::message::Op;
use keyway_meter::{Counter, counter};

pub(super) struct Meters {
    pub opened: Counter,
    pub closed: Counter,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    pub refused: Counter,
    pub unbind: Counter,
    pub abandon: Counter,
    pub entries_sent: Counter,
    bind: Counter,
    search: Counter,
    compare: Counter,
    add: Counter,
    delete: Counter,
    modify: Counter,
    modify_dn: Counter,
    extended: Counter,
}

impl Meters {
    pub fn new() -> Self {
        Meters {
            opened: counter("ldap.connection.opened"),
            closed: counter("ldap.connection.closed"),
            bytes_in: counter("ldap.bytes_in"),
            bytes_out: counter("ldap.bytes_out"),
            refused: counter("ldap.refused"),
            entries_sent: counter("ldap.entries_sent"),
            bind: counter("ldap.bind"),
            unbind: counter("ldap.unbind"),
            search: counter("ldap.search"),
            compare: counter("ldap.compare"),
            add: counter("ldap.add"),
            delete: counter("ldap.delete"),
            modify: counter("ldap.modify"),
            modify_dn: counter("ldap.modify_dn"),
            abandon: counter("ldap.abandon"),
            extended: counter("ldap.extended"),
        }
    }

    /// Counts an answer: its operation, and whether its result code is one of fault.
    pub fn answer(&self, op: &Op<'_>) {
        let (operation, result) = match op {
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
        operation.increment();
        if is_fault(result.code) {
            self.refused.increment();
        }
    }
}
