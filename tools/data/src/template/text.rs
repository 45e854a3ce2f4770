//! A line of a template, which knows where each of its characters was in the file.

use crate::limits::EXPANDED_BYTES_MAX;
use std::collections::{HashMap, HashSet};

/// Where something is in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the file ([`crate::Plan::file`]).
    pub file: usize,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
}

/// A stretch of the text that was one in the file.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    at: usize,
    place: Place,
    /// Whether columns count on in it; they do not in a constant's value.
    is_written: bool,
}

/// A line, with the lines that continue it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    pub(crate) text: String,
    stretches: Vec<Stretch>,
}

impl Text {
    pub(crate) fn new(text: &str, place: Place) -> Text {
        let mut line = Text::default();
        line.append(text, place, true);
        line
    }

    /// A line that the compiler adds.
    pub(crate) fn made(text: &str, place: Place) -> Text {
        let mut line = Text::default();
        line.append(text, place, false);
        line
    }

    pub(crate) fn append(&mut self, text: &str, place: Place, is_written: bool) {
        self.stretches.push(Stretch { at: self.text.len(), place, is_written });
        self.text.push_str(text);
    }

    /// Where the character at this byte was.
    pub(crate) fn place(&self, at: usize) -> Place {
        let stretch = self.stretches.iter().rev().find(|stretch| stretch.at <= at);
        let Some(stretch) = stretch else { return Place { file: 0, line: 1, column: 1 } };
        let before = self.text.get(stretch.at..at).unwrap_or_default();
        let moved = if stretch.is_written { before.chars().count() as u32 } else { 0 };
        Place { column: stretch.place.column + moved, ..stretch.place }
    }

    /// A part of it, in bytes.
    pub(crate) fn part(&self, from: usize, to: usize) -> Text {
        let mut part = Text::default();
        let text = self.text.get(from..to).unwrap_or_default();
        let first = self.stretches.iter().rposition(|stretch| stretch.at <= from).unwrap_or(0);
        for stretch in self.stretches.iter().skip(first).take_while(|it| it.at <= to.max(from)) {
            let at = stretch.at.max(from);
            part.stretches.push(Stretch { at: at - from, place: self.place(at), ..*stretch });
        }
        part.text.push_str(text);
        part
    }

    /// The text with `[name]` replaced by the constant of that name, and the names that do not exist.
    /// Names of constants that exist go into `used`, in lower case. Replacing ends when the line is
    /// longer than one may be.
    pub(crate) fn expanded(
        &self,
        constants: &HashMap<String, String>,
        used: &mut HashSet<String>,
    ) -> (Text, Vec<Place>) {
        let mut out = Text::default();
        let mut unknown = Vec::new();
        let (mut done, mut from) = (0, 0);
        while let Some(open) = find(&self.text, from, '[')
            && out.text.len() <= EXPANDED_BYTES_MAX
        {
            // Two backslashes are one, which takes no meaning from anything.
            let before = self.text.get(..open).unwrap_or_default().bytes().rev();
            let escaped = before.take_while(|byte| *byte == b'\\').count() % 2 == 1;
            let close = find(&self.text, open + 1, ']');
            let Some(close) = close.filter(|_| !escaped) else {
                from = open + 1;
                continue;
            };
            let name = self.text.get(open + 1..close).unwrap_or_default();
            let lower = name.to_ascii_lowercase();
            match constants.get(&lower) {
                Some(value) => {
                    used.insert(lower);
                    out.take(self, done, open);
                    out.append(value, self.place(open), false);
                    (done, from) = (close + 1, close + 1);
                }
                None => {
                    if is_name(name) {
                        unknown.push(self.place(open));
                    }
                    from = open + 1;
                }
            }
        }
        out.take(self, done, self.text.len());
        (out, unknown)
    }

    /// Appends a part of another line.
    fn take(&mut self, other: &Text, from: usize, to: usize) {
        let part = other.part(from, to);
        let base = self.text.len();
        self.stretches.extend(part.stretches.iter().map(|it| Stretch { at: it.at + base, ..*it }));
        self.text.push_str(&part.text);
    }
}

fn find(text: &str, from: usize, what: char) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| at + from)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
