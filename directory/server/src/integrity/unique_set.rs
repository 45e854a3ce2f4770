//! Values that two entries may not share, as the settings have them.

use keyway_codec::Filter;
use keyway_codec::syntax::MatchingRule;
use keyway_schema::{EntryName, Matcher, Schema};

/// Attributes of which no two entries of a subtree have an equal value.
pub(super) struct UniqueSet {
    /// Canonical names and the rules by which values are equal.
    pub attributes: Vec<(String, MatchingRule)>,
    pub below: Option<EntryName>,
    /// Only entries that match count.
    pub filter: Option<Matcher>,
}

/// Understands the filter of a set.
pub(super) fn filter(schema: &Schema, text: &str) -> Result<Matcher, String> {
    let filter =
        Filter::parse(text).map_err(|why| format!("[[integrity.unique]] filter {text}: {why}"))?;
    let matcher = Matcher::new(schema, &filter);
    match matcher.has_undefined() || matcher.follows_names() {
        false => Ok(matcher),
        true => Err(format!(
            "[[integrity.unique]] filter {text}: it names an attribute that is not known, cannot be \
             compared so, or is worked out from other entries"
        )),
    }
}

impl UniqueSet {
    pub fn new(
        schema: &Schema,
        names: &[String],
        below: Option<EntryName>,
        filter: Option<Matcher>,
    ) -> Result<UniqueSet, String> {
        let attribute = |name: &String| {
            let known = schema.attribute(name);
            let rule = known.and_then(|known| Some((known.name().to_owned(), known.equality()?)));
            rule.ok_or_else(|| {
                format!(
                    "[[integrity.unique]]: attribute {name} is not known, or cannot be compared"
                )
            })
        };
        Ok(UniqueSet {
            attributes: names.iter().map(attribute).collect::<Result<_, _>>()?,
            below,
            filter,
        })
    }

    /// The canonical names.
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|(name, _)| name.as_str())
    }
}
