//! The settings that a text makes, each with where it comes from.

use crate::raw::DEFAULT;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// Settings by their keys: `section.name`.
pub type Settings = BTreeMap<String, Setting>;

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its value.
    pub value: Value,
    /// Where it is from.
    pub from: From,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// The default value.
    Default,
    /// The file, in this line.
    Line(usize),
    /// A flag of the command.
    Flag(String),
}

impl From {
    /// Whether a flag says so, which wins.
    pub fn is_flag(&self) -> bool {
        matches!(self, From::Flag(_))
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Default => f.write_str("default"),
            From::Line(line) => write!(f, "keyway.toml, line {line}"),
            From::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Sections and lists that replace the default ones as a whole.
const WHOLE: [&str; 2] = ["access", "indexes"];

/// The settings of a text, completed by the default ones.
///
/// # Errors
/// If it is no TOML.
pub fn settings(text: &str) -> Result<Settings, String> {
    let own: Table = text.parse().map_err(|why: toml::de::Error| why.message().to_owned())?;
    let lines = Lines::of(text);
    let mut defaults: Table = DEFAULT.parse().unwrap_or_default();
    WHOLE.iter().filter(|whole| own.contains_key(**whole)).for_each(|whole| {
        defaults.remove(*whole);
    });
    let setting = |value, from| Setting { value, from };
    let mut settings: Settings = flat(&defaults)
        .into_iter()
        .map(|(key, value)| (key, setting(value, From::Default)))
        .collect();
    for (key, value) in flat(&own) {
        let from = From::Line(lines.of_key(&key));
        settings.insert(key, setting(value, from));
    }
    Ok(settings)
}

/// All values of a text by their keys.
pub fn flat(table: &Table) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (key, value) in table {
        match value {
            Value::Table(section) => {
                let named = section.iter().map(|(name, value)| (format!("{key}.{name}"), value));
                all.extend(named.map(|(key, value)| (key, value.clone())));
            }
            value => drop(all.insert(key.clone(), value.clone())),
        }
    }
    all
}

/// Where the values of a text are.
struct Lines<'t> {
    text: &'t str,
    document: Option<toml_edit::Document<&'t str>>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Lines<'t> {
        Lines { text, document: toml_edit::Document::parse(text).ok() }
    }

    /// The line of a setting; the first, if it cannot be told.
    fn of_key(&self, key: &str) -> usize {
        let root = self.document.as_ref().map(|document| document.as_item());
        let item = root.and_then(|root| match key.split_once('.') {
            Some((section, name)) => root.get(section)?.get(name),
            None => root.get(key),
        });
        let first = item.and_then(|item| match item {
            toml_edit::Item::ArrayOfTables(tables) => tables.iter().next()?.span(),
            item => item.span(),
        });
        first.map_or(1, |span| crate::wrong::line_of(self.text, span.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_the_default() {
        let text = "listen = \"off\"\n\n[limits]\n# why\nidle_max_s = 7\n[[tls.additional]]\n\
            certificate = \"a\"\n[indexes]\nuid = [\"equality\"]\n";
        let settings = settings(text).unwrap();
        let from = |key: &str| settings.get(key).map(|setting| setting.from.clone());
        assert_eq!(from("listen"), Some(From::Line(1)));
        assert_eq!(from("limits.idle_max_s"), Some(From::Line(5)));
        assert_eq!(from("tls.additional"), Some(From::Line(6)));
        assert_eq!(from("limits.handshake_max_s"), Some(From::Default));
        assert_eq!(from("indexes.uid"), Some(From::Line(9)));
        assert_eq!(from("indexes.cn"), None);
        assert!(matches!(from("access"), Some(From::Default)));
        assert_eq!(settings["limits.idle_max_s"].value, Value::Integer(7));
    }
}
