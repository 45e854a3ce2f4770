//! Descriptions as the RFCs and other servers write them, what is refused and where.

use super::{AttributeTypeDescription, ClassKind, ObjectClassDescription, SyntaxReference, Usage};
use crate::limits::DESCRIPTION_WORDS_MAX;
use proptest::prelude::*;

fn attribute(text: &str) -> AttributeTypeDescription {
    AttributeTypeDescription::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn class(text: &str) -> ObjectClassDescription {
    ObjectClassDescription::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn an_attribute_type_of_the_rfc() {
    let parsed = attribute(
        "( 2.5.18.1 NAME 'createTimestamp'\n   EQUALITY generalizedTimeMatch\n   \
         ORDERING generalizedTimeOrderingMatch\n   SYNTAX 1.3.6.1.4.1.1466.115.121.1.24\n   \
         SINGLE-VALUE NO-USER-MODIFICATION\n   USAGE directoryOperation )",
    );
    assert_eq!(parsed.oid, "2.5.18.1");
    assert_eq!(parsed.names, ["createTimestamp"]);
    assert_eq!(parsed.equality.as_deref(), Some("generalizedTimeMatch"));
    assert_eq!(parsed.ordering.as_deref(), Some("generalizedTimeOrderingMatch"));
    assert_eq!(parsed.substring, None);
    assert_eq!(parsed.syntax.as_ref().unwrap().oid, "1.3.6.1.4.1.1466.115.121.1.24");
    assert!(parsed.single_value && parsed.no_user_modification);
    assert!(!parsed.collective && !parsed.obsolete);
    assert_eq!(parsed.usage, Usage::DirectoryOperation);
    assert_eq!(
        parsed.to_string(),
        "( 2.5.18.1 NAME 'createTimestamp' EQUALITY generalizedTimeMatch ORDERING \
         generalizedTimeOrderingMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.24 SINGLE-VALUE \
         NO-USER-MODIFICATION USAGE directoryOperation )"
    );
}

/// No blanks where none are needed, quotes around the syntax, parts in another order, extensions.
#[test]
fn as_others_write_it() {
    let parsed = attribute(
        "(1.2.3 usage dSAOperation NAME('a' 'b-c_d')SYNTAX '1.2.4{64}' DESC 'it\\27s \\5C' \
         X-ORIGIN ( 'RFC' 'me' ) SUP 2.5.4.41 OBSOLETE COLLECTIVE x-ORDERED 'VALUES')",
    );
    assert_eq!(parsed.names, ["a", "b-c_d"]);
    let syntax = SyntaxReference { oid: "1.2.4".into(), length_suggested: Some(64) };
    assert_eq!(parsed.syntax, Some(syntax));
    assert_eq!(parsed.description.as_deref(), Some("it's \\"));
    assert_eq!(parsed.sup.as_deref(), Some("2.5.4.41"));
    assert!(parsed.obsolete && parsed.collective);
    assert_eq!(parsed.usage, Usage::DsaOperation);
    let extension = |name: &str, values: &[&str]| {
        (name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    };
    let expected = [extension("X-ORIGIN", &["RFC", "me"]), extension("x-ORDERED", &["VALUES"])];
    assert_eq!(parsed.extensions, expected);
    assert_eq!(attribute(&parsed.to_string()), parsed);
}

#[test]
fn object_classes() {
    let parsed = class(
        "( 2.5.6.2 NAME 'country' SUP top STRUCTURAL MUST c MAY ( searchGuide $ description ) )",
    );
    assert_eq!(parsed.names, ["country"]);
    assert_eq!((parsed.sup, parsed.kind), (vec!["top".to_owned()], ClassKind::Structural));
    assert_eq!(parsed.must, ["c"]);
    assert_eq!(parsed.may, ["searchGuide", "description"]);
    assert_eq!(class("( 1.2 )").kind, ClassKind::Structural);
    assert_eq!(class("( 1.2 ABSTRACT )").kind, ClassKind::Abstract);
    let several = class("( 1.2 NAME ( ) SUP (a$1.3) AUXILIARY MAY ( ) )");
    assert_eq!(several.sup, ["a", "1.3"]);
    assert!(several.names.is_empty() && several.may.is_empty());
}

#[test]
fn errors_name_the_place() {
    let wrong = [
        ("", 0),
        ("2.5.4.3", 0),
        ("( cn )", 2),
        ("( 2.5.4.3 )", 11),
        ("( 2.5.4.3 SUP name", 18),
        ("( 2.5.4.3 SUP name ) x", 21),
        ("( 2.5.4.3 SUP )", 14),
        ("( 2.5.4.3 SUP 'name' )", 14),
        ("( 2.5.4.3 SUP name SUP name )", 23),
        ("( 2.5.4.3 NAME cn SUP name )", 15),
        ("( 2.5.4.3 NAME 'c n' SUP name )", 15),
        ("( 2.5.4.3 NAME ( 'cn' x ) SUP name )", 22),
        ("( 2.5.4.3 NAME 'cn SUP name )", 15),
        ("( 2.5.4.3 DESC 'a\\28' SUP name )", 15),
        ("( 2.5.4.3 SYNTAX 1.2{x} )", 17),
        ("( 2.5.4.3 SYNTAX 1.2{ )", 17),
        ("( 2.5.4.3 SYNTAX cn )", 17),
        ("( 2.5.4.3 SUP name USAGE often )", 25),
        ("( 2.5.4.3 SUP name MUST cn )", 19),
        ("( 2.5.4.3 SUP name 'x' )", 19),
        ("( 2.5.4.3 SUP name X-A x )", 23),
        ("( 2.5.4.3 SUP name SINGLE-VALUE SINGLE-VALUE )", 32),
    ];
    for (text, at) in wrong {
        let error = AttributeTypeDescription::parse(text).expect_err(text);
        assert_eq!(error.at, at, "{text:?}: {error}");
    }
    let wrong = [
        ("( 1.2 MUST ( a b ) )", 15),
        ("( 1.2 MUST ( a $ ) )", 17),
        ("( 1.2 MUST ( $ a ) )", 13),
        ("( 1.2 MUST ( a", 14),
        ("( 1.2 AUXILIARY STRUCTURAL )", 16),
        ("( 1.2 SYNTAX 1.2 )", 6),
    ];
    for (text, at) in wrong {
        let error = ObjectClassDescription::parse(text).expect_err(text);
        assert_eq!(error.at, at, "{text:?}: {error}");
    }
}

#[test]
fn words_are_limited() {
    let class = |words: usize| format!("( 1.2 NAME ( {}) )", "'a' ".repeat(words));
    assert!(ObjectClassDescription::parse(&class(DESCRIPTION_WORDS_MAX - 10)).is_ok());
    assert!(ObjectClassDescription::parse(&class(DESCRIPTION_WORDS_MAX)).is_err());
}

fn any_oid() -> impl Strategy<Value = String> {
    "[0-2](\\.(0|[1-9][0-9]{0,4})){1,5}"
}

fn any_name() -> impl Strategy<Value = String> {
    "[a-zA-Z][a-zA-Z0-9_-]{0,8}"
}

fn any_reference() -> impl Strategy<Value = String> {
    prop_oneof![any_oid(), any_name()]
}

fn any_references() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any_reference(), 0..4)
}

fn any_extensions() -> impl Strategy<Value = Vec<(String, Vec<String>)>> {
    prop::collection::vec(("X-[A-Z]{1,5}", prop::collection::vec("[ -~ü]{0,5}", 0..3)), 0..3)
}

fn any_class() -> impl Strategy<Value = ObjectClassDescription> {
    let kinds = vec![ClassKind::Abstract, ClassKind::Structural, ClassKind::Auxiliary];
    let head = (
        any_oid(),
        prop::collection::vec(any_name(), 0..3),
        prop::option::of("[ -~ü]{0,9}"),
        any::<bool>(),
    );
    let lists = (any_references(), any_references(), any_references(), any_extensions());
    (head, prop::sample::select(kinds), lists).prop_map(
        |((oid, names, description, obsolete), kind, (sup, must, may, extensions))| {
            ObjectClassDescription {
                oid,
                names,
                description,
                obsolete,
                sup,
                kind,
                must,
                may,
                extensions,
            }
        },
    )
}

fn any_attribute() -> impl Strategy<Value = AttributeTypeDescription> {
    let optional = || prop::option::of(any_reference());
    let rules = (optional(), optional(), optional(), optional());
    let syntax = (any_oid(), prop::option::of(any::<u32>()))
        .prop_map(|(oid, length_suggested)| SyntaxReference { oid, length_suggested });
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (any_class(), rules, syntax, flags, prop::sample::select(Usage::ALL.to_vec())).prop_map(
        |(class, (sup, equality, ordering, substring), syntax, flags, usage)| {
            AttributeTypeDescription {
                oid: class.oid,
                names: class.names,
                description: class.description,
                obsolete: class.obsolete,
                sup,
                equality,
                ordering,
                substring,
                syntax: Some(syntax),
                single_value: flags.0,
                collective: flags.1,
                no_user_modification: flags.2,
                usage,
                extensions: class.extensions,
            }
        },
    )
}

#[test]
fn any_line_break_in_quotes_is_one_blank() {
    for text in ["( 1.2 DESC 'a\n\t b' )", "( 1.2 DESC 'a\rb' )", "( 1.2 DESC 'a\r\n b' )"] {
        let read = ObjectClassDescription::parse(text).unwrap();
        assert_eq!(read.description.as_deref(), Some("a b"), "{text:?}");
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(class in any_class(), attribute in any_attribute()) {
        let text = class.to_string();
        prop_assert_eq!(ObjectClassDescription::parse(&text), Ok(class), "{}", text);
        let text = attribute.to_string();
        prop_assert_eq!(AttributeTypeDescription::parse(&text), Ok(attribute), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[(]? ?(1.2 |NAME |'a' |MUST |[(] |[$] |[)] |x |'|\\\\|ü){0,8}") {
        for error in [
            ObjectClassDescription::parse(&text).err(),
            AttributeTypeDescription::parse(&text).err(),
            super::check_form(&text).err(),
        ].into_iter().flatten() {
            prop_assert!(error.at <= text.len());
        }
    }
}
