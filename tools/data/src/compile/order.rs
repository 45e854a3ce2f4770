//! In which order lines are worked out: a line after those that it takes values of.

use super::Draft;
use crate::error::TemplateError;
use crate::limits::CHAIN_MAX;
use crate::piece::{Condition, Piece};
use crate::plan::{Kind, Line, Order, Plan, Step};
use crate::template::Sections;
use keyway_codec::ldif::Writer;
use std::collections::HashSet;

/// The lines of each kind that entries below it ask for (`<parent:..>`).
pub(super) fn wanted_from_above(kinds: &[Vec<Line>]) -> Vec<HashSet<usize>> {
    let mut wanted = vec![HashSet::new(); kinds.len()];
    for piece in kinds.iter().flatten().flat_map(|line| &line.pieces) {
        visit(piece, &mut |piece| {
            if let Piece::Parent { lines, .. } = piece {
                for (wanted, lines) in wanted.iter_mut().zip(lines) {
                    wanted.extend(lines);
                }
            }
        });
    }
    wanted
}

/// Calls with a piece and those in it.
fn visit(piece: &Piece, with: &mut dyn FnMut(&Piece)) {
    with(piece);
    if let Piece::Encoded { pieces, .. } = piece {
        pieces.iter().for_each(|piece| visit(piece, with));
    }
}

/// Puts the lines of a kind in order, and says what else can be known beforehand.
pub(super) fn arrange(
    sections: &Sections,
    draft: &Draft,
    lines: Vec<Line>,
    wanted: &[HashSet<usize>],
    plan: &Plan,
) -> Result<Kind, TemplateError> {
    let rdn = rdn(sections, draft, &lines)?;
    let mut sorter =
        Sorter { sections, draft, lines: &lines, state: vec![State::New; lines.len()], depth: 0 };
    let mut order = Order::default();
    for line in rdn.iter().flat_map(|(_, lines)| lines) {
        sorter.visit(*line, Part::Name, &mut order.name)?;
    }
    let mut wanted: Vec<usize> =
        wanted.get(plan.kinds.len()).into_iter().flatten().copied().collect();
    wanted.sort_unstable();
    for line in wanted {
        sorter.visit(line, Part::Inherited, &mut order.inherited)?;
    }
    for line in 0..lines.len() {
        sorter.visit(line, Part::Rest, &mut order.rest)?;
    }
    let mut kind = Kind {
        name: draft.name.clone(),
        place: draft.place,
        dn: draft.dn.clone(),
        rdn,
        lines,
        order,
        attributes: Vec::new(),
        ldif: Vec::new(),
        kids: Vec::new(),
        totals: Vec::new(),
        leads: Vec::new(),
        uses_names: false,
    };
    find_plain(&mut kind, plan);
    group(&mut kind);
    kind.ldif = steps(&kind.lines);
    for order in [&mut kind.order.name, &mut kind.order.inherited, &mut kind.order.rest] {
        order.retain(|line| kind.lines.get(*line).is_some_and(|line| !line.is_fixed));
    }
    Ok(kind)
}

/// The lines of the attributes that make the name.
fn rdn(
    sections: &Sections,
    draft: &Draft,
    lines: &[Line],
) -> Result<Vec<(String, Vec<usize>)>, TemplateError> {
    if draft.dn.is_some() {
        return Ok(Vec::new());
    }
    let Some((attributes, place)) = &draft.rdn else {
        let name = &draft.name;
        let why =
            format!("template {name} does not say which attribute names its entries: rdnAttr: uid");
        return Err(sections.error(draft.place, why));
    };
    let mut rdn = Vec::new();
    for attribute in attributes {
        let is_it = |line: &Line| line.attribute.eq_ignore_ascii_case(attribute);
        let of_it: Vec<usize> =
            lines.iter().enumerate().filter(|(_, it)| is_it(it)).map(|(at, _)| at).collect();
        let always = of_it.iter().filter_map(|at| lines.get(*at));
        if !always.into_iter().any(|line| line.conditions.is_empty()) {
            let why = match of_it.is_empty() {
                true => format!("no line of template {} is of {attribute}", draft.name),
                false => format!("{attribute} names the entries, and so must be there always"),
            };
            return Err(sections.error(*place, why));
        }
        rdn.push((attribute.clone(), of_it));
    }
    Ok(rdn)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// The purposes of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Name,
    Inherited,
    Rest,
}

struct Sorter<'a> {
    sections: &'a Sections,
    draft: &'a Draft,
    lines: &'a [Line],
    state: Vec<State>,
    /// How many lines are open.
    depth: usize,
}

impl Sorter<'_> {
    fn visit(
        &mut self,
        at: usize,
        part: Part,
        order: &mut Vec<usize>,
    ) -> Result<(), TemplateError> {
        match self.state.get(at) {
            Some(State::New) => {}
            Some(State::Open) => {
                return Err(self.error(at, "the attributes take values of each other in a circle"));
            }
            _ => return Ok(()),
        }
        let Some(line) = self.lines.get(at) else { return Ok(()) };
        if self.depth >= CHAIN_MAX {
            let why = format!("more than {CHAIN_MAX} lines take values one of the other");
            return Err(self.error(at, &why));
        }
        self.depth += 1;
        self.set(at, State::Open);
        self.may_be_in(at, line, part)?;
        for other in needs(line) {
            self.visit(other, part, order)?;
        }
        self.depth -= 1;
        self.set(at, State::Done);
        order.push(at);
        Ok(())
    }

    fn set(&mut self, at: usize, state: State) {
        if let Some(place) = self.state.get_mut(at) {
            *place = state;
        }
    }

    fn may_be_in(&self, at: usize, line: &Line, part: Part) -> Result<(), TemplateError> {
        let mut why = None;
        for piece in &line.pieces {
            visit(piece, &mut |piece| match (part, piece) {
                (Part::Name, Piece::Dn { .. } | Piece::Rdn { .. }) => {
                    why = Some("the entry's name cannot be made of itself");
                }
                (Part::Name, Piece::Reference) => {
                    why = Some("the entry's name cannot be made of other entries' names");
                }
                (Part::Name | Part::Inherited, Piece::Exec(_)) => {
                    why = Some(
                        "a value that others refer to cannot come from <exec>, whose output may change",
                    );
                }
                (Part::Inherited, Piece::Reference) => {
                    why = Some(
                        "entries below take a value of this line, and so it can have no <ref>",
                    );
                }
                _ => {}
            });
        }
        why.map_or(Ok(()), |why| Err(self.error(at, why)))
    }

    fn error(&self, at: usize, why: &str) -> TemplateError {
        let place = self.draft.lines.get(at).map_or(self.draft.place, |line| line.place);
        self.sections.error(place, why)
    }
}

/// The lines that a line takes values of.
fn needs(line: &Line) -> Vec<usize> {
    let mut all = Vec::new();
    for condition in &line.conditions {
        if let Condition::If { lines, .. } = condition {
            all.extend(lines);
        }
    }
    for piece in &line.pieces {
        visit(piece, &mut |piece| {
            if let Piece::Attribute { lines, .. } = piece {
                all.extend(lines);
            }
        });
    }
    all
}

/// Finds the lines whose values need no look before they go into LDIF.
fn find_plain(kind: &mut Kind, plan: &Plan) {
    let Order { name, inherited, rest } = &kind.order;
    let order: Vec<usize> = [name, inherited, rest].into_iter().flatten().copied().collect();
    for at in order {
        let lines = &kind.lines;
        let is_plain = |other: &[usize]| {
            other
                .iter()
                .filter_map(|at| lines.get(*at))
                .all(|line| line.is_plain && line.conditions.is_empty() && line.times == 1)
        };
        let Some(line) = lines.get(at) else { continue };
        let shapes: Vec<_> = line.pieces.iter().map(|it| it.shape(&is_plain, plan)).collect();
        let plain = shapes.iter().all(|shape| shape.safe)
            && shapes.first().is_some_and(|shape| shape.starts)
            && shapes.last().is_some_and(|shape| shape.ends);
        if let Some(line) = kind.lines.get_mut(at) {
            line.is_plain = plain;
        }
    }
}

fn group(kind: &mut Kind) {
    for (at, line) in kind.lines.iter().enumerate() {
        match kind.attributes.iter_mut().find(|(id, _)| *id == line.id) {
            Some((_, lines)) => lines.push(at),
            None => kind.attributes.push((line.id, vec![at])),
        }
    }
}

/// The steps that write LDIF of the lines.
fn steps(lines: &[Line]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !line.is_fixed {
            steps.push(Step::Line(at));
            continue;
        }
        let mut value = Vec::new();
        line.pieces.iter().for_each(|piece| piece.write_fixed(&mut value));
        if !matches!(steps.last(), Some(Step::Text(_))) {
            steps.push(Step::Text(Vec::new()));
        }
        if let Some(Step::Text(text)) = steps.last_mut() {
            Writer::new(text).value(&line.attribute, &value);
        }
    }
    steps
}
