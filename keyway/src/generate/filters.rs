//! Filters that match a wanted number of the entries.

use super::arguments::Make;
use keyway_data::Plan;
use keyway_data::files::write_filters;
use keyway_data::filters::{Kind, Wanted, filters};
use keyway_host::failure::Failure;
use keyway_host::progress::Progress;
use keyway_host::shutdown::Stop;
use std::path::PathBuf;
use std::sync::Arc;

/// The filters that are made where no flag says which.
const USUAL: [(&str, Kind); 4] = [
    ("uid", Kind::Equality),
    ("cn", Kind::Equality),
    ("cn", Kind::Initial),
    ("sn", Kind::Equality),
];

/// Writes the filters, if they are wanted, a line each. Says how many there are.
///
/// # Errors
/// If there is none, too much to remember, or the file cannot be written or is one of the inputs.
pub fn write(
    arguments: &Make,
    plan: &Arc<Plan>,
    inputs: &[PathBuf],
    range: (u64, u64),
    stop: &Stop,
) -> Result<Option<u64>, Failure> {
    let Some(path) = &arguments.filters else { return Ok(None) };
    let mut attributes: Vec<(String, Kind)> =
        arguments.filter.iter().map(|(attribute, kind)| (attribute.clone(), kind.0)).collect();
    if attributes.is_empty() {
        attributes = USUAL.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    }
    let known = plan.attributes();
    let is_known = |name: &str| known.iter().any(|it| it.eq_ignore_ascii_case(name));
    if let Some((name, _)) =
        attributes.iter().find(|(name, _)| !arguments.filter.is_empty() && !is_known(name))
    {
        return Err(Failure::usage(format!("--filter {name}: no entry has this attribute")));
    }
    let (least, most) = arguments.matches;
    let bar = Progress::entries("finding filters", range.1);
    let wanted = Wanted { attributes, least, most };
    let found = filters(plan, range, &wanted, &mut |seen| {
        bar.at(seen, seen);
        !stop.is_asked()
    });
    let found = found.map_err(Failure::new)?;
    drop(bar);
    if stop.is_asked() {
        return Err(Stop::failure("stopped while filters were found; nothing was written"));
    }
    if found.is_empty() {
        return Err(Failure::new(format!(
            "no filter matches {least} to {most} of the entries; ask for other numbers \
             (--matches) or other attributes (--filter)"
        )));
    }
    write_filters(path, &found, inputs)?;
    Ok(Some(found.len() as u64))
}
