//! Random messages, as far as the codec that they are to be compared with can carry them.

use std::borrow::Cow;

use keyway_codec::message::{
    AddRequest, Attribute, Authentication, BindRequest, BindResponse, Change, ChangeOperation,
    CompareRequest, Control, Deref, ExtendedRequest, ExtendedResponse, IntermediateResponse,
    LdapResult, ModifyDnRequest, ModifyRequest, ResultCode, Scope, SearchRequest,
    SearchResultEntry,
};
use keyway_codec::{Filter, Message, Op};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// The kinds of values of a codec.
#[derive(Clone, Copy)]
pub struct Reach {
    pub code_max: u32,
    pub increment: bool,
    pub subordinate: bool,
    pub other_authentication: bool,
    /// Referrals, and SASL credentials that are absent rather than empty.
    pub optional_parts: bool,
    /// Assertion values and simple passwords that are not UTF-8.
    pub binary_values: bool,
}

pub const ALL: Reach = Reach {
    code_max: u32::MAX,
    increment: true,
    subordinate: true,
    other_authentication: true,
    optional_parts: true,
    binary_values: true,
};

type Strings = BoxedStrategy<&'static str>;
type Bytes = BoxedStrategy<&'static [u8]>;

/// The types borrow: generated values live as long as the test.
fn text() -> Strings {
    prop_oneof![
        6 => "[a-z]{1,8}=[A-Za-z0-9 ]{0,12}",
        2 => "\\PC{0,6}",
        1 => "[a-z]{120,300}",
    ]
    .prop_map(|text: String| &*text.leak())
    .boxed()
}

fn name() -> Strings {
    "[a-zA-Z][a-zA-Z0-9-]{0,9}(;[a-z]{1,4})?".prop_map(|text: String| &*text.leak()).boxed()
}

fn oid() -> Strings {
    "1\\.2\\.3(\\.[1-9][0-9]{0,3}){1,4}".prop_map(|text: String| &*text.leak()).boxed()
}

fn bytes() -> Bytes {
    prop_oneof![
        6 => vec(any::<u8>(), 0..12),
        1 => vec(any::<u8>(), 120..300),
    ]
    .prop_map(|bytes| &*bytes.leak())
    .boxed()
}

fn value(reach: Reach) -> Bytes {
    if reach.binary_values { bytes() } else { text().prop_map(str::as_bytes).boxed() }
}

fn natural() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0..300_u32,
        1 => 0..=0x7fff_ffff_u32,
        1 => prop::sample::select(vec![0, 127, 128, 255, 256, 32767, 32768, 0x7fff_ffff]),
    ]
}

pub fn filter(reach: Reach) -> impl Strategy<Value = Filter<'static>> {
    let assertion = || (name().prop_map(Cow::Borrowed), value(reach).prop_map(Cow::Borrowed));
    let piece = value(reach).prop_filter("pieces are not empty", |piece| !piece.is_empty());
    let piece = piece.prop_map(Cow::Borrowed).boxed();
    let substrings =
        (name(), option::of(piece.clone()), vec(piece.clone(), 0..4), option::of(piece))
            .prop_filter("at least one piece", |(_, initial, any, last)| {
                initial.is_some() || !any.is_empty() || last.is_some()
            })
            .prop_map(|(attribute, initial, any, last)| Filter::Substrings {
                attribute: attribute.into(),
                initial,
                any,
                last,
            });
    // A rule called "dn" could not be told from the flag in the string form.
    let extensible = (option::of(oid()), option::of(name()), value(reach), any::<bool>())
        .prop_filter("rule or attribute", |(rule, attribute, ..)| {
            rule.is_some() || attribute.is_some()
        })
        .prop_map(|(rule, attribute, value, dn_attributes)| Filter::Extensible {
            rule: rule.map(Cow::Borrowed),
            attribute: attribute.map(Cow::Borrowed),
            value: Cow::Borrowed(value),
            dn_attributes,
        });
    let item = prop_oneof![
        assertion().prop_map(|(attribute, value)| Filter::Equality { attribute, value }),
        assertion().prop_map(|(attribute, value)| Filter::GreaterOrEqual { attribute, value }),
        assertion().prop_map(|(attribute, value)| Filter::LessOrEqual { attribute, value }),
        assertion().prop_map(|(attribute, value)| Filter::Approx { attribute, value }),
        name().prop_map(|attribute| Filter::Present(attribute.into())),
        substrings,
        extensible,
    ];
    item.prop_recursive(5, 24, 4, |term| {
        prop_oneof![
            vec(term.clone(), 0..4).prop_map(Filter::And),
            vec(term.clone(), 0..4).prop_map(Filter::Or),
            term.prop_map(|term| Filter::Not(Box::new(term))),
        ]
    })
}

pub fn attribute(values_min: usize) -> impl Strategy<Value = Attribute<'static>> {
    (name(), vec(bytes().prop_map(Cow::Borrowed), values_min..4))
        .prop_map(|(name, values)| Attribute { description: name.into(), values })
}

fn result(reach: Reach) -> BoxedStrategy<LdapResult<'static>> {
    let known: Vec<ResultCode> =
        ResultCode::ALL.iter().copied().filter(|code| code.code() <= reach.code_max).collect();
    let code = prop::sample::select(known);
    let code = if reach.code_max == u32::MAX {
        prop_oneof![4 => code, 1 => natural().prop_map(ResultCode::from_code)].boxed()
    } else {
        code.boxed()
    };
    let referrals_max = if reach.optional_parts { 3 } else { 0 };
    (code, text(), text(), vec(text().prop_map(Cow::Borrowed), 0..=referrals_max))
        .prop_map(|(code, matched_dn, diagnostic, referrals)| LdapResult {
            code,
            matched_dn: matched_dn.into(),
            diagnostic: diagnostic.into(),
            referrals,
        })
        .boxed()
}

fn authentication(reach: Reach) -> impl Strategy<Value = Authentication<'static>> {
    let credentials = if reach.optional_parts {
        option::of(bytes()).boxed()
    } else {
        bytes().prop_map(Some).boxed()
    };
    let sasl = ("[A-Z0-9-]{1,12}", credentials).prop_map(|(mechanism, credentials)| {
        Authentication::Sasl { mechanism: mechanism.leak(), credentials }
    });
    let simple = value(reach).prop_map(Authentication::Simple);
    if reach.other_authentication {
        let other =
            prop::sample::select(vec![0x81, 0x82, 0xa1, 0x84]).prop_map(Authentication::Other);
        prop_oneof![simple, sasl, other].boxed()
    } else {
        prop_oneof![simple, sasl].boxed()
    }
}

fn search(reach: Reach) -> impl Strategy<Value = SearchRequest<'static>> {
    let mut scopes = vec![Scope::Base, Scope::One, Scope::Subtree];
    if reach.subordinate {
        scopes.push(Scope::Subordinate);
    }
    let derefs = vec![Deref::Never, Deref::InSearching, Deref::FindingBase, Deref::Always];
    (
        (text(), prop::sample::select(scopes), prop::sample::select(derefs)),
        (natural(), natural(), any::<bool>(), filter(reach), vec(name(), 0..4)),
    )
        .prop_map(
            |((base, scope, deref), (size_limit, time_limit_s, types_only, filter, attributes))| {
                SearchRequest {
                    base,
                    scope,
                    deref,
                    size_limit,
                    time_limit_s,
                    types_only,
                    filter,
                    attributes,
                }
            },
        )
}

fn change(reach: Reach) -> impl Strategy<Value = Change<'static>> {
    let mut operations =
        vec![ChangeOperation::Add, ChangeOperation::Delete, ChangeOperation::Replace];
    if reach.increment {
        operations.push(ChangeOperation::Increment);
    }
    (prop::sample::select(operations), attribute(0))
        .prop_map(|(operation, attribute)| Change { operation, attribute })
}

fn request(reach: Reach) -> BoxedStrategy<Op<'static>> {
    prop_oneof![
        (1..=127_u8, text(), authentication(reach)).prop_map(|(version, name, authentication)| {
            Op::BindRequest(BindRequest { version, name, authentication })
        }),
        Just(Op::UnbindRequest),
        search(reach).prop_map(Op::SearchRequest),
        (text(), vec(change(reach), 0..4))
            .prop_map(|(dn, changes)| Op::ModifyRequest(ModifyRequest { dn, changes })),
        (text(), vec(attribute(1), 0..4))
            .prop_map(|(dn, attributes)| Op::AddRequest(AddRequest { dn, attributes })),
        text().prop_map(Op::DeleteRequest),
        (text(), text(), any::<bool>(), option::of(text())).prop_map(
            |(dn, new_rdn, delete_old_rdn, new_superior)| {
                Op::ModifyDnRequest(ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior })
            }
        ),
        (text(), name(), bytes()).prop_map(|(dn, attribute, value)| {
            Op::CompareRequest(CompareRequest { dn, attribute, value })
        }),
        natural().prop_map(Op::AbandonRequest),
        (oid(), option::of(bytes()))
            .prop_map(|(oid, value)| Op::ExtendedRequest(ExtendedRequest { oid, value })),
    ]
    .boxed()
}

fn response(reach: Reach) -> BoxedStrategy<Op<'static>> {
    prop_oneof![
        (result(reach), option::of(bytes())).prop_map(|(result, server_sasl_credentials)| {
            Op::BindResponse(BindResponse { result, server_sasl_credentials })
        }),
        (text(), vec(attribute(0), 0..4)).prop_map(|(dn, attributes)| {
            Op::SearchResultEntry(SearchResultEntry { dn: dn.into(), attributes })
        }),
        vec(text(), 1..3).prop_map(Op::SearchResultReference),
        result(reach).prop_map(Op::SearchResultDone),
        result(reach).prop_map(Op::ModifyResponse),
        result(reach).prop_map(Op::AddResponse),
        result(reach).prop_map(Op::DeleteResponse),
        result(reach).prop_map(Op::ModifyDnResponse),
        result(reach).prop_map(Op::CompareResponse),
        (result(reach), option::of(oid()), option::of(bytes())).prop_map(|(result, oid, value)| {
            Op::ExtendedResponse(ExtendedResponse {
                result,
                oid: oid.map(Cow::Borrowed),
                value: value.map(Cow::Borrowed),
            })
        }),
        (option::of(oid()), option::of(bytes())).prop_map(|(oid, value)| {
            Op::IntermediateResponse(IntermediateResponse { oid, value })
        }),
    ]
    .boxed()
}

pub fn control() -> impl Strategy<Value = Control<'static>> {
    (oid(), any::<bool>(), option::of(bytes().prop_map(Cow::Borrowed)))
        .prop_map(|(oid, critical, value)| Control { oid, critical, value })
}

pub fn message(reach: Reach) -> impl Strategy<Value = Message<'static>> {
    (natural(), prop_oneof![request(reach), response(reach)], vec(control(), 0..3))
        .prop_map(|(id, op, controls)| Message { id, op, controls })
}
