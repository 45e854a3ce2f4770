//! What the network counts.

use keyway_codec::message::{Op, ResultCode, tag};
use keyway_meter::{Counter, counter};

pub(super) struct Meters {
    pub opened: Counter,
    pub closed: Counter,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    pub refused: Counter,
    bind: Counter,
    unbind: Counter,
    search: Counter,
    compare: Counter,
    add: Counter,
    delete: Counter,
    modify: Counter,
    modify_dn: Counter,
    abandon: Counter,
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

    /// Counts a request by its identifier octet.
    pub fn request(&self, request: u8) {
        let counter = match request {
            tag::BIND_REQUEST => self.bind,
            tag::UNBIND_REQUEST => self.unbind,
            tag::SEARCH_REQUEST => self.search,
            tag::COMPARE_REQUEST => self.compare,
            tag::ADD_REQUEST => self.add,
            tag::DELETE_REQUEST => self.delete,
            tag::MODIFY_REQUEST => self.modify,
            tag::MODIFY_DN_REQUEST => self.modify_dn,
            tag::ABANDON_REQUEST => self.abandon,
            tag::EXTENDED_REQUEST => self.extended,
            _ => return,
        };
        counter.increment();
    }

    /// Counts an answer whose result code is one of fault.
    pub fn answer(&self, op: &Op<'_>) {
        use ResultCode::*;
        let result = match op {
            Op::BindResponse(response) => &response.result,
            Op::ExtendedResponse(response) => &response.result,
            Op::SearchResultDone(result)
            | Op::ModifyResponse(result)
            | Op::AddResponse(result)
            | Op::DeleteResponse(result)
            | Op::ModifyDnResponse(result)
            | Op::CompareResponse(result) => result,
            _ => return,
        };
        if !matches!(result.code, Success | CompareFalse | CompareTrue | Referral) {
            self.refused.increment();
        }
    }
}
