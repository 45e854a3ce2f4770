//! The indexes that settings ask for, those of groups, integrity and access rules among them.

use super::{IndexKind, IndexSetting, Indexes};
use crate::access;
use crate::integrity::Integrity;
use crate::open_error::OpenError;
use crate::settings::Settings;
use keyway_schema::Schema;

/// The references and groups of settings, and the indexes that they ask for.
pub(crate) fn required_indexes(
    settings: &Settings,
    schema: &Schema,
) -> Result<(Integrity, Indexes), OpenError> {
    let integrity = Integrity::new(&settings.integrity, schema).map_err(OpenError::Settings)?;
    let mut indexed = integrity.indexed(schema, &settings.indexes);
    index_rules(&mut indexed);
    if let Some(one) = indexed.iter().find(|one| schema.attribute(&one.attribute).is_none()) {
        return Err(OpenError::UnknownAttribute(one.attribute.clone()));
    }
    let indexes = Indexes::new(&indexed, schema).map_err(OpenError::Settings)?;
    Ok((integrity, indexes))
}

/// Entries that hold access rules are found by an index, whatever the settings say.
fn index_rules(indexed: &mut Vec<IndexSetting>) {
    match indexed.iter_mut().find(|one| one.attribute.eq_ignore_ascii_case(access::RULE)) {
        Some(one) => drop(one.kinds.insert(IndexKind::Presence)),
        None => indexed.push(IndexSetting::new(access::RULE, &[IndexKind::Presence])),
    }
}
