//! The catalogue of settings: the kind of each, its unit, and when a change of it takes effect. Their
//! names and kinds are those of the default file.

use crate::raw::DEFAULT;
use crate::settings::flat;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use toml::Value;

/// The kind of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Truth,
    /// A list of texts.
    Texts,
    /// A list of tables: `[[access]]` and the like.
    Tables,
}

/// Settings that are lists of tables, which the default file may not have.
const TABLES: [&str; 4] = ["access", "integrity.allocate", "integrity.unique", "tls.additional"];
/// The section whose settings are attributes.
const INDEXES: &str = "indexes.";
/// Settings that take effect at the next start only.
const AT_NEXT_START: [&str; 20] = [
    "cluster.etcd",
    "cluster.etcd_ca",
    "cluster.etcd_certificate",
    "cluster.etcd_key",
    "cluster.lease_s",
    "cluster.url",
    "cryptod.socket",
    "feed.enabled",
    "limits.store_bytes_max",
    "listen",
    "listen_tls",
    "listen_unix",
    "naming_contexts",
    "process.user",
    "tasks.exports",
    "tasks.key_file",
    "tasks.mode",
    "tasks.passphrase_file",
    "tasks.repository",
    "unix.mode",
];

/// All settings by their keys, but the indexes.
pub fn kinds() -> &'static BTreeMap<String, Kind> {
    static KINDS: OnceLock<BTreeMap<String, Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let default = DEFAULT.parse().map(|table| flat(&table)).unwrap_or_default();
        let named = default.iter().filter(|(key, _)| !key.starts_with(INDEXES));
        let mut kinds: BTreeMap<_, _> =
            named.map(|(key, value)| (key.clone(), kind_of(value))).collect();
        kinds.extend(TABLES.map(|key| (key.to_owned(), Kind::Tables)));
        kinds
    })
}

fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Integer(_) => Kind::Number,
        Value::Boolean(_) => Kind::Truth,
        Value::Array(_) => Kind::Texts,
        _ => Kind::Text,
    }
}

/// The kind of a setting; `None` if there is no such setting.
pub fn kind(key: &str) -> Option<Kind> {
    match key.strip_prefix(INDEXES) {
        Some("") => None,
        Some(_) => Some(Kind::Texts),
        None => kinds().get(key).copied(),
    }
}

/// The unit of a setting.
pub fn unit(key: &str) -> Option<&'static str> {
    match key {
        key if key.contains("bytes") => Some("bytes"),
        key if key.ends_with("_kib") => Some("KiB"),
        key if key.ends_with("_s") => Some("seconds"),
        _ => None,
    }
}

/// Whether a change of it has to wait for the next start, whatever it is.
pub fn waits(key: &str) -> bool {
    AT_NEXT_START.contains(&key)
}

/// How many settings are named in the error for an unknown name.
const LIKE_MAX: usize = 12;

/// Settings that may have been meant by an unknown name.
pub fn like(key: &str) -> Vec<&'static str> {
    let last = key.rsplit('.').next().unwrap_or(key).to_ascii_lowercase();
    let is_like = |known: &&str| {
        let name = known.rsplit('.').next().unwrap_or(known);
        let is_part = last.len() > 2 && (name.contains(&last) || last.contains(name));
        known.starts_with(&format!("{key}.")) || is_part
    };
    kinds().keys().map(String::as_str).filter(is_like).take(LIKE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_units_are_found() {
        assert_eq!(kind("listen"), Some(Kind::Text));
        assert_eq!(kind("limits.idle_max_s"), Some(Kind::Number));
        assert_eq!(kind("password.remember"), Some(Kind::Truth));
        assert_eq!(kind("tls.client_ca"), Some(Kind::Texts));
        assert_eq!(kind("indexes.carLicense"), Some(Kind::Texts));
        assert_eq!(kind("access"), Some(Kind::Tables));
        for none in ["indexes.", "indexes", "limits", "idle_max_s", ""] {
            assert_eq!(kind(none), None, "{none}");
        }
        assert_eq!(unit("limits.idle_max_s"), Some("seconds"));
        assert_eq!(unit("log.file_bytes_max"), Some("bytes"));
        assert_eq!(unit("log.files_kept"), None);
        assert_eq!(like("idle_max"), ["limits.idle_max_s"]);
        for key in AT_NEXT_START {
            assert!(kind(key).is_some(), "{key}");
        }
    }
}
