//! Where a rule is, and how it is written there.

use keyway_server::access::{Origin, Rule};
use std::path::Path;

/// Where a rule is: `keyway.toml, line 12`, or in which entry, or that it is in none.
pub fn place(file: &Path, rule: &Rule, entry: Option<&str>) -> String {
    match (&rule.origin, entry) {
        (Origin::Line(line), _) => format!("{}, line {line}", file.display()),
        (Origin::Entry(_), Some(dn)) => format!("entry \"{dn}\""),
        (Origin::Entry(_), None) => "an entry that is gone".to_owned(),
        (Origin::BuiltIn, _) => "built in".to_owned(),
    }
}

/// The line of the file that a rule begins on.
pub fn line(rule: &Rule) -> Option<usize> {
    match rule.origin {
        Origin::Line(line) => Some(line),
        _ => None,
    }
}

/// A rule as it is written in the file, its comments left out, or in an entry.
pub fn written(text: &str, rule: &Rule) -> Vec<String> {
    let line = match &rule.origin {
        Origin::Line(line) => line,
        Origin::Entry(stored) => return vec![stored.text.clone()],
        Origin::BuiltIn => return Vec::new(),
    };
    let lines = text.lines().skip(line.saturating_sub(1));
    let is_next = |(at, line): &(usize, &str)| *at == 0 || !line.trim_start().starts_with('[');
    let own = lines.enumerate().take_while(is_next).map(|(_, line)| line.trim());
    own.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_server::access::{Attributes, Rights, What, Who};

    #[test]
    fn a_rule_ends_where_the_next_section_begins() {
        let text =
            "x = 1\n[[access]]\nwho = \"users\"\n# why\nattributes = [\n  \"cn\",\n]\n\n[log]\n";
        let mut rule = Rule::new(Who::Users, What::Everything, Attributes::All, Rights::READ);
        assert_eq!(written(text, &rule), [""; 0]);
        rule.origin = Origin::Line(2);
        let expected = ["[[access]]", "who = \"users\"", "attributes = [", "\"cn\",", "]"];
        assert_eq!(written(text, &rule), expected);
    }
}
