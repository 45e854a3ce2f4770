//! A TOML file read table by table: each error with its line, each unknown key refused with the
//! known one that is nearest.

use crate::error::Error;
use keyway_codec::definitions::nearest;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name of the outermost table in errors.
pub(crate) const ROOT: &str = "the scenario";

/// A value with its place.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// The text, and what it is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
}

impl Document<'_> {
    /// An error at a place of the text.
    pub(crate) fn error(&self, place: &Range<usize>, why: impl Into<String>) -> Error {
        let before = self.text.get(..place.start).unwrap_or(self.text);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        Error::Scenario { file: self.name.to_owned(), line, why: why.into() }
    }
}

/// A table of which keys are asked for one by one.
pub(crate) struct Section<'t> {
    document: Document<'t>,
    table: &'t DeTable<'t>,
    place: Range<usize>,
    /// Its name in errors.
    name: String,
    known: Vec<&'static str>,
}

impl<'t> Section<'t> {
    pub(crate) fn new(
        document: Document<'t>,
        table: &'t DeTable<'t>,
        place: Range<usize>,
        name: impl Into<String>,
    ) -> Section<'t> {
        Section { document, table, place, name: name.into(), known: Vec::new() }
    }

    /// The table that a value is.
    pub(crate) fn of(
        document: Document<'t>,
        value: &'t Value<'t>,
        name: impl Into<String>,
    ) -> Result<Section<'t>, Error> {
        let name = name.into();
        match value.get_ref() {
            DeValue::Table(table) => Ok(Section::new(document, table, value.span(), name)),
            other => Err(wrong_type(document, value, other, &name, "a table: { key = value }")),
        }
    }

    pub(crate) fn document(&self) -> Document<'t> {
        self.document
    }

    /// An error about the table as a whole.
    pub(crate) fn error(&self, why: impl Into<String>) -> Error {
        self.document.error(&self.place, format!("{}: {}", self.name, why.into()))
    }

    /// Refuses all keys but these. Where a key has to be there, one that is written wrongly is named so
    /// before it is missed.
    pub(crate) fn keys(&mut self, known: &[&'static str]) -> Result<(), Error> {
        self.known.extend_from_slice(known);
        self.check_keys()
    }

    fn check_keys(&self) -> Result<(), Error> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let meant = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("known are {}", self.known.join(", ")),
            };
            let why = format!("{}: there is no key '{name}'; {meant}", self.name);
            return Err(self.document.error(&key.span(), why));
        }
        Ok(())
    }

    /// An error about a value of it.
    pub(crate) fn error_at(&self, value: &Value<'_>, why: impl Into<String>) -> Error {
        self.document.error(&value.span(), format!("{}: {}", self.name, why.into()))
    }

    /// An error about the value of a key.
    pub(crate) fn error_of(&self, key: &str, why: impl Into<String>) -> Error {
        match self.table.get(key) {
            Some(value) => self.error_at(value, why),
            None => self.error(why),
        }
    }

    /// The value of a key, which is known from now on.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'t Value<'t>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// Each key with its value, for tables whose keys the user chooses.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'t str, &'t Value<'t>)> + use<'t> {
        self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), value))
    }

    fn wrong(&self, key: &str, value: &Value<'_>, wanted: &str) -> Error {
        let name = format!("{}: {key}", self.name);
        wrong_type(self.document, value, value.get_ref(), &name, wanted)
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<&'t str>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.get_ref().as_str().map(Some).ok_or_else(|| self.wrong(key, value, "a text in quotes"))
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.get_ref().as_bool().map(Some).ok_or_else(|| self.wrong(key, value, "true or false"))
    }

    pub(crate) fn whole(
        &mut self,
        key: &'static str,
        allowed: Range<u64>,
    ) -> Result<Option<u64>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = whole(value.get_ref()).filter(|number| allowed.contains(number));
        let wanted = format!("a whole number from {} to {}", allowed.start, allowed.end - 1);
        number.map(Some).ok_or_else(|| self.wrong(key, value, &wanted))
    }

    pub(crate) fn number(
        &mut self,
        key: &'static str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = number(value.get_ref()).filter(|number| (low..=high).contains(number));
        number
            .map(Some)
            .ok_or_else(|| self.wrong(key, value, &format!("a number from {low} to {high}")))
    }

    /// A time: `"250ms"`, `"30s"`, `"5m"`, or a number of seconds.
    pub(crate) fn time(&mut self, key: &'static str) -> Result<Option<Duration>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let time = match value.get_ref() {
            DeValue::String(text) => duration(text),
            other => number(other).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        };
        time.map(Some)
            .ok_or_else(|| self.wrong(key, value, "a time, such as \"30s\", \"250ms\" or \"5m\""))
    }

    /// The members of a list, or the one that stands alone.
    pub(crate) fn list(&mut self, key: &'static str) -> Vec<&'t Value<'t>> {
        self.get(key).map(members).unwrap_or_default()
    }

    /// Texts of a list, or the one that stands alone.
    pub(crate) fn texts(&mut self, key: &'static str) -> Result<Option<Vec<&'t str>>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = |member: &'t Value<'t>| member.get_ref().as_str();
        let texts: Option<Vec<&str>> = members(value).into_iter().map(text).collect();
        texts.map(Some).ok_or_else(|| self.wrong(key, value, "a text or a list of texts"))
    }

    /// A table of this key.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Option<Section<'t>>, Error> {
        let name = match self.name.as_str() {
            ROOT => key.to_owned(),
            name => format!("{name}.{key}"),
        };
        self.get(key).map(|value| Section::of(self.document, value, name)).transpose()
    }

    /// Refuses keys that were not read.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.check_keys()
    }
}

fn wrong_type(
    document: Document<'_>,
    value: &Value<'_>,
    found: &DeValue<'_>,
    name: &str,
    wanted: &str,
) -> Error {
    let found = match found {
        DeValue::String(text) => format!("\"{}\"", short(text)),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        other => format!("a {}", other.type_str()),
    };
    document.error(&value.span(), format!("{name} should be {wanted}, and is {found}"))
}

/// A text as an error shows it.
pub(crate) fn short(text: &str) -> String {
    const CHARACTERS: usize = 200;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The members of a list, or the one that stands alone.
pub(crate) fn members<'t>(value: &'t Value<'t>) -> Vec<&'t Value<'t>> {
    match value.get_ref() {
        DeValue::Array(members) => members.iter().collect(),
        _ => vec![value],
    }
}

pub(crate) fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    let number = match value.as_float() {
        Some(float) => float.as_str().parse().ok()?,
        None => whole(value)? as f64,
    };
    Some(number).filter(|number: &f64| number.is_finite())
}

/// `"250ms"`, `"30s"`, `"1.5m"`, `"2h"`, `"100us"`, `"1d"`; `"1m30s"`: several, the longer ones first.
pub fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut all, mut before_s) = (text, Duration::ZERO, f64::INFINITY);
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, after) = rest.split_at(unit);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit_s = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let number: f64 = number.trim().replace('_', "").parse().ok()?;
        if unit_s >= before_s {
            return None;
        }
        all = all.checked_add(Duration::try_from_secs_f64(number * unit_s).ok()?)?;
        (rest, before_s) = (after, unit_s);
    }
    (before_s < f64::INFINITY).then_some(all)
}
