//! From what a template says to a [`Plan`]: what it inherits, how many entries there are, what each
//! line does.

mod draft;
mod lines;
mod order;
mod tag;
mod tree;

use crate::error::TemplateError;
use crate::limits::LINES_MAX;
use crate::plan::{CompileOptions, Kind, Lookup, Plan, class};
use crate::template::{self, Line, Place, Section, SectionKind, Sections};
use draft::{Context, Draft, no_template};
use std::collections::HashMap;

impl Plan {
    /// Compiles a template; `name` is what it is called in messages, and `look_up` finds the files
    /// that it names.
    ///
    /// # Errors
    /// The fault, its place, and the remedy.
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
