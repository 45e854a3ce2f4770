//! From what a template says to a [`Plan`]: what it inherits, how many entries there are, what each
//! line does.

mod lines;
mod order;
mod tag;
mod tree;

use crate::error::TemplateError;
use crate::limits::{LINES_MAX, LIST_BYTES_MAX, ZIPF_ALL_MAX, ZIPF_MAX};
use crate::list::{List, Pick, Table};
use crate::plan::{CompileOptions, Kid, Kind, Lookup, Plan, class};
use crate::template::{self, Line, Place, Section, SectionKind, Sections};
use keyway_codec::definitions::nearest;
use std::collections::HashMap;
use std::sync::Arc;

/// A branch or template whose lines are still as they were written.
pub(crate) struct Draft {
    name: String,
    dn: Option<String>,
    place: Place,
    rdn: Option<(Vec<String>, Place)>,
    kids: Vec<template::Kid>,
    lines: Vec<Line>,
    /// The attribute of each line.
    ids: Vec<usize>,
}

/// The context that lines are compiled with.
pub(crate) struct Context<'a> {
    seed: u64,
    allow_exec: bool,
    table: Option<Arc<Table>>,
    drafts: &'a [Draft],
    templates: &'a HashMap<String, usize>,
    attributes: &'a HashMap<String, usize>,
    roots: &'a [Kid],
    totals: &'a [Vec<u64>],
    lists: HashMap<String, Arc<List>>,
    /// How many numbers the Zipf distributions choose from.
    zipf_numbers: u64,
    look_up: Lookup<'a>,
}

impl Plan {
    /// Compiles a template; `name` is what it is called in messages, and `look_up` finds the files
    /// that it names.
    ///
    /// # Errors
    /// What is wrong, where, and what to do.
    pub fn compile(
        name: &str,
        text: &str,
        options: &CompileOptions,
        look_up: Lookup<'_>,
    ) -> Result<Plan, TemplateError> {
        let sections = template::read(name, text, &options.constants, &mut *look_up)?;
        let (drafts, templates) = drafts(&sections)?;
        let mut attributes = HashMap::new();
        let drafts = with_ids(drafts, &mut attributes);
        let tree = tree::plant(&sections, &drafts, &templates, options)?;
        let mut context = Context {
            seed: options.seed,
            allow_exec: options.allow_exec,
            table: options.table.clone(),
            drafts: &drafts,
            templates: &templates,
            attributes: &attributes,
            roots: &tree.roots,
            totals: &tree.totals,
            lists: HashMap::new(),
            zipf_numbers: 0,
            look_up,
        };
        let start = Place { file: 0, line: 1, column: 1 };
        let mut list = |name: &str| context.list(name).map_err(|why| sections.error(start, why));
        let (first_names, last_names) = match options.utf8_names {
            true => (list("first.utf8")?, list("last.utf8")?),
            false => (list("first.names")?, list("last.names")?),
        };
        let mut plan = Plan {
            seed: crate::random::mix(options.seed, 0),
            files: sections.files.clone(),
            kinds: Vec::new(),
            roots: tree.roots.clone(),
            first_names,
            last_names,
            table: options.table.clone(),
            entries: 0,
            is_endless: tree.is_endless,
            warnings: sections.warnings.clone(),
        };
        let mut compiled = Vec::new();
        for kind in 0..drafts.len() {
            compiled.push(lines::compile(&mut context, &sections, kind)?);
        }
        let wanted = order::wanted_from_above(&compiled);
        for (number, (draft, lines)) in drafts.iter().zip(compiled).enumerate() {
            let kids = tree.kids.get(number).cloned().unwrap_or_default();
            let totals = tree.totals.get(number).cloned().unwrap_or_default();
            let leads = tree.leads.get(number).cloned().unwrap_or_default();
            let kind = order::arrange(&sections, draft, lines, &wanted, &plan)?;
            let uses_names = tree::uses_names(draft);
            plan.kinds.push(Kind { kids, totals, leads, uses_names, ..kind });
        }
        plan.entries = plan.total(class::ENTRIES);
        Ok(plan)
    }
}

/// Branches, those higher up first, and templates with what they inherit.
fn drafts(sections: &Sections) -> Result<(Vec<Draft>, HashMap<String, usize>), TemplateError> {
    let mut branches = Vec::new();
    let mut names: HashMap<String, Place> = HashMap::new();
    for section in &sections.sections {
        if let SectionKind::Branch(dn) = &section.kind {
            branches.push(lines::branch(sections, section, dn)?);
            if let Some(first) = names.insert(lines::same_name(dn), section.place) {
                let line = first.line;
                let why = format!(
                    "there is a branch {dn} already, in line {line}: an entry is there once"
                );
                return Err(sections.error(section.place, why));
            }
        }
    }
    // An entry comes after the one above it, as servers ask.
    branches.sort_by_key(|(depth, _)| *depth);
    let mut drafts: Vec<Draft> = branches.into_iter().map(|(_, draft)| draft).collect();
    if drafts.is_empty() {
        let start = Place { file: 0, line: 1, column: 1 };
        let why =
            "there is no branch, and so no entry; one is described so: branch: dc=example,dc=com";
        return Err(sections.error(start, why));
    }
    let mut by_name = HashMap::new();
    for section in &sections.sections {
        let SectionKind::Template(name) = &section.kind else { continue };
        if by_name.insert(name.to_ascii_lowercase(), section).is_some() {
            let why = format!("there are two templates {name}");
            return Err(sections.error(section.place, why));
        }
    }
    let mut templates = HashMap::new();
    for section in &sections.sections {
        if let SectionKind::Template(name) = &section.kind {
            templates.insert(name.to_ascii_lowercase(), drafts.len());
            drafts.push(inherited(sections, section, name, &by_name)?);
        }
    }
    Ok((drafts, templates))
}

/// A template with what it extends.
fn inherited(
    sections: &Sections,
    section: &Section,
    name: &str,
    by_name: &HashMap<String, &Section>,
) -> Result<Draft, TemplateError> {
    let mut chain = vec![section];
    while let Some((base, place)) = chain.last().and_then(|last| last.extends.as_ref()) {
        let Some(next) = by_name.get(&base.to_ascii_lowercase()) else {
            return Err(sections.error(*place, no_template(base, by_name.keys())));
        };
        if chain.iter().any(|seen| std::ptr::eq(*seen, *next)) {
            let why = format!("template {name} extends itself, by way of {base}");
            return Err(sections.error(*place, why));
        }
        chain.push(next);
    }
    let mut draft = Draft {
        name: name.to_owned(),
        dn: None,
        place: section.place,
        rdn: chain.iter().find_map(|section| section.rdn.clone()),
        kids: Vec::new(),
        lines: Vec::new(),
        ids: Vec::new(),
    };
    for section in chain.iter().rev() {
        let kids = section.kids.iter();
        draft.kids.extend(kids.map(|it| template::Kid { name: it.name.clone(), ..*it }));
        draft.lines.extend(section.lines.iter().cloned());
        if draft.lines.len() > LINES_MAX {
            let why =
                format!("template {name} has, with what it extends, more than {LINES_MAX} lines");
            return Err(sections.error(section.place, why));
        }
    }
    Ok(draft)
}

/// Numbers the attributes, whatever case they are written in.
fn with_ids(drafts: Vec<Draft>, attributes: &mut HashMap<String, usize>) -> Vec<Draft> {
    let mut id = |line: &Line| {
        let next = attributes.len();
        *attributes.entry(line.attribute.to_ascii_lowercase()).or_insert(next)
    };
    drafts
        .into_iter()
        .map(|draft| Draft { ids: draft.lines.iter().map(&mut id).collect(), ..draft })
        .collect()
}

fn no_template<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    match nearest(name, known.map(String::as_str)) {
        Some(near) => format!("there is no template {name}; did you mean {near}?"),
        None => format!("there is no template {name}"),
    }
}

impl Context<'_> {
    /// The lines of an attribute in a draft.
    fn lines_of(&self, kind: usize, attribute: &str) -> Vec<usize> {
        let id = self.attributes.get(&attribute.to_ascii_lowercase());
        let ids = self.drafts.get(kind).map(|draft| draft.ids.as_slice()).unwrap_or_default();
        let lines = ids.iter().enumerate().filter(|(_, it)| Some(*it) == id);
        lines.map(|(line, _)| line).collect()
    }

    /// The lines of an attribute that a line can refer to: those before it, else those after it.
    fn others(&self, site: &tag::Site, attribute: &str) -> Vec<usize> {
        let all = self.lines_of(site.kind, attribute);
        let (before, after): (Vec<_>, Vec<_>) =
            all.into_iter().filter(|line| *line != site.line).partition(|line| *line < site.line);
        if before.is_empty() { after } else { before }
    }

    /// The lines of an attribute in each kind.
    fn lines_of_all(&self, attribute: &str) -> Vec<Vec<usize>> {
        (0..self.drafts.len()).map(|kind| self.lines_of(kind, attribute)).collect()
    }

    fn template(&self, name: &str) -> Result<usize, String> {
        self.templates
            .get(&name.to_ascii_lowercase())
            .copied()
            .ok_or_else(|| no_template(name, self.templates.keys()))
    }

    fn total(&self, class: usize) -> u64 {
        let each = |kid: &Kid| self.totals.get(kid.kind).and_then(|it| it.get(class)).copied();
        let all = self.roots.iter().map(|kid| kid.count.saturating_mul(each(kid).unwrap_or(0)));
        all.fold(0, u64::saturating_add)
    }

    /// A Zipf distribution, if there are not too many of them.
    fn zipf(&mut self, count: u64, exponent: f64) -> Result<Pick, String> {
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
    fn list(&mut self, name: &str) -> Result<Arc<List>, String> {
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
