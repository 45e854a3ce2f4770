//! Which matching rules look at values of which attributes.

use crate::attribute::AttributeType;
use keyway_codec::syntax::{MatchingRule, Syntax};

/// Whether the rule can look at values of the attribute: it is one of its own, or was made for its
/// syntax, or both are of text.
pub fn fits(rule: MatchingRule, attribute: &AttributeType) -> bool {
    let own = [attribute.equality(), attribute.ordering(), attribute.substrings()];
    own.contains(&Some(rule))
        || rule.syntax() == attribute.syntax()
        || (is_of_text(rule) && is_text(attribute.syntax()))
}

fn is_of_text(rule: MatchingRule) -> bool {
    rule.has_form_of(MatchingRule::CaseIgnore)
        || rule.has_form_of(MatchingRule::CaseExact)
        || rule.has_form_of(MatchingRule::CaseIgnoreIa5)
        || rule.has_form_of(MatchingRule::CaseExactIa5)
        || rule.has_form_of(MatchingRule::Word)
}

fn is_text(syntax: Syntax) -> bool {
    use Syntax::*;
    matches!(
        syntax,
        DirectoryString
            | Ia5String
            | PrintableString
            | CountryString
            | TelephoneNumber
            | NumericString
    )
}
