//! `{ template = "people.template", of = "person" }`: entries of a template of MakeLDIF's.

use super::files::Files;
use super::section::Section;
use crate::error::Error;
use crate::source::Entries;
use crate::trust::read as read_file;
use keyway_codec::definitions::nearest;
use keyway_data::limits::{ENDLESS, ENTRIES_MAX, LIST_BYTES_MAX, TEMPLATE_BYTES_MAX};
use keyway_data::{CompileOptions, Plan, TEMPLATES, Template};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Reads `of`, `from`, `seed` and `define` beside the template's name.
pub(super) fn read(
    section: &mut Section<'_>,
    name: &str,
    files: &Files<'_>,
    seed: u64,
) -> Result<Entries, Error> {
    let of = section.text("of")?;
    let from = section.whole("from", 0..ENTRIES_MAX)?;
    let seed = section.whole("seed", 0..u64::MAX)?.unwrap_or(seed);
    let options =
        CompileOptions { seed, constants: constants(section)?, ..CompileOptions::default() };
    let plan = compile(section, name, files, &options)?;
    let chosen = chosen(section, &plan, of)?;
    let template = chosen.number;
    // Numbers after those of `keyway data` do not collide with its entries.
    let after = if chosen.entries < ENDLESS { chosen.entries } else { 0 };
    let from = from.unwrap_or(after);
    Ok(Entries { plan: Arc::new(plan), template, from })
}

/// `define = { suffix = "dc=example,dc=com" }`: constants instead of the template's.
fn constants(section: &mut Section<'_>) -> Result<Vec<(String, String)>, Error> {
    let Some(define) = section.section("define")? else { return Ok(Vec::new()) };
    let constant = |(name, value): (&str, &super::section::Value<'_>)| {
        let text = value.get_ref().as_str();
        let text = text.ok_or_else(|| define.error_at(value, "a constant is a text in quotes"))?;
        Ok((name.to_owned(), text.to_owned()))
    };
    define.entries().map(constant).collect()
}

/// Compiles it, with the files beside it that it names.
fn compile(
    section: &Section<'_>,
    name: &str,
    files: &Files<'_>,
    options: &CompileOptions,
) -> Result<Plan, Error> {
    let path = files.folder.join(name);
    let beside = path.parent().unwrap_or(files.folder);
    let mut look_up = |name: &str| {
        files.check(Path::new(name))?;
        let path = beside.join(name);
        match read_file(&path, LIST_BYTES_MAX) {
            Ok(bytes) => {
                files.read.borrow_mut().push(path);
                Ok(Some(bytes))
            }
            Err(Error::File { why, .. }) if is_missing(&why) => Ok(None),
            Err(why) => Err(why.to_string()),
        }
    };
    let text = text(section, name, &path)?;
    Plan::compile(&path.display().to_string(), &text, options, &mut look_up)
        .map_err(Error::Template)
}

/// A file's text, or one that is built in.
fn text(section: &Section<'_>, name: &str, path: &Path) -> Result<String, Error> {
    match read_file(path, TEMPLATE_BYTES_MAX as u64) {
        Ok(bytes) => String::from_utf8(bytes)
            .map_err(|_| Error::Content(path.to_owned(), "it is not UTF-8".into())),
        Err(Error::File { why, .. }) if is_missing(&why) => {
            let is_it = |it: &str| it.strip_suffix(".template").unwrap_or(it) == name || it == name;
            let built_in = TEMPLATES.iter().find(|(it, _)| is_it(it));
            built_in.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
                let known: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
                let why = format!(
                    "there is no file {}, and no template of that name is built in ({} are)",
                    path.display(),
                    known.join(" and ")
                );
                section.error_of("template", why)
            })
        }
        Err(other) => Err(other),
    }
}

fn is_missing(why: &std::io::Error) -> bool {
    matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The template of that name; without one the only one that has no entries below its own.
fn chosen<'p>(
    section: &Section<'_>,
    plan: &'p Plan,
    of: Option<&str>,
) -> Result<Template<'p>, Error> {
    let all: Vec<Template<'_>> = plan.templates().collect();
    let names = || all.iter().map(|it| it.name);
    let known = || names().collect::<Vec<_>>().join(", ");
    let Some(wanted) = of else {
        let mut lowest = all.iter().filter(|it| !it.has_below);
        return match (lowest.next(), lowest.next()) {
            (Some(only), None) => Ok(*only),
            (None, _) => {
                Err(section.error("the template has no entries below a branch to take one of"))
            }
            _ => {
                let why = format!("which of its templates? of = \"...\": there are {}", known());
                Err(section.error(why))
            }
        };
    };
    let found = all.iter().find(|it| it.name.eq_ignore_ascii_case(wanted));
    found.copied().ok_or_else(|| {
        let why = match nearest(wanted, names()) {
            Some(near) => format!("it has no template '{wanted}'; did you mean '{near}'?"),
            None => format!("it has no template '{wanted}'; there are {}", known()),
        };
        section.error_of("of", why)
    })
}
