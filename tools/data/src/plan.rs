//! A template, compiled: branches and templates as a flat list, their lines as instructions, and
//! how many entries each makes. With a seed and a number it says what an entry is.

use crate::list::{List, Table};
use crate::piece::{Condition, Piece};
use crate::reference::Reference;
use crate::template::Place;
use std::sync::Arc;

/// Finds a file that a template names: `None` if there is none, an error in words if it cannot be
/// read.
pub type Lookup<'a> = &'a mut dyn FnMut(&str) -> Result<Option<Vec<u8>>, String>;

/// The options of a template's compilation.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// Every random value is a function of it.
    pub seed: u64,
    /// Constants that replace those of the template.
    pub constants: Vec<(String, String)>,
    /// Most entries that one `subordinateTemplate` line makes below one parent.
    pub per_template_max: Option<u64>,
    /// The table that `<csvfield>` reads.
    pub table: Option<Arc<Table>>,
    /// Whether `<exec>` may start programs.
    pub allow_exec: bool,
    /// Whether names of people have letters beyond ASCII (lists that are built in).
    pub utf8_names: bool,
}

/// A compiled template.
#[derive(Debug)]
pub struct Plan {
    pub(crate) seed: u64,
    /// The files that it was read from.
    pub(crate) files: Vec<String>,
    /// Branches, then templates.
    pub(crate) kinds: Vec<Kind>,
    /// The branches.
    pub(crate) roots: Vec<Kid>,
    pub(crate) first_names: Arc<List>,
    pub(crate) last_names: Arc<List>,
    pub(crate) table: Option<Arc<Table>>,
    pub(crate) entries: u64,
    pub(crate) is_endless: bool,
    pub(crate) warnings: Vec<String>,
}

/// A template that a tree has entries of.
#[derive(Clone, Copy, Debug)]
pub struct Template<'p> {
    /// By which [`crate::Maker::entry_of`] knows it.
    pub number: usize,
    /// Its name.
    pub name: &'p str,
    /// How many entries of it there are; [`crate::limits::ENDLESS`] or more if the template does not say.
    pub entries: u64,
    /// Whether entries of other templates are below its own.
    pub has_below: bool,
}

/// A branch or a template.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// A branch's whole name.
    pub(crate) dn: Option<String>,
    /// The attributes of the RDN, and the lines of each.
    pub(crate) rdn: Vec<(String, Vec<usize>)>,
    pub(crate) lines: Vec<Line>,
    pub(crate) order: Order,
    /// The attributes, each with its lines.
    pub(crate) attributes: Vec<(usize, Vec<usize>)>,
    pub(crate) ldif: Vec<Step>,
    pub(crate) kids: Vec<Kid>,
    /// How many entries of each class are in the subtree of one, itself among them ([`class`]).
    pub(crate) totals: Vec<u64>,
    /// The kinds of entries that can be in that subtree, also where there are none yet.
    pub(crate) leads: Vec<bool>,
    pub(crate) uses_names: bool,
}

/// The classes that are counted separately: all entries, those with names of people, those of each kind.
pub(crate) mod class {
    /// All.
    pub(crate) const ENTRIES: usize = 0;
    /// Those that use up a pair of names.
    pub(crate) const NAMES: usize = 1;
    /// How many classes are before those of the kinds.
    pub(crate) const KINDS: usize = 2;
}

/// The lines that are worked out, in this order: a line after those that it depends on.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// For the name.
    pub(crate) name: Vec<usize>,
    /// For entries below.
    pub(crate) inherited: Vec<usize>,
    /// The rest.
    pub(crate) rest: Vec<usize>,
}

/// So many entries of a kind below each of another.
#[derive(Clone, Debug)]
pub(crate) struct Kid {
    pub(crate) kind: usize,
    pub(crate) count: u64,
    /// How many of this kind are below the same parent already.
    pub(crate) before: u64,
}

/// A line of values.
#[derive(Debug)]
pub(crate) struct Line {
    /// As it was written.
    pub(crate) attribute: String,
    pub(crate) place: Place,
    /// One number for all spellings of an attribute.
    pub(crate) id: usize,
    /// `attribute: `
    pub(crate) prefix: Vec<u8>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) pieces: Vec<Piece>,
    /// How many values it makes.
    pub(crate) times: u64,
    /// The target of `<ref>`.
    pub(crate) reference: Option<Reference>,
    /// Whether its values can stand in LDIF as they are.
    pub(crate) is_plain: bool,
    /// Whether it is the same in every entry.
    pub(crate) is_fixed: bool,
    /// Whether chance is in it.
    pub(crate) is_drawn: bool,
    pub(crate) salt: u64,
}

/// A step that writes LDIF of an entry.
#[derive(Debug)]
pub(crate) enum Step {
    /// Lines that are the same in every entry.
    Text(Vec<u8>),
    /// The values of a line.
    Line(usize),
}

impl Plan {
    /// How many entries it describes.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Whether a subordinate template has no number: the caller has to say how many entries to make.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// Possible slips in the template.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The file that something stands in, as it was named.
    #[must_use]
    pub fn file(&self, place: Place) -> &str {
        self.files.get(place.file).map(String::as_str).unwrap_or_default()
    }

    /// How many entries there are of each branch (by its DN) and each template (by its name).
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.kinds.iter().enumerate().map(|(kind, it)| {
            (it.dn.as_deref().unwrap_or(&it.name), self.total(class::KINDS + kind))
        })
    }

    /// The templates of which the tree has entries, or has a place for some.
    pub fn templates(&self) -> impl Iterator<Item = Template<'_>> {
        let is_placed = |number: usize| {
            let mut kids = self.kinds.iter().flat_map(|kind| &kind.kids);
            kids.any(|kid| kid.kind == number)
        };
        let placed = self.kinds.iter().enumerate().filter(move |(number, _)| is_placed(*number));
        placed.map(|(number, kind)| Template {
            number,
            name: &kind.name,
            entries: self.total(class::KINDS + number),
            has_below: !kind.kids.is_empty(),
        })
    }

    /// How many entries of a class there are.
    pub(crate) fn total(&self, class: usize) -> u64 {
        let of = |kid: &Kid| kid.count.saturating_mul(self.in_subtree(kid.kind, class));
        self.roots.iter().map(of).fold(0, u64::saturating_add)
    }

    /// How many entries of a class are in the subtree of one of this kind.
    pub(crate) fn in_subtree(&self, kind: usize, class: usize) -> u64 {
        self.kinds.get(kind).and_then(|kind| kind.totals.get(class)).copied().unwrap_or_default()
    }

    /// Whether entries of a kind can be in the subtree of one of this kind.
    pub(crate) fn leads(&self, kind: usize, wanted: usize) -> bool {
        self.kinds.get(kind).and_then(|kind| kind.leads.get(wanted)) == Some(&true)
    }

    /// Whether an attribute has chance in it and is not needed for names: what changes change.
    pub(crate) fn is_changeable(&self, kind: &Kind, lines: &[usize]) -> bool {
        let is_named = |line: &usize| kind.order.name.contains(line);
        let is_inherited = |line: &usize| kind.order.inherited.contains(line);
        !lines.iter().any(|line| is_named(line) || is_inherited(line))
            && lines.iter().any(|line| kind.lines.get(*line).is_some_and(|line| line.is_drawn))
    }

    /// All attributes, in the order of the template.
    #[must_use]
    pub fn attributes(&self) -> Vec<&str> {
        let mut all: Vec<(usize, &str)> = Vec::new();
        for line in self.kinds.iter().flat_map(|kind| &kind.lines) {
            if !all.iter().any(|(id, _)| *id == line.id) {
                all.push((line.id, &line.attribute));
            }
        }
        all.into_iter().map(|(_, attribute)| attribute).collect()
    }
}
