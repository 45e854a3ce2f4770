//! Settings as entries and attributes: each section an entry of `cn=config`, each setting an attribute
//! of it.

use crate::catalogue::{self, Kind};
use crate::settings::Settings;
use keyway_schema::SourceFile;
use keyway_server::VirtualEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use toml::Value;

/// The name of the entry that has the settings without a section.
const TOP: &str = "cn=config";
/// The class of all of them.
const CLASS: &str = "keywayConfig";
/// The indexes of an attribute as a value: `mail equality presence`.
const INDEX: &str = "keywayIndex";
const INDEXES: &str = "indexes";
/// Settings whose values wait for the next start.
const AT_NEXT_START: &str = "keywayAtNextStart";
/// Access rules have places of their own.
const NOT_SHOWN: &str = "access";

/// The kind of an entry's attribute.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// This setting, of this kind.
    Setting(String, Kind),
    /// The indexes, a value each.
    Indexes,
}

/// `limits.idle_max_s` is `keywayIdleMaxS`.
fn attribute_of(key: &str) -> String {
    let name = key.split_once('.').map_or(key, |(_, name)| name);
    let mut attribute = "keyway".to_owned();
    for word in name.split('_') {
        let mut letters = word.chars();
        attribute.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        attribute.push_str(letters.as_str());
    }
    attribute
}

/// The section that an entry is, by its DN as it was published; `""` for the top.
fn section_of(dn: &str) -> &str {
    let below = dn.strip_suffix(TOP).and_then(|rest| rest.strip_suffix(','));
    below.and_then(|rdn| rdn.strip_prefix("cn=")).unwrap_or_default()
}

/// The setting of an entry's attribute; `None` if it is not a setting.
pub fn meaning(dn: &str, attribute: &str) -> Option<Meaning> {
    let section = section_of(dn);
    if section == INDEXES {
        return attribute.eq_ignore_ascii_case(INDEX).then_some(Meaning::Indexes);
    }
    let is_here = |key: &str| match key.split_once('.') {
        Some((its, _)) => its == section,
        None => section.is_empty(),
    };
    let kinds = catalogue::kinds().iter().filter(|(key, _)| is_here(key) && *key != NOT_SHOWN);
    kinds
        .filter(|(key, _)| attribute_of(key).eq_ignore_ascii_case(attribute))
        .map(|(key, kind)| Meaning::Setting(key.clone(), *kind))
        .next()
}

/// All entries.
pub fn entries(settings: &Settings, waiting: &[String]) -> Vec<VirtualEntry> {
    let mut sections: BTreeMap<&str, Vec<(String, Vec<String>)>> = BTreeMap::new();
    for key in catalogue::kinds().keys() {
        // A section that has nothing set is there as well.
        sections.entry(key.split_once('.').map_or("", |(section, _)| section)).or_default();
    }
    for (key, setting) in settings.iter().filter(|(key, _)| *key != NOT_SHOWN) {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        let shown = sections.entry(section).or_default();
        match section {
            INDEXES => {
                let kinds = shown_values(&setting.value).join(" ");
                let value = format!("{name} {kinds}");
                match shown.iter_mut().find(|(attribute, _)| attribute == INDEX) {
                    Some((_, values)) => values.push(value),
                    None => shown.push((INDEX.to_owned(), vec![value])),
                }
            }
            _ => shown.push((attribute_of(key), shown_values(&setting.value))),
        }
    }
    sections.entry(INDEXES).or_default();
    if let Some(top) = sections.get_mut("") {
        top.push((AT_NEXT_START.to_owned(), waiting.to_vec()));
    }
    sections.into_iter().map(|(section, attributes)| entry(section, attributes)).collect()
}

fn entry(section: &str, mut attributes: Vec<(String, Vec<String>)>) -> VirtualEntry {
    let (name, dn) = match section {
        "" => ("config", TOP.to_owned()),
        section => (section, format!("cn={section},{TOP}")),
    };
    attributes.insert(0, ("cn".to_owned(), vec![name.to_owned()]));
    let attributes: Vec<_> =
        attributes.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    VirtualEntry::new(dn, CLASS, &attributes)
}

/// A setting's values, as LDAP has them. An empty text is none.
pub fn shown_values(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().map(shown).collect(),
        one => Some(shown(one)).filter(|text| !text.is_empty()).into_iter().collect(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(true) => "TRUE".to_owned(),
        Value::Boolean(false) => "FALSE".to_owned(),
        other => other.to_string(),
    }
}

/// The definitions of these attributes and their class.
pub fn definitions() -> SourceFile {
    let mut types: BTreeMap<String, Kind> = BTreeMap::new();
    for (key, kind) in catalogue::kinds().iter().filter(|(key, _)| *key != NOT_SHOWN) {
        types.insert(attribute_of(key), *kind);
    }
    types.insert(INDEX.to_owned(), Kind::Texts);
    types.insert(AT_NEXT_START.to_owned(), Kind::Texts);
    let mut text = String::new();
    for (name, kind) in &types {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "attributetype ( {} NAME '{name}' {} )\n", oid(name), syntax(*kind));
    }
    let names: BTreeSet<&str> = types.keys().map(String::as_str).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let _ = writeln!(
        text,
        "objectclass ( {} NAME '{CLASS}' DESC 'A section of keyway.toml' SUP top STRUCTURAL MUST cn \
         MAY ( {} ) )",
        oid(CLASS),
        names.join(" $ ")
    );
    SourceFile { name: TOP.to_owned(), bytes: text.into_bytes().into() }
}

fn syntax(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => {
            "EQUALITY caseExactMatch SUBSTR caseExactSubstringsMatch \
             SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE"
        }
        Kind::Texts | Kind::Tables => {
            "EQUALITY caseExactMatch SUBSTR caseExactSubstringsMatch \
             SYNTAX 1.3.6.1.4.1.1466.115.121.1.15"
        }
        Kind::Number => {
            "EQUALITY integerMatch ORDERING integerOrderingMatch \
             SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE"
        }
        Kind::Truth => "EQUALITY booleanMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.7 SINGLE-VALUE",
    }
}

/// An OID that follows from a name: 2.25 and a UUID of version 8 (RFC 9562 § 5.8), which is the name's
/// FNV-1a hash of 128 bits.
fn oid(name: &str) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in format!("keyway.toml {name}").bytes() {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    let version = hash & !(0xf << 76) | 8 << 76;
    let uuid = version & !(0x3 << 62) | 0x2 << 62;
    format!("2.25.{uuid}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::settings;
    use keyway_schema::{Changes, Composed, Sources};

    #[test]
    fn settings_of_one_attribute_are_of_one_kind() {
        let mut known: BTreeMap<String, Kind> = BTreeMap::new();
        for (key, kind) in catalogue::kinds().iter().filter(|(key, _)| *key != NOT_SHOWN) {
            let attribute = attribute_of(key);
            assert_eq!(*known.entry(attribute).or_insert(*kind), *kind, "{key}");
            let dn = match key.split_once('.') {
                Some((section, _)) => format!("cn={section},{TOP}"),
                None => TOP.to_owned(),
            };
            let meant = Meaning::Setting(key.clone(), *kind);
            assert_eq!(meaning(&dn, &attribute_of(key)), Some(meant));
        }
        assert_eq!(attribute_of("limits.idle_max_s"), "keywayIdleMaxS");
        assert_eq!(meaning("cn=indexes,cn=config", "keywayindex"), Some(Meaning::Indexes));
        assert_eq!(meaning("cn=limits,cn=config", "cn"), None);
    }

    #[test]
    fn the_definitions_make_a_schema_and_each_entry_is_of_it() {
        let sources = Sources { program: vec![definitions()], ..Sources::default() };
        let schema = Composed::new(&sources, &Changes::default()).unwrap().schema().unwrap();
        let class = schema.class(CLASS).unwrap();
        assert!(class.oid().starts_with("2.25."));
        let text = "[[tls.additional]]\ncertificate = \"a\"\nkey = \"b\"\n";
        let entries = entries(&settings(text).unwrap(), &["listen".to_owned()]);
        assert_eq!(entries[0].dn, TOP);
        for entry in &entries {
            for (name, values) in &entry.attributes {
                let attribute = schema.attribute(name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(attribute.name(), name);
                assert!(values.len() == 1 || !attribute.is_single_value(), "{name}");
                for value in values {
                    let shown = String::from_utf8_lossy(value);
                    assert_eq!(attribute.syntax().validate(value), Ok(()), "{name}: {shown}");
                }
            }
        }
        let tls = entries.iter().find(|entry| entry.dn == "cn=tls,cn=config").unwrap();
        let shown = format!("{:?}", String::from_utf8_lossy(&tls.attributes[2].1[0]));
        assert!(shown.contains("certificate = "), "{shown}");
    }
}
