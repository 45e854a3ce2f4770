//! Request controls: which are known, where they fit, what they say (RFC 4511 § 4.1.11).

use crate::access::Trace;
use crate::failure::{Failure, Result};
use keyway_codec::DecodeError;
use keyway_codec::Filter;
use keyway_codec::controls::{
    ASSERTION, Assertion, MANAGE_DSA_IT, PAGED_RESULTS, POST_READ, PRE_READ, PagedResults,
    RELAX_RULES, ReadRequest,
};
use keyway_codec::message::{Control, ResultCode, tag};
use keyway_codec::password_policy::{
    ACCOUNT_USABILITY, AccountUsability, PASSWORD_POLICY, PasswordPolicyResponse,
};

/// Say which access rules decided: a request's control without a value. The answer's has a line for
/// each decision, as text in UTF-8.
pub const DECIDING_RULES: &str = "2.25.15936739705580567830054646219924409936.2.1";

/// Say by which position of the feed a change is there; and read no earlier state than that of a position. A write's control
/// has no value; a search's, a compare's or a bind's has the position in decimal digits, or that of a write's answer, which
/// goes on with the cluster's epoch and its writer's number (zeros without a cluster), each behind a blank.
pub const POSITION: &str = "2.25.15936739705580567830054646219924409936.2.3";

/// The controls that `supportedControl` names.
pub const SUPPORTED: &[&str] = &[
    PAGED_RESULTS,
    ASSERTION,
    PRE_READ,
    POST_READ,
    MANAGE_DSA_IT,
    PASSWORD_POLICY,
    ACCOUNT_USABILITY,
    DECIDING_RULES,
    RELAX_RULES,
    POSITION,
];

/// A place in the feed by which a change is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The position.
    pub position: u64,
    /// The cluster's epoch in which it is that change's, and the number of the member that writes in it; zeros without a
    /// cluster, or if it is not known.
    pub reign: (u64, u64),
}

impl Written {
    /// Reads the value of [`POSITION`]; `None` if it is none.
    pub fn decode(value: &[u8]) -> Option<Written> {
        let text = str::from_utf8(value).ok()?;
        let mut numbers = text.splitn(3, ' ').map(|number| number.parse().ok());
        let position = numbers.next()??;
        let reign = match numbers.next() {
            Some(epoch) => (epoch?, numbers.next()??),
            None => (0, 0),
        };
        Some(Written { position, reign })
    }
}

/// The controls of one request, understood. Only those that fit its operation are set.
#[derive(Debug, Default)]
pub struct RequestControls<'a> {
    /// Answer in pages (RFC 2696); searches.
    pub paged: Option<PagedResults<'a>>,
    /// Do it only if the entry matches (RFC 4528); all but bind, unbind, abandon and extended.
    pub assertion: Option<Filter<'a>>,
    /// Return these attributes as they were before (RFC 4527); delete, modify and modify DN.
    pub pre_read: Option<Vec<&'a str>>,
    /// Return these attributes as they are afterwards (RFC 4527); add, modify and modify DN.
    pub post_read: Option<Vec<&'a str>>,
    /// Treat referral objects as entries (RFC 3296); all but bind, unbind and abandon.
    pub manage_dsa_it: bool,
    /// Say what the password policy has to say; all that have an answer.
    pub password_policy: bool,
    /// Say of each entry whether a user could bind as it; searches.
    pub account_usability: bool,
    /// Say which access rules decided, and whether it was critical; all but bind, unbind and abandon.
    pub deciding_rules: Option<bool>,
    /// Read no earlier state than that of this position, or say which one it is; all but unbind and abandon.
    pub position: Option<Option<Written>>,
    /// Take what else only the server sets, from the administrator; add and modify.
    pub relax: bool,
}

impl<'a> RequestControls<'a> {
    /// Understands the controls of a request whose identifier octet is `request` ([`tag`]).
    ///
    /// # Errors
    /// The result to answer with: `unavailableCriticalExtension` for a critical control that is
    /// unknown or does not fit the operation, `protocolError` for one that is there twice or whose
    /// value is malformed. A control that is unknown and not critical is ignored, as RFC 4511 has it.
    pub fn parse(request: u8, controls: &'a [Control<'a>]) -> Result<Self> {
        let mut parsed = RequestControls::default();
        for (index, control) in controls.iter().enumerate() {
            if controls.iter().take(index).any(|other| other.oid == control.oid) {
                return Err(refused(ResultCode::ProtocolError, control, "is there twice"));
            }
            if fits(request, control.oid) {
                parsed.take(control)?;
            } else if control.critical {
                let why = if SUPPORTED.contains(&control.oid) {
                    "does not fit this operation"
                } else {
                    "is not known"
                };
                return Err(refused(ResultCode::UnavailableCriticalExtension, control, why));
            }
        }
        Ok(parsed)
    }

    fn take(&mut self, control: &'a Control<'a>) -> Result<()> {
        let malformed = |error: DecodeError| {
            refused(ResultCode::ProtocolError, control, &format!("has a bad value: {error}"))
        };
        let value = control.value.as_deref();
        let required =
            || value.ok_or_else(|| refused(ResultCode::ProtocolError, control, "needs a value"));
        match control.oid {
            PAGED_RESULTS => {
                self.paged = Some(PagedResults::decode(required()?).map_err(malformed)?);
            }
            ASSERTION => {
                self.assertion = Some(Assertion::decode(required()?).map_err(malformed)?.0);
            }
            PRE_READ => {
                self.pre_read = Some(ReadRequest::decode(required()?).map_err(malformed)?.0);
            }
            POST_READ => {
                self.post_read = Some(ReadRequest::decode(required()?).map_err(malformed)?.0);
            }
            PASSWORD_POLICY => self.password_policy = true,
            ACCOUNT_USABILITY => self.account_usability = true,
            RELAX_RULES => self.relax = true,
            POSITION => {
                let wrong =
                    || refused(ResultCode::ProtocolError, control, "has no number as its value");
                let position = value.filter(|value| !value.is_empty());
                let position = position.map(|value| Written::decode(value).ok_or_else(wrong));
                self.position = Some(position.transpose()?);
            }
            DECIDING_RULES => self.deciding_rules = Some(control.critical),
            // Some clients send an empty value with it where RFC 3296 has none; it means nothing.
            MANAGE_DSA_IT => self.manage_dsa_it = true,
            _ => {}
        }
        Ok(())
    }
}

/// A control that goes out with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseControl {
    /// Its object identifier.
    pub oid: &'static str,
    /// Its value, encoded.
    pub value: Vec<u8>,
}

impl ResponseControl {
    /// The answer of the password policy.
    pub fn policy(response: PasswordPolicyResponse) -> Self {
        let mut value = Vec::new();
        response.encode(&mut value);
        ResponseControl { oid: PASSWORD_POLICY, value }
    }

    /// Whether a user could bind.
    pub(crate) fn usability(usability: AccountUsability) -> Self {
        let mut value = Vec::new();
        usability.encode(&mut value);
        ResponseControl { oid: ACCOUNT_USABILITY, value }
    }

    /// Which access rules decided.
    pub fn deciding_rules(trace: &Trace) -> Self {
        ResponseControl { oid: DECIDING_RULES, value: trace.to_text().into_bytes() }
    }

    /// The place by which a change is there.
    pub fn position(Written { position, reign: (epoch, writer) }: Written) -> Self {
        ResponseControl {
            oid: POSITION,
            value: format!("{position} {epoch} {writer}").into_bytes(),
        }
    }

    /// As a message carries it.
    pub fn as_control(&self) -> Control<'_> {
        Control { oid: self.oid, critical: false, value: Some((&self.value).into()) }
    }
}

/// Whether a known control has a meaning with this operation.
fn fits(request: u8, oid: &str) -> bool {
    use tag::*;
    match oid {
        PAGED_RESULTS | ACCOUNT_USABILITY => request == SEARCH_REQUEST,
        PASSWORD_POLICY | POSITION => !matches!(request, UNBIND_REQUEST | ABANDON_REQUEST),
        ASSERTION => matches!(
            request,
            SEARCH_REQUEST
                | COMPARE_REQUEST
                | ADD_REQUEST
                | DELETE_REQUEST
                | MODIFY_REQUEST
                | MODIFY_DN_REQUEST
        ),
        PRE_READ => matches!(request, DELETE_REQUEST | MODIFY_REQUEST | MODIFY_DN_REQUEST),
        POST_READ => matches!(request, ADD_REQUEST | MODIFY_REQUEST | MODIFY_DN_REQUEST),
        RELAX_RULES => matches!(request, ADD_REQUEST | MODIFY_REQUEST),
        MANAGE_DSA_IT | DECIDING_RULES => {
            !matches!(request, BIND_REQUEST | UNBIND_REQUEST | ABANDON_REQUEST)
        }
        _ => false,
    }
}

fn refused(code: ResultCode, control: &Control<'_>, why: &str) -> Failure {
    Failure::new(code, format!("control {} {why}", control.oid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn control(
        oid: &'static str,
        critical: bool,
        value: Option<&'static [u8]>,
    ) -> Control<'static> {
        Control { oid, critical, value: value.map(Cow::Borrowed) }
    }

    fn code(request: u8, controls: &[Control<'_>]) -> ResultCode {
        match RequestControls::parse(request, controls) {
            Ok(_) => ResultCode::Success,
            Err(result) => result.code,
        }
    }

    #[test]
    fn unknown_is_refused_when_critical_and_else_ignored() {
        use ResultCode::*;
        assert_eq!(code(tag::SEARCH_REQUEST, &[control("1.2.3", false, None)]), Success);
        assert_eq!(
            code(tag::SEARCH_REQUEST, &[control("1.2.3", true, None)]),
            UnavailableCriticalExtension
        );
    }

    #[test]
    fn known_where_it_does_not_fit_is_refused_when_critical_and_else_ignored() {
        let paged =
            |critical| control(PAGED_RESULTS, critical, Some(b"\x30\x05\x02\x01\x05\x04\x00"));
        assert_eq!(
            code(tag::ADD_REQUEST, &[paged(true)]),
            ResultCode::UnavailableCriticalExtension
        );
        let ignored = [paged(false)];
        assert!(RequestControls::parse(tag::ADD_REQUEST, &ignored).unwrap().paged.is_none());
        let taken = [paged(true)];
        let parsed = RequestControls::parse(tag::SEARCH_REQUEST, &taken).unwrap();
        assert_eq!(parsed.paged.unwrap().size, 5);
    }

    #[test]
    fn twice_or_malformed_is_a_protocol_error() {
        let manage = control(MANAGE_DSA_IT, true, None);
        assert_eq!(code(tag::MODIFY_REQUEST, &[manage.clone(), manage]), ResultCode::ProtocolError);
        for value in [None, Some(&b"\x30"[..]), Some(b"")] {
            for oid in [PAGED_RESULTS, ASSERTION] {
                let controls = [control(oid, false, value)];
                assert_eq!(code(tag::SEARCH_REQUEST, &controls), ResultCode::ProtocolError);
            }
        }
    }

    #[test]
    fn read_entry_controls_name_attributes() {
        let value = Some(&b"\x30\x06\x04\x02cn\x04\x00"[..]);
        let controls = [control(PRE_READ, true, value), control(POST_READ, true, value)];
        let parsed = RequestControls::parse(tag::MODIFY_REQUEST, &controls).unwrap();
        assert_eq!(parsed.pre_read, Some(vec!["cn", ""]));
        assert_eq!(parsed.post_read, Some(vec!["cn", ""]));
        assert_eq!(code(tag::ADD_REQUEST, &controls), ResultCode::UnavailableCriticalExtension);
    }
}
