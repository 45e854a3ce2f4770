//! Messages compared with ldap3_proto's, which others wrote by hand.

use bytes::BytesMut;
use keyway_codec::message::{
    Attribute, Authentication, ChangeOperation, Deref, LdapResult, Scope, SearchRequest,
};
use keyway_codec::{Filter, Message, Op};
use ldap3_proto::LdapCodec;
use ldap3_proto::control::LdapControl;
use ldap3_proto::proto::{self as theirs, LdapMsg, LdapOp};
use proptest::prelude::*;
use tokio_util::codec::{Decoder, Encoder};

use crate::random::{ALL, Reach, message};

/// Its filters and passwords are text, and it drops referrals.
const REACH: Reach = Reach {
    code_max: 123,
    other_authentication: false,
    optional_parts: false,
    binary_values: false,
    ..ALL
};

proptest! {
    #[test]
    fn ldap3_reads_what_we_write(message in message(REACH)) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let decoded = LdapCodec::default().decode(&mut BytesMut::from(&bytes[..])).unwrap();
        prop_assert_eq!(decoded, Some(to_theirs(&message)));
    }

    #[test]
    fn we_read_what_ldap3_writes(message in message(REACH)) {
        let mut bytes = BytesMut::new();
        LdapCodec::default().encode(to_theirs(&message), &mut bytes).unwrap();
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn to_theirs(message: &Message<'_>) -> LdapMsg {
    let controls = message.controls.iter().map(|control| LdapControl::Unknown {
        oid: control.oid.into(),
        criticality: control.critical,
        value: control.value.as_ref().map(|value| value.to_vec()),
    });
    let id = i32::try_from(message.id).unwrap();
    LdapMsg::new_with_ctrls(id, op(&message.op), controls.collect())
}

fn op(op: &Op<'_>) -> LdapOp {
    match op {
        Op::BindRequest(bind) => LdapOp::BindRequest(theirs::LdapBindRequest {
            version: bind.version.into(),
            dn: bind.name.into(),
            cred: match bind.authentication {
                Authentication::Simple(password) => theirs::LdapBindCred::Simple(text(password)),
                Authentication::Sasl { mechanism, credentials } => {
                    theirs::LdapBindCred::SASL(theirs::SaslCredentials {
                        mechanism: mechanism.into(),
                        credentials: credentials.unwrap().to_vec(),
                    })
                }
                Authentication::Other(_) => unreachable!("not generated"),
            },
        }),
        Op::BindResponse(bind) => LdapOp::BindResponse(theirs::LdapBindResponse {
            res: result(&bind.result),
            saslcreds: bind.server_sasl_credentials.map(<[u8]>::to_vec),
        }),
        Op::UnbindRequest => LdapOp::UnbindRequest,
        Op::SearchRequest(request) => LdapOp::SearchRequest(search(request)),
        Op::SearchResultEntry(entry) => LdapOp::SearchResultEntry(theirs::LdapSearchResultEntry {
            dn: entry.dn.to_string(),
            attributes: entry.attributes.iter().map(attribute).collect(),
        }),
        Op::SearchResultReference(uris) => {
            let uris = uris.iter().map(ToString::to_string).collect();
            LdapOp::SearchResultReference(theirs::LdapSearchResultReference { uris })
        }
        Op::SearchResultDone(done) => LdapOp::SearchResultDone(result(done)),
        Op::ModifyRequest(modify) => LdapOp::ModifyRequest(theirs::LdapModifyRequest {
            dn: modify.dn.into(),
            changes: modify
                .changes
                .iter()
                .map(|change| theirs::LdapModify {
                    operation: match change.operation {
                        ChangeOperation::Add => theirs::LdapModifyType::Add,
                        ChangeOperation::Delete => theirs::LdapModifyType::Delete,
                        ChangeOperation::Replace => theirs::LdapModifyType::Replace,
                        ChangeOperation::Increment => theirs::LdapModifyType::Increment,
                    },
                    modification: attribute(&change.attribute),
                })
                .collect(),
        }),
        Op::ModifyResponse(done) => LdapOp::ModifyResponse(result(done)),
        Op::AddRequest(add) => LdapOp::AddRequest(theirs::LdapAddRequest {
            dn: add.dn.into(),
            attributes: add.attributes.iter().map(attribute).collect(),
        }),
        Op::AddResponse(done) => LdapOp::AddResponse(result(done)),
        Op::DeleteRequest(dn) => LdapOp::DelRequest((*dn).into()),
        Op::DeleteResponse(done) => LdapOp::DelResponse(result(done)),
        Op::ModifyDnRequest(request) => LdapOp::ModifyDNRequest(theirs::LdapModifyDNRequest {
            dn: request.dn.into(),
            newrdn: request.new_rdn.into(),
            deleteoldrdn: request.delete_old_rdn,
            new_superior: request.new_superior.map(Into::into),
        }),
        Op::ModifyDnResponse(done) => LdapOp::ModifyDNResponse(result(done)),
        Op::CompareRequest(compare) => LdapOp::CompareRequest(theirs::LdapCompareRequest {
            dn: compare.dn.into(),
            atype: compare.attribute.into(),
            val: compare.value.to_vec(),
        }),
        Op::CompareResponse(done) => LdapOp::CompareResult(result(done)),
        Op::AbandonRequest(id) => LdapOp::AbandonRequest(i32::try_from(*id).unwrap()),
        Op::ExtendedRequest(request) => LdapOp::ExtendedRequest(theirs::LdapExtendedRequest {
            name: request.oid.into(),
            value: request.value.map(<[u8]>::to_vec),
        }),
        Op::ExtendedResponse(response) => LdapOp::ExtendedResponse(theirs::LdapExtendedResponse {
            res: result(&response.result),
            name: response.oid.as_ref().map(ToString::to_string),
            value: response.value.as_ref().map(|value| value.to_vec()),
        }),
        Op::IntermediateResponse(response) => {
            LdapOp::IntermediateResponse(theirs::LdapIntermediateResponse::Raw {
                name: response.oid.map(Into::into),
                value: response.value.map(<[u8]>::to_vec),
            })
        }
    }
}

fn search(request: &SearchRequest<'_>) -> theirs::LdapSearchRequest {
    theirs::LdapSearchRequest {
        base: request.base.into(),
        scope: match request.scope {
            Scope::Base => theirs::LdapSearchScope::Base,
            Scope::One => theirs::LdapSearchScope::OneLevel,
            Scope::Subtree => theirs::LdapSearchScope::Subtree,
            Scope::Subordinate => theirs::LdapSearchScope::Children,
        },
        aliases: match request.deref {
            Deref::Never => theirs::LdapDerefAliases::Never,
            Deref::InSearching => theirs::LdapDerefAliases::InSearching,
            Deref::FindingBase => theirs::LdapDerefAliases::FindingBaseObj,
            Deref::Always => theirs::LdapDerefAliases::Always,
        },
        sizelimit: i32::try_from(request.size_limit).unwrap(),
        timelimit: i32::try_from(request.time_limit_s).unwrap(),
        typesonly: request.types_only,
        filter: filter(&request.filter),
        attrs: request.attributes.iter().map(ToString::to_string).collect(),
    }
}

fn filter(ours: &Filter<'_>) -> theirs::LdapFilter {
    use theirs::LdapFilter as Theirs;
    match ours {
        Filter::And(terms) => Theirs::And(terms.iter().map(filter).collect()),
        Filter::Or(terms) => Theirs::Or(terms.iter().map(filter).collect()),
        Filter::Not(term) => Theirs::Not(Box::new(filter(term))),
        Filter::Equality { attribute, value } => {
            Theirs::Equality(attribute.to_string(), text(value))
        }
        Filter::GreaterOrEqual { attribute, value } => {
            Theirs::GreaterOrEqual(attribute.to_string(), text(value))
        }
        Filter::LessOrEqual { attribute, value } => {
            Theirs::LessOrEqual(attribute.to_string(), text(value))
        }
        Filter::Approx { attribute, value } => Theirs::Approx(attribute.to_string(), text(value)),
        Filter::Present(attribute) => Theirs::Present(attribute.to_string()),
        Filter::Substrings { attribute, initial, any, last } => Theirs::Substring(
            attribute.to_string(),
            theirs::LdapSubstringFilter {
                initial: initial.as_deref().map(text),
                any: any.iter().map(|piece| text(piece)).collect(),
                final_: last.as_deref().map(text),
            },
        ),
        Filter::Extensible { rule, attribute, value, dn_attributes } => {
            Theirs::Extensible(theirs::LdapMatchingRuleAssertion {
                matching_rule: rule.as_ref().map(ToString::to_string),
                type_: attribute.as_ref().map(ToString::to_string),
                match_value: text(value),
                dn_attributes: *dn_attributes,
            })
        }
    }
}

fn attribute(ours: &Attribute<'_>) -> theirs::LdapPartialAttribute {
    theirs::LdapPartialAttribute {
        atype: ours.description.to_string(),
        vals: ours.values.iter().map(|value| value.to_vec()).collect(),
    }
}

fn result(ours: &LdapResult<'_>) -> theirs::LdapResult {
    theirs::LdapResult {
        code: theirs::LdapResultCode::try_from(i64::from(ours.code.code())).unwrap(),
        matcheddn: ours.matched_dn.to_string(),
        message: ours.diagnostic.to_string(),
        referral: Vec::new(),
    }
}
