//! How many entries there are, and below which.

use super::Draft;
use crate::error::TemplateError;
use crate::limits::{DEPTH_MAX, ENDLESS, ENTRIES_MAX};
use crate::plan::{CompileOptions, Kid, class};
use crate::template::{Place, Sections};
use std::collections::HashMap;

/// The tree, as arithmetic.
pub(super) struct Tree {
    pub(super) roots: Vec<Kid>,
    /// The subordinate templates of each kind.
    pub(super) kids: Vec<Vec<Kid>>,
    /// How many entries of each class are in the subtree of one of each kind.
    pub(super) totals: Vec<Vec<u64>>,
    /// The kinds of entries that can be in the subtree of one of each kind, also where there are none
    /// yet.
    pub(super) leads: Vec<Vec<bool>>,
    pub(super) is_endless: bool,
}

pub(super) fn plant(
    sections: &Sections,
    drafts: &[Draft],
    templates: &HashMap<String, usize>,
    options: &CompileOptions,
) -> Result<Tree, TemplateError> {
    let mut planter = Planter {
        sections,
        drafts,
        kids: Vec::new(),
        totals: vec![None; drafts.len()],
        leads: vec![Vec::new(); drafts.len()],
        path: Vec::new(),
        rows: options.table.as_ref().map(|table| table.rows.len() as u64),
    };
    let mut is_endless = false;
    for draft in drafts {
        let mut kids: Vec<Kid> = Vec::new();
        for kid in &draft.kids {
            let kind = templates.get(&kid.name.to_ascii_lowercase()).copied().ok_or_else(|| {
                sections.error(kid.place, super::no_template(&kid.name, templates.keys()))
            })?;
            let rows = planter.rows.filter(|_| drafts.get(kind).is_some_and(uses_table));
            let most = options.per_template_max.unwrap_or(u64::MAX);
            let count = kid.count.or(rows).unwrap_or(ENDLESS).min(most);
            is_endless |= count == ENDLESS;
            let same = kids.iter().filter(|it| it.kind == kind).map(|it| it.count);
            let before = same.fold(0, u64::saturating_add);
            kids.push(Kid { kind, count, before });
        }
        planter.kids.push(kids);
    }
    for kind in 0..drafts.len() {
        planter.count(kind)?;
    }
    let roots: Vec<Kid> = drafts
        .iter()
        .enumerate()
        .filter(|(_, draft)| draft.dn.is_some())
        .map(|(kind, _)| Kid { kind, count: 1, before: 0 })
        .collect();
    let Planter { kids, totals, leads, rows, .. } = planter;
    let totals: Vec<Vec<u64>> = totals.into_iter().map(Option::unwrap_or_default).collect();
    let all = |class: usize| {
        let each = roots.iter().filter_map(|root| totals.get(root.kind)?.get(class));
        each.fold(0u64, |sum, each| sum.saturating_add(*each))
    };
    if let Some(first) = drafts.first().filter(|_| all(class::ENTRIES) > ENTRIES_MAX) {
        return Err(too_many(sections, first.place));
    }
    for (kind, draft) in drafts.iter().enumerate().filter(|(_, draft)| uses_table(draft)) {
        let needed = all(class::KINDS + kind);
        if let Some(rows) = rows.filter(|rows| *rows < needed) {
            let name = &draft.name;
            let why = format!(
                "template {name} makes {needed} entries, and the file for <csvfield> has {rows} \
                 rows; make no more (subordinateTemplate: {name} without a number makes as many)"
            );
            return Err(sections.error(draft.place, why));
        }
    }
    Ok(Tree { roots, kids, totals, leads, is_endless })
}

/// Whether entries of it use up names of people.
pub(super) fn uses_names(draft: &Draft) -> bool {
    says(draft, "<first>") || says(draft, "<last>")
}

fn uses_table(draft: &Draft) -> bool {
    says(draft, "<csvfield")
}

fn says(draft: &Draft, tag: &str) -> bool {
    draft.lines.iter().any(|line| line.value.text.to_ascii_lowercase().contains(tag))
}

fn too_many(sections: &Sections, place: Place) -> TemplateError {
    let why = format!("it makes more than {ENTRIES_MAX} entries, the most that are counted");
    sections.error(place, why)
}

struct Planter<'a> {
    sections: &'a Sections,
    drafts: &'a [Draft],
    kids: Vec<Vec<Kid>>,
    totals: Vec<Option<Vec<u64>>>,
    leads: Vec<Vec<bool>>,
    /// The kinds whose subordinates are being counted.
    path: Vec<usize>,
    rows: Option<u64>,
}

impl Planter<'_> {
    /// Counts the entries of a kind's subtree.
    fn count(&mut self, kind: usize) -> Result<(), TemplateError> {
        if self.totals.get(kind).is_some_and(Option::is_some) {
            return Ok(());
        }
        let Some(draft) = self.drafts.get(kind) else { return Ok(()) };
        let mut sum = vec![0; class::KINDS + self.drafts.len()];
        let mut add = |class: usize, by: u64| {
            if let Some(total) = sum.get_mut(class) {
                *total += by;
            }
        };
        add(class::ENTRIES, 1);
        add(class::NAMES, u64::from(uses_names(draft)));
        add(class::KINDS + kind, 1);
        self.path.push(kind);
        let kids = self.kids.get(kind).cloned().unwrap_or_default();
        for (kid, written) in kids.iter().zip(&draft.kids) {
            self.look_for_circle(kid.kind, written.place)?;
            self.count(kid.kind)?;
            let each = self.totals.get(kid.kind).cloned().flatten().unwrap_or_default();
            for (total, each) in sum.iter_mut().zip(each) {
                let more = each.checked_mul(kid.count).and_then(|more| total.checked_add(more));
                *total = more
                    .filter(|total| *total <= ENTRIES_MAX)
                    .ok_or_else(|| too_many(self.sections, written.place))?;
            }
        }
        self.path.pop();
        self.lead(kind, &kids);
        if let Some(total) = self.totals.get_mut(kind) {
            *total = Some(sum);
        }
        Ok(())
    }

    /// Notes where a kind leads; where its subordinates lead is known.
    fn lead(&mut self, kind: usize, kids: &[Kid]) {
        let mut leads = vec![false; self.drafts.len()];
        for kid in kids {
            let below = self.leads.get(kid.kind).filter(|_| kid.count > 0);
            for (here, below) in leads.iter_mut().zip(below.into_iter().flatten()) {
                *here |= below;
            }
            leads.iter_mut().skip(kid.kind).take(1).for_each(|it| *it = true);
        }
        if let Some(known) = self.leads.get_mut(kind) {
            *known = leads;
        }
    }

    fn look_for_circle(&self, kid: usize, place: Place) -> Result<(), TemplateError> {
        let name = |kind: &usize| {
            self.drafts.get(*kind).map(|draft| draft.name.clone()).unwrap_or_default()
        };
        if let Some(at) = self.path.iter().position(|kind| *kind == kid) {
            let circle: Vec<_> = self.path.iter().skip(at).chain([&kid]).map(name).collect();
            let why = format!("templates are below each other in a circle: {}", circle.join(" > "));
            return Err(self.sections.error(place, why));
        }
        if self.path.len() > DEPTH_MAX {
            let why = format!("templates are more than {DEPTH_MAX} deep below each other");
            return Err(self.sections.error(place, why));
        }
        Ok(())
    }
}
