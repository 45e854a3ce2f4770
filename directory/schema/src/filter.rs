//! A search filter, understood once and then put to many entries.
//!
//! Names are looked up, rules chosen and assertion values normalised here. A part that cannot be
//! understood becomes *undefined*, as RFC 4511 § 4.5.1.7 demands; it is never an error.

use crate::attribute::AttributeType;
use crate::describe::Description;
use crate::matching::fits;
use crate::operational::Computed;
use crate::schema::Schema;
use keyway_codec::Filter;
use keyway_codec::syntax::{MatchingRule, Part, RuleKind, sounds, substring_assertion};

/// A filter that has been understood.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// All of them; with none, true.
    And(Vec<Matcher>),
    /// One of them; with none, false.
    Or(Vec<Matcher>),
    /// Not that.
    Not(Box<Matcher>),
    /// One test.
    Item(FilterItem),
    /// A test that has no answer.
    Undefined,
}

/// One test of an entry's attributes.
#[derive(Clone, Debug)]
pub struct FilterItem {
    /// Which attributes it looks at.
    pub scope: ItemScope,
    /// Options that the attributes must have.
    pub options: Vec<String>,
    /// The test of them.
    pub test: FilterTest,
    /// Whether it looks at the attributes of the DN as well.
    pub dn_attributes: bool,
}

/// Which attributes a test looks at.
#[derive(Clone, Debug)]
pub enum ItemScope {
    /// Those of a type.
    Type {
        /// Its canonical name.
        name: String,
        /// Canonical names of it and its subtypes, that of the type first.
        family: Vec<String>,
        /// Those of the family that are not stored.
        computed: Vec<Computed>,
        /// The rule by which the type's values are indexed.
        equality: Option<MatchingRule>,
        /// The rule by which the parts of the type's values are indexed.
        substrings: Option<MatchingRule>,
        /// The rule by which the order of the type's values is indexed.
        ordering: Option<MatchingRule>,
    },
    /// All whose values this rule takes.
    All(MatchingRule),
}

/// The test of an attribute.
#[derive(Clone, Debug)]
pub enum FilterTest {
    /// That it is there.
    Present,
    /// That a value is equal.
    Equal {
        /// By this rule.
        rule: MatchingRule,
        /// To this, as it was given.
        given: Vec<u8>,
        /// And normalised.
        normal: Vec<u8>,
    },
    /// That a value has words that sound like these, in this order.
    Approximate {
        /// The rule by which values are text.
        rule: MatchingRule,
        /// The sounds of the words, one at least.
        sounds: Vec<String>,
    },
    /// That a value has these normalised parts in this order.
    Substrings {
        /// By this rule.
        rule: MatchingRule,
        /// The part that it begins with.
        initial: Option<Vec<u8>>,
        /// The parts that come between.
        any: Vec<Vec<u8>>,
        /// The part that it ends with.
        last: Option<Vec<u8>>,
    },
    /// That a value is this or greater.
    AtLeast {
        /// By this rule.
        rule: MatchingRule,
        /// Than this, normalised.
        normal: Vec<u8>,
    },
    /// That a value comes before another; what an ordering rule means by itself (RFC 4517 § 4.2).
    Before {
        /// By this rule.
        rule: MatchingRule,
        /// Than this, normalised.
        normal: Vec<u8>,
    },
    /// That a number has all of these bits, or one of them (Active Directory's rules).
    Bits {
        /// By this rule.
        rule: MatchingRule,
        /// These.
        bits: i64,
    },
    /// That a value names an entry, or one whose value does, and so on (Active Directory's rule).
    InChain {
        /// The entry's DN, as it was given.
        given: Vec<u8>,
        /// And normalised.
        normal: Vec<u8>,
    },
    /// That a value is this or less.
    AtMost {
        /// By this rule.
        rule: MatchingRule,
        /// Than this, normalised.
        normal: Vec<u8>,
    },
}

impl Matcher {
    /// Understands a filter.
    pub fn new(schema: &Schema, filter: &Filter<'_>) -> Matcher {
        let all =
            |terms: &[Filter<'_>]| terms.iter().map(|term| Matcher::new(schema, term)).collect();
        match filter {
            Filter::And(terms) => Matcher::And(all(terms)),
            Filter::Or(terms) => Matcher::Or(all(terms)),
            Filter::Not(term) => Matcher::Not(Box::new(Matcher::new(schema, term))),
            other => item(schema, other).map_or(Matcher::Undefined, Matcher::Item),
        }
    }
}

impl Matcher {
    /// Whether a part of it could not be understood.
    pub fn has_undefined(&self) -> bool {
        self.has(&|part| matches!(part, Matcher::Undefined))
    }

    /// Whether a part of it follows names from one entry to the next.
    pub fn follows_names(&self) -> bool {
        let follows = |item: &FilterItem| matches!(item.test, FilterTest::InChain { .. });
        self.has(&|part| matches!(part, Matcher::Item(item) if follows(item)))
    }

    fn has(&self, is_it: &dyn Fn(&Matcher) -> bool) -> bool {
        match self {
            Matcher::And(terms) | Matcher::Or(terms) => terms.iter().any(|term| term.has(is_it)),
            Matcher::Not(term) => term.has(is_it),
            Matcher::Item(_) | Matcher::Undefined => is_it(self),
        }
    }
}

/// A test of one attribute, or `None` if it is undefined.
fn item(schema: &Schema, filter: &Filter<'_>) -> Option<FilterItem> {
    let (description, test) = match filter {
        Filter::Equality { attribute, value } => {
            let description = schema.describe(attribute)?;
            let test = equal(schema, description.attribute.equality()?, value)?;
            (description, test)
        }
        Filter::Approx { attribute, value } => {
            let description = schema.describe(attribute)?;
            let test = approximate(schema, description.attribute.equality()?, value)?;
            (description, test)
        }
        Filter::GreaterOrEqual { attribute, value } => {
            let description = schema.describe(attribute)?;
            let rule = description.attribute.ordering()?;
            let test = FilterTest::AtLeast { rule, normal: schema.normalize(rule, value)? };
            (description, test)
        }
        Filter::LessOrEqual { attribute, value } => {
            let description = schema.describe(attribute)?;
            let rule = description.attribute.ordering()?;
            let test = FilterTest::AtMost { rule, normal: schema.normalize(rule, value)? };
            (description, test)
        }
        Filter::Present(attribute) => (schema.describe(attribute)?, FilterTest::Present),
        Filter::Substrings { attribute, initial, any, last } => {
            let description = schema.describe(attribute)?;
            let pieces = (initial.iter().map(|piece| (Part::Initial, piece.as_ref())))
                .chain(any.iter().map(|piece| (Part::Any, piece.as_ref())))
                .chain(last.iter().map(|piece| (Part::Final, piece.as_ref())));
            let test = substrings(description.attribute.substrings()?, pieces)?;
            (description, test)
        }
        Filter::Extensible { rule, attribute, value, dn_attributes } => {
            let (rule, attribute) = (rule.as_deref(), attribute.as_deref());
            return extensible(schema, rule, attribute, value, *dn_attributes);
        }
        Filter::And(_) | Filter::Or(_) | Filter::Not(_) => return None,
    };
    Some(FilterItem::of(schema, description, test))
}

fn equal(schema: &Schema, rule: MatchingRule, value: &[u8]) -> Option<FilterTest> {
    Some(FilterTest::Equal { rule, given: value.to_vec(), normal: schema.normalize(rule, value)? })
}

/// Text is compared by the sound of its words; a value that is no text, or has no words, is to be
/// equal.
fn approximate(schema: &Schema, rule: MatchingRule, value: &[u8]) -> Option<FilterTest> {
    match rule.has_words().then(|| sounds(value)) {
        Some(sounds) => match sounds? {
            none if none.is_empty() => equal(schema, rule, value),
            sounds => Some(FilterTest::Approximate { rule, sounds }),
        },
        None => equal(schema, rule, value),
    }
}

fn substrings<'p>(
    rule: MatchingRule,
    pieces: impl Iterator<Item = (Part, &'p [u8])>,
) -> Option<FilterTest> {
    let (mut initial, mut any, mut last) = (None, Vec::new(), None);
    for (part, piece) in pieces {
        let normal = rule.normalize_substring(piece, part)?;
        match part {
            Part::Initial => initial = Some(normal),
            Part::Final => last = Some(normal),
            Part::Any | Part::Whole => any.push(normal),
        }
    }
    Some(FilterTest::Substrings { rule, initial, any, last })
}

/// RFC 4511 § 4.5.1.7.7.
fn extensible(
    schema: &Schema,
    rule: Option<&str>,
    attribute: Option<&str>,
    value: &[u8],
    dn_attributes: bool,
) -> Option<FilterItem> {
    let description = match attribute {
        Some(attribute) => Some(schema.describe(attribute)?),
        None => None,
    };
    let rule = match rule {
        Some(rule) => MatchingRule::from_name(rule).or_else(|| MatchingRule::from_oid(rule))?,
        None => description.as_ref()?.attribute.equality()?,
    };
    let test = match rule.kind() {
        RuleKind::Equality => equal(schema, rule, value)?,
        RuleKind::Ordering => FilterTest::Before { rule, normal: schema.normalize(rule, value)? },
        RuleKind::Words => words(schema, rule, value)?,
        RuleKind::Chain => return in_chain(schema, description?, value, dn_attributes),
        RuleKind::Bits => {
            FilterTest::Bits { rule, bits: str::from_utf8(value).ok()?.parse().ok()? }
        }
        RuleKind::Substrings => {
            let pieces = substring_assertion(value)?;
            substrings(rule, pieces.iter().map(|(part, piece)| (*part, piece.as_slice())))?
        }
    };
    let item = match description {
        Some(description) if fits(rule, description.attribute) => {
            FilterItem::of(schema, description, test)
        }
        Some(_) => return None,
        None => {
            FilterItem { scope: ItemScope::All(rule), options: Vec::new(), test, dn_attributes }
        }
    };
    Some(FilterItem { dn_attributes, ..item })
}

/// It goes by an attribute that names entries, and by nothing else.
fn in_chain(
    schema: &Schema,
    description: Description<'_>,
    value: &[u8],
    dn_attributes: bool,
) -> Option<FilterItem> {
    let names = [MatchingRule::DistinguishedName, MatchingRule::UniqueMember];
    let rule = description.attribute.equality().filter(|rule| names.contains(rule));
    if rule.is_none() || !description.options.is_empty() || dn_attributes {
        return None;
    }
    let normal = schema.normalize(MatchingRule::DistinguishedName, value)?;
    Some(FilterItem::of(schema, description, FilterTest::InChain { given: value.to_vec(), normal }))
}

/// RFC 4517 §§ 4.2.24 and 4.2.34: a word is one word, a keyword may be several in a row.
fn words(schema: &Schema, rule: MatchingRule, value: &[u8]) -> Option<FilterTest> {
    let normal = schema.normalize(rule, value)?;
    let several = normal.windows(2).any(|pair| pair == b"  ");
    if normal.is_empty() || (several && rule == MatchingRule::Word) {
        return None;
    }
    Some(FilterTest::Substrings { rule, initial: None, any: vec![normal], last: None })
}

impl FilterItem {
    fn of(schema: &Schema, description: Description<'_>, test: FilterTest) -> FilterItem {
        let Description { attribute, options } = description;
        let family: Vec<String> = names(schema, attribute);
        let computed = family.iter().filter_map(|name| Computed::from_name(name)).collect();
        let scope = ItemScope::Type {
            name: attribute.name().to_owned(),
            family,
            computed,
            equality: attribute.equality(),
            substrings: attribute.substrings(),
            ordering: attribute.ordering(),
        };
        FilterItem { scope, options, test, dn_attributes: false }
    }

    /// Whether it looks at attributes of this canonical name.
    pub fn looks_at(&self, schema: &Schema, name: &str) -> bool {
        match &self.scope {
            ItemScope::Type { family, .. } => family.iter().any(|member| member == name),
            ItemScope::All(rule) => schema.attribute(name).is_some_and(|one| fits(*rule, one)),
        }
    }
}

fn names(schema: &Schema, attribute: &AttributeType) -> Vec<String> {
    schema.family(attribute).map(|member| member.name().to_owned()).collect()
}
