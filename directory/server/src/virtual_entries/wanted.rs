//! Which entries of a virtual tree a client asks for, so that the others need not be made.

use keyway_codec::Filter;
use keyway_codec::message::Scope;
use keyway_schema::EntryName;

/// The entries that are asked for. A provider may leave out all others; one that is made all the same is found to be
/// out of scope later.
pub struct Wanted<'a> {
    /// The RDNs of the base below the tree's top, from there down.
    below: Vec<&'a str>,
    scope: Scope,
    filter: Option<&'a Filter<'a>>,
}

impl<'a> Wanted<'a> {
    /// By a base in a tree, its scope, and a filter if there is one.
    pub(crate) fn new(
        base: &'a EntryName,
        scope: Scope,
        filter: Option<&'a Filter<'a>>,
    ) -> Wanted<'a> {
        let below = base.parts.iter().rev().skip(1).map(|part| part.text.as_str());
        Wanted { below: below.collect(), scope, filter }
    }

    /// Whether the entry `cn=NAME` right below the top is of use, be it to tell how many there are.
    pub fn shows(&self, name: &str) -> bool {
        self.below.first().is_none_or(|rdn| may_be(rdn, name))
    }

    /// Whether entries below it are.
    pub fn fills(&self, name: &str) -> bool {
        self.shows(name) && !(self.below.is_empty() && self.scope == Scope::Base)
    }

    /// Whether the entry `cn=ONE,cn=NAME` is; `one` has only letters, digits and spaces between them.
    pub fn names(&self, name: &str, one: &str) -> bool {
        self.fills(name) && self.below.get(1).is_none_or(|rdn| may_be(rdn, one))
    }

    /// Whether any entry of this structural class below `cn=NAME` is, where that one says by itself how many it
    /// has below it.
    pub fn has_use_for(&self, class: &str, name: &str) -> bool {
        let counts_only = self.below.is_empty() && self.scope == Scope::One
            || self.below.len() == 1 && self.scope == Scope::Base;
        // One that is the base has to be there whatever the filter says.
        let is_out = |filter| self.below.len() < 2 && of_class(filter, class) == Some(false);
        self.fills(name) && !counts_only && !self.filter.is_some_and(is_out)
    }
}

/// Whether an RDN may be `cn=NAME`. One that is written in a way that is not plain may be anything.
fn may_be(rdn: &str, name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '=';
    let plain: String = rdn.split(' ').filter(|word| !word.is_empty()).collect();
    let named: String = name.split(' ').collect();
    !plain.chars().all(is_plain)
        || plain.split_once('=').is_some_and(|(_, value)| value.eq_ignore_ascii_case(&named))
}

/// The truth of a filter for all entries whose classes are `top` and this one; `None` if that depends on more.
fn of_class(filter: &Filter<'_>, class: &str) -> Option<bool> {
    match filter {
        Filter::And(terms) => all(terms, class, true),
        Filter::Or(terms) => all(terms, class, false),
        Filter::Not(term) => of_class(term, class).map(|truth| !truth),
        Filter::Equality { attribute, value } if attribute.eq_ignore_ascii_case("objectClass") => {
            // By its number it may be any.
            let is_name = value.first().is_some_and(u8::is_ascii_alphabetic);
            let is = |known: &str| value.eq_ignore_ascii_case(known.as_bytes());
            is_name.then(|| is("top") || is(class))
        }
        Filter::Present(attribute) if attribute.eq_ignore_ascii_case("objectClass") => Some(true),
        _ => None,
    }
}

/// A conjunction (`unit` is true) or a disjunction of terms.
fn all(terms: &[Filter<'_>], class: &str, unit: bool) -> Option<bool> {
    let mut is_known = true;
    for term in terms {
        match of_class(term, class) {
            Some(truth) if truth != unit => return Some(truth),
            Some(_) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(filter: &str) -> Option<bool> {
        of_class(&Filter::parse(filter).unwrap(), "monitorConnection")
    }

    #[test]
    fn a_filter_may_leave_out_a_class() {
        for out in [
            "(!(objectClass=monitorConnection))",
            "(objectclass=monitoredObject)",
            "(&(cn=x)(objectClass=monitorContainer))",
            "(|(objectClass=a)(objectClass=b))",
            "(|)",
        ] {
            assert_eq!(says(out), Some(false), "{out}");
        }
        for within in
            ["(objectClass=*)", "(objectClass=TOP)", "(|(cn=x)(objectClass=monitorConnection))"]
        {
            assert_eq!(says(within), Some(true), "{within}");
        }
        for unknown in ["(cn=x)", "(objectClass=1.2.3)", "(&(cn=x)(objectClass=top))", "(!(cn=x))"]
        {
            assert_eq!(says(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_base_may_leave_out_branches() {
        let schema = keyway_schema::Schema::standard().unwrap();
        let name = |text: &str| EntryName::parse(&schema, text).unwrap();
        let (top, branch) = (name("cn=monitor"), name("CN=counters,cn=monitor"));
        let (one, odd) =
            (name("cn=Connection  17,cn=Connections,cn=monitor"), name("cn=a\\,b,cn=monitor"));
        let by = |name, scope| Wanted::new(name, scope, None);
        assert!(by(&top, Scope::Subtree).fills("Counters"));
        assert!(
            by(&top, Scope::Base).shows("Counters") && !by(&top, Scope::Base).fills("Counters")
        );
        assert!(by(&branch, Scope::Base).fills("Counters"));
        assert!(!by(&branch, Scope::Subtree).shows("Connections"));
        assert!(by(&one, Scope::Base).names("Connections", "Connection 17"));
        assert!(!by(&one, Scope::Base).names("Connections", "Connection 1"));
        assert!(by(&odd, Scope::Base).fills("Counters"));
        assert!(!by(&top, Scope::One).has_use_for("monitorConnection", "Connections"));
        assert!(by(&top, Scope::Subtree).has_use_for("monitorConnection", "Connections"));
    }
}
