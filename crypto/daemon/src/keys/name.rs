//! The names that keys may have.

/// Whether a key may once have been made under this name, which may be allowed no more.
pub(super) fn is_lookable(name: &str) -> bool {
    // Those that began with a dash or a dot.
    let rest = name.trim_start_matches(['-', '.']);
    keyway_engine::is_key_name(name) || rest.is_empty() || keyway_engine::is_key_name(rest)
}
