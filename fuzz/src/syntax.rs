//! Values of every syntax, their normal forms by every rule, and schema descriptions.

use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::syntax::{
    Descriptors, MatchingRule, Part, RuleKind, Syntax, sounds, sounds_like, substring_assertion,
};

/// Takes the bytes as a value of everything there is.
pub fn syntax(data: &[u8]) {
    for syntax in Syntax::ALL {
        let _ = syntax.validate(data);
    }
    for rule in MatchingRule::ALL {
        by_rule(*rule, data);
    }
    let _ = substring_assertion(data);
    let Ok(text) = str::from_utf8(data) else { return };
    match AttributeTypeDescription::parse(text) {
        Ok(found) => {
            assert_eq!(AttributeTypeDescription::parse(&found.to_string()), Ok(found));
        }
        Err(error) => assert!(error.at <= text.len(), "{error} is beyond the text"),
    }
    match ObjectClassDescription::parse(text) {
        Ok(found) => assert_eq!(ObjectClassDescription::parse(&found.to_string()), Ok(found)),
        Err(error) => assert!(error.at <= text.len(), "{error} is beyond the text"),
    }
}

/// A value that has a normal form is a valid value, and a piece of itself.
fn by_rule(rule: MatchingRule, data: &[u8]) {
    for part in [Part::Initial, Part::Any, Part::Final] {
        let _ = rule.normalize_substring(data, part);
    }
    let Some(normal) = rule.normalize(data, &Few) else { return };
    if rule.has_words() {
        // Equal values sound alike, so that an approximate match has all that an equality match has.
        let again = sounds(&normal).expect("a normal form is text");
        assert_eq!(sounds(data).map(|own| sounds_like(&own, &again)), Some(true), "{normal:?}");
    }
    if rule.kind() == RuleKind::Substrings && rule != MatchingRule::CaseIgnoreListSubstrings {
        let piece = rule.normalize_substring(data, Part::Any).expect("a value is a piece");
        let blank = data.iter().all(|byte| !byte.is_ascii_graphic());
        let found = normal.windows(piece.len().max(1)).any(|window| window == piece);
        assert!(found || piece.is_empty() || blank, "{piece:?} is not in {normal:?}");
    }
}

/// A schema of a few attributes.
struct Few;

impl Descriptors for Few {
    fn attribute(&self, name: &str) -> Option<(&str, MatchingRule)> {
        match name {
            "c" => Some(("c", MatchingRule::CaseIgnore)),
            "i" => Some(("i", MatchingRule::Integer)),
            "m" => Some(("m", MatchingRule::DistinguishedName)),
            "u" => Some(("u", MatchingRule::UniqueMember)),
            _ => None,
        }
    }

    fn oid(&self, name: &str) -> Option<&str> {
        (name == "c").then_some("2.5.4.6")
    }
}
