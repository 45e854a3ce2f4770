//! Attributes whose values name entries.

use keyway_codec::syntax::{MatchingRule, append_part};
use keyway_schema::{Schema, base};

/// An attribute whose values name entries.
#[derive(Clone, Debug)]
pub(crate) struct ReferenceAttribute {
    /// The canonical name.
    pub name: String,
    /// Canonical names of the attribute and its subtypes.
    family: Vec<String>,
    pub rule: MatchingRule,
}

impl ReferenceAttribute {
    /// The attribute of this name.
    ///
    /// # Errors
    /// In words, if it is not known or has no equality rule.
    pub fn new(schema: &Schema, name: &str) -> Result<ReferenceAttribute, String> {
        let attribute =
            schema.attribute(name).ok_or_else(|| format!("attribute {name} is not known"))?;
        let rule =
            attribute.equality().ok_or_else(|| format!("attribute {name} has no equality rule"))?;
        let family = schema.family(attribute).map(|member| member.name().to_owned()).collect();
        Ok(ReferenceAttribute { name: attribute.name().to_owned(), family, rule })
    }

    /// The attribute of this name, whose values are DNs.
    pub fn to_dn(schema: &Schema, name: &str) -> Result<ReferenceAttribute, String> {
        let attribute = ReferenceAttribute::new(schema, name)?;
        match attribute.names_by_dn() {
            true => Ok(attribute),
            false => Err(format!("the values of attribute {name} are no DNs")),
        }
    }

    /// Whether its values are DNs; else they are what `uid` has.
    pub fn names_by_dn(&self) -> bool {
        matches!(self.rule, MatchingRule::DistinguishedName | MatchingRule::UniqueMember)
    }

    /// Whether an attribute that is stored under this description is meant.
    pub fn means(&self, stored: &str) -> bool {
        self.family.iter().any(|name| name == base(stored))
    }

    /// The normal form of a value that names an entry, given that of the entry's DN.
    pub fn normal(&self, dn: &[u8]) -> Vec<u8> {
        if self.rule != MatchingRule::UniqueMember {
            return dn.to_vec();
        }
        // Without the bit string that tells apart entries that bore the name one after another.
        let mut normal = Vec::with_capacity(dn.len() + 2);
        append_part(&mut normal, dn);
        normal
    }

    /// The normal form of one of its values.
    pub fn normalize(&self, schema: &Schema, value: &[u8]) -> Option<Vec<u8>> {
        schema.normalize(self.rule, value)
    }
}

/// The normal form of a DN, as the rules for names have it.
pub(crate) fn normal_dn(schema: &Schema, dn: &str) -> Option<Vec<u8>> {
    schema.normalize(MatchingRule::DistinguishedName, dn.as_bytes())
}
