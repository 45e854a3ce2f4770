//! Changes of settings by a client's modify.

use crate::catalogue::Kind;
use crate::edit;
use crate::ldap::{Meaning, meaning, shown_values};
use crate::settings::{Settings, settings};
use keyway_codec::message::ChangeOperation;
use keyway_server::{Modification, ModifiedAttribute};
use toml::Value;

/// The text with these changes.
///
/// # Errors
/// Why one cannot be made, in words.
pub fn apply(text: &str, modification: &Modification) -> Result<String, String> {
    let mut text = text.to_owned();
    for change in &modification.changes {
        text = apply_one(&text, &modification.dn, change)
            .map_err(|why| format!("{}: {why}", change.attribute))?;
    }
    Ok(text)
}

fn apply_one(text: &str, dn: &str, change: &ModifiedAttribute) -> Result<String, String> {
    let given = change.values.iter().map(|value| String::from_utf8(value.clone()));
    let given: Vec<String> = given.collect::<Result<_, _>>().map_err(|_| "it is no text")?;
    let now = settings(text)?;
    match meaning(dn, &change.attribute) {
        None => Err("it is no setting here".into()),
        Some(Meaning::Setting(key, kind)) => {
            let before = now.get(&key).map(|it| shown_values(&it.value)).unwrap_or_default();
            let values = changed(before, change.operation, given)?;
            let value = value_of(kind, values)?.or_else(|| default_of(&key));
            edit::set(text, &key, value.as_ref())
        }
        Some(Meaning::Indexes) => indexes(text, &now, change.operation, given),
    }
}

/// The default value of a setting.
fn default_of(key: &str) -> Option<Value> {
    settings("").ok()?.remove(key).map(|setting| setting.value)
}

/// The values there are after a change (RFC 4511 § 4.6).
fn changed(
    mut values: Vec<String>,
    operation: ChangeOperation,
    given: Vec<String>,
) -> Result<Vec<String>, String> {
    match operation {
        ChangeOperation::Replace => return Ok(given),
        ChangeOperation::Increment => return Err("a setting cannot be incremented".into()),
        ChangeOperation::Delete if given.is_empty() => return Ok(Vec::new()),
        ChangeOperation::Add | ChangeOperation::Delete => {}
    }
    for one in given {
        let at = values.iter().position(|value| *value == one);
        match (operation, at) {
            (ChangeOperation::Add, Some(_)) => return Err(format!("{one} is there already")),
            (ChangeOperation::Add, None) => values.push(one),
            (_, Some(at)) => drop(values.remove(at)),
            (_, None) => return Err(format!("{one} is not there")),
        }
    }
    Ok(values)
}

/// The value of a setting; `None` if it is to be the default.
fn value_of(kind: Kind, values: Vec<String>) -> Result<Option<Value>, String> {
    match (kind, &values[..]) {
        (Kind::Texts, _) => Ok(Some(Value::Array(values.into_iter().map(Value::String).collect()))),
        (Kind::Tables, _) => crate::value::read(kind, &values).map(Some),
        (_, []) => Ok(None),
        (Kind::Truth, [one]) => crate::value::read(kind, &[one.to_ascii_lowercase()]).map(Some),
        (Kind::Number, [_]) => crate::value::read(kind, &values).map(Some),
        (Kind::Text, [one]) => Ok(Some(Value::String(one.clone()))),
        (_, _) => Err("it has one value; replace it".into()),
    }
}

/// The text with other indexes: each value is an attribute and the kinds of its index.
fn indexes(
    text: &str,
    now: &Settings,
    operation: ChangeOperation,
    given: Vec<String>,
) -> Result<String, String> {
    let name = |key: &str| key.strip_prefix("indexes.").map(str::to_owned);
    let before: Vec<String> = now
        .iter()
        .filter_map(|(key, setting)| {
            Some(format!("{} {}", name(key)?, shown_values(&setting.value).join(" ")))
        })
        .collect();
    let after = changed(before.clone(), operation, given)?;
    let key = |index: &str| format!("indexes.{}", index.split(' ').next().unwrap_or_default());
    let mut text = text.to_owned();
    for gone in before.iter().filter(|index| !after.iter().any(|other| key(other) == key(index))) {
        text = edit::set(&text, &key(gone), None)?;
    }
    for index in after.iter().filter(|index| !before.contains(index)) {
        let kinds = index.split_whitespace().skip(1).map(Value::from).collect();
        text = edit::set(&text, &key(index), Some(&Value::Array(kinds)))?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(
        text: &str,
        dn: &str,
        operation: ChangeOperation,
        attribute: &str,
        values: &[&str],
    ) -> Result<String, String> {
        let values = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        let change = ModifiedAttribute { operation, attribute: attribute.into(), values };
        apply(text, &Modification { dn: dn.into(), changes: vec![change] })
    }

    #[test]
    fn values_are_added_deleted_and_replaced() {
        use ChangeOperation::{Add, Delete, Increment, Replace};
        let tls = |text: &str, operation, attribute: &str, values: &[&str]| {
            change(text, "cn=tls,cn=config", operation, attribute, values)
        };
        let text = tls("", Add, "keywayNames", &["a", "b"]).unwrap();
        assert_eq!(text, "[tls]\nnames = [\"a\", \"b\"]\n");
        assert!(tls(&text, Add, "keywayNames", &["a"]).unwrap_err().contains("there already"));
        assert_eq!(tls(&text, Delete, "keywayNames", &["a"]).unwrap(), "[tls]\nnames = [\"b\"]\n");
        assert_eq!(tls(&text, Delete, "keywayNames", &[]).unwrap(), "[tls]\nnames = []\n");
        assert!(tls(&text, Delete, "keywayNames", &["c"]).unwrap_err().contains("not there"));
        let limits = |operation, values: &[&str]| {
            change("", "cn=limits,cn=config", operation, "keywayIdleMaxS", values)
        };
        assert_eq!(limits(Replace, &["7"]).unwrap(), "[limits]\nidle_max_s = 7\n");
        assert_eq!(limits(Delete, &[]).unwrap(), "[limits]\nidle_max_s = 3600\n");
        assert!(limits(Add, &["7"]).is_err() && limits(Increment, &["1"]).is_err());
        assert!(limits(Replace, &["7\nlisten = 1"]).is_err());
        let truth = change("", "cn=log,cn=config", Replace, "keywayAudit", &["FALSE"]).unwrap();
        assert_eq!(truth, "[log]\naudit = false\n");
        let top = change("", "cn=config", Replace, "keywayListen", &["off"]).unwrap();
        assert_eq!(top, "listen = \"off\"\n");
    }

    #[test]
    fn an_index_is_a_value() {
        use ChangeOperation::{Add, Delete};
        let text = "[indexes]\nuid = [\"equality\"]\n# mine\nmail = [\"equality\"]\n";
        let dn = "cn=indexes,cn=config";
        let new = change(text, dn, Add, "keywayIndex", &["cn equality presence"]).unwrap();
        assert!(new.contains("cn = [\"equality\", \"presence\"]") && new.contains("# mine"));
        let new = change(text, dn, Delete, "keywayIndex", &["uid equality"]).unwrap();
        assert_eq!(new, "[indexes]\n# mine\nmail = [\"equality\"]\n");
    }
}
