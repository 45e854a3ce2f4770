//! Messages compared with rasn-ldap's, which is generated from the ASN.1.

use keyway_codec::message::{
    Attribute, Authentication, ChangeOperation, Deref, LdapResult, Scope, SearchRequest,
};
use keyway_codec::{Filter, Message, Op};
use proptest::prelude::*;
use rasn::types::{OctetString, SetOf};
use rasn_ldap as theirs;

use crate::random::{ALL, Reach, message};

/// No codes beyond RFC 4511, no increment, no subordinate scope, no unknown choices.
const REACH: Reach = Reach {
    code_max: 80,
    increment: false,
    subordinate: false,
    other_authentication: false,
    ..ALL
};

proptest! {
    #[test]
    fn rasn_reads_what_we_write(message in message(REACH)) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let decoded: theirs::LdapMessage = rasn::ber::decode(&bytes).unwrap();
        prop_assert_eq!(decoded, to_theirs(&message));
    }

    #[test]
    fn we_read_what_rasn_writes(message in message(REACH)) {
        let bytes = rasn::ber::encode(&to_theirs(&message)).unwrap();
        let decoded = Message::decode(&bytes).unwrap();
        prop_assert_eq!(sorted(decoded), sorted(message));
    }
}

/// Puts the members of each SET OF in order: rasn does not keep the one they came in.
fn sorted(mut message: Message<'_>) -> Message<'_> {
    fn sort_values(attribute: &mut Attribute<'_>) {
        attribute.values.sort();
    }
    fn sort_filter(filter: &mut Filter<'_>) {
        match filter {
            Filter::And(terms) | Filter::Or(terms) => {
                terms.iter_mut().for_each(sort_filter);
                terms.sort_by_cached_key(ToString::to_string);
            }
            Filter::Not(term) => sort_filter(term),
            _ => {}
        }
    }
    match &mut message.op {
        Op::SearchRequest(search) => sort_filter(&mut search.filter),
        Op::AddRequest(add) => add.attributes.iter_mut().for_each(sort_values),
        Op::SearchResultEntry(entry) => entry.attributes.iter_mut().for_each(sort_values),
        Op::ModifyRequest(modify) => {
            modify.changes.iter_mut().for_each(|change| sort_values(&mut change.attribute));
        }
        _ => {}
    }
    message
}

fn octets(bytes: &[u8]) -> OctetString {
    OctetString::from(bytes.to_vec())
}

fn to_theirs(message: &Message<'_>) -> theirs::LdapMessage {
    let mut converted = theirs::LdapMessage::new(message.id, op(&message.op));
    let controls: Vec<_> = message
        .controls
        .iter()
        .map(|control| {
            theirs::Control::new(
                octets(control.oid.as_bytes()),
                control.critical,
                control.value.as_deref().map(octets),
            )
        })
        .collect();
    converted.controls = Some(controls).filter(|controls| !controls.is_empty());
    converted
}

fn op(op: &Op<'_>) -> theirs::ProtocolOp {
    use theirs::ProtocolOp as Theirs;
    match op {
        Op::BindRequest(bind) => {
            let authentication = match bind.authentication {
                Authentication::Simple(password) => {
                    theirs::AuthenticationChoice::Simple(octets(password))
                }
                Authentication::Sasl { mechanism, credentials } => {
                    theirs::AuthenticationChoice::Sasl(theirs::SaslCredentials::new(
                        mechanism.into(),
                        credentials.map(octets),
                    ))
                }
                Authentication::Other(_) => unreachable!("not generated"),
            };
            Theirs::BindRequest(theirs::BindRequest::new(
                bind.version,
                bind.name.into(),
                authentication,
            ))
        }
        Op::BindResponse(bind) => {
            let result = result(&bind.result);
            Theirs::BindResponse(theirs::BindResponse::new(
                result.result_code,
                result.matched_dn,
                result.diagnostic_message,
                result.referral,
                bind.server_sasl_credentials.map(octets),
            ))
        }
        Op::UnbindRequest => Theirs::UnbindRequest(theirs::UnbindRequest),
        Op::SearchRequest(request) => Theirs::SearchRequest(search(request)),
        Op::SearchResultEntry(entry) => Theirs::SearchResEntry(theirs::SearchResultEntry::new(
            (&*entry.dn).into(),
            entry.attributes.iter().map(attribute).collect(),
        )),
        Op::SearchResultReference(uris) => Theirs::SearchResRef(theirs::SearchResultReference(
            uris.iter().map(|uri| (*uri).into()).collect(),
        )),
        Op::SearchResultDone(done) => Theirs::SearchResDone(theirs::SearchResultDone(result(done))),
        Op::ModifyRequest(modify) => Theirs::ModifyRequest(theirs::ModifyRequest {
            object: modify.dn.into(),
            changes: modify
                .changes
                .iter()
                .map(|change| theirs::ModifyRequestChanges {
                    operation: match change.operation {
                        ChangeOperation::Add => theirs::ChangeOperation::Add,
                        ChangeOperation::Delete => theirs::ChangeOperation::Delete,
                        ChangeOperation::Replace => theirs::ChangeOperation::Replace,
                        ChangeOperation::Increment => unreachable!("not generated"),
                    },
                    modification: attribute(&change.attribute),
                })
                .collect(),
        }),
        Op::ModifyResponse(done) => Theirs::ModifyResponse(theirs::ModifyResponse(result(done))),
        Op::AddRequest(add) => Theirs::AddRequest(theirs::AddRequest {
            entry: add.dn.into(),
            attributes: add
                .attributes
                .iter()
                .map(attribute)
                .map(|attribute| theirs::Attribute::new(attribute.r#type, attribute.vals))
                .collect(),
        }),
        Op::AddResponse(done) => Theirs::AddResponse(theirs::AddResponse(result(done))),
        Op::DeleteRequest(dn) => Theirs::DelRequest(theirs::DelRequest((*dn).into())),
        Op::DeleteResponse(done) => Theirs::DelResponse(theirs::DelResponse(result(done))),
        Op::ModifyDnRequest(request) => Theirs::ModDnRequest(theirs::ModifyDnRequest {
            entry: request.dn.into(),
            new_rdn: request.new_rdn.into(),
            delete_old_rdn: request.delete_old_rdn,
            new_superior: request.new_superior.map(Into::into),
        }),
        Op::ModifyDnResponse(done) => Theirs::ModDnResponse(theirs::ModifyDnResponse(result(done))),
        Op::CompareRequest(compare) => Theirs::CompareRequest(theirs::CompareRequest {
            entry: compare.dn.into(),
            ava: assertion(compare.attribute, compare.value),
        }),
        Op::CompareResponse(done) => Theirs::CompareResponse(theirs::CompareResponse(result(done))),
        Op::AbandonRequest(id) => Theirs::AbandonRequest(theirs::AbandonRequest(*id)),
        Op::ExtendedRequest(request) => Theirs::ExtendedReq(theirs::ExtendedRequest {
            request_name: octets(request.oid.as_bytes()),
            request_value: request.value.map(octets),
        }),
        Op::ExtendedResponse(response) => {
            let result = result(&response.result);
            Theirs::ExtendedResp(theirs::ExtendedResponse {
                result_code: result.result_code,
                matched_dn: result.matched_dn,
                diagnostic_message: result.diagnostic_message,
                referral: result.referral,
                response_name: response.oid.as_ref().map(|oid| octets(oid.as_bytes())),
                response_value: response.value.as_deref().map(octets),
            })
        }
        Op::IntermediateResponse(response) => {
            Theirs::IntermediateResponse(theirs::IntermediateResponse {
                response_name: response.oid.map(|oid| octets(oid.as_bytes())),
                response_value: response.value.map(octets),
            })
        }
    }
}

fn search(request: &SearchRequest<'_>) -> theirs::SearchRequest {
    use theirs::{SearchRequestDerefAliases as TheirDeref, SearchRequestScope as TheirScope};
    theirs::SearchRequest::new(
        request.base.into(),
        match request.scope {
            Scope::Base => TheirScope::BaseObject,
            Scope::One => TheirScope::SingleLevel,
            Scope::Subtree => TheirScope::WholeSubtree,
            Scope::Subordinate => unreachable!("not generated"),
        },
        match request.deref {
            Deref::Never => TheirDeref::NeverDerefAliases,
            Deref::InSearching => TheirDeref::DerefInSearching,
            Deref::FindingBase => TheirDeref::DerefFindingBaseObj,
            Deref::Always => TheirDeref::DerefAlways,
        },
        request.size_limit,
        request.time_limit_s,
        request.types_only,
        filter(&request.filter),
        request.attributes.iter().map(|attribute| (*attribute).into()).collect(),
    )
}

fn filter(ours: &Filter<'_>) -> theirs::Filter {
    use theirs::Filter as Theirs;
    match ours {
        Filter::And(terms) => Theirs::And(SetOf::from_vec(terms.iter().map(filter).collect())),
        Filter::Or(terms) => Theirs::Or(SetOf::from_vec(terms.iter().map(filter).collect())),
        Filter::Not(term) => Theirs::Not(Box::new(filter(term))),
        Filter::Equality { attribute, value } => Theirs::EqualityMatch(assertion(attribute, value)),
        Filter::GreaterOrEqual { attribute, value } => {
            Theirs::GreaterOrEqual(assertion(attribute, value))
        }
        Filter::LessOrEqual { attribute, value } => {
            Theirs::LessOrEqual(assertion(attribute, value))
        }
        Filter::Approx { attribute, value } => Theirs::ApproxMatch(assertion(attribute, value)),
        Filter::Present(attribute) => Theirs::Present((&**attribute).into()),
        Filter::Substrings { attribute, initial, any, last } => {
            use theirs::SubstringChoice::{Any, Final, Initial};
            let initial = initial.iter().map(|piece| Initial(octets(piece)));
            let any = any.iter().map(|piece| Any(octets(piece)));
            let last = last.iter().map(|piece| Final(octets(piece)));
            Theirs::Substrings(theirs::SubstringFilter::new(
                (&**attribute).into(),
                initial.chain(any).chain(last).collect(),
            ))
        }
        Filter::Extensible { rule, attribute, value, dn_attributes } => {
            Theirs::ExtensibleMatch(theirs::MatchingRuleAssertion::new(
                rule.as_deref().map(Into::into),
                attribute.as_deref().map(Into::into),
                octets(value),
                *dn_attributes,
            ))
        }
    }
}

fn assertion(attribute: &str, value: &[u8]) -> theirs::AttributeValueAssertion {
    theirs::AttributeValueAssertion::new(attribute.into(), octets(value))
}

fn attribute(ours: &Attribute<'_>) -> theirs::PartialAttribute {
    theirs::PartialAttribute::new(
        (&*ours.description).into(),
        SetOf::from_vec(ours.values.iter().map(|value| octets(value)).collect()),
    )
}

fn result(ours: &LdapResult<'_>) -> theirs::LdapResult {
    use theirs::ResultCode as Code;
    const CODES: [Code; 39] = [
        Code::Success,
        Code::OperationsError,
        Code::ProtocolError,
        Code::TimeLimitExceeded,
        Code::SizeLimitExceeded,
        Code::CompareFalse,
        Code::CompareTrue,
        Code::AuthMethodNotSupported,
        Code::StrongerAuthRequired,
        Code::Referral,
        Code::AdminLimitExceeded,
        Code::UnavailableCriticalExtension,
        Code::ConfidentialityRequired,
        Code::SaslBindInProgress,
        Code::NoSuchAttribute,
        Code::UndefinedAttributeType,
        Code::InappropriateMatching,
        Code::ConstraintViolation,
        Code::AttributeOrValueExists,
        Code::InvalidAttributeSyntax,
        Code::NoSuchObject,
        Code::AliasProblem,
        Code::InvalidDnSyntax,
        Code::AliasDereferencingProblem,
        Code::InappropriateAuthentication,
        Code::InvalidCredentials,
        Code::InsufficientAccessRights,
        Code::Busy,
        Code::Unavailable,
        Code::UnwillingToPerform,
        Code::LoopDetect,
        Code::NamingViolation,
        Code::ObjectClassViolation,
        Code::NotAllowedOnNonLeaf,
        Code::NotAllowedOnRdn,
        Code::EntryAlreadyExists,
        Code::ObjectClassModsProhibited,
        Code::AffectsMultipleDsas,
        Code::Other,
    ];
    let code = CODES.iter().find(|code| **code as u32 == ours.code.code()).unwrap();
    // Same numbers by the same names, but for how they are capitalised.
    assert!(format!("{code:?}").eq_ignore_ascii_case(ours.code.name()));
    let mut result =
        theirs::LdapResult::new(*code, (&*ours.matched_dn).into(), (&*ours.diagnostic).into());
    let referrals: Vec<_> = ours.referrals.iter().map(|uri| (&**uri).into()).collect();
    result.referral = Some(referrals).filter(|referrals| !referrals.is_empty());
    result
}
