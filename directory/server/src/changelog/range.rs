//! The numbers of changes that a filter can match.

use keyway_codec::Filter;
use std::ops::RangeInclusive;

/// The attribute of the numbers.
pub(super) const CHANGE_NUMBER: &str = "changeNumber";
const CHANGE_NUMBER_OID: &str = "2.16.840.1.113730.3.1.5";

const NONE: RangeInclusive<u64> = RangeInclusive::new(1, 0);
const ALL: RangeInclusive<u64> = 0..=u64::MAX;

/// Numbers outside of it match the filter for no change.
pub(super) fn range(filter: &Filter<'_>) -> RangeInclusive<u64> {
    match filter {
        Filter::And(terms) => terms
            .iter()
            .map(range)
            .fold(ALL, |one, other| *one.start().max(other.start())..=*one.end().min(other.end())),
        Filter::Or(terms) => terms.iter().map(range).fold(NONE, |one, other| {
            match (one.is_empty(), other.is_empty()) {
                (true, _) => other,
                (_, true) => one,
                _ => *one.start().min(other.start())..=*one.end().max(other.end()),
            }
        }),
        Filter::Equality { attribute, value } => {
            number(attribute, value).map_or(ALL, |number| number..=number)
        }
        Filter::GreaterOrEqual { attribute, value } => {
            number(attribute, value).map_or(ALL, |number| number..=u64::MAX)
        }
        Filter::LessOrEqual { attribute, value } => {
            number(attribute, value).map_or(ALL, |number| 0..=number)
        }
        _ => ALL,
    }
}

/// The number that a term compares with; `None` if it compares something else, or with none that a change can have.
fn number(attribute: &str, value: &[u8]) -> Option<u64> {
    let is_it = attribute.eq_ignore_ascii_case(CHANGE_NUMBER) || attribute == CHANGE_NUMBER_OID;
    str::from_utf8(value).ok().filter(|_| is_it)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_bound_the_numbers() {
        let of = |filter: &str| range(&Filter::parse(filter).unwrap());
        for (filter, bounds) in [
            ("(changeNumber>=7)", 7..=u64::MAX),
            ("(&(CHANGENUMBER>=7)(changeNumber<=9)(changeType=add))", 7..=9),
            ("(2.16.840.1.113730.3.1.5=7)", 7..=7),
            ("(|(changeNumber=7)(changeNumber=3)(|))", 3..=7),
            ("(&(changeNumber>=7)(|(changeNumber<=5)(targetDN=dc=example)))", 7..=u64::MAX),
            ("(|(changeNumber=7)(changeType=add))", ALL),
            ("(!(changeNumber>=7))", ALL),
            ("(changeNumber;x>=7)", ALL),
            ("(changeNumber>=-7)", ALL),
            ("(changeNumber=*)", ALL),
            ("(changeTime>=7)", ALL),
        ] {
            assert_eq!(of(filter), bounds, "{filter}");
        }
        for nothing in ["(|)", "(&(changeNumber>=7)(changeNumber<=5))"] {
            assert!(of(nothing).is_empty(), "{nothing}");
        }
    }
}
