//! The input of browsers to the page: forms, and orders of runs.

use keyway_load::Options;
use keyway_web::{field, scenario_of};

/// Reads the bytes as a form, and as an order. Whatever is ordered, load goes where the program has said
/// and nowhere else, and what it asks for has no more sections than the sample that it is.
pub fn page(data: &[u8]) {
    if let Ok(form) = std::str::from_utf8(data) {
        for name in ["name", "password", "token"] {
            let value = field(form, name);
            assert!(value.is_none_or(|value| value.len() <= form.len()));
        }
    }
    let options = Options { urls: vec!["ldap://127.0.0.1:1".into()], ..Options::default() };
    if let Some(scenario) = scenario_of(data, options) {
        let urls: Vec<String> = scenario.urls.iter().map(ToString::to_string).collect();
        assert_eq!(urls, ["ldap://127.0.0.1:1"]);
        // A text that got out of its quotes could begin a section, in which files may be named.
        let sections = scenario.text.lines().filter(|line| *line == "[data]").count();
        assert_eq!(sections, 1, "{}", scenario.text);
    }
}
