//! Changing one setting of a text, which keeps its comments and its layout.

use crate::catalogue::{self, Kind};
use crate::raw::DEFAULT;
use toml::Value;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike};

/// The text with a setting of this value; `None` takes it out, so that the default holds.
///
/// # Errors
/// Why that cannot be, in words; whether the value makes sense is not asked.
pub fn set(text: &str, key: &str, value: Option<&Value>) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|why: toml_edit::TomlError| why.message().to_owned())?;
    let kind = catalogue::kind(key).ok_or_else(|| unknown(key))?;
    let root = document.as_table_mut();
    match key.split_once('.') {
        None => put(root, key, kind, value)?,
        Some((section, name)) => {
            if !root.contains_key(section) {
                root.insert(section, default_section(section));
            }
            let is_table = || format!("{section} is no section");
            let section = root.get_mut(section).and_then(Item::as_table_like_mut);
            put(section.ok_or_else(is_table)?, name, kind, value)?;
        }
    }
    Ok(document.to_string())
}

/// The error for a name that is not a setting's.
pub fn unknown(key: &str) -> String {
    match catalogue::like(key) {
        like if like.is_empty() => {
            format!("there is no setting {key}; keyway config get lists all")
        }
        like => format!("there is no setting {key}; there is {}", like.join(", ")),
    }
}

/// A section that is not in the text. That of the indexes replaces the default one as a whole, so it
/// begins with that.
fn default_section(name: &str) -> Item {
    let whole = (name == "indexes").then(|| DEFAULT.parse::<DocumentMut>().ok()).flatten();
    whole.and_then(|mut default| default.remove(name)).unwrap_or_else(toml_edit::table)
}

fn put(
    section: &mut dyn TableLike,
    name: &str,
    kind: Kind,
    value: Option<&Value>,
) -> Result<(), String> {
    let Some(value) = value else {
        section.remove(name);
        return Ok(());
    };
    match (kind, value) {
        (Kind::Tables, Value::Array(wanted)) => put_tables(section, name, wanted),
        (_, value) => {
            let new = scalar(value)?;
            match section.get_mut(name).and_then(Item::as_value_mut) {
                Some(old) => replace(old, new),
                None => drop(section.insert(name, Item::Value(new))),
            }
            Ok(())
        }
    }
}

/// A value, not where it is.
fn scalar(value: &Value) -> Result<toml_edit::Value, String> {
    value.to_string().parse().map_err(|why: toml_edit::TomlError| why.message().to_owned())
}

/// Puts a value in the place of another. The items of a list that stay are left as they are written.
fn replace(old: &mut toml_edit::Value, new: toml_edit::Value) {
    if let (Some(old), Some(new)) = (old.as_array_mut(), new.as_array()) {
        return replace_list(old, new);
    }
    let decor = old.decor().clone();
    *old = new;
    *old.decor_mut() = decor;
}

fn replace_list(old: &mut Array, new: &Array) {
    let text = |value: &toml_edit::Value| value.as_str().map(str::to_owned);
    let holds = |list: &Array, one: &toml_edit::Value| {
        list.iter().any(|other| text(other).is_some() && text(other) == text(one))
    };
    let first = old.get(0).map(|first| first.decor().clone());
    old.retain(|one| holds(new, one));
    // The value that is the first now begins where the first one began.
    if let (Some(one), Some(decor)) = (old.get_mut(0), first) {
        *one.decor_mut() = decor;
    }
    let kept = old.clone();
    for one in new.iter().filter(|one| !holds(&kept, one)) {
        let mut added = one.clone();
        if let Some(decor) = old.iter().last().map(|last| last.decor().clone()) {
            *added.decor_mut() = decor;
        }
        old.push_formatted(added);
    }
}

/// Puts a list of tables in the place of another. Those that stay are left as they are written.
fn put_tables(section: &mut dyn TableLike, name: &str, wanted: &[Value]) -> Result<(), String> {
    let mut wanted: Vec<&Value> = wanted.iter().collect();
    if wanted.is_empty() {
        section.remove(name);
        return Ok(());
    }
    if section.get(name).is_none_or(|item| !item.is_array_of_tables()) {
        section.insert(name, Item::ArrayOfTables(ArrayOfTables::new()));
    }
    let tables = section.get_mut(name).and_then(Item::as_array_of_tables_mut);
    let tables = tables.ok_or_else(|| format!("{name} is no list of tables"))?;
    let position = tables.get(0).and_then(Table::position);
    // Text that is written above the first one may be about all of them.
    let mut above_all = tables.get(0).map(above);
    let mut is_first = true;
    tables.retain(|table| {
        let written = value_of(table);
        let at = wanted.iter().position(|one| Some(*one) == written.as_ref());
        let stays = at.map(|at| wanted.remove(at)).is_some();
        if stays && is_first {
            above_all = None;
        }
        is_first = false;
        stays
    });
    for one in wanted {
        let mut table = table_of(one)?;
        table.set_position(tables.get(0).map_or(position, Table::position));
        tables.push(table);
    }
    if let (Some(one), Some(above_all)) = (tables.get_mut(0), above_all) {
        let own = above(one);
        one.decor_mut().set_prefix(above_all + own.trim_start_matches('\n'));
    }
    Ok(())
}

/// The comments and blank lines before a table.
fn above(table: &Table) -> String {
    let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
    prefix.unwrap_or_default().to_owned()
}

fn value_of(table: &Table) -> Option<Value> {
    let mut alone = DocumentMut::new();
    alone.insert("it", Item::Value(table.clone().into_inline_table().into()));
    alone.to_string().parse::<toml::Table>().ok()?.remove("it")
}

fn table_of(value: &Value) -> Result<Table, String> {
    let Value::Table(fields) = value else { return Err(format!("{value} is no table")) };
    let mut table = Table::new();
    for (name, value) in fields {
        table.insert(name, Item::Value(scalar(value)?));
    }
    table.decor_mut().set_prefix("\n");
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{flat, settings};
    use proptest::prelude::*;

    fn value(text: &str) -> Value {
        format!("it = {text}").parse::<toml::Table>().unwrap()["it"].clone()
    }

    /// Sets one and says which lines are others then: gone, and new.
    fn changed(text: &str, key: &str, to: &str) -> (Vec<String>, Vec<String>) {
        let new = set(text, key, Some(&value(to))).unwrap();
        let without = |these: &str, those: &str| {
            let those: Vec<_> = those.lines().collect();
            these.lines().filter(|line| !those.contains(line)).map(str::to_owned).collect()
        };
        (without(text, &new), without(&new, text))
    }

    #[test]
    fn comments_and_layout_stay() {
        let (gone, new) = changed(DEFAULT, "limits.drain_max_s", "20");
        assert_eq!(gone.len(), 1);
        assert_eq!(
            new,
            ["drain_max_s = 20                   # how long a stop waits for accepted requests"]
        );
        let (gone, new) = changed(DEFAULT, "listen", "\"0.0.0.0:389\"");
        assert_eq!(
            (gone.len(), &*new[0]),
            (1, "listen = \"0.0.0.0:389\"          # LDAP, with StartTLS")
        );
        let (gone, new) = changed(DEFAULT, "indexes.carLicense", "[\"equality\"]");
        assert_eq!((gone.len(), &*new[0]), (0, "carLicense = [\"equality\"]"));
        let (_, new) = changed(DEFAULT, "indexes.uid", "[\"equality\", \"substring\"]");
        assert_eq!(new, ["uid = [\"equality\", \"substring\"]"]);
        let (gone, new) = changed(
            DEFAULT,
            "integrity.unique",
            "[{ attributes = [\"uid\", \"mail\"], below = \"dc=a\" }]",
        );
        assert!(gone.is_empty());
        assert_eq!(
            new,
            ["[[integrity.unique]]", "attributes = [\"uid\", \"mail\"]", "below = \"dc=a\""]
        );
    }

    #[test]
    fn tables_that_stay_keep_their_comments() {
        let text = "[[tls.additional]]\n# mine\ncertificate = \"a\"\nkey = \"a\"\n\n\
            [[tls.additional]]\ncertificate = \"b\"\nkey = \"b\"\n";
        let wanted = "[{ key = \"c\", certificate = \"c\" }, { key = \"a\", certificate = \"a\" }]";
        let new = set(text, "tls.additional", Some(&value(wanted))).unwrap();
        assert!(new.starts_with("[[tls.additional]]\n# mine\ncertificate = \"a\""), "{new}");
        assert!(!new.contains("\"b\"") && new.matches("[[tls.additional]]").count() == 2, "{new}");
        assert_eq!(set(&new, "tls.additional", Some(&value("[]"))).unwrap().trim(), "");
    }

    #[test]
    fn what_is_written_above_a_list_stays_there() {
        let rule = "[{ rights = [\"read\"], who = \"users\" }]";
        let new = set(DEFAULT, "access", Some(&value(rule))).unwrap();
        let head = "# Access rules. A rule only ever allows;";
        assert!(new.contains(head) && new.matches("[[access]]").count() == 1, "{new}");
        assert!(new.find(head) < new.find("[[access]]"));
        assert!(new.find("[integrity]") < new.find(head));
    }

    #[test]
    fn an_index_more_does_not_cost_those_that_are_not_written_down() {
        let new = set("", "indexes.carLicense", Some(&value("[\"equality\"]"))).unwrap();
        let [before, after] = ["", &new].map(|text| settings(text).unwrap());
        assert_eq!(after.len(), before.len() + 1);
        let new = set("", "indexes.uid", None).unwrap();
        assert!(!settings(&new).unwrap().contains_key("indexes.uid"));
    }

    #[test]
    fn what_is_no_setting_is_said() {
        assert!(set("", "limits.idle_max", None).unwrap_err().contains("limits.idle_max_s"));
        assert!(set("", "nonsense", None).unwrap_err().contains("keyway config get"));
        assert!(
            set("tls = 1", "tls.key", Some(&value("\"a\""))).unwrap_err().contains("no section")
        );
    }

    fn any_value(kind: Kind) -> BoxedStrategy<Value> {
        match kind {
            Kind::Text => any::<String>().prop_map(Value::String).boxed(),
            Kind::Number => any::<i64>().prop_map(Value::Integer).boxed(),
            Kind::Truth => any::<bool>().prop_map(Value::Boolean).boxed(),
            Kind::Texts => prop::collection::btree_set(any::<String>(), 0..4)
                .prop_map(|texts| Value::Array(texts.into_iter().map(Value::String).collect()))
                .boxed(),
            Kind::Tables => prop::collection::vec(any::<String>(), 1..4)
                .prop_map(|texts| {
                    let table =
                        |text| toml::Table::from_iter([("a".to_owned(), Value::String(text))]);
                    Value::Array(texts.into_iter().map(|text| Value::Table(table(text))).collect())
                })
                .boxed(),
        }
    }

    fn any_change() -> impl Strategy<Value = (String, Value)> {
        let keys: Vec<_> =
            catalogue::kinds().iter().map(|(key, kind)| (key.clone(), *kind)).collect();
        prop::sample::select(keys).prop_flat_map(|(key, kind)| {
            any_value(kind).prop_map(move |value| (key.clone(), value))
        })
    }

    fn sorted(mut value: Value) -> Value {
        if let Value::Array(list) = &mut value {
            list.sort_by_key(ToString::to_string);
        }
        value
    }

    proptest! {
        /// One setting is what was asked for, and no other is touched, whatever came before.
        #[test]
        fn one_setting_changes(changes in prop::collection::vec(any_change(), 1..6), start in any::<bool>()) {
            let mut text = if start { DEFAULT.to_owned() } else { String::new() };
            for (key, value) in changes {
                let mut expected = flat(&text.parse().unwrap());
                expected.insert(key.clone(), value.clone());
                text = set(&text, &key, Some(&value)).unwrap();
                let now = flat(&text.parse().unwrap());
                prop_assert_eq!(expected.len(), now.len());
                for (key, value) in expected {
                    prop_assert_eq!(sorted(value), sorted(now[&key].clone()), "{}", key);
                }
            }
        }
    }
}
