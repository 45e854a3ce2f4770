//! One operation: its messages as trees, their octets, and all of it in words.

use crate::Kept;
use crate::tree::{Node, tree};
use crate::view::{Full, View};
use std::collections::BTreeSet;

/// The part of it that is shown where there is no room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailTab {
    /// The elements of its messages.
    Tree,
    /// Its octets.
    Octets,
    /// All of it in words.
    Words,
}

/// A line of the tree: an element, or the begin of a message.
#[derive(Debug)]
pub struct DetailRow {
    /// The message's number.
    pub message: usize,
    /// `None` where a message begins.
    pub node: Option<Node>,
    /// Whether there are elements within it.
    pub has_children: bool,
}

/// An operation that is looked at.
#[derive(Debug)]
pub struct OperationDetail {
    /// The number of its item.
    pub number: u64,
    messages: Vec<Vec<u8>>,
    titles: Vec<String>,
    rows: Vec<DetailRow>,
    folded: BTreeSet<usize>,
    words: Vec<String>,
    /// The part that is shown where there is no room for all.
    pub tab: DetailTab,
    /// The row that is looked at, of all.
    selected: usize,
    /// The first row on the screen.
    pub top: usize,
    /// The first line in words on the screen.
    pub words_top: usize,
}

/// So many answers are shown as trees; all are in the words.
const MESSAGES_MAX: usize = 1000;

impl OperationDetail {
    /// The one that is looked at, with this number.
    #[must_use]
    pub fn new(number: u64, kept: &Kept, tab: DetailTab) -> OperationDetail {
        let messages: Vec<Vec<u8>> =
            kept.messages().take(MESSAGES_MAX).map(<[u8]>::to_vec).collect();
        let operation = kept.operation();
        let titles = titles(messages.len(), operation.request.op().is_some());
        let mut rows = Vec::new();
        for (message, octets) in messages.iter().enumerate() {
            rows.push(DetailRow { message, node: None, has_children: true });
            let nodes = tree(octets);
            let deeper: Vec<bool> =
                nodes.windows(2).map(|pair| matches!(pair, [a, b] if b.depth > a.depth)).collect();
            for (index, node) in nodes.into_iter().enumerate() {
                let has_children = deeper.get(index).copied().unwrap_or_default();
                rows.push(DetailRow { message, node: Some(node), has_children });
            }
        }
        let mut words = Vec::new();
        Full.operation(&operation, &mut words);
        let words = String::from_utf8_lossy(&words).lines().map(str::to_owned).collect();
        OperationDetail {
            number,
            messages,
            titles,
            rows,
            folded: BTreeSet::new(),
            words,
            tab,
            selected: 0,
            top: 0,
            words_top: 0,
        }
    }

    /// The rows that no fold hides, with their numbers.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &DetailRow)> {
        let mut hidden_below: Option<usize> = None;
        self.rows.iter().enumerate().filter(move |(index, row)| {
            let depth = row.node.as_ref().map_or(0, |node| node.depth + 1);
            if hidden_below.is_some_and(|folded| depth > folded) {
                return false;
            }
            hidden_below = self.folded.contains(index).then_some(depth);
            true
        })
    }

    /// Whether what is within this row is hidden.
    #[must_use]
    pub fn is_folded(&self, row: usize) -> bool {
        self.folded.contains(&row)
    }

    /// The row that is looked at, of all.
    #[must_use]
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// The title of a message.
    #[must_use]
    pub fn title(&self, message: usize) -> &str {
        self.titles.get(message).map_or("", String::as_str)
    }

    /// All of it in words, a line each.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The octets of the message that is looked at, and which of them are of the element.
    #[must_use]
    pub fn octets(&self) -> (&[u8], std::ops::Range<usize>) {
        let row = self.rows.get(self.selected);
        let octets = row.and_then(|row| self.messages.get(row.message));
        let place = row.and_then(|row| row.node.as_ref()).map(|node| node.place.clone());
        (octets.map_or(&[][..], Vec::as_slice), place.unwrap_or_default())
    }

    /// Goes so many rows on.
    pub fn go(&mut self, by: isize) {
        if self.tab == DetailTab::Words {
            let last = self.words.len().saturating_sub(1);
            self.words_top = self.words_top.saturating_add_signed(by).min(last);
            return;
        }
        let rows: Vec<usize> = self.rows().map(|(index, _)| index).collect();
        let at = rows.binary_search(&self.selected).unwrap_or_default();
        let to = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.selected = rows.get(to).copied().unwrap_or_default();
    }

    /// Folds the element that is looked at, or shows again what is in it.
    pub fn fold(&mut self) {
        let row = self.selected;
        if self.rows.get(row).is_some_and(|row| row.has_children) && !self.folded.remove(&row) {
            self.folded.insert(row);
        }
    }

    /// Has the row that is looked at on a screen of so many lines.
    pub fn scroll(&mut self, lines: usize) {
        let at = self.rows().position(|(index, _)| index == self.selected).unwrap_or_default();
        let least = (at + 1).saturating_sub(lines);
        self.top = self.top.clamp(least, at.max(least));
    }
}

fn titles(messages: usize, has_request: bool) -> Vec<String> {
    let name = |index| match (index, has_request) {
        (0, true) => "request".to_owned(),
        (index, _) if index + 1 == messages => "last answer".to_owned(),
        (index, true) => format!("answer {index}"),
        (index, false) => format!("answer {}", index + 1),
    };
    (0..messages).map(name).collect()
}
