//! `keyway data tags` and `keyway data template`.

use super::arguments::{Tags, Template};
use keyway_data::TEMPLATES;
use keyway_data::tags::{TAGS, Tag, find};
use keyway_host::failure::Failure;
use keyway_host::output;

/// Shows the tags.
///
/// # Errors
/// If there is none of that name.
pub fn run(arguments: &Tags) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let each: Vec<_> = TAGS.iter().map(words).collect();
        return output::text(each.join("\n"));
    };
    let name = name.trim_matches(['<', '>']);
    match find(name) {
        Some(tag) => output::text(words(tag).trim_end()),
        None => {
            let known: Vec<_> = TAGS.iter().map(|tag| tag.name).collect();
            Err(Failure::usage(format!("there is no tag {name}; there are {}", known.join(", "))))
        }
    }
}

fn words(tag: &Tag) -> String {
    let forms = tag.forms.join("  ");
    format!("{forms}\n    {}\n    {}\n", tag.what, tag.example)
}

/// Prints a template that is built in.
///
/// # Errors
/// If there is none of that name.
pub fn template(arguments: &Template) -> Result<(), Failure> {
    let name = arguments.name.trim_end_matches(".template");
    let known = |it: &str| it.trim_end_matches(".template") == name;
    match TEMPLATES.iter().find(|(name, _)| known(name)) {
        Some((_, text)) => output::text(text.trim_end()),
        None => {
            let all: Vec<_> = TEMPLATES.iter().map(|(name, _)| *name).collect();
            Err(Failure::usage(format!(
                "there is no template {name}; there are {}",
                all.join(", ")
            )))
        }
    }
}
