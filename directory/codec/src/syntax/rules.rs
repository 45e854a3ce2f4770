//! Matching rules, RFC 4517 § 4.2, RFC 4530, and those for bits and chains that Active Directory has.

use super::syntaxes::Syntax;

/// The kind of a matching rule's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// Whether values are equal.
    Equality,
    /// Which of two values comes first.
    Ordering,
    /// Whether a value has some pieces.
    Substrings,
    /// Whether a value has a word, or several in a row.
    Words,
    /// Whether a number has some bits.
    Bits,
    /// Whether names lead to an entry, over as many others as it takes.
    Chain,
}

/// How a rule looks at values. Rules of one form agree on which values are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    BitString,
    Boolean,
    CaseExact,
    CaseExactIa5,
    CaseIgnore,
    CaseIgnoreFirstComponent,
    CaseIgnoreIa5,
    CaseIgnoreList,
    DistinguishedName,
    GeneralizedTime,
    Integer,
    IntegerFirstComponent,
    NumericString,
    ObjectIdentifier,
    ObjectIdentifierFirstComponent,
    OctetString,
    TelephoneNumber,
    UniqueMember,
    Uuid,
    Words,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident: $oid:literal $name:literal $kind:ident $form:ident $syntax:ident;)*) => {
        /// A matching rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum MatchingRule {
            $(#[doc = concat!("`", $name, "`, ", $oid, ".")] $rule,)*
        }

        impl MatchingRule {
            /// Every rule.
            pub const ALL: &[MatchingRule] = &[$(MatchingRule::$rule,)*];

            const fn facts(self) -> Facts {
                match self {
                    $(MatchingRule::$rule => Facts {
                        oid: $oid,
                        name: $name,
                        kind: RuleKind::$kind,
                        form: Form::$form,
                        syntax: Syntax::$syntax,
                    },)*
                }
            }
        }
    };
}

struct Facts {
    oid: &'static str,
    name: &'static str,
    kind: RuleKind,
    form: Form,
    syntax: Syntax,
}

rules! {
    ObjectIdentifier: "2.5.13.0" "objectIdentifierMatch" Equality ObjectIdentifier Oid;
    DistinguishedName: "2.5.13.1" "distinguishedNameMatch" Equality DistinguishedName Dn;
    CaseIgnore: "2.5.13.2" "caseIgnoreMatch" Equality CaseIgnore DirectoryString;
    CaseIgnoreOrdering: "2.5.13.3" "caseIgnoreOrderingMatch" Ordering CaseIgnore DirectoryString;
    CaseIgnoreSubstrings: "2.5.13.4" "caseIgnoreSubstringsMatch" Substrings CaseIgnore SubstringAssertion;
    CaseExact: "2.5.13.5" "caseExactMatch" Equality CaseExact DirectoryString;
    CaseExactOrdering: "2.5.13.6" "caseExactOrderingMatch" Ordering CaseExact DirectoryString;
    CaseExactSubstrings: "2.5.13.7" "caseExactSubstringsMatch" Substrings CaseExact SubstringAssertion;
    NumericString: "2.5.13.8" "numericStringMatch" Equality NumericString NumericString;
    NumericStringOrdering: "2.5.13.9" "numericStringOrderingMatch" Ordering NumericString NumericString;
    NumericStringSubstrings: "2.5.13.10" "numericStringSubstringsMatch" Substrings NumericString SubstringAssertion;
    CaseIgnoreList: "2.5.13.11" "caseIgnoreListMatch" Equality CaseIgnoreList PostalAddress;
    CaseIgnoreListSubstrings: "2.5.13.12" "caseIgnoreListSubstringsMatch" Substrings CaseIgnoreList SubstringAssertion;
    Boolean: "2.5.13.13" "booleanMatch" Equality Boolean Boolean;
    Integer: "2.5.13.14" "integerMatch" Equality Integer Integer;
    IntegerOrdering: "2.5.13.15" "integerOrderingMatch" Ordering Integer Integer;
    BitString: "2.5.13.16" "bitStringMatch" Equality BitString BitString;
    OctetString: "2.5.13.17" "octetStringMatch" Equality OctetString OctetString;
    OctetStringOrdering: "2.5.13.18" "octetStringOrderingMatch" Ordering OctetString OctetString;
    OctetStringSubstrings: "2.5.13.19" "octetStringSubstringsMatch" Substrings OctetString OctetString;
    TelephoneNumber: "2.5.13.20" "telephoneNumberMatch" Equality TelephoneNumber TelephoneNumber;
    TelephoneNumberSubstrings: "2.5.13.21" "telephoneNumberSubstringsMatch" Substrings TelephoneNumber SubstringAssertion;
    UniqueMember: "2.5.13.23" "uniqueMemberMatch" Equality UniqueMember NameAndOptionalUid;
    GeneralizedTime: "2.5.13.27" "generalizedTimeMatch" Equality GeneralizedTime GeneralizedTime;
    GeneralizedTimeOrdering: "2.5.13.28" "generalizedTimeOrderingMatch" Ordering GeneralizedTime GeneralizedTime;
    IntegerFirstComponent: "2.5.13.29" "integerFirstComponentMatch" Equality IntegerFirstComponent Integer;
    ObjectIdentifierFirstComponent: "2.5.13.30" "objectIdentifierFirstComponentMatch" Equality ObjectIdentifierFirstComponent Oid;
    DirectoryStringFirstComponent: "2.5.13.31" "directoryStringFirstComponentMatch" Equality CaseIgnoreFirstComponent DirectoryString;
    Word: "2.5.13.32" "wordMatch" Words Words DirectoryString;
    Keyword: "2.5.13.33" "keywordMatch" Words Words DirectoryString;
    IntegerBitAnd: "1.2.840.113556.1.4.803" "integerBitAndMatch" Bits Integer Integer;
    IntegerBitOr: "1.2.840.113556.1.4.804" "integerBitOrMatch" Bits Integer Integer;
    InChain: "1.2.840.113556.1.4.1941" "inChainMatch" Chain DistinguishedName Dn;
    CaseExactIa5: "1.3.6.1.4.1.1466.109.114.1" "caseExactIA5Match" Equality CaseExactIa5 Ia5String;
    CaseIgnoreIa5: "1.3.6.1.4.1.1466.109.114.2" "caseIgnoreIA5Match" Equality CaseIgnoreIa5 Ia5String;
    CaseIgnoreIa5Substrings: "1.3.6.1.4.1.1466.109.114.3" "caseIgnoreIA5SubstringsMatch" Substrings CaseIgnoreIa5 SubstringAssertion;
    CaseExactIa5Substrings: "1.3.6.1.4.1.4203.1.2.1" "caseExactIA5SubstringsMatch" Substrings CaseExactIa5 SubstringAssertion;
    Uuid: "1.3.6.1.1.16.2" "uuidMatch" Equality Uuid Uuid;
    UuidOrdering: "1.3.6.1.1.16.3" "uuidOrderingMatch" Ordering Uuid Uuid;
}

impl MatchingRule {
    /// The rule of this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<MatchingRule> {
        Self::ALL.iter().find(|rule| rule.name().eq_ignore_ascii_case(name)).copied()
    }

    /// The rule of this numeric OID.
    #[must_use]
    pub fn from_oid(oid: &str) -> Option<MatchingRule> {
        Self::ALL.iter().find(|rule| rule.oid() == oid).copied()
    }

    /// The equality rule that values of a syntax usually have; `None` if they are not text, names,
    /// numbers or the like.
    #[must_use]
    pub const fn usual_equality(syntax: Syntax) -> Option<MatchingRule> {
        Some(match syntax {
            Syntax::DirectoryString | Syntax::PrintableString | Syntax::CountryString => {
                MatchingRule::CaseIgnore
            }
            Syntax::Ia5String => MatchingRule::CaseIgnoreIa5,
            Syntax::Boolean => MatchingRule::Boolean,
            Syntax::Dn => MatchingRule::DistinguishedName,
            Syntax::GeneralizedTime => MatchingRule::GeneralizedTime,
            Syntax::Integer => MatchingRule::Integer,
            Syntax::NameAndOptionalUid => MatchingRule::UniqueMember,
            Syntax::NumericString => MatchingRule::NumericString,
            Syntax::Oid => MatchingRule::ObjectIdentifier,
            Syntax::PostalAddress => MatchingRule::CaseIgnoreList,
            Syntax::TelephoneNumber => MatchingRule::TelephoneNumber,
            Syntax::BitString => MatchingRule::BitString,
            Syntax::Uuid => MatchingRule::Uuid,
            _ => return None,
        })
    }

    /// The ordering rule that goes with an equality rule.
    #[must_use]
    pub const fn usual_ordering(equality: MatchingRule) -> Option<MatchingRule> {
        Some(match equality {
            MatchingRule::CaseIgnore => MatchingRule::CaseIgnoreOrdering,
            MatchingRule::CaseExact => MatchingRule::CaseExactOrdering,
            MatchingRule::GeneralizedTime => MatchingRule::GeneralizedTimeOrdering,
            MatchingRule::Integer => MatchingRule::IntegerOrdering,
            MatchingRule::NumericString => MatchingRule::NumericStringOrdering,
            MatchingRule::OctetString => MatchingRule::OctetStringOrdering,
            MatchingRule::Uuid => MatchingRule::UuidOrdering,
            _ => return None,
        })
    }

    /// The substring rule that goes with an equality rule.
    #[must_use]
    pub const fn usual_substrings(equality: MatchingRule) -> Option<MatchingRule> {
        Some(match equality {
            MatchingRule::CaseIgnore => MatchingRule::CaseIgnoreSubstrings,
            MatchingRule::CaseExact => MatchingRule::CaseExactSubstrings,
            MatchingRule::CaseIgnoreIa5 => MatchingRule::CaseIgnoreIa5Substrings,
            MatchingRule::CaseExactIa5 => MatchingRule::CaseExactIa5Substrings,
            MatchingRule::CaseIgnoreList => MatchingRule::CaseIgnoreListSubstrings,
            MatchingRule::NumericString => MatchingRule::NumericStringSubstrings,
            MatchingRule::OctetString => MatchingRule::OctetStringSubstrings,
            MatchingRule::TelephoneNumber => MatchingRule::TelephoneNumberSubstrings,
            _ => return None,
        })
    }

    /// Its name, such as `caseIgnoreMatch`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Its numeric OID.
    #[must_use]
    pub const fn oid(self) -> &'static str {
        self.facts().oid
    }

    /// The kind of its decision.
    #[must_use]
    pub const fn kind(self) -> RuleKind {
        self.facts().kind
    }

    /// The syntax of its assertions.
    #[must_use]
    pub const fn syntax(self) -> Syntax {
        self.facts().syntax
    }

    /// How it looks at values.
    pub(super) const fn form(self) -> Form {
        self.facts().form
    }

    /// Whether both rules give every value the same normal form, as an attribute's equality and
    /// ordering rules mostly do.
    #[must_use]
    pub fn has_form_of(self, other: MatchingRule) -> bool {
        self.form() == other.form()
    }

    /// Whether its values are text whose words can be told apart, so that they can be compared by
    /// their sound.
    #[must_use]
    pub fn has_words(self) -> bool {
        use Form::*;
        matches!(self.form(), CaseExact | CaseExactIa5 | CaseIgnore | CaseIgnoreIa5)
    }

    /// Its description for the subschema (RFC 4512 § 4.1.3).
    #[must_use]
    pub fn description(self) -> String {
        format!("( {} NAME '{}' SYNTAX {} )", self.oid(), self.name(), self.syntax().oid())
    }
}

#[cfg(test)]
mod tests;
