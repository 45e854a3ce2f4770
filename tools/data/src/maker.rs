//! Makes entries, one after the other or any of them.

use crate::cursor::Cursor;
use crate::entry::{Entry, Extent};
use crate::error::MakeError;
use crate::plan::{Kind, Plan};
use crate::template::Place;
use std::sync::Arc;

/// Makes the entries of a plan. An entry depends on the plan and its number alone, not on entries made
/// before.
#[derive(Debug)]
pub struct Maker {
    plan: Arc<Plan>,
    cursor: Cursor,
    /// Works out the names of entries that are referred to.
    others: Cursor,
    generation: u64,
    /// Whether the cursor's entry has not been given out yet.
    is_new: bool,
}

/// An entry that was made.
pub struct View<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) entry: &'a Entry,
    pub(crate) plan: &'a Plan,
    index: u64,
    parent: Option<u64>,
}

impl Maker {
    /// One that begins with the entry with this number.
    ///
    /// # Errors
    /// If an entry above it cannot be made.
    pub fn new(plan: Arc<Plan>, from: u64) -> Result<Maker, MakeError> {
        let (cursor, others) = (Cursor::default(), Cursor::default());
        let mut maker = Maker { plan, cursor, others, generation: 0, is_new: true };
        maker.seek(from)?;
        Ok(maker)
    }

    /// Draws the values again that do not belong to an entry's name: another time's state of the
    /// same directory. 0 is the first.
    #[must_use]
    pub fn with_generation(self, generation: u64) -> Maker {
        Maker { generation, ..self }
    }

    /// Goes to the entry with this number.
    ///
    /// # Errors
    /// If an entry above it cannot be made.
    pub fn seek(&mut self, index: u64) -> Result<(), MakeError> {
        self.is_new = true;
        self.cursor.seek(&self.plan, index)
    }

    /// Goes to an entry by its number among those of a branch or template, which is counted as
    /// [`Plan::counts`] has them. Where there is none, the next entry is none.
    ///
    /// # Errors
    /// If an entry above it cannot be made.
    pub fn seek_of(&mut self, kind: usize, number: u64) -> Result<(), MakeError> {
        self.is_new = true;
        self.cursor.seek_of(&self.plan, kind, number)
    }

    /// Makes the next entry; `None` after the last.
    ///
    /// # Errors
    /// If it cannot be made: it is too large, or a command failed.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<View<'_>>, MakeError> {
        if !std::mem::take(&mut self.is_new) {
            self.cursor.advance(&self.plan);
        }
        self.made()
    }

    /// Makes the entry with this number among those of a template ([`Plan::templates`]), from 0. Numbers
    /// beyond those that the template counts are entries too: they go on below the parent of the last.
    /// `None` if the tree has no place for entries of that template.
    ///
    /// # Errors
    /// As [`Maker::next_entry`].
    pub fn entry_of(
        &mut self,
        template: usize,
        number: u64,
    ) -> Result<Option<View<'_>>, MakeError> {
        self.is_new = false;
        self.cursor.seek_on(&self.plan, template, number)?;
        self.made()
    }

    #[inline]
    fn made(&mut self) -> Result<Option<View<'_>>, MakeError> {
        let plan = &*self.plan;
        let Some(index) = self.cursor.index() else { return Ok(None) };
        let others = &mut self.others;
        let mut push_name = |kind: usize, ordinal: u64, text: &mut Vec<u8>| {
            others.push_name(plan, kind, ordinal, text)
        };
        self.cursor.make(plan, Extent::All, self.generation, &mut Some(&mut push_name))?;
        let parent = self.cursor.parent_index();
        Ok(self.cursor.entry(plan).map(|(kind, entry)| View { kind, entry, plan, index, parent }))
    }
}

impl<'a> View<'a> {
    /// Its name.
    #[must_use]
    pub fn dn(&self) -> &'a str {
        &self.entry.dn
    }

    /// Its number, from 0.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The number of the entry above it; `None` of a branch.
    #[must_use]
    pub fn parent(&self) -> Option<u64> {
        self.parent
    }

    /// Where the branch or template is that it is made of.
    #[must_use]
    pub fn place(&self) -> Place {
        self.kind.place
    }

    /// The lines that made it: where each stands, its attribute, its values here, which may be none.
    pub fn lines(&self) -> impl Iterator<Item = (Place, &'a str, impl Iterator<Item = &'a [u8]>)> {
        let entry = self.entry;
        let lines = self.kind.lines.iter().enumerate();
        lines.map(move |(at, line)| (line.place, line.attribute.as_str(), entry.values(at)))
    }

    /// Attributes with their values, each attribute once, in the order of the template.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, impl Iterator<Item = &'a [u8]>)> {
        let (kind, entry) = (self.kind, self.entry);
        kind.attributes.iter().filter_map(move |(_, lines)| {
            let name = lines.first().and_then(|line| kind.lines.get(*line))?;
            let values = lines.iter().flat_map(move |line| entry.values(*line));
            lines
                .iter()
                .any(|line| entry.values(*line).next().is_some())
                .then_some((name.attribute.as_str(), values))
        })
    }

    /// The values of an attribute, whatever case its name is written in.
    pub fn values<'b>(&self, attribute: &'b str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'b> {
        let (kind, entry) = (self.kind, self.entry);
        let lines = kind.lines.iter().enumerate();
        lines
            .filter(|(_, line)| line.attribute.eq_ignore_ascii_case(attribute))
            .flat_map(move |(at, _)| entry.values(at))
    }
}
