//! Lists of values that are there without a file.

/// The names of the lists.
pub(crate) const NAMES: [&str; 7] =
    ["first.names", "last.names", "first.utf8", "last.utf8", "cities", "states", "streets"];

/// The list of this name.
pub(crate) fn built_in(name: &str) -> Option<&'static str> {
    Some(match name {
        "first.names" => include_str!("first.names"),
        "last.names" => include_str!("last.names"),
        "first.utf8" => include_str!("first.utf8"),
        "last.utf8" => include_str!("last.utf8"),
        "cities" => include_str!("cities"),
        "states" => include_str!("states"),
        "streets" => include_str!("streets"),
        _ => return None,
    })
}
