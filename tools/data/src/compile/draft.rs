//! The drafts of kinds, and the context that their lines are compiled with.

use crate::limits::{LIST_BYTES_MAX, ZIPF_ALL_MAX, ZIPF_MAX};
use crate::list::{List, Pick, Table};
use crate::plan::{Kid, Lookup};
use crate::template::{self, Line, Place};
use keyway_codec::definitions::nearest;
use std::collections::HashMap;
use std::sync::Arc;

/// A branch or template whose lines are still as they were written.
pub(crate) struct Draft {
    pub(super) name: String,
    pub(super) dn: Option<String>,
    pub(super) place: Place,
    pub(super) rdn: Option<(Vec<String>, Place)>,
    pub(super) kids: Vec<template::Kid>,
    pub(super) lines: Vec<Line>,
    /// The attribute of each line.
    pub(super) ids: Vec<usize>,
}

/// The context that lines are compiled with.
pub(crate) struct Context<'a> {
    pub(super) seed: u64,
    pub(super) allow_exec: bool,
    pub(super) table: Option<Arc<Table>>,
    pub(super) drafts: &'a [Draft],
    pub(super) templates: &'a HashMap<String, usize>,
    pub(super) attributes: &'a HashMap<String, usize>,
    pub(super) roots: &'a [Kid],
    pub(super) totals: &'a [Vec<u64>],
    pub(super) lists: HashMap<String, Arc<List>>,
    /// How many numbers the Zipf distributions choose from.
    pub(super) zipf_numbers: u64,
    pub(super) look_up: Lookup<'a>,
}

pub(crate) fn no_template<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    match nearest(name, known.map(String::as_str)) {
        Some(near) => format!("there is no template {name}; did you mean {near}?"),
        None => format!("there is no template {name}"),
    }
}

impl Context<'_> {
    /// The lines of an attribute in a draft.
    pub(super) fn lines_of(&self, kind: usize, attribute: &str) -> Vec<usize> {
        let id = self.attributes.get(&attribute.to_ascii_lowercase());
        let ids = self.drafts.get(kind).map(|draft| draft.ids.as_slice()).unwrap_or_default();
        let lines = ids.iter().enumerate().filter(|(_, it)| Some(*it) == id);
        lines.map(|(line, _)| line).collect()
    }

    /// The lines of an attribute that a line can refer to: those before it, else those after it.
    pub(super) fn others(&self, site: &Site, attribute: &str) -> Vec<usize> {
        let all = self.lines_of(site.kind, attribute);
        let (before, after): (Vec<_>, Vec<_>) =
            all.into_iter().filter(|line| *line != site.line).partition(|line| *line < site.line);
        if before.is_empty() { after } else { before }
    }

    /// The lines of an attribute in each kind.
    pub(super) fn lines_of_all(&self, attribute: &str) -> Vec<Vec<usize>> {
        (0..self.drafts.len()).map(|kind| self.lines_of(kind, attribute)).collect()
    }

    pub(super) fn template(&self, name: &str) -> Result<usize, String> {
        self.templates
            .get(&name.to_ascii_lowercase())
            .copied()
            .ok_or_else(|| no_template(name, self.templates.keys()))
    }

    pub(super) fn total(&self, class: usize) -> u64 {
        let each = |kid: &Kid| self.totals.get(kid.kind).and_then(|it| it.get(class)).copied();
        let all = self.roots.iter().map(|kid| kid.count.saturating_mul(each(kid).unwrap_or(0)));
        all.fold(0, u64::saturating_add)
    }

    /// A Zipf distribution, if there are not too many of them.
    pub(super) fn zipf(&mut self, count: u64, exponent: f64) -> Result<Pick, String> {
        self.zipf_numbers = self.zipf_numbers.saturating_add(count);
        match (1..=ZIPF_MAX).contains(&count) && self.zipf_numbers <= ZIPF_ALL_MAX {
            true => Ok(Pick::zipf(count, exponent)),
            false => Err(format!(
                "a Zipf distribution has 1 to {ZIPF_MAX} numbers, and all of a template \
                 {ZIPF_ALL_MAX}"
            )),
        }
    }

    /// The lines of a file, or the list of that name that is built in.
    pub(super) fn list(&mut self, name: &str) -> Result<Arc<List>, String> {
        if let Some(list) = self.lists.get(name) {
            return Ok(list.clone());
        }
        let list = match (self.look_up)(name)? {
            Some(bytes) if bytes.len() as u64 > LIST_BYTES_MAX => {
                return Err(format!("{name} has more than {LIST_BYTES_MAX} bytes"));
            }
            Some(bytes) => {
                let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8"))?;
                List::of_lines(&text)
            }
            None => List::of_lines(crate::lists::built_in(name).ok_or_else(|| {
                format!(
                    "there is no file {name}, and no list of that name is built in ({} are)",
                    crate::lists::NAMES.join(", ")
                )
            })?),
        };
        if list.is_empty() {
            return Err(format!("{name} has no lines"));
        }
        let list = Arc::new(list);
        self.lists.insert(name.to_owned(), list.clone());
        Ok(list)
    }
}

/// The place of a tag.
pub(super) struct Site {
    /// The branch or template, and the line of it.
    pub(super) kind: usize,
    pub(super) line: usize,
    /// Distinguishes the tags of a template.
    pub(super) salt: u64,
}
