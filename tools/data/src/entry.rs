//! One entry: the buffers of its name and of the values of its lines.

use crate::plan::Kind;

/// Buffers that one entry after another is made in.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) dn: String,
    /// All values, one after the other; those that never change first.
    pub(crate) text: Vec<u8>,
    /// Where in the text each value is.
    pub(crate) spans: Vec<(usize, usize)>,
    /// The part of those that each line has: the first, and how many.
    pub(crate) of_line: Vec<(usize, usize)>,
    /// The kind of entry whose values that never change are there, and how much that is.
    prepared: Option<usize>,
    fixed_bytes: usize,
    fixed_spans: usize,
}

/// How much of an entry is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    Name,
    /// And what entries below ask for.
    Inherited,
    All,
}

impl Entry {
    /// The values of a line.
    #[inline]
    pub(crate) fn values(&self, line: usize) -> impl Iterator<Item = &[u8]> {
        let (first, count) = self.of_line.get(line).copied().unwrap_or_default();
        let spans = self.spans.get(first..first + count).unwrap_or_default();
        spans.iter().map(|(from, to)| self.text.get(*from..*to).unwrap_or_default())
    }

    /// Where the first value of these lines is.
    #[inline]
    pub(crate) fn first_of(&self, lines: &[usize]) -> Option<(usize, usize)> {
        lines.iter().find_map(|line| match self.of_line.get(*line) {
            Some((first, 1..)) => self.spans.get(*first).copied(),
            _ => None,
        })
    }

    /// Puts in what is the same for all entries of a kind.
    pub(crate) fn prepare(&mut self, number: usize, kind: &Kind) {
        // Mostly the entry before was of the same kind, and its fixed values are still there.
        if self.prepared != Some(number) {
            self.text.clear();
            self.spans.clear();
            self.of_line.clear();
            for line in &kind.lines {
                let first = self.spans.len();
                if line.is_fixed {
                    let from = self.text.len();
                    line.pieces.iter().for_each(|piece| piece.write_fixed(&mut self.text));
                    self.spans.push((from, self.text.len()));
                }
                self.of_line.push((first, usize::from(line.is_fixed)));
            }
            (self.fixed_bytes, self.fixed_spans) = (self.text.len(), self.spans.len());
            self.prepared = Some(number);
        }
        self.text.truncate(self.fixed_bytes);
        self.spans.truncate(self.fixed_spans);
    }
}

/// An entry of the path.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) kind: usize,
    /// The number of the parent's subordinate template, and of its entry.
    pub(crate) slot: usize,
    pub(crate) child: u64,
    pub(crate) index: u64,
    /// How many entries of its kind come before it, how many with names.
    pub(crate) ordinal: u64,
    pub(crate) names: u64,
    pub(crate) in_parent: u64,
    pub(crate) entry: Entry,
    /// The entry that is in `entry`, and how much of it.
    pub(crate) made: Option<(u64, Extent)>,
}
