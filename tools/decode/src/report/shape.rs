//! A filter without its values: what searches that differ only in them have in common.

use keyway_codec::Filter;
use std::borrow::Cow;

/// The filter's text with `?` for each value; pieces between asterisks too.
#[must_use]
pub fn shape(filter: &Filter<'_>) -> String {
    bare(filter).to_string()
}

const VALUE: Cow<'static, [u8]> = Cow::Borrowed(b"?");

fn bare<'a>(filter: &Filter<'a>) -> Filter<'a> {
    let all = |terms: &[Filter<'a>]| terms.iter().map(bare).collect();
    match filter {
        Filter::And(terms) => Filter::And(all(terms)),
        Filter::Or(terms) => Filter::Or(all(terms)),
        Filter::Not(term) => Filter::Not(Box::new(bare(term))),
        // The object class that is meant is a part of the question.
        Filter::Equality { attribute, .. } if attribute.eq_ignore_ascii_case("objectClass") => {
            filter.clone()
        }
        Filter::Equality { attribute, .. } => {
            Filter::Equality { attribute: attribute.clone(), value: VALUE }
        }
        Filter::GreaterOrEqual { attribute, .. } => {
            Filter::GreaterOrEqual { attribute: attribute.clone(), value: VALUE }
        }
        Filter::LessOrEqual { attribute, .. } => {
            Filter::LessOrEqual { attribute: attribute.clone(), value: VALUE }
        }
        Filter::Approx { attribute, .. } => {
            Filter::Approx { attribute: attribute.clone(), value: VALUE }
        }
        Filter::Present(attribute) => Filter::Present(attribute.clone()),
        Filter::Substrings { attribute, initial, any, last } => Filter::Substrings {
            attribute: attribute.clone(),
            initial: initial.as_ref().map(|_| VALUE),
            any: any.iter().map(|_| VALUE).collect(),
            last: last.as_ref().map(|_| VALUE),
        },
        Filter::Extensible { rule, attribute, dn_attributes, .. } => Filter::Extensible {
            rule: rule.clone(),
            attribute: attribute.clone(),
            value: VALUE,
            dn_attributes: *dn_attributes,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_left_out() {
        let of = |text: &str| shape(&Filter::parse(text).unwrap());
        assert_eq!(
            of("(&(objectClass=person)(|(uid=a)(mail=a*b*))(!(cn>=x))(sn=*))"),
            "(&(objectClass=person)(|(uid=?)(mail=?*?*))(!(cn>=?))(sn=*))"
        );
    }
}
