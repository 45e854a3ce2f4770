//! Whether a configuration is what is left of another one: emptied, cut, or without its access rules. What
//! is missing has its default value, and so a file that lost its end lets others in. A person who takes
//! something out on purpose is not to notice any of this.

use crate::raw::DEFAULT;
use crate::settings::settings;
use toml::Table;
use toml_edit::{Document, Item};

/// Settings whose default value may let more people in, or let them do more, than one that was lost.
const GUARDED: [&str; 10] = [
    "access",
    "cryptod.",
    "listen",
    "listen_tls",
    "listen_unix",
    "password.",
    "process.",
    "proxy.",
    "tls.",
    "unix.",
];
/// The access rules.
const ACCESS: &str = "access";
/// Fields of an access rule that are no condition: a rule without one of the others would say more.
const NO_CONDITION: [&str; 2] = ["name", "rights"];
/// From how many lost sections on a text without its end is no edit.
const SECTIONS_MIN: usize = 2;

/// A value of a text and its name, as in `limits.idle_max_s` or `access[2].who`.
struct Leaf {
    at: usize,
    path: String,
    value: String,
}

/// Says why `found` looks like what is left of `applied`, if it does. Both are TOML.
pub fn of(applied: &str, found: &str) -> Option<String> {
    let (before, after) = (leaves(applied)?, leaves(found)?);
    let Some(last) = after.last() else {
        return (!before.is_empty()).then(|| "nothing is in it".to_owned());
    };
    if has_lost_rules(applied, found) {
        let text = "its [[access]] rules are gone, and the default ones let others in; who wants those \
                    writes them down";
        return Some(text.to_owned());
    }
    let at = before.iter().position(|leaf| leaf.path == last.path)?;
    let (kept, lost) = before.split_at(at + 1);
    let is_prefix = applied.starts_with(found.trim_end());
    let is_cut = is_prefix || !found.ends_with('\n');
    let is_elsewhere = |leaf: &Leaf| after.iter().any(|kept| kept.path == leaf.path);
    if !is_cut || lost.iter().any(is_elsewhere) {
        return None;
    }
    let line = found.trim_end().lines().count();
    let in_force = kept.last().map(|leaf| leaf.value.as_str());
    if is_prefix && in_force != Some(&last.value) {
        return Some(format!("it ends in the middle of line {line}, in {}", last.path));
    }
    if let Some(leaf) = lost.iter().find(|leaf| is_wider_without(leaf, applied, &after)) {
        return Some(format!("it ends with line {line}, and {} is lost", leaf.path));
    }
    let mut sections: Vec<&str> = lost.iter().map(|leaf| section(&leaf.path)).collect();
    sections.dedup();
    let is_half = is_prefix && sections.len() >= SECTIONS_MIN;
    is_half.then(|| format!("it ends with line {line}, and {} are lost", sections.join(", ")))
}

/// Whether there were rules, there are none, and those by default say something else.
fn has_lost_rules(applied: &str, found: &str) -> bool {
    let rules = |text: &str| text.parse::<Table>().ok().and_then(|mut it| it.remove(ACCESS));
    match (rules(applied), rules(found)) {
        (before @ Some(_), None) => before != rules(DEFAULT),
        _ => false,
    }
}

/// Whether more is allowed when a value is lost.
fn is_wider_without(leaf: &Leaf, applied: &str, after: &[Leaf]) -> bool {
    if let Some((rule, field)) = leaf.path.split_once("].") {
        // A whole rule that is lost allows nothing any more.
        let rule = format!("{rule}].");
        return section(&rule) == ACCESS
            && !NO_CONDITION.contains(&field)
            && after.iter().any(|kept| kept.path.starts_with(&rule));
    }
    let is_guarded = |guarded: &&str| match guarded.ends_with('.') {
        true => leaf.path.starts_with(*guarded),
        false => leaf.path == *guarded,
    };
    let value = |text: &str| settings(text).ok()?.remove(&leaf.path).map(|it| it.value);
    GUARDED.iter().any(is_guarded) && value(applied) != value("")
}

/// The section of a path, without the number of a table.
fn section(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// All values of a text, in its order; `None` if it is no TOML.
fn leaves(text: &str) -> Option<Vec<Leaf>> {
    let document = Document::parse(text).ok()?;
    let mut all = Vec::new();
    walk(document.as_item(), "", text, &mut all);
    all.sort_by_key(|leaf| leaf.at);
    Some(all)
}

fn walk(item: &Item, path: &str, text: &str, all: &mut Vec<Leaf>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match item {
        Item::None => {}
        Item::Value(_) => {
            let span = item.span().unwrap_or_default();
            let value = text.get(span.clone()).unwrap_or_default().to_owned();
            all.push(Leaf { at: span.start, path: path.to_owned(), value });
        }
        Item::Table(table) => {
            table.iter().for_each(|(name, item)| walk(item, &below(name), text, all));
        }
        Item::ArrayOfTables(tables) => {
            for (number, table) in tables.iter().enumerate() {
                for (name, item) in table {
                    walk(item, &format!("{path}[{number}].{name}"), text, all);
                }
            }
        }
    }
}

/// Settings that differ, for tests of what a cut text may be taken for.
#[cfg(test)]
fn guarded(text: &str) -> Vec<(String, toml::Value)> {
    let mut all: Vec<_> = settings(text).unwrap().into_iter().collect();
    all.retain(|(key, _)| key != ACCESS && GUARDED.iter().any(|it| key.starts_with(it)));
    all.into_iter().map(|(key, setting)| (key, setting.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::flat;
    use toml::Value;

    const OWN: &str = "listen = \"off\"\n\n[tls]\nclient_certificates = \"required\"\n\n[limits]\n\
        connections_max = 50\n\n[log]\naudit = true\n\n[password]\nmin_length = 12\n\n\
        [[access]]\nwho = \"administrator\"\nwhat = \"everything\"\nrights = [\"all\"]\n\n\
        [[access]]\nrights = [\"read\"]\nwho = \"users\"\nwhat = \"data\"\n\
        from = [\"192.0.2.0/24\"]\nattributes = [\"cn\"]\n";

    fn rules(text: &str) -> Vec<Value> {
        let mut table: Table = text.parse().unwrap();
        match table.remove(ACCESS) {
            Some(Value::Array(rules)) => rules,
            _ => panic!("it has no rules: {text}"),
        }
    }

    /// Wherever it is cut: it is refused, it is no configuration, or it allows no more than the whole.
    #[test]
    fn no_cut_makes_access_wider() {
        let turned = {
            let (head, rules) = OWN.split_at(OWN.find("[[access]]").unwrap());
            format!("{rules}\n{head}")
        };
        for whole in [OWN, &turned] {
            let mut refused = 0;
            for end in 0..whole.len() {
                let cut = &whole[..end];
                if of(whole, cut).is_some() || cut.parse::<Table>().is_err() {
                    refused += 1;
                    continue;
                }
                if super::super::raw::Raw::read(cut).is_err() {
                    continue;
                }
                assert_eq!(guarded(cut), guarded(whole), "{cut}");
                let all = rules(whole);
                assert!(rules(cut).iter().all(|rule| all.contains(rule)), "{cut}");
            }
            assert!(refused > whole.len() / 2, "{refused}");
        }
    }

    #[test]
    fn an_edited_text_that_is_cut_is_no_edit() {
        let edited = OWN.replace("= 50", "= 60");
        let cut = &edited[..edited.find("[password]").unwrap() - 1];
        // The rules are gone.
        assert!(of(OWN, cut).is_some_and(|why| why.contains("[[access]]")));
        let cut = &edited[..edited.find("from =").unwrap() - 1];
        assert!(of(OWN, cut).is_some_and(|why| why.contains("access[1].from is lost")));
        assert!(of(OWN, "").is_some() && of(OWN, "# listen = 1\n").is_some());
        assert!(of(DEFAULT, &DEFAULT[..DEFAULT.find("[metrics]").unwrap()]).is_some());
    }

    #[test]
    fn an_edit_is_none() {
        let without = |line: &str| OWN.replacen(line, "", 1);
        for edited in [
            OWN.to_owned(),
            OWN.trim_end().to_owned(),
            format!("{OWN}\n[metrics]\ninterval_s = 5\n"),
            // A condition less, a rule less, a section less.
            without("from = [\"192.0.2.0/24\"]\n"),
            OWN[..OWN.rfind("[[access]]").unwrap()].to_owned(),
            without("[limits]\nconnections_max = 50\n"),
            without("[tls]\nclient_certificates = \"required\"\n"),
            without("[password]\nmin_length = 12\n"),
            // Another file altogether, with rules of its own.
            "[[access]]\nwho = \"users\"\nwhat = \"data\"\nrights = [\"read\"]\n".to_owned(),
        ] {
            assert_eq!(of(OWN, &edited), None, "{edited}");
        }
        assert_eq!(of("", ""), None);
        assert_eq!(of("", OWN), None);
        // A user's own text instead of the generated file.
        assert_eq!(of(DEFAULT, "listen = \"off\"\n"), None);
        assert_eq!(of(DEFAULT, "[limits]\nidle_max_s = 5\n"), None);
        let flat = flat(&DEFAULT.parse().unwrap());
        assert!(GUARDED.iter().all(|guarded| flat.keys().any(|key| key.starts_with(guarded))));
    }
}
