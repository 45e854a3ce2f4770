//! `keyway acl`: who may do what, why, and what another file would change.

mod arguments;
mod diff;
mod explain;
pub mod look;
mod who_can;

use crate::failure::Failure;
pub use arguments::Acl;
use keyway_server::access::Rule;
use std::path::Path;

/// Does what the arguments ask for.
///
/// # Errors
/// If a file or the data folder cannot be read, or what is asked for is not there.
pub fn run(command: &Acl) -> Result<(), Failure> {
    match command {
        Acl::Explain(arguments) => explain::run(arguments),
        Acl::WhoCan(arguments) => who_can::run(arguments),
        Acl::Diff(arguments) => diff::run(arguments),
    }
}

/// Where a rule is: `keyway.toml, line 12`, or that it is in no file.
fn place(file: &Path, rule: &Rule) -> String {
    match rule.line {
        Some(line) => format!("{}, line {line}", file.display()),
        None => "built in".to_owned(),
    }
}

/// A rule as it is written in the file, its comments left out.
fn written(text: &str, rule: &Rule) -> Vec<String> {
    let Some(line) = rule.line else { return Vec::new() };
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
        rule.line = Some(2);
        let expected = ["[[access]]", "who = \"users\"", "attributes = [", "\"cn\",", "]"];
        assert_eq!(written(text, &rule), expected);
    }
}
