//! Search filters that match a wanted number of the entries, as MakeLDIF writes them.

use crate::error::MakeError;
use crate::limits::FILTER_BYTES_MAX;
use crate::maker::Maker;
use crate::plan::Plan;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Shortest text of a substring, in characters.
const SUBSTRING_MIN: usize = 3;
/// The cost of a counted text beside its own bytes, roughly.
const NODE_BYTES: usize = 64;

/// The kinds of filters on an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `(cn=value)`
    Equality,
    /// `(cn=begin*)`
    Initial,
    /// `(cn=*end)`
    Final,
}

/// The filters to make.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Attributes, and what is asked about each.
    pub attributes: Vec<(String, Kind)>,
    /// Fewest entries that a filter may match.
    pub least: u64,
    /// Most.
    pub most: u64,
}

/// Why there are no filters.
#[derive(Debug)]
pub enum FilterError {
    /// An entry cannot be made.
    Make(MakeError),
    /// The values take more memory than may be used.
    TooMuch,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Make(why) => why.fmt(f),
            FilterError::TooMuch => write!(
                f,
                "the values that filters are made of take more than {FILTER_BYTES_MAX} bytes; name \
                 fewer attributes, or fewer entries with --count"
            ),
        }
    }
}

impl std::error::Error for FilterError {}

/// Makes all filters that match so many of the entries from one to another, and says of each how
/// many it matches. `look` is called with the number of entries seen, and says whether to go on.
///
/// # Errors
/// If an entry cannot be made, or there is too much to remember.
pub fn filters(
    plan: &Arc<Plan>,
    (from, count): (u64, u64),
    wanted: &Wanted,
    look: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<(String, u64)>, FilterError> {
    let mut values: Vec<Vec<(Vec<u8>, u64)>> = vec![Vec::new(); wanted.attributes.len()];
    let mut maker = Maker::new(plan.clone(), from).map_err(FilterError::Make)?;
    let mut bytes = 0usize;
    for seen in 0..count {
        let Some(view) = maker.next_entry().map_err(FilterError::Make)? else { break };
        for ((attribute, _), values) in wanted.attributes.iter().zip(&mut values) {
            for value in view.values(attribute) {
                bytes += value.len() + size_of::<(Vec<u8>, u64)>();
                // Directories ignore case in most of what is searched for.
                values.push((value.to_ascii_lowercase(), view.index()));
            }
        }
        if bytes > FILTER_BYTES_MAX {
            return Err(FilterError::TooMuch);
        }
        if !look(seen + 1) {
            break;
        }
    }
    let mut found = Vec::new();
    for ((attribute, kind), values) in wanted.attributes.iter().zip(values) {
        let of_it = of_attribute(attribute, *kind, values, wanted);
        found.extend(of_it.ok_or(FilterError::TooMuch)?);
    }
    Ok(found)
}

/// The filters of an attribute; `None` if there is too much to remember.
fn of_attribute(
    attribute: &str,
    kind: Kind,
    mut values: Vec<(Vec<u8>, u64)>,
    wanted: &Wanted,
) -> Option<Vec<(String, u64)>> {
    values.sort_unstable();
    values.dedup();
    let mut matched: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
    let mut bytes = 0usize;
    let mut count = |part: &[u8], entry: u64| {
        if bytes > FILTER_BYTES_MAX {
            return;
        }
        let (count, last) = matched.entry(part.to_vec()).or_insert_with(|| {
            bytes += part.len() + NODE_BYTES;
            (0, u64::MAX)
        });
        // An entry counts once, however many of its values begin so.
        if *last != entry {
            (*count, *last) = (*count + 1, entry);
        }
    };
    match kind {
        Kind::Equality => values.iter().for_each(|(value, entry)| count(value, *entry)),
        Kind::Initial | Kind::Final => {
            values.sort_unstable_by_key(|(_, entry)| *entry);
            for (value, entry) in &values {
                let Ok(text) = std::str::from_utf8(value) else { continue };
                let cuts = text.char_indices().map(|(at, _)| at);
                match kind {
                    Kind::Final => cuts
                        .skip(1)
                        .filter_map(|at| text.get(at..))
                        .filter(|end| end.chars().count() >= SUBSTRING_MIN && ends_well(end))
                        .for_each(|end| count(end.as_bytes(), *entry)),
                    _ => cuts
                        .skip(SUBSTRING_MIN)
                        .filter_map(|at| text.get(..at))
                        .filter(|start| ends_well(start))
                        .for_each(|start| count(start.as_bytes(), *entry)),
                }
            }
        }
    }
    if bytes > FILTER_BYTES_MAX {
        return None;
    }
    let fits = |count: &u64| (wanted.least..=wanted.most).contains(count);
    let filter = |value: &[u8]| {
        let value = escaped(value);
        match kind {
            Kind::Equality => format!("({attribute}={value})"),
            Kind::Initial => format!("({attribute}={value}*)"),
            Kind::Final => format!("({attribute}=*{value})"),
        }
    };
    let matched = matched.iter().filter(|(_, (count, _))| fits(count));
    Some(matched.map(|(value, (count, _))| (filter(value), *count)).collect())
}

/// Blanks at the ends of substrings mean other things to other servers.
fn ends_well(text: &str) -> bool {
    !text.starts_with(' ') && !text.ends_with(' ')
}

/// RFC 4515 § 3.
fn escaped(value: &[u8]) -> String {
    let is_text = std::str::from_utf8(value).is_ok();
    let mut text = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            b'*' | b'(' | b')' | b'\\' | 0 => text.extend(format!("\\{byte:02x}").into_bytes()),
            byte if !is_text && !byte.is_ascii() => {
                text.extend(format!("\\{byte:02x}").into_bytes());
            }
            byte => text.push(*byte),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
