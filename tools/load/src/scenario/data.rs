//! `[data]`: the supplies of values.

use super::files::Files;
use super::section::{Section, Value, members, number, whole};
use super::template;
use crate::error::Error;
use crate::limits::VALUES_BYTES_MAX;
use crate::source::{Lines, Pick, Source, Values, Zipf};
use crate::trust::read as read_file;

pub(crate) fn read(
    section: &Section<'_>,
    files: &Files<'_>,
    seed: u64,
) -> Result<Vec<Source>, Error> {
    section.entries().map(|(name, value)| source(section, name, value, files, seed)).collect()
}

fn source<'t>(
    data: &Section<'t>,
    name: &str,
    value: &'t Value<'t>,
    files: &Files<'_>,
    seed: u64,
) -> Result<Source, Error> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !is_name {
        return Err(
            data.error_at(value, format!("'{name}' is not a name (letters, digits, - and _)"))
        );
    }
    let mut section = Section::of(data.document(), value, format!("data.{name}"))?;
    let range = section.get("range");
    let width = section.whole("width", 0..21)?.unwrap_or(0) as usize;
    let file = section.text("file")?;
    let written = section.texts("lines")?;
    let counter = section.whole("counter", 0..u64::MAX)?;
    let template = section.text("template")?;
    let values = match (range, file, written, counter, template) {
        (Some(range), None, None, None, None) => range_of(&section, range, width)?,
        (None, Some(file), None, None, None) => lines(files.folder.join(file))?,
        (None, None, Some(written), None, None) => {
            let lines = Lines::new(written.join("\n").into_bytes());
            if lines.count() == 0 {
                return Err(section.error("there is no line in lines = [...]"));
            }
            Values::Lines(lines)
        }
        (None, None, None, Some(from), None) => Values::Counter { from },
        (None, None, None, None, Some(name)) => {
            Values::Entries(template::read(&mut section, name, files, seed)?)
        }
        _ => {
            let why = "exactly one of range = [FIRST, LAST], file = \"...\", lines = [\"...\"], \
                       counter = FIRST and template = \"...\"";
            return Err(section.error(why));
        }
    };
    let count = match &values {
        Values::Range { count, .. } => *count,
        Values::Lines(lines) => lines.count(),
        Values::Counter { .. } | Values::Entries(_) => 0,
    };
    let pick = pick(&mut section, count)?;
    section.finish()?;
    Ok(Source::new(name.to_owned(), values, pick))
}

fn range_of(section: &Section<'_>, value: &Value<'_>, width: usize) -> Result<Values, Error> {
    let ends: Vec<Option<u64>> =
        members(value).into_iter().map(|end| whole(end.get_ref())).collect();
    match ends[..] {
        [Some(low), Some(high)] if low <= high && high < u64::MAX => {
            Ok(Values::Range { low, count: high - low + 1, width })
        }
        _ => Err(section
            .error_at(value, "range should be [FIRST, LAST], whole numbers with FIRST <= LAST")),
    }
}

fn lines(path: std::path::PathBuf) -> Result<Values, Error> {
    let lines = Lines::new(read_file(&path, VALUES_BYTES_MAX)?);
    if lines.count() == 0 {
        return Err(Error::Content(path, "there is no line in it".into()));
    }
    Ok(Values::Lines(lines))
}

/// `"uniform"`, `"sequential"`, `{ hot = 0.2, share = 0.8 }`, `{ zipf = 1.1 }`
fn pick(section: &mut Section<'_>, count: u64) -> Result<Pick, Error> {
    let Some(value) = section.get("pick") else { return Ok(Pick::Uniform) };
    let wrong = "pick should be \"uniform\", \"sequential\", { hot = 0.2, share = 0.8 } or \
                 { zipf = 1.1 }";
    if count == 0 {
        return Err(section
            .error_at(value, "counters and templates have each value once; there is no pick"));
    }
    match value.get_ref().as_str() {
        Some("uniform") => return Ok(Pick::Uniform),
        Some("sequential") => return Ok(Pick::Sequential),
        Some(_) => return Err(section.error_at(value, wrong)),
        None => {}
    }
    let mut table = Section::of(section.document(), value, "pick")?;
    let zipf = table.get("zipf").and_then(|value| number(value.get_ref()));
    let hot = table.number("hot", 0.0, 1.0)?;
    let share = table.number("share", 0.0, 1.0)?;
    table.finish()?;
    match (zipf, hot, share) {
        (Some(s), None, None) if s > 0.0 && s <= 10.0 => Ok(Pick::Zipf(Zipf::new(count, s))),
        (None, Some(hot), Some(share)) => Ok(Pick::Hot { hot, share }),
        _ => Err(section.error_at(value, wrong)),
    }
}
