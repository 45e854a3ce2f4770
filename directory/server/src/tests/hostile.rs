//! Whatever is asked, there is an answer.

use super::*;
use keyway_codec::message::CompareRequest;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z=,+\\\\#;\"<> .0-9-]{0,24}",
        any::<String>(),
        prop::sample::select(
            &[
                BASE,
                PEOPLE,
                "uid=ada,ou=people,dc=example,dc=com",
                "",
                "cn=schema",
                "cn=keyway",
                "cn",
                "objectClass",
                "member",
                "uid",
                "cn;lang-de",
                "userPassword",
                "entryDN",
                "numSubordinates",
                "caseIgnoreMatch",
                "2.5.13.4",
                "*",
                "+",
            ][..]
        )
        .prop_map(str::to_owned),
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![prop::collection::vec(any::<u8>(), 0..20), text().prop_map(String::into_bytes)]
}

fn filter() -> impl Strategy<Value = Filter<'static>> {
    let described = || (text(), bytes());
    let leaf = prop_oneof![
        described().prop_map(|(attribute, value)| Filter::Equality {
            attribute: attribute.into(),
            value: value.into()
        }),
        described().prop_map(|(attribute, value)| Filter::GreaterOrEqual {
            attribute: attribute.into(),
            value: value.into()
        }),
        described().prop_map(|(attribute, value)| Filter::LessOrEqual {
            attribute: attribute.into(),
            value: value.into()
        }),
        text().prop_map(|attribute| Filter::Present(attribute.into())),
        (text(), prop::option::of(bytes()), prop::collection::vec(bytes(), 0..3)).prop_map(
            |(attribute, initial, any)| Filter::Substrings {
                attribute: attribute.into(),
                initial: initial.map(Into::into),
                any: any.into_iter().map(Into::into).collect(),
                last: None,
            }
        ),
        (prop::option::of(text()), prop::option::of(text()), bytes(), any::<bool>()).prop_map(
            |(rule, attribute, value, dn_attributes)| Filter::Extensible {
                rule: rule.map(Into::into),
                attribute: attribute.map(Into::into),
                value: value.into(),
                dn_attributes,
            }
        ),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::Or),
            inner.prop_map(|term| Filter::Not(Box::new(term))),
        ]
    })
}

fn operation() -> impl Strategy<Value = ChangeOperation> {
    prop::sample::select(
        &[
            ChangeOperation::Add,
            ChangeOperation::Delete,
            ChangeOperation::Replace,
            ChangeOperation::Increment,
        ][..],
    )
}

fn attribute_of(description: &str, values: &[Vec<u8>]) -> Attribute<'static> {
    let values = values.iter().map(|value| value.clone().into()).collect();
    Attribute { description: description.to_owned().into(), values }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn searches_and_compares(
        base in text(),
        filter in filter(),
        attributes in prop::collection::vec(text(), 0..3),
        value in bytes(),
        cookie in prop::option::of(bytes()),
        scope in prop::sample::select(
            &[Scope::Base, Scope::One, Scope::Subtree, Scope::Subordinate][..]
        ),
    ) {
        thread_local! {
            static FIXTURE: Fixture = filled();
        }
        FIXTURE.with(|fixture| {
            let attributes: Vec<&str> = attributes.iter().map(String::as_str).collect();
            let request = SearchRequest {
                base: &base,
                scope,
                filter: filter.clone(),
                attributes: attributes.clone(),
                ..request("(&)")
            };
            let paged = cookie.as_ref().map(|cookie| keyway_codec::controls::PagedResults {
                size: 2,
                cookie: cookie.into(),
            });
            let controls = RequestControls { paged, ..RequestControls::default() };
            let plain = RequestControls::default();
            for subject in [fixture.administrator(), fixture.user("ada"), Subject::anonymous()] {
                let _ = fixture.run(&subject, &request, &controls);
                for attribute in &attributes {
                    let request = CompareRequest { dn: &base, attribute, value: &value };
                    let _ = fixture.directory.compare(&subject, &request, &plain, ANNOUNCED);
                }
            }
            let _ = fixture.directory.credentials(&base);
            let _ = fixture.directory.dn_of_uid(&base);
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..Default::default() })]

    #[test]
    fn writes_leave_the_store_sound(
        writes in prop::collection::vec(
            (
                0..4_u8,
                text(),
                text(),
                prop::collection::vec((operation(), text(), prop::collection::vec(bytes(), 0..3)), 0..3),
                any::<bool>(),
            ),
            1..20,
        ),
    ) {
        let fixture = filled();
        let administrator = fixture.administrator();
        let controls = RequestControls::default();
        for (kind, rdn, dn, changes, flag) in &writes {
            let below = format!("cn={rdn},{GROUPS}");
            match kind {
                0 => {
                    let mut attributes = vec![attribute("objectClass", &["device", "extensibleObject"])];
                    attributes.extend(
                        changes.iter().map(|(_, name, values)| attribute_of(name, values)),
                    );
                    let request = AddRequest { dn: if *flag { dn } else { &below }, attributes };
                    let _ = block_on(fixture.directory.add(&administrator, &request, &controls));
                }
                1 => {
                    let _ = block_on(fixture.directory.delete(&administrator, dn, &controls));
                }
                2 => {
                    let changes = changes
                        .iter()
                        .map(|(operation, name, values)| Change {
                            operation: *operation,
                            attribute: attribute_of(name, values),
                        })
                        .collect();
                    let _ = fixture.modify(dn, changes);
                }
                _ => {
                    let superior = flag.then_some(PEOPLE);
                    let _ = fixture.rename(dn, &format!("cn={rdn}"), !*flag, superior);
                }
            }
        }
        fixture.directory.check(&mut |_, _| {}).unwrap();
    }
}
