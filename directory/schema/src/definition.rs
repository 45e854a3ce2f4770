//! Questions to a definition when it meets others: whether it says the same, and what is needed.

use crate::attribute;
use crate::operational::SUBSCHEMA_DN;
use keyway_codec::description::{
    AttributeTypeDescription, ClassKind, ObjectClassDescription, Usage,
};
use std::fmt;

/// The part that the two kinds of descriptions have in common here.
pub trait Definition: Clone + fmt::Display {
    /// The numeric OID.
    fn oid(&self) -> &str;
    /// Short names.
    fn names(&self) -> &[String];
    /// Whether both say the same, whatever they say it with.
    fn means(&self, other: &Self) -> bool;
    /// Whether both are so alike that no message need say which of them counts.
    fn is_near(&self, other: &Self) -> bool;
    /// Whether the server relies on it as it is.
    fn is_needed(&self) -> bool;
    /// Short names, to be changed.
    fn names_mut(&mut self) -> &mut Vec<String>;
    /// Takes the rules that it does not say from the one that it replaces.
    fn complete(&mut self, replaced: &Self);

    /// A reference in it to what this server does not know, so that its publication would lead
    /// nowhere. References to other definitions, which are looked for anyway, aside.
    fn dangling(&self) -> Option<String> {
        None
    }

    /// The name that it is shown by.
    fn shown(&self) -> &str {
        self.names().first().map_or(self.oid(), String::as_str)
    }

    /// Whether both claim the same OID or name.
    fn meets(&self, other: &Self) -> bool {
        let names =
            |name: &String| other.names().iter().any(|known| known.eq_ignore_ascii_case(name));
        self.oid().eq_ignore_ascii_case(other.oid()) || self.names().iter().any(names)
    }
}

fn same_words(one: &[String], other: &[String]) -> bool {
    let within = |these: &[String], those: &[String]| {
        these.iter().all(|this| those.iter().any(|that| that.eq_ignore_ascii_case(this)))
    };
    within(one, other) && within(other, one)
}

fn same_word(one: Option<&String>, other: Option<&String>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (None, None) => true,
        _ => false,
    }
}

/// The attributes that the server looks at itself.
const NEEDED_ATTRIBUTES: [&str; 4] = ["objectClass", "userPassword", "aliasedObjectName", "ref"];
const NEEDED_CLASSES: [&str; 5] = ["top", "alias", "referral", "subschema", "extensibleObject"];

/// The methods for the OID and the names, of both kinds.
macro_rules! labels {
    () => {
        fn oid(&self) -> &str {
            &self.oid
        }

        fn names(&self) -> &[String] {
            &self.names
        }

        fn names_mut(&mut self) -> &mut Vec<String> {
            &mut self.names
        }
    };
}

impl Definition for AttributeTypeDescription {
    labels!();

    fn means(&self, other: &Self) -> bool {
        let syntax = |one: &Self| one.syntax.as_ref().map(|syntax| syntax.oid.clone());
        self.oid.eq_ignore_ascii_case(&other.oid)
            && same_words(&self.names, &other.names)
            && same_word(self.sup.as_ref(), other.sup.as_ref())
            && same_word(self.equality.as_ref(), other.equality.as_ref())
            && same_word(self.ordering.as_ref(), other.ordering.as_ref())
            && same_word(self.substring.as_ref(), other.substring.as_ref())
            && syntax(self) == syntax(other)
            && self.single_value == other.single_value
            && self.collective == other.collective
            && self.no_user_modification == other.no_user_modification
            && self.usage == other.usage
    }

    fn is_near(&self, other: &Self) -> bool {
        let syntax = |one: &Self| one.syntax.as_ref().map(|syntax| syntax.oid.clone());
        self.usage != Usage::UserApplications || syntax(self) == syntax(other)
    }

    fn is_needed(&self) -> bool {
        self.usage != Usage::UserApplications || NEEDED_ATTRIBUTES.contains(&self.shown())
    }

    fn dangling(&self) -> Option<String> {
        let rules = [&self.equality, &self.ordering, &self.substring];
        let unknown = rules.into_iter().flatten().find(|name| attribute::rule(name).is_none());
        let syntax = self.syntax.as_ref().map(|syntax| syntax.oid.as_str());
        let syntax = syntax.filter(|oid| attribute::syntax_of(oid).is_none());
        match (unknown, syntax) {
            (Some(rule), _) => Some(format!(
                "matching rule {rule} is not known here; matchingRules of {SUBSCHEMA_DN} lists those that are"
            )),
            (None, Some(oid)) => Some(format!(
                "syntax {oid} is not known here; ldapSyntaxes of {SUBSCHEMA_DN} lists those that are"
            )),
            (None, None) => None,
        }
    }

    fn complete(&mut self, replaced: &Self) {
        let syntax = |one: &Self| one.syntax.as_ref().map(|syntax| syntax.oid.clone());
        if self.sup.is_some() || syntax(self) != syntax(replaced) {
            return;
        }
        let rules = [
            (&mut self.equality, &replaced.equality),
            (&mut self.ordering, &replaced.ordering),
            (&mut self.substring, &replaced.substring),
        ];
        for (rule, before) in rules {
            if rule.is_none() {
                rule.clone_from(before);
            }
        }
    }
}

impl Definition for ObjectClassDescription {
    labels!();

    fn means(&self, other: &Self) -> bool {
        // A class that says of no other that it derives from it derives from top.
        let sup = |one: &Self| match &one.sup[..] {
            [] if one.kind != ClassKind::Abstract => vec!["top".to_owned()],
            sup => sup.to_vec(),
        };
        // An attribute that is demanded need not be allowed as well.
        let also_may = |one: &Self| -> Vec<String> {
            let demanded =
                |may: &&String| one.must.iter().any(|must| must.eq_ignore_ascii_case(may));
            one.may.iter().filter(|may| !demanded(may)).cloned().collect()
        };
        self.oid.eq_ignore_ascii_case(&other.oid)
            && same_words(&self.names, &other.names)
            && same_words(&sup(self), &sup(other))
            && self.kind == other.kind
            && same_words(&self.must, &other.must)
            && same_words(&also_may(self), &also_may(other))
    }

    fn is_near(&self, other: &Self) -> bool {
        self.oid == other.oid && self.kind == other.kind
    }

    fn is_needed(&self) -> bool {
        NEEDED_CLASSES.contains(&self.shown())
    }

    fn complete(&mut self, _: &Self) {}
}
